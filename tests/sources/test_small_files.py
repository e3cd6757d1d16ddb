"""Rows found in small Parquet files without Spark are those that Spark finds there, or Spark is left to find them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from viewkeeper.generated_names import FILE, POSITION
from viewkeeper.sources.small_files import MOST_BYTES, MOST_FILES, are_small, rows_with
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import Array, DataType, Simple

COLUMNS = (
    Column("k", Simple("INT")),
    Column("day", Simple("DATE")),
    Column("word", Simple("VARCHAR(9)")),
    Column("price", Simple("DECIMAL(9,2)")),
)
ROWS = pa.table(
    {
        "k": pa.array([1, 2, None, 2], pa.int32()),
        "day": [date(2024, 1, 1), date(1500, 1, 1), None, date(9999, 12, 31)],
        "WORD": ["é", "", None, "x"],
        "price": pa.array([Decimal("1.50"), None, Decimal("0.00"), Decimal("-9.99")], pa.decimal128(9, 2)),
    }
)


def written(folder: Path, name: str, rows: pa.Table, **how: Any) -> str:
    address = str(folder / name)
    pq.write_table(rows, address, **how)
    return address


@pytest.mark.parametrize(
    ("column", "values", "positions"),
    [
        ("k", [2], [1, 3]),
        ("k", [None, 1], [0, 2]),
        ("k", [2**40, 1], [0]),
        ("k", [], []),
        ("day", [date(1500, 1, 1), date(9999, 12, 31)], [1, 3]),
        ("word", ["", "é", "X"], [0, 1]),
        ("word", [None], [2]),
    ],
)
def test_rows_with_some_values(
    tmp_path: Path, column: str, values: Sequence[object], positions: list[int]
) -> None:
    address = written(tmp_path, "a.parquet", ROWS)
    found = rows_with(values, column, COLUMNS, [address])
    assert found is not None
    assert found.column(POSITION).to_pylist() == positions
    assert set(found.column(FILE).to_pylist()) <= {address}
    expected = ROWS.rename_columns([each.name for each in COLUMNS]).take(pa.array(positions, pa.int64()))
    assert found.select([each.name for each in COLUMNS]).to_pylist() == expected.to_pylist()


def test_positions_are_those_in_their_own_file_and_lacking_columns_are_null(tmp_path: Path) -> None:
    """A file written before a column was added does not have it."""
    old = written(tmp_path, "old.parquet", ROWS.select(["k"]))
    new = written(tmp_path, "new.parquet", ROWS, row_group_size=1)
    found = rows_with([2], "k", COLUMNS, [old, new])
    assert found is not None
    assert found.select(["k", "word", FILE, POSITION]).to_pylist() == [
        {"k": 2, "word": None, FILE: old, POSITION: 1},
        {"k": 2, "word": None, FILE: old, POSITION: 3},
        {"k": 2, "word": "", FILE: new, POSITION: 1},
        {"k": 2, "word": "x", FILE: new, POSITION: 3},
    ]
    by_lacking = rows_with([None], "word", COLUMNS, [old])
    assert by_lacking is not None
    assert by_lacking.num_rows == 4


@pytest.mark.parametrize("data_type", [Simple("TIMESTAMP"), Simple("TIMESTAMP_NTZ"), Array(Simple("INT"))])
def test_types_that_arrow_may_read_otherwise_are_left_to_spark(tmp_path: Path, data_type: DataType) -> None:
    address = written(tmp_path, "a.parquet", pa.table({"k": [1], "t": [datetime(2024, 1, 1)]}))
    assert rows_with([1], "k", [COLUMNS[0], Column("t", data_type)], [address]) is None
    assert rows_with([1], "k", COLUMNS[:1], [address]) is not None


def test_files_that_arrow_may_read_otherwise_are_left_to_spark(tmp_path: Path) -> None:
    old_days = ROWS.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    assert rows_with([1], "k", COLUMNS, [written(tmp_path, "old.parquet", old_days)]) is None
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1")
    assert rows_with([1], "k", COLUMNS, [str(broken)]) is None
    assert rows_with([1], "k", COLUMNS, [str(tmp_path / "missing.parquet")]) is None


def test_what_is_small() -> None:
    assert are_small([1] * MOST_FILES)
    assert not are_small([1] * (MOST_FILES + 1))
    assert not are_small([MOST_BYTES, 1])
