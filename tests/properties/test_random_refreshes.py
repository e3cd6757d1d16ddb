"""Agreement with an oracle: after random changes and a refresh, each view holds exactly its query's bag.

`make fuzz CASES=500` runs more of them. The oracle is Python, over the same rows.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from viewkeeper import Warehouse

pytestmark = [pytest.mark.spark, pytest.mark.timeout(0)]

CASES = int(os.environ.get("VIEWKEEPER_FUZZ_CASES", "4"))
SEED = int(os.environ.get("VIEWKEEPER_FUZZ_SEED", "1996"))

VIEWS = """
CREATE MATERIALIZED VIEW pairs AS SELECT l.v, r.w FROM l JOIN r ON l.k = r.k;
CREATE MATERIALIZED VIEW counts AS SELECT v, count(w) AS n FROM pairs GROUP BY v;
CREATE MATERIALIZED VIEW lonely AS SELECT l.k, l.v FROM l LEFT JOIN r ON l.k = r.k WHERE r.k IS NULL
"""


def _oracle(
    l_rows: list[tuple[Any, Any]], r_rows: list[tuple[Any, Any]]
) -> dict[str, Counter[tuple[Any, ...]]]:
    pairs = [(v, w) for k, v in l_rows for other, w in r_rows if k is not None and k == other]
    groups: dict[Any, int] = {}
    for v, w in pairs:
        groups[v] = groups.get(v, 0) + (w is not None)
    keys = {k for k, _ in r_rows if k is not None}
    lonely = [(k, v) for k, v in l_rows if k not in keys]
    return {"pairs": Counter(pairs), "counts": Counter(groups.items()), "lonely": Counter(lonely)}


def _random_row(generator: random.Random) -> tuple[Any, Any]:
    return generator.choice([None, 1, 2, 3]), generator.choice([None, "a", "b"])


def _literal(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def _random_change(generator: random.Random, table: str, rows: list[tuple[Any, Any]]) -> str:
    """A random statement on a table, and the same done to the rows."""
    kind = generator.choice(["insert", "insert", "delete", "update"])
    other = "v" if table == "l" else "w"
    if kind == "insert":
        new = [_random_row(generator) for _ in range(generator.randint(1, 3))]
        rows.extend(new)
        return f"INSERT INTO {table} VALUES {', '.join(f'({_literal(k)}, {_literal(v)})' for k, v in new)}"
    key = generator.choice([1, 2, 3])
    if kind == "delete":
        rows[:] = [row for row in rows if row[0] != key]
        return f"DELETE FROM {table} WHERE k = {key}"
    value = generator.choice([None, "a", "c"])
    rows[:] = [(k, value) if k == key else (k, v) for k, v in rows]
    return f"UPDATE {table} SET {other} = {_literal(value)} WHERE k = {key}"


@pytest.mark.parametrize("case", range(CASES))
def test_views_equal_their_queries_after_random_changes(case: int, spark: Any, tmp_path: Path) -> None:
    generator = random.Random(SEED * 100_003 + case)
    warehouse = Warehouse(tmp_path / "warehouse", spark)
    warehouse.run_script("CREATE TABLE l (k INT, v STRING); CREATE TABLE r (k INT, w STRING)")
    rows: dict[str, list[tuple[Any, Any]]] = {"l": [], "r": []}
    warehouse.run_script(VIEWS)
    for _ in range(2):
        for _ in range(generator.randint(1, 3)):
            table = generator.choice(["l", "r"])
            warehouse.sql(_random_change(generator, table, rows[table]))
        warehouse.refresh()
        for name, expected in _oracle(rows["l"], rows["r"]).items():
            seen = Counter(tuple(row) for row in warehouse.sql(f"SELECT * FROM {name}").collect())
            assert seen == expected, f"case {case} of seed {SEED}: {name} is wrong"
