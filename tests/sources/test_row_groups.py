"""Rows found in Parquet files without Spark are those that Spark finds there, or Spark is left to find them."""

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
from viewkeeper.sources import row_groups
from viewkeeper.sources.row_groups import rows_with
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import Array, DataType, Simple

MANY = 1_000
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
    found = rows_with(values, column, COLUMNS, [address], MANY)
    assert found is not None
    assert found.column(POSITION).to_pylist() == positions
    assert set(found.column(FILE).to_pylist()) <= {address}
    expected = ROWS.rename_columns([each.name for each in COLUMNS]).take(pa.array(positions, pa.int64()))
    assert found.select([each.name for each in COLUMNS]).to_pylist() == expected.to_pylist()


def test_positions_are_those_in_their_own_file_and_lacking_columns_are_null(tmp_path: Path) -> None:
    """A file written before a column was added does not have it."""
    old = written(tmp_path, "old.parquet", ROWS.select(["k"]))
    new = written(tmp_path, "new.parquet", ROWS, row_group_size=1)
    found = rows_with([2], "k", COLUMNS, [old, new], MANY)
    assert found is not None
    assert found.select(["k", "word", FILE, POSITION]).to_pylist() == [
        {"k": 2, "word": None, FILE: old, POSITION: 1},
        {"k": 2, "word": None, FILE: old, POSITION: 3},
        {"k": 2, "word": "", FILE: new, POSITION: 1},
        {"k": 2, "word": "x", FILE: new, POSITION: 3},
    ]
    by_lacking = rows_with([None], "word", COLUMNS, [old], MANY)
    assert by_lacking is not None
    assert by_lacking.num_rows == 4


@pytest.mark.parametrize("data_type", [Simple("TIMESTAMP"), Simple("TIMESTAMP_NTZ"), Array(Simple("INT"))])
def test_types_that_arrow_may_read_otherwise_are_left_to_spark(tmp_path: Path, data_type: DataType) -> None:
    address = written(tmp_path, "a.parquet", pa.table({"k": [1], "t": [datetime(2024, 1, 1)]}))
    assert rows_with([1], "k", [COLUMNS[0], Column("t", data_type)], [address], MANY) is None
    assert rows_with([1], "k", COLUMNS[:1], [address], MANY) is not None


def test_files_that_arrow_may_read_otherwise_are_left_to_spark(tmp_path: Path) -> None:
    old_days = ROWS.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    assert rows_with([1], "k", COLUMNS, [written(tmp_path, "old.parquet", old_days)], MANY) is None
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1")
    assert rows_with([1], "k", COLUMNS, [str(broken)], MANY) is None
    assert rows_with([1], "k", COLUMNS, [str(tmp_path / "missing.parquet")], MANY) is None


@pytest.mark.parametrize(
    ("column", "values", "read"),
    [
        ("k", [25], [2]),
        ("k", [9, 10], [0, 1]),
        ("k", [None], [3]),
        ("k", [None, 5], [0, 3]),
        ("k", [100], []),
    ],
)
def test_only_row_groups_that_can_hold_a_value_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str, values: list[object], read: list[int]
) -> None:
    """Of the fourth row group only the number of NULLs is known: it has nothing else."""
    rows = pa.table({"k": pa.array([*range(30), *([None] * 10)], pa.int64())})
    address = written(tmp_path, "a.parquet", rows, row_group_size=10)
    groups: list[int] = []
    plain = row_groups._File.read

    def noted(file: Any, group: int, columns: Any) -> pa.Table:
        groups.append(group)
        return plain(file, group, columns)

    monkeypatch.setattr(row_groups._File, "read", noted)
    found = rows_with(values, column, [Column("k", Simple("BIGINT"))], [address], MANY)
    assert found is not None
    assert sorted(set(groups)) == read
    assert found.num_rows == sum(10 if value is None else value < 30 for value in values)  # type: ignore[operator]


def test_row_groups_without_statistics_are_read(tmp_path: Path) -> None:
    address = written(tmp_path, "a.parquet", ROWS, write_statistics=False)
    found = rows_with([2], "k", COLUMNS, [address], MANY)
    assert found is not None
    assert found.column(POSITION).to_pylist() == [1, 3]


def test_a_column_is_told_from_parts_of_nested_ones(tmp_path: Path) -> None:
    """Statistics stand by leaf: a nested column before this one must not shift them."""
    rows = pa.table({"s": [{"k": 7, "x": 8}, {"k": 9, "x": 10}], "k": [1, 2]})
    address = written(tmp_path, "a.parquet", rows)
    found = rows_with([2], "k", [Column("k", Simple("BIGINT"))], [address], MANY)
    assert found is not None
    assert found.column(POSITION).to_pylist() == [1]


def test_large_and_many_files_are_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = written(tmp_path, "a.parquet", ROWS)
    one = pq.ParquetFile(address).metadata.row_group(0).column(0).total_compressed_size
    monkeypatch.setattr(row_groups, "MOST_BYTES", one)
    assert rows_with([2], "k", COLUMNS[:1], [address], MANY) is not None
    assert rows_with([2], "k", COLUMNS[:2], [address], MANY) is None
    monkeypatch.setattr(row_groups, "MOST_FILES", 1)
    assert rows_with([2], "k", COLUMNS[:1], [address, address], MANY) is None


def test_past_the_most_rows_no_more_are_looked_for(tmp_path: Path) -> None:
    address = written(
        tmp_path, "a.parquet", pa.table({"k": pa.array([1] * 10, pa.int32())}), row_group_size=2
    )
    found = rows_with([1], "k", COLUMNS[:1], [address], 3)
    assert found is not None
    assert found.num_rows == 4
    whole = rows_with([1], "k", COLUMNS[:1], [address], 10)
    assert whole is not None
    assert whole.num_rows == 10
