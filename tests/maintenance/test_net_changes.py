"""The net effect of signed rows, run on DuckDB."""

from __future__ import annotations

import duckdb

from viewkeeper.generated_names import SIGN
from viewkeeper.maintenance.net_changes import net_rows
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import Simple
from viewkeeper.testing.duckdb_runner import fill, to_duckdb

COLUMNS = [Column("id", Simple("INT")), Column("d", Simple("DOUBLE"))]


def _net(*signed: tuple[object, ...]) -> list[str]:
    with duckdb.connect() as database:
        fill(database, "signed", [*COLUMNS, Column(SIGN, Simple("INT"))], signed)
        return sorted(map(repr, database.execute(to_duckdb(net_rows("signed", COLUMNS))).fetchall()))


def test_rows_that_come_and_go_are_no_change() -> None:
    assert _net((1, 0.5, -1), (1, 0.5, 1), (2, None, 1), (2, None, 1)) == ["(2, None, 2)"]


def test_a_zero_that_changes_its_sign_is_a_change() -> None:
    assert _net((1, 0.0, -1), (1, -0.0, 1), (2, -0.0, 1), (2, -0.0, 1)) == [
        "(1, -0.0, 1)",
        "(1, 0.0, -1)",
        "(2, -0.0, 2)",
    ]


def test_there_is_one_nan() -> None:
    assert _net((1, float("nan"), -1), (1, float("nan"), 1)) == []
