"""Made-up rows have every type, meet the constants of a query, and keep to NOT NULL and to keys."""

from __future__ import annotations

import pytest
from sqlglot import exp

from viewkeeper.maintenance.sample_rows import ROWS, constants_in, sample_rows
from viewkeeper.sql.binding import Column
from viewkeeper.sql.rendering import render
from viewkeeper.sql.script import parse_sql
from viewkeeper.sql.types import read_type_text

TYPES = [
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(3,2)", "STRING", "CHAR(3)", "VARCHAR(4)",
    "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "VARIANT", "ARRAY<INT>", "MAP<STRING, DOUBLE>", "STRUCT<`a`: INT, `b`: ARRAY<DATE>>",
]  # fmt: skip


def values_of(
    column: Column, keys: frozenset[str] = frozenset(), constants: tuple[str | int, ...] = ()
) -> list[str]:
    query = sample_rows([column], keys, constants)
    (rows,) = query.find_all(exp.Values)
    return [render(each.expressions[0], pretty=False) for each in rows.expressions]


@pytest.mark.parametrize("text", TYPES)
def test_every_type_has_different_values_and_null(text: str) -> None:
    column = Column("a", read_type_text(text))
    found = values_of(column)
    assert len(found) == ROWS
    assert len(set(found)) >= 3
    assert [each for each in found if "NULL" in each]
    assert not [each for each in values_of(Column("a", column.data_type, nullable=False)) if "NULL" in each]


@pytest.mark.parametrize("text", ["INT", "STRING", "DATE", "DECIMAL(5,0)", "CHAR(3)"])
def test_keys_differ_from_row_to_row(text: str) -> None:
    assert len(set(values_of(Column("a", read_type_text(text)), frozenset({"a"})))) == ROWS


def test_rows_meet_the_constants_of_a_query() -> None:
    constants = constants_in(parse_sql("SELECT 1 FROM t WHERE x = 77 AND s = 'north' AND d > '2020-05-05'"))
    assert set(constants) == {1, 77, "north", "2020-05-05"}
    for text, wanted in (("INT", "77"), ("STRING", "north"), ("DATE", "2020-05-05")):
        assert any(
            wanted in each for each in values_of(Column("a", read_type_text(text)), constants=constants)
        )


def test_no_rows() -> None:
    query = sample_rows([Column("a", read_type_text("INT"))], frozenset(), (), 0)
    assert render(query, pretty=False).endswith("WHERE FALSE")
