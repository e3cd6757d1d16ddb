"""The script of examples/airline on DuckDB: every view is right after every refresh, and those without duplicates go by rules."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from tests.support.airline import EXAMPLE, EXAMPLE_VIEWS, TRUSTED_AIRLINE
from viewkeeper.sql.script import split_script
from viewkeeper.testing import Case, check_case
from viewkeeper.testing.changes import Rows
from viewkeeper.testing.duckdb_runner import fill, to_duckdb


def statements(name: str) -> list[str]:
    return [each.text for each in split_script((EXAMPLE / name).read_text(encoding="utf-8"))]


def rows_at_refreshes() -> Iterator[Rows]:
    """The rows of all tables when the views are created, and at every refresh."""
    with duckdb.connect() as database:
        for table in TRUSTED_AIRLINE.tables:
            fill(database, table.name.name, table.columns, ())

        def rows() -> Rows:
            return {
                table.id: database.execute(f"SELECT * FROM {table.name.name}").fetchall()
                for table in TRUSTED_AIRLINE.tables
            }

        for text in statements("schema.sql"):
            if "INSERT INTO" in text:
                database.execute(to_duckdb(text))
        yield rows()
        for text in statements("changes.sql"):
            if text.startswith("REFRESH"):
                yield rows()
            elif not text.startswith("VERIFY"):
                database.execute(to_duckdb(text))


STREAM = tuple(rows_at_refreshes())


def test_every_table_has_insertions_updates_and_deletions() -> None:
    done = {
        (verb, table.id)
        for text in statements("changes.sql")
        for verb in ("INSERT INTO", "UPDATE", "DELETE FROM")
        for table in TRUSTED_AIRLINE.tables
        if f"{verb} {table.id} " in text
    }
    assert len(done) == 3 * len(TRUSTED_AIRLINE.tables)


@pytest.mark.parametrize(
    ("name", "strategies"),
    [
        ("special_meals", ["rules", "rules", "rules", "rules"]),
        ("ff_res", ["differential", "differential", "differential", "differential"]),
        ("many_miles", ["rules", "rules", "rules", "rules"]),
        ("bad_flight", ["rules", "rules", "rules", "rules"]),
    ],
)
def test_a_view_through_the_script(name: str, strategies: list[str]) -> None:
    case = Case(TRUSTED_AIRLINE, EXAMPLE_VIEWS[name], STREAM, changes_by_key=False, name=name)
    with duckdb.connect() as database:
        outcome = check_case(database, case)
    assert [each.strategy.value for each in outcome.refreshes[: len(strategies)]] == strategies
