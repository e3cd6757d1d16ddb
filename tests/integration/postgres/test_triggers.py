"""The rules as PostgreSQL triggers, on a real server: random statements, and after each the kept table equals the query."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import duckdb
import psycopg
import pytest

from tests.maintenance.test_rules import VIEWS
from tests.support.airline import EXAMPLE_VIEWS, WITH_MORE_TABLES, view_of
from tests.support.postgres_server import postgres_server
from tests.support.random_selects import TABLES, random_selects, random_stack
from viewkeeper.execution.planning import Planner, catalogue_of, planned_views
from viewkeeper.maintenance.rules.merge_views import shared_triggers
from viewkeeper.maintenance.rules.postgres import EmittedView, emit_postgres
from viewkeeper.maintenance.rules.view_rules import rules_for
from viewkeeper.sql.dialect import to_postgres
from viewkeeper.sql.types import Simple
from viewkeeper.testing.bags import compare_bags
from viewkeeper.testing.tables import Schema, Table

pytestmark = pytest.mark.postgres

SEED = int(os.environ.get("VIEWKEEPER_FUZZ_SEED", "1991"))
STATEMENTS = 25
RANDOM_VIEWS = int(os.environ.get("VIEWKEEPER_FUZZ_CASES", "1000")) // 80
TEXTS = {**EXAMPLE_VIEWS, **{name: view.text for name, view in VIEWS.items()}}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@pytest.fixture
def database(server: str) -> Iterator[psycopg.Connection[Any]]:
    """An empty database with the tables."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        connection.execute(";\n".join(map(created, (*WITH_MORE_TABLES.tables, *TABLES.tables))))
        yield connection


def created(table: Table) -> str:
    """The table in PostgreSQL, with its keys."""
    lines = [
        f'"{each.name}" {"text" if each.data_type == Simple("STRING") else each.data_type}'
        f"{'' if each.nullable else ' NOT NULL'}"
        for each in table.columns
    ]
    lines += [
        f"{'PRIMARY KEY' if key.primary else 'UNIQUE'} ({', '.join(key.columns)})" for key in table.keys
    ]
    return f"CREATE TABLE {table.name} ({', '.join(lines)})"


def emitted(name: str, text: str, schema: Schema = WITH_MORE_TABLES) -> EmittedView:
    with duckdb.connect() as planning:
        view = view_of(planning, name, text, schema)
    found = rules_for(view, schema.declarations)
    assert found is not None
    return EmittedView(found.rules, view.query.inputs, text)


def value(generator: random.Random, table: Table, name: str) -> str:
    column = next(each for each in table.columns if each.name == name)
    if column.nullable and generator.random() < 0.25:
        return "NULL"
    match str(column.data_type):
        case "STRING":
            return generator.choice(("'1A'", "'1B'", "'x'"))
        case "DATE":
            return f"DATE '2026-05-0{generator.randint(1, 3)}'"
        case _:
            return str(generator.choice((*range(5), 7, 100)))


def statement(generator: random.Random, table: Table) -> str:
    """A random statement that changes several rows at once, mostly."""
    names = [column.name for column in table.columns]
    kind = generator.random()
    if kind < 0.45:
        rows = [
            f"({', '.join(value(generator, table, name) for name in names)})"
            for _ in range(generator.randint(1, 4))
        ]
        return f"INSERT INTO {table.name} VALUES {', '.join(rows)} ON CONFLICT DO NOTHING"
    chosen = generator.choice(names)
    where = f"{chosen} IS NOT DISTINCT FROM {value(generator, table, chosen)}"
    if kind < 0.75:
        changed = generator.choice(names)
        return f"UPDATE {table.name} SET {changed} = {value(generator, table, changed)} WHERE {where}"
    return f"DELETE FROM {table.name} WHERE {where}" if kind < 0.98 else f"TRUNCATE {table.name}"


def keep_and_compare(
    database: psycopg.Connection[Any], texts: dict[str, str], seed: int, schema: Schema = WITH_MORE_TABLES
) -> int:
    """Run random statements; how many of them changed something."""
    views = [emitted(name, text, schema) for name, text in texts.items()]
    used = {table.object_id for view in views for table in view.inputs}
    tables = [each for each in schema.tables if each.id in used]
    return run_and_compare(database, emit_postgres(views), texts, tables, seed)


def run_and_compare(
    database: psycopg.Connection[Any], script: str, texts: dict[str, str], tables: Sequence[Table], seed: int
) -> int:
    generator = random.Random(seed)
    for table in tables:
        for _ in range(6):
            row = ", ".join(value(generator, table, column.name) for column in table.columns)
            database.execute(f"INSERT INTO {table.name} VALUES ({row}) ON CONFLICT DO NOTHING")
    database.execute(script)
    changed = 0
    for _ in range(STATEMENTS):
        text = statement(generator, generator.choice(tables))
        try:
            changed += database.execute(text).rowcount != 0
        except psycopg.errors.UniqueViolation:
            continue
        for (
            name,
            query,
        ) in texts.items():  # a view over a view comes after it: what it reads has been compared
            expected = database.execute(to_postgres(query)).fetchall()
            kept = database.execute(f"SELECT * FROM {name}").fetchall()
            difference = compare_bags(expected, kept)
            assert difference.is_empty, f"{name} after {text}\n{texts}\n{difference}"
    return changed


def stack_script(texts: dict[str, str], schema: Schema) -> str:
    statements = [f"CREATE MATERIALIZED VIEW {name} AS {text}" for name, text in texts.items()]
    return Planner(catalogue_of(schema.to_sql())).emit_postgres(planned_views(";\n".join(statements)))


@pytest.mark.parametrize("name", TEXTS)
def test_a_view_kept_by_triggers(database: psycopg.Connection[Any], name: str) -> None:
    called = name if name in EXAMPLE_VIEWS else f"kept_{name}"
    assert keep_and_compare(database, {called: TEXTS[name]}, SEED) > 5


@pytest.mark.parametrize("number", range(RANDOM_VIEWS))
def test_a_random_view_kept_by_triggers(database: psycopg.Connection[Any], number: int) -> None:
    text = random_selects(random.Random(SEED + number))
    assert keep_and_compare(database, {"kept": text}, SEED + number, TABLES) > 5


STACKS = {
    "one over the other": {
        "meals": EXAMPLE_VIEWS["special_meals"],
        "vegan": "SELECT seat FROM meals WHERE meal = 'x'",
    },
    "with the table below it": {
        "taken": "SELECT flight_id, seat FROM res WHERE seat <> 'x'",
        "mates": "SELECT r.res_id, f.seat FROM res r, taken f WHERE r.flight_id = f.flight_id",
    },
    "not in the view below": {
        "known": "SELECT flight_id FROM flight WHERE flight_no > 1",
        "bad": "SELECT r.res_id FROM res r WHERE r.flight_id NOT IN (SELECT flight_id FROM known)",
        "worse": "SELECT b.res_id FROM bad b, res r WHERE r.res_id = b.res_id AND NOT EXISTS (SELECT 1 FROM known k WHERE k.flight_id = r.psgr_id)",
    },
    "copies over copies": {
        "seats": "SELECT seat FROM res",
        "pairs": "SELECT s.seat, r.flight_id FROM seats s, res r WHERE s.seat = r.seat",
        "seen": "SELECT DISTINCT seat FROM pairs",
    },
    "two over one, and one over both": {
        "a": "SELECT psgr_id, flight_id FROM res WHERE flight_id < 5",
        "b": "SELECT psgr_id, seat FROM res",
        "c": "SELECT a.psgr_id, b.seat FROM a, b WHERE a.psgr_id = b.psgr_id AND EXISTS (SELECT 1 FROM res WHERE res.psgr_id = a.flight_id)",
    },
    "over groups": {
        "counts": "SELECT flight_id, count(*) AS n FROM res GROUP BY flight_id",
        "busy": "SELECT f.flight_no, f.date, c.n FROM flight f, counts c WHERE f.flight_id = c.flight_id AND c.n > 1",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", STACKS)
def test_views_over_views_kept_by_triggers(database: psycopg.Connection[Any], name: str) -> None:
    for seed in range(SEED, SEED + 4):
        database.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        database.execute(";\n".join(map(created, WITH_MORE_TABLES.tables)))
        script = stack_script(STACKS[name], WITH_MORE_TABLES)
        tables = [each for each in WITH_MORE_TABLES.tables if f'ON "{each.name}"' in script]
        assert run_and_compare(database, script, STACKS[name], tables, seed) > 5


@pytest.mark.parametrize("number", range(RANDOM_VIEWS * 2))
def test_random_views_over_views_kept_by_triggers(database: psycopg.Connection[Any], number: int) -> None:
    texts = random_stack(random.Random(SEED + number))
    script = stack_script(texts, TABLES)
    tables = [each for each in TABLES.tables if f'ON "{each.name}"' in script]
    assert run_and_compare(database, script, texts, tables, SEED + number) > 3


def test_in_the_other_order_a_view_over_a_view_goes_wrong(database: psycopg.Connection[Any]) -> None:
    """The views above must react first: else they meet a table that has changed with a view below that has too."""
    views = STACKS["copies over copies"]
    statements = [f"CREATE MATERIALIZED VIEW {name} AS {text}" for name, text in views.items()]
    planner = Planner(catalogue_of(WITH_MORE_TABLES.to_sql()))

    def below_first(views: Iterable[Any]) -> Any:
        return shared_triggers(list(views)[::-1])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("viewkeeper.maintenance.rules.postgres.shared_triggers", below_first)
        script = planner.emit_postgres(planned_views(";\n".join(statements)))
    tables = [each for each in WITH_MORE_TABLES.tables if each.id == "res"]
    with pytest.raises(AssertionError, match="pairs after"):
        for seed in range(20):
            database.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            database.execute(";\n".join(map(created, WITH_MORE_TABLES.tables)))
            run_and_compare(database, script, views, tables, seed)


def test_all_four_views_share_the_triggers_of_their_tables(database: psycopg.Connection[Any]) -> None:
    assert keep_and_compare(database, EXAMPLE_VIEWS, SEED) > 5
    triggers = database.execute(
        "SELECT tgrelid::regclass::text, count(*) FROM pg_trigger WHERE NOT tgisinternal GROUP BY 1"
    ).fetchall()
    assert dict(triggers) == {"flight": 4, "res": 4, "psgr": 4, "ff": 4}


def test_an_update_of_other_columns_touches_no_view(database: psycopg.Connection[Any]) -> None:
    database.execute(emit_postgres([emitted("special_meals", EXAMPLE_VIEWS["special_meals"])]))
    database.execute("INSERT INTO psgr VALUES (1, 'a', 'b', 'vegan', 1)")
    database.execute("INSERT INTO res VALUES (1, 1, 7, '1A')")
    before = database.execute("SELECT ctid FROM special_meals").fetchall()
    database.execute("UPDATE psgr SET phone = 'c'")
    assert database.execute("SELECT ctid FROM special_meals").fetchall() == before
    database.execute("UPDATE psgr SET meal = 'kosher'")
    assert database.execute("SELECT * FROM special_meals").fetchall() == [("1A", "kosher")]
