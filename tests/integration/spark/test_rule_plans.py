"""The step that holds all rules of a refresh gives the same rows on Spark as on DuckDB: subqueries in subqueries, checks, set
operations. DuckDB's are compared with recomputation in tests/properties/test_rules.py."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from tests.maintenance.test_rules import VIEWS
from tests.support.airline import EXAMPLE_VIEWS, WITH_MORE_TABLES, with_trust
from tests.support.random_selects import TABLES, random_keyed_select
from tests.support.rule_runner import answers, transition
from viewkeeper.execution.input_changes import schema_text
from viewkeeper.maintenance.plan import Derive, MaintenancePlan
from viewkeeper.maintenance.rules.plan_rules import plan_by_rules
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.testing import Case, case_for_view
from viewkeeper.testing.agreement import definition
from viewkeeper.testing.bags import Row, compare_bags
from viewkeeper.testing.duckdb_runner import fill, to_duckdb

pytestmark = pytest.mark.spark

RANDOM_VIEWS = 6


def cases() -> Iterator[Case]:
    trusted = with_trust(WITH_MORE_TABLES)
    for text in (*EXAMPLE_VIEWS.values(), *(view.text for view in VIEWS.values())):
        yield case_for_view(trusted, text, 1991)
    for number in range(RANDOM_VIEWS):
        yield case_for_view(with_trust(TABLES), random_keyed_select(random.Random(number)), number)


def planned(database: duckdb.DuckDBPyConnection, case: Case) -> tuple[ViewDefinition, MaintenancePlan] | None:
    """The view, and the plan for everything that changes from the first to the last moment of its stream."""
    view = definition(database, replace(case, is_trusted=True))
    states = transition(case.schema, case.stream[0], case.stream[-1])
    read = {each.object_id for each in view.query.inputs}
    kinds = {name: state.kinds for name, state in states.items() if state.kinds and name in read}
    plan = plan_by_rules(view, kinds, frozenset(), "")
    return None if plan is None else (view, plan)


def test_spark_and_duckdb_agree_on_what_rules_find(spark: Any) -> None:
    compared = found_rows = 0
    with duckdb.connect() as database:
        for case in cases():
            found = planned(database, case)
            if found is None:
                continue
            view, plan = found
            before = answers(database, case)[0]
            states = transition(case.schema, case.stream[0], case.stream[-1])
            step = next(each for each in plan.steps if isinstance(each, Derive))
            for read in step.reads:
                is_view = read.object_id == view.id
                rows = before if is_view else states[read.object_id].rows(read.state)
                columns = view.columns if is_view else states[read.object_id].columns
                fill(database, read.relation, columns, rows)
                frame = spark.createDataFrame([tuple(row) for row in rows], schema_text(columns))
                frame.createOrReplaceTempView(f"`{read.relation}`")
            expected = database.execute(to_duckdb(step.sql)).fetchall()
            on_spark: list[Row] = [tuple(row) for row in spark.sql(step.sql).collect()]
            difference = compare_bags(expected, on_spark)
            assert difference.is_empty, f"{case.text}\n{difference}\n{step.sql}"
            compared, found_rows = compared + 1, found_rows + len(expected)
    assert compared > 25 and found_rows > 50
