"""Which files of a real Delta table can hold some values, about how many rows have them, and which rows a version has."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, write_deltalake

from viewkeeper.generated_names import FILE, POSITION
from viewkeeper.sources.data_files import DataFiles, data_files, rows_python_holds
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import Simple
from viewkeeper.storage.own_commit import Mark, change, open_store
from viewkeeper.storage.table_files import live_files

NEWEST = 2
COLUMNS = (
    Column("k", Simple("INT")),
    Column("day", Simple("DATE")),
    Column("word", Simple("STRING")),
    Column("price", Simple("DOUBLE")),
)


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "k": pa.array(numbers, pa.int32()),
            "day": pa.array([date(2024, 1, 1 + n % 20) for n in numbers]),
            "word": [None if n % 4 == 0 else f"w{n % 3}" for n in numbers],
            "price": [float(n) for n in numbers],
        }
    )


@pytest.fixture
def address(tmp_path: Path) -> str:
    """Two files of 100 rows, the second with greater keys, in a table that may have deletion vectors."""
    found = tmp_path / "table"
    for first in (0, 100):
        write_deltalake(found, rows(first, 100), mode="append")
    features = {each: ["deletionVectors"] for each in ("readerFeatures", "writerFeatures")}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    (found / "_delta_log" / f"{NEWEST:020}.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    return str(found)


def at(address: str, version: int) -> DataFiles:
    found = data_files(address, version, COLUMNS, None)
    assert found is not None
    return found


def first_keys(files: DataFiles, names: list[str]) -> list[int]:
    statistics = pa.table(files._table.get_add_actions(flatten=True)).to_pylist()
    return sorted(each["min.k"] for each in statistics if each["path"].rsplit("/", 1)[-1] in names)


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("k", [5], [0]),
        ("k", [99, 100], [0, 100]),
        ("k", [200], []),
        ("k", [None], []),
        ("k", [], []),
        ("word", ["w1"], [0, 100]),
        ("word", ["x"], []),
        ("word", [None], [0, 100]),
        ("day", [date(2024, 1, 3)], [0, 100]),
        ("day", [date(2023, 12, 31)], []),
    ],
)
def test_only_files_that_can_hold_the_values(
    address: str, column: str, values: list[object], expected: list[int]
) -> None:
    files = at(address, NEWEST)
    assert first_keys(files, files.holding(column, values)) == expected


def test_an_estimate_tells_columns_apart(address: str) -> None:
    files = at(address, NEWEST)
    assert files.estimated_rows("k", [1, 2, 150]) == 3
    assert files.estimated_rows("day", [date(2024, 1, 3)]) == 10
    assert files.estimated_rows("word", [None]) == 50
    assert files.estimated_rows("unknown", [1]) > 1e9
    assert files.estimated_rows("k", range(10)) < files.estimated_rows("word", ["w1"])
    assert files.estimated_rows("k", [200]) == 0


def placed(files: DataFiles, keys: list[int]) -> pa.Table:
    """The rows with these keys as a scan of all files finds them, deleted or not."""
    found = []
    for uri in files.addresses.values():
        stored = pa.parquet.read_table(uri).column("k").to_pylist()
        found += [(key, f"file://{uri}", stored.index(key)) for key in keys if key in stored]
    return pa.table(dict(zip(("k", FILE, POSITION), map(list, zip(*found, strict=True)), strict=True)))


def test_rows_of_a_version(address: str) -> None:
    """A deletion vector hides rows from its own version on; a file counts only where the version has it."""
    store = open_store(address, None)
    files = live_files(store)
    path = next(path for path, add in files.adds.items() if '"k":0' in add["stats"].replace(" ", ""))
    assert change(store, files, {path: [3, 7]}, rows(300, 1), Mark("a", 1, "m"))
    before, after = at(address, NEWEST), at(address, NEWEST + 1)
    found = placed(after, [3, 4, 7, 99, 150, 300])
    assert before.live(found).column("k").to_pylist() == [3, 4, 7, 99, 150]
    assert sorted(after.live(found).column("k").to_pylist()) == [4, 99, 150, 300]
    assert before.are_whole(list(before.addresses))
    assert not after.are_whole(list(after.addresses))


def test_a_table_whose_files_are_not_its_rows_is_left_to_delta(tmp_path: Path) -> None:
    address = str(tmp_path / "parts")
    write_deltalake(address, rows(0, 5), partition_by=["day"])
    assert DeltaTable(address).version() == 0
    assert data_files(address, 0, COLUMNS, None) is None
    assert data_files("s3://bucket/table", 0, COLUMNS, None) is None


def test_statistics_that_python_cannot_hold_are_left_out() -> None:
    table = pa.table({"path": ["a", "b"], "max.day": pa.array([3_000_000, 1], pa.date32()), "max.n": [1, 2]})
    assert rows_python_holds(table) == [{"path": "a", "max.n": 1}, {"path": "b", "max.n": 2}]
