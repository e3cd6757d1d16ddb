"""Agreement with an oracle: plans for random views and random changes, run on DuckDB, give the query's bag."""

from __future__ import annotations

import os
import random
from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from tests.support.duckdb_plans import DuckDbRun, TableState, quoted, to_duckdb, to_duckdb_type
from viewkeeper.facts.declared import Declared, TotalForeignKey, UniqueKey
from viewkeeper.maintenance.build_plan import plan_first_load, plan_refresh, why_recomputed
from viewkeeper.maintenance.plan import CheckConstraint, MaintenancePlan, State, Strategy
from viewkeeper.maintenance.stored_shape import with_hidden_columns
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Column, Input, bind_query
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.script import Fragment
from viewkeeper.sql.types import read_type_text

CASES = int(os.environ.get("VIEWKEEPER_FUZZ_CASES", "150"))
SEED = int(os.environ.get("VIEWKEEPER_FUZZ_SEED", "1996"))
# As many cases in one test: enough that every kind of plan must occur among them.
BLOCK = 150

SHAPES = {
    "parent": {"id": "INT", "name": "STRING", "size": "INT"},
    "child": {"id": "INT", "parent_id": "INT", "price": "DECIMAL(10,2)", "note": "STRING"},
    "loose": {"id": "INT", "x": "INT", "note": "STRING"},
}
TABLES = {
    name: Input(
        name,
        QualifiedName("default", name),
        tuple(Column(c, read_type_text(t), c != "id" and c != "parent_id") for c, t in shape.items()),
    )
    for name, shape in SHAPES.items()
}
DECLARED = {
    "parent": Declared((UniqueKey(("id",), "parent_key"),)),
    "child": Declared(
        (UniqueKey(("id",), "child_key"),), (TotalForeignKey(("parent_id",), "parent", ("id",), "child_fk"),)
    ),
}


def random_query(generator: random.Random) -> str:
    """A view of the incremental slice: joins, filters, expressions, groups."""
    aliases: list[tuple[str, str]] = []
    for number in range(generator.randint(1, 3)):
        table = generator.choice(list(SHAPES))
        aliases.append((table, f"{table[0]}{number}"))
    conditions = []
    columns = [f"{alias}.{c}" for table, alias in aliases for c in SHAPES[table]]
    numbers = [c for c in columns if c.split(".")[1] in ("id", "parent_id", "size", "x", "price")]
    integers = [c for c in numbers if not c.endswith("price")]
    for at in range(1, len(aliases)):
        mine = [c for c in integers if c.startswith(f"{aliases[at][1]}.")]
        before = [c for c in integers if c.split(".")[0] in {a for _, a in aliases[:at]}]
        child = next((a for t, a in aliases[:at] if t == "child"), None)
        if aliases[at][0] == "parent" and child is not None and generator.random() < 0.7:
            conditions.append(f"{aliases[at][1]}.id = {child}.parent_id")
        elif generator.random() < 0.9:
            conditions.append(
                f"{generator.choice(mine)} {generator.choice(['=', '=', '=', '<'])} {generator.choice(before)}"
            )
    if generator.random() < 0.5:
        conditions.append(f"{generator.choice(numbers)} {generator.choice(['>', '<=', '<>'])} 2")
    if generator.random() < 0.2:
        conditions.append(f"({generator.choice(columns)} IS NULL OR {generator.choice(integers)} > 1)")
    tables = ", ".join(f"{table} AS {alias}" for table, alias in aliases)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    shape = generator.random()
    if shape < 0.45:
        items = generator.sample(columns, generator.randint(1, min(3, len(columns))))
        shown = [f"{item} AS c{at}" for at, item in enumerate(items)]
        if generator.random() < 0.3:
            shown.append(f"{generator.choice(integers)} + 1 AS plus")
        distinct = "DISTINCT " if generator.random() < 0.2 else ""
        return f"SELECT {distinct}{', '.join(shown)} FROM {tables}{where}"
    keys = generator.sample(columns, generator.randint(0, min(2, len(columns))))
    if keys and generator.random() < 0.15:
        keys[0] = f"{generator.choice(integers)} % 2"
    calls = ["count(*)", *(f"{f}({generator.choice(integers)})" for f in ("sum", "count", "avg"))]
    calls += [f"sum({c})" for c in numbers if c.endswith("price")][:1]
    calls.append(f"count(*) FILTER (WHERE {generator.choice(integers)} > 1)")
    calls.append(f"coalesce(sum({generator.choice(integers)}), 0) + count(*)")
    if generator.random() < 0.25:
        calls += [f"min({generator.choice(columns)})", f"max({generator.choice(integers)})"]
    chosen = generator.sample(calls, generator.randint(1, 3))
    shown_keys = keys if generator.random() < 0.85 else keys[1:]
    shown = [f"{key} AS k{at}" for at, key in enumerate(shown_keys)]
    shown += [f"{each} AS a{at}" for at, each in enumerate(chosen)]
    having = " HAVING count(*) > 1" if generator.random() < 0.1 and keys else ""
    grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join(shown)} FROM {tables}{where}{grouping}{having}"


def random_rows(generator: random.Random, table: str, parents: list[int]) -> list[tuple[Any, ...]]:
    count = generator.choice([0, 1, 3, 6])
    if table == "loose":
        return [
            (generator.randint(0, 3), generator.choice([None, 0, 1, 2]), generator.choice([None, "a", "b"]))
            for _ in range(count)
        ]
    if table == "parent":
        return [
            (i, generator.choice([None, "p", "q"]), generator.choice([None, 1, 2, 3]))
            for i in generator.sample(range(6), min(count, 6))
        ]
    if not parents:
        return []
    return [
        (
            i,
            generator.choice(parents),
            generator.choice([None, Decimal("1.50"), Decimal("2.25"), Decimal("-1.00")]),
            generator.choice([None, "a", "b"]),
        )
        for i in generator.sample(range(8), min(count, 8))
    ]


def random_state(generator: random.Random) -> dict[str, list[tuple[Any, ...]]]:
    parent = random_rows(generator, "parent", [])
    return {
        "parent": parent,
        "child": random_rows(generator, "child", [row[0] for row in parent]),
        "loose": random_rows(generator, "loose", []),
    }


def next_state(
    generator: random.Random, old: dict[str, list[tuple[Any, ...]]]
) -> dict[str, list[tuple[Any, ...]]]:
    """Another state that keeps some of the rows, so that all kinds of changes occur; foreign keys hold."""
    fresh = random_state(generator)
    kept = generator.random()
    parent = {row[0]: row for row in fresh["parent"]} if kept < 0.7 else {}
    parent |= {row[0]: row for row in old["parent"] if generator.random() < 0.6}
    child = {row[0]: row for row in fresh["child"]} | {
        row[0]: row for row in old["child"] if generator.random() < 0.6
    }
    loose = [row for row in old["loose"] if generator.random() < 0.6] + fresh["loose"][:2]
    return {
        "parent": list(parent.values()),
        "child": [row for row in child.values() if row[1] in parent],
        "loose": loose,
    }


def bag_of(
    database: duckdb.DuckDBPyConnection, text: str, state: dict[str, list[tuple[Any, ...]]]
) -> Counter[Any]:
    for name, rows in state.items():
        shape = ", ".join(f"{quoted(c.name)} {to_duckdb_type(c)}" for c in TABLES[name].columns)
        database.execute(f"CREATE OR REPLACE TABLE {name} ({shape})")
        for row in rows:
            database.execute(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in row)})", row)
    return Counter(map(rounded, database.execute(to_duckdb(text)).fetchall()))


def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(round(v, 9) if isinstance(v, float) else v for v in row)


def definition(database: duckdb.DuckDBPyConnection, text: str, trusted: bool) -> ViewDefinition:
    """The view as CREATE would define it; types come from DuckDB here."""
    query = bind_query(Fragment.whole(text), lambda name: TABLES.get(name.name), lambda: list(TABLES))

    def types_of(sql: str) -> list[Column]:
        described = database.execute(f"DESCRIBE {to_duckdb(sql)}").fetchall()
        return [Column(name, spark_type(data_type)) for name, data_type, *_ in described]

    columns = tuple(types_of(text))
    view = ViewDefinition(
        QualifiedName("default", "v"), "v", query, columns, declared=DECLARED if trusted else {}
    )
    return with_hidden_columns(view, types_of)


def spark_type(text: str) -> Any:
    if text == "HUGEINT":
        return read_type_text("BIGINT")
    if text.startswith("DECIMAL(38"):
        return read_type_text("DECIMAL(20,2)")
    return read_type_text({"VARCHAR": "STRING", "INTEGER": "INT"}.get(text, text))


@pytest.fixture(scope="module")
def database() -> Any:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


@pytest.mark.parametrize("first", range(0, CASES, BLOCK))
def test_plans_give_the_bag_of_the_query(database: duckdb.DuckDBPyConnection, first: int) -> None:
    strategies: Counter[str] = Counter()
    dropped = 0
    cases = range(first, min(first + BLOCK, CASES))
    for case in cases:
        generator = random.Random(SEED * 100_003 + case)
        text = random_query(generator)
        trusted = generator.random() < 0.7
        state = random_state(generator)
        bag_of(database, text, state)
        view = definition(database, text, trusted)
        run = DuckDbRun(database, {n: TableState(TABLES[n], rows, rows) for n, rows in state.items()}, view)
        run.run(plan_first_load(view))
        for _ in range(3):
            following = next_state(generator, state)
            run.tables = {
                n: TableState(TABLES[n], state[n], following[n], ("id",) if trusted and n in DECLARED else ())
                for n in state
            }
            kinds = {n: t.kinds() for n, t in run.tables.items() if t.kinds()}
            kinds = {n: k for n, k in kinds.items() if n in {i.object_id for i in view.query.inputs}}
            if kinds:
                plan = plan_refresh(view, kinds)
                strategies[plan.strategy.value] += 1
                run.run(plan)
                assert not run.violations, f"case {case} of seed {SEED}: {text} violates what holds"
                dropped += len(plan.facts)
            state = following
            expected = bag_of(database, text, state)
            seen = Counter(map(rounded, run.visible().elements()))
            assert seen == expected, f"case {case} of seed {SEED}: {text} ({why_recomputed(view)})"
    assert dropped or len(cases) < BLOCK, "no foreign key was of use"
    assert strategies[Strategy.DIFFERENTIAL.value] > strategies[Strategy.RECOMPUTE.value]


class Appended(TableState):
    """A table to which rows were added, whatever their keys."""

    def parts(self) -> dict[State, list[Any]]:
        added = self.new[len(self.old) :]
        none: list[Any] = []
        if not self.key:
            return {State.ADDED: added, State.REMOVED: none}
        return {State.INSERTED: added, State.DELETED: none, State.OLD_UPDATED: none, State.NEW_UPDATED: none}


def test_checks_find_every_violation(database: duckdb.DuckDBPyConnection) -> None:
    """Random states in which keys and foreign keys need not hold: a check finds rows just when they do not."""
    text = "SELECT c.id, p.name FROM child c JOIN parent p ON p.id = c.parent_id"
    bag_of(database, text, {name: [] for name in TABLES})
    view = definition(database, text, trusted=True)
    seen: Counter[bool] = Counter()
    for case in range(CASES):
        generator = random.Random(SEED * 7 + case)
        ids = [generator.randint(0, 3) for _ in range(generator.randint(1, 3))]
        parent = [(i, "p", None) for i in ids]
        child = [(n, generator.randint(0, 3), None, None) for n in range(generator.randint(0, 3))]
        old: dict[str, list[Any]] = {"parent": parent[:1], "child": []}
        new = {"parent": parent, "child": child}
        run = DuckDbRun(
            database,
            {n: Appended(TABLES[n], old[n], new[n], ("id",) if n == "parent" else ()) for n in new},
            view,
        )
        keyed = {State.INSERTED} if len(parent) > 1 else set()
        kinds = {"parent": frozenset(keyed), "child": frozenset({State.ADDED})}
        if not keyed:
            continue
        plan = plan_refresh(view, kinds)
        run.run(
            MaintenancePlan(
                plan.view, plan.strategy, "", tuple(s for s in plan.steps if isinstance(s, CheckConstraint))
            )
        )
        holds = len(set(ids)) == len(ids) and all(row[1] in ids for row in child)
        assert (not run.violations) == holds, f"case {case} of seed {SEED}: {new}"
        seen[holds] += 1
    assert seen[True] and seen[False]
