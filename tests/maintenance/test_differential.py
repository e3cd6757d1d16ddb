"""Differential plans as people read them: golden, with what foreign keys leave out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.golden import check_golden
from viewkeeper.cli.demo import VIEWS
from viewkeeper.facts.declared import Declared, Reliance, TotalForeignKey, UniqueKey
from viewkeeper.maintenance.build_plan import ANY_CHANGE, plan_differential, plan_refresh
from viewkeeper.maintenance.explain import explain_plan, explain_query
from viewkeeper.maintenance.plan import CheckConstraint, MaintenancePlan, State, Strategy
from viewkeeper.maintenance.stored_shape import with_hidden_columns
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Column, Input, bind_query
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.script import Fragment, split_script
from viewkeeper.sql.types import read_type_text

SHAPES = {
    "store": {"store_id": "INT", "city": "STRING", "state": "STRING", "manager": "STRING"},
    "item": {"item_id": "INT", "item_name": "STRING", "category": "STRING", "supplier_name": "STRING"},
    "sale": {"sale_id": "INT", "store_id": "INT", "day": "INT", "month": "INT", "year": "INT"},
    "line": {"line_id": "INT", "sale_id": "INT", "item_id": "INT", "sales_price": "DECIMAL(10,2)"},
    "cal_toy_sales": {
        "manager": "STRING", "sale_id": "INT", "month": "INT", "item_id": "INT", "item_name": "STRING",
        "line_id": "INT", "sales_price": "DECIMAL(10,2)",
    },
    "toy_totals": {"manager": "STRING", "month": "INT", "lines": "BIGINT", "total": "DECIMAL(20,2)"},
}  # fmt: skip
DECLARED = {
    "store": Declared((UniqueKey(("store_id",), "store_pk"),)),
    "item": Declared((UniqueKey(("item_id",), "item_pk"),)),
    "sale": Declared(
        (UniqueKey(("sale_id",), "sale_pk"),),
        (TotalForeignKey(("store_id",), "store", ("store_id",), "sale_store"),),
    ),
    "line": Declared(
        (UniqueKey(("line_id",), "line_pk"),),
        (
            TotalForeignKey(("sale_id",), "sale", ("sale_id",), "line_sale"),
            TotalForeignKey(("item_id",), "item", ("item_id",), "line_item"),
        ),
    ),
}
KEYED = frozenset({State.DELETED, State.INSERTED, State.OLD_UPDATED, State.NEW_UPDATED})


def columns(name: str) -> tuple[Column, ...]:
    return tuple(Column(c, read_type_text(t)) for c, t in SHAPES[name].items())


TABLES = {name: Input(name, QualifiedName("default", name), columns(name)) for name in SHAPES}


def view(name: str, text: str | None = None) -> ViewDefinition:
    if text is None:
        statement = next(s.text for s in split_script(VIEWS) if f"VIEW {name} AS" in s.text)
        text = statement.split(" AS\n", 1)[1]
    query = bind_query(Fragment.whole(text), lambda found: TABLES.get(found.name), lambda: list(TABLES))
    shown = (
        columns(name)
        if name in SHAPES
        else tuple(Column(n, read_type_text("DOUBLE")) for n in query.output_names)
    )
    found = ViewDefinition(QualifiedName("default", name), name, query, shown)
    return with_hidden_columns(
        found,
        lambda sql: [
            Column("_vk_rows", read_type_text("BIGINT")),
            Column("_vk_count_2", read_type_text("BIGINT")),
        ],
    )


def plan(found: ViewDefinition, **changed: frozenset[State]) -> MaintenancePlan:
    return plan_refresh(found, changed)


def test_a_join_of_which_two_tables_changed(request: pytest.FixtureRequest) -> None:
    found = plan(view("cal_toy_sales"), sale=ANY_CHANGE, line=ANY_CHANGE)
    check_golden(request, "\n".join(explain_plan(found, "when sale and line change")), ".txt")


def test_groups_that_are_updated(request: pytest.FixtureRequest) -> None:
    found = plan(view("toy_totals"), cal_toy_sales=ANY_CHANGE)
    check_golden(request, "\n".join(explain_plan(found, "when cal_toy_sales changes")), ".txt")


def test_groups_that_are_read_again(request: pytest.FixtureRequest) -> None:
    most = view("most", "SELECT sale_id, max(sales_price) AS most FROM line GROUP BY sale_id")
    found = plan(replace(most, hidden=()), line=frozenset({State.ADDED}))
    check_golden(request, "\n".join(explain_plan(found, "when line grows")), ".txt")


def test_foreign_keys_leave_out_what_they_make_empty() -> None:
    """Children are deleted before and inserted after their parents, so only halves of updates of parents count."""
    found = replace(view("cal_toy_sales"), declared=DECLARED)
    changed = dict.fromkeys(("store", "item", "sale", "line"), KEYED)
    everything = plan_differential(found, changed, frozenset(), "all changed")
    assert everything.strategy is Strategy.DIFFERENTIAL
    assert [fact.split(" cannot")[0] for fact in everything.facts] == [
        "rows deleted from sale",
        "rows deleted from item",
        "rows deleted from store",
        "rows inserted into store",
        "rows inserted into item",
        "rows inserted into sale",
    ]
    assert everything.facts[-1] == (
        "rows inserted into sale cannot reach the view: no row of line that was there before has such a sale: "
        "foreign key line_sale"
    )
    foreign_keys = {"line_sale", "line_item", "sale_store"}
    assert {each.constraint for each in everything.relies_on} == foreign_keys | {
        "store_pk",
        "item_pk",
        "sale_pk",
    }
    only_new = plan(found, sale=frozenset({State.INSERTED}))
    assert [step.title for step in only_new.steps] == [
        "check line_sale of line: all rows before the changes",
        "check sale_pk of sale: all rows before the changes",
        "check sale_pk of sale: the inserted keys",
    ]


def test_what_is_known_to_hold_is_not_checked_again(request: pytest.FixtureRequest) -> None:
    found = replace(view("cal_toy_sales"), declared=DECLARED)
    verified = frozenset({Reliance("line", "line_sale"), Reliance("sale", "sale_pk")})
    both = plan_refresh(
        found,
        {"sale": frozenset({State.INSERTED, State.DELETED}), "line": frozenset({State.ADDED})},
        None,
        verified,
    )
    assert [step.title for step in both.steps if isinstance(step, CheckConstraint)] == [
        "check line_sale of line: new rows have a parent",
        "check line_sale of line: deleted parents have no children",
        "check sale_pk of sale: the inserted keys",
    ]
    checks = [f"{step.title}\n{step.sql}" for step in both.steps if isinstance(step, CheckConstraint)]
    check_golden(request, "\n\n".join(checks), ".txt")


def test_a_constraint_that_is_trusted_is_not_checked_and_named() -> None:
    line = DECLARED["line"]
    relied = replace(line, foreign_keys=tuple(replace(each, rely=True) for each in line.foreign_keys))
    sale = replace(DECLARED["sale"], keys=(UniqueKey(("sale_id",), "sale_pk", rely=True),))
    found = replace(view("cal_toy_sales"), declared={**DECLARED, "line": relied, "sale": sale})
    new_sales = plan(found, sale=frozenset({State.INSERTED}))
    assert not new_sales.steps, "new sales without lines change nothing, and cost nothing"
    assert new_sales.reason == "sale changed; line_sale, sale_pk trusted without a check (RELY)"


def test_nothing_is_left_out_without_the_keys() -> None:
    assert not plan(view("cal_toy_sales"), sale=KEYED, line=KEYED).facts


def test_updates_of_a_parent_are_never_left_out() -> None:
    found = replace(view("cal_toy_sales"), declared=DECLARED)
    kinds = {"item": frozenset({State.OLD_UPDATED, State.NEW_UPDATED})}
    updated = plan_differential(found, kinds, frozenset(), "item changed")
    assert not updated.facts
    assert "`item_old_updated` AS `item`" in updated.steps[0].sql


def test_a_table_that_is_read_under_two_limits_has_two_names() -> None:
    """In a self-join the same change limits two scans of one table by different columns."""
    thrice = view(
        "thrice",
        "SELECT a.line_id FROM line a, line b, line c WHERE b.sale_id = a.sale_id AND c.item_id = a.line_id",
    )
    found = plan(thrice, line=frozenset({State.ADDED}))
    names = [read.relation for step in found.steps for read in step.reads]
    assert "line_old_by_sale_id_of_line_added" in names
    assert "line_old_by_item_id_of_line_added_line_id" in names
    for step in found.steps:
        assert len({read.relation for read in step.reads}) == len(set(step.reads)), (
            "one relation, one meaning"
        )


def test_explain_tells_how_the_query_is_read_and_what_tells_rows_apart() -> None:
    tickets = view("tickets", "SELECT line_id, sales_price FROM line WHERE sale_id > 1")
    assert explain_query(tickets, DECLARED) == [
        "the query:",
        "  project `line`.`line_id` AS line_id, `line`.`sales_price` AS sales_price\n"
        "    join where `line`.`sale_id` > 1\n"
        "      scan line as line",
        "  line_id determines every row: (line_id) is a key of line",
        "",
    ]
    assert "  its rows may occur more than once" in explain_query(tickets, {})
