"""The SQL of the recompute strategy, golden for plain, hostile and nested columns."""

from __future__ import annotations

import pytest
from sqlglot import exp

from tests.maintenance.helpers import SHAPES, TOTALS_QUERY, columns, definition, load_plan, refresh_plan
from tests.support.golden import check_golden
from viewkeeper.maintenance.bag_changes import signed_difference
from viewkeeper.maintenance.plan import (
    ApplyChangeSet,
    Derive,
    LoadRows,
    MaintenancePlan,
    State,
    Strategy,
    WriteChangeSet,
)
from viewkeeper.maintenance.recompute import plan_load
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.script import parse_sql


def step(plan: MaintenancePlan, kind: type) -> str:
    (found,) = [each.sql for each in plan.steps if type(each) is kind]
    return found


@pytest.mark.parametrize("shape", ["plain", "hostile", "nested"])
def test_bag_difference(shape: str, request: pytest.FixtureRequest) -> None:
    check_golden(request, step(refresh_plan(shape=SHAPES[shape]), WriteChangeSet))


@pytest.mark.parametrize("shape", ["plain", "hostile", "nested"])
def test_merge(shape: str, request: pytest.FixtureRequest) -> None:
    check_golden(request, step(refresh_plan(shape=SHAPES[shape]), ApplyChangeSet))


@pytest.mark.parametrize("shape", ["plain", "hostile", "nested"])
def test_load(shape: str, request: pytest.FixtureRequest) -> None:
    plan = plan_load(definition(view=QualifiedName("default", "v"), shape=SHAPES[shape]), "new")
    check_golden(request, step(plan, LoadRows))


@pytest.mark.parametrize("shape", ["plain", "hostile", "nested"])
def test_signed_difference(shape: str, request: pytest.FixtureRequest) -> None:
    check_golden(request, signed_difference("v_new", "v old", columns(SHAPES[shape])))


@pytest.mark.parametrize("shape", ["plain", "hostile", "nested"])
def test_generated_sql_parses_and_names_every_column(shape: str) -> None:
    plan = refresh_plan(shape=SHAPES[shape])
    for kind in (WriteChangeSet, ApplyChangeSet):
        tree = parse_sql(step(plan, kind))
        named = {column.name for column in tree.find_all(exp.Column)}
        assert set(SHAPES[shape]) <= named


def test_the_steps_of_a_refresh() -> None:
    plan = refresh_plan()
    assert plan.strategy is Strategy.RECOMPUTE
    evaluate, write, apply = plan.steps
    assert isinstance(evaluate, Derive)
    assert isinstance(write, WriteChangeSet)
    assert isinstance(apply, ApplyChangeSet)
    assert evaluate.relation == "totals_query"
    assert [(read.relation, str(read.name), read.state) for read in evaluate.reads] == [
        ("orders_new", "orders", State.NEW)
    ]
    assert [(read.relation, read.object_id, read.state) for read in write.reads] == [
        ("totals_old", "id of the view", State.OLD)
    ]
    assert (apply.target, apply.changes, apply.reads) == ("totals", "totals_changes", ())


def test_the_steps_of_a_first_load() -> None:
    evaluate, load = load_plan().steps
    assert isinstance(evaluate, Derive)
    assert isinstance(load, LoadRows)
    assert load.reads == ()
    assert f"FROM `{evaluate.relation}`" in load.sql


def test_the_query_is_the_users_own_text() -> None:
    sql = step(refresh_plan(), Derive)
    assert sql == TOTALS_QUERY.replace("orders", "`orders_new` AS `orders`")


def tables_read(plan: MaintenancePlan) -> set[str]:
    return {table.name.lower() for each in plan.steps for table in parse_sql(each.sql).find_all(exp.Table)}


@pytest.mark.parametrize(
    ("view", "text", "target"),
    [
        (QualifiedName("default", "v"), "SELECT id FROM orders", "v"),
        (QualifiedName("sales", "v"), "SELECT id FROM orders", "sales_v"),
        (QualifiedName("default", "sales_orders"), "SELECT id FROM sales.orders", "sales_orders2"),
        (QualifiedName("default", "SALES_ORDERS"), "SELECT id FROM sales.orders", "SALES_ORDERS2"),
        (QualifiedName("default", "it`s; --"), "SELECT id FROM orders", "it`s; --"),
    ],
)
def test_the_views_own_relations_differ_from_what_it_reads(
    view: QualifiedName, text: str, target: str
) -> None:
    plan = refresh_plan(text, view, {"id": "INT"})
    evaluate, write, apply = plan.steps
    assert isinstance(apply, ApplyChangeSet)
    assert isinstance(evaluate, Derive)
    assert apply.target == target
    relations = [
        apply.target,
        apply.changes,
        evaluate.relation,
        *(read.relation for each in plan.steps for read in each.reads),
    ]
    assert len({relation.lower() for relation in relations}) == len(relations) == 5
    assert tables_read(plan) == {relation.lower() for relation in relations}
    assert write.reads[0].relation == f"{target}_old"
