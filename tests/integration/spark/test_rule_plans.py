"""The step that holds all rules of a refresh gives the same rows on Spark as on DuckDB: subqueries in subqueries, checks, set
operations. DuckDB's are compared with recomputation in tests/properties/test_rules.py."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from tests.maintenance.test_rules import VIEWS
from tests.support.airline import EXAMPLE_VIEWS, WITH_MORE_TABLES, with_trust
from tests.support.arrow_rows import show_to_spark
from tests.support.random_selects import TABLES, random_keyed_select
from tests.support.rule_runner import answers, transition
from viewkeeper.maintenance.plan import Derive, MaintenancePlan, WriteChangeSet
from viewkeeper.maintenance.rules.plan_rules import plan_by_rules
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import from_delta
from viewkeeper.testing import Case, case_for_view
from viewkeeper.testing.agreement import definition
from viewkeeper.testing.bags import Row, compare_bags
from viewkeeper.testing.changes import Rows
from viewkeeper.testing.duckdb_runner import fill, to_duckdb
from viewkeeper.testing.tables import read_schema

pytestmark = pytest.mark.spark

RANDOM_VIEWS = 6

TYPED = """
CREATE TABLE narrow (id INT NOT NULL, money DECIMAL(6,2), rate DOUBLE, word STRING, PRIMARY KEY (id) RELY);
CREATE TABLE wide (id BIGINT NOT NULL, money DECIMAL(12,4), whole INT, day DATE, PRIMARY KEY (id) RELY)
"""
TYPED_VIEWS = (
    "SELECT id FROM narrow EXCEPT SELECT id FROM wide",
    "SELECT money, id FROM narrow INTERSECT SELECT money, whole FROM wide",
    "SELECT whole, id FROM wide EXCEPT SELECT rate, id FROM narrow",
    "SELECT id + 1 AS n FROM wide INTERSECT SELECT money FROM narrow",
    "(SELECT id AS n FROM narrow UNION SELECT whole FROM wide) EXCEPT SELECT rate FROM narrow WHERE money > 1",
    "(SELECT id AS n FROM narrow INTERSECT SELECT id FROM wide) EXCEPT SELECT money FROM wide WHERE whole > 2",
)
"""Sides of different types: integers, decimals, and what is cast."""


def cases() -> Iterator[Case]:
    trusted = with_trust(WITH_MORE_TABLES)
    for text in (*EXAMPLE_VIEWS.values(), *(view.text for view in VIEWS.values())):
        yield case_for_view(trusted, text, 1991)
    for number in range(RANDOM_VIEWS):
        yield case_for_view(with_trust(TABLES), random_keyed_select(random.Random(number)), number)


def typed_cases(spark: Any) -> Iterator[tuple[Case, tuple[Column, ...]]]:
    """Views whose columns have the types that Spark gives them."""
    schema = read_schema(TYPED)
    for table in schema.tables:
        show_to_spark(spark, table.name.name, [], table.columns)
    for text in TYPED_VIEWS:
        fields = json.loads(spark.sql(text).schema.json())["fields"]
        columns = tuple(Column(each["name"], from_delta(each["type"])) for each in fields)
        for seed in range(3):
            yield case_for_view(schema, text, seed), columns


def planned(
    database: duckdb.DuckDBPyConnection, case: Case, columns: tuple[Column, ...] | None = None
) -> tuple[ViewDefinition, MaintenancePlan] | None:
    """The view, and the plan for everything that changes from the first to the last moment of its stream."""
    view = definition(database, replace(case, is_trusted=True))
    view = view if columns is None else replace(view, columns=columns)
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
                show_to_spark(spark, read.relation, rows, columns)
            expected = database.execute(to_duckdb(step.sql)).fetchall()
            on_spark: list[Row] = [tuple(row) for row in spark.sql(step.sql).collect()]
            difference = compare_bags(expected, on_spark)
            assert difference.is_empty, f"{case.text}\n{difference}\n{step.sql}"
            compared, found_rows = compared + 1, found_rows + len(expected)
    assert compared > 25 and found_rows > 50


def test_sides_of_different_types_are_compared_as_spark_compares_them(spark: Any) -> None:
    """The whole plan against the query, both on Spark: what is in the view after the change set is applied."""
    compared = 0
    with duckdb.connect() as database:
        for case, columns in typed_cases(spark):
            found = planned(database, case, columns)
            if found is None:
                continue
            view, plan = found
            states = transition(case.schema, case.stream[0], case.stream[-1])
            before, after = (answer(spark, case, rows) for rows in (case.stream[0], case.stream[-1]))
            for step in plan.steps:
                for read in step.reads:
                    is_view = read.object_id == view.id
                    rows = before if is_view else states[read.object_id].rows(read.state)
                    shape = view.columns if is_view else states[read.object_id].columns
                    show_to_spark(spark, read.relation, rows, shape)
                if isinstance(step, Derive):
                    spark.sql(step.sql).createOrReplaceTempView(f"`{step.relation}`")
            (changes,) = (each for each in plan.steps if isinstance(each, WriteChangeSet))
            kept = list(before)
            for *row, _, kind in (tuple(each) for each in spark.sql(changes.sql).collect()):
                kept.append(tuple(row)) if kind == "insert" else kept.remove(tuple(row))
            difference = compare_bags(after, kept)
            assert difference.is_empty, f"{case.text}\n{difference}"
            compared += 1
    assert compared >= 12


def answer(spark: Any, case: Case, rows: Rows) -> list[Row]:
    for table in case.schema.tables:
        show_to_spark(spark, table.name.name, rows[table.id], table.columns)
    return [tuple(row) for row in spark.sql(case.text).collect()]
