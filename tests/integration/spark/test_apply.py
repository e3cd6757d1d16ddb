"""Every way to apply a change set, mixed at random: all readers see the same bag, and Spark can go on with the table."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.support.arrow_rows import table_of
from viewkeeper.execution.apply import (
    apply_by_overwriting,
    apply_by_own_commit,
    find_positions,
    own_table,
    stored_schema,
)
from viewkeeper.execution.input_changes import schema_text
from viewkeeper.execution.spark_session import OWN_SETTINGS
from viewkeeper.generated_names import CHANGE_KIND, COPY_NUMBER
from viewkeeper.maintenance.bag_changes import merge
from viewkeeper.sources.net_effect import freeze
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import Simple, read_type_text
from viewkeeper.storage import deletion_vectors
from viewkeeper.storage.own_commit import Mark, deleted_positions, open_store
from viewkeeper.storage.table_files import live_files
from viewkeeper.storage.view_tables import KEPT_HISTORY

pytestmark = pytest.mark.spark

SHAPE = {
    "i": "INT",
    "s": "STRING",
    "d": "DOUBLE",
    "n": "DECIMAL(12,2)",
    "day": "DATE",
    "t": "TIMESTAMP",
    "m": "MAP<STRING, INT>",
    "xs": "ARRAY<INT>",
}
COLUMNS = tuple(Column(name, read_type_text(text)) for name, text in SHAPE.items())
STORED = stored_schema(COLUMNS)
WITH_KIND = (*STORED, Column(CHANGE_KIND, Simple("STRING")))


def random_row(generator: random.Random) -> tuple[Any, ...]:
    one = generator.choice
    return (
        one([None, 0, 1, 2, 2**31 - 1]),
        one([None, "", "it's", "ü" * 40, "b\\n"]),
        one([None, 0.0, -0.0, float("nan"), 1.5]),
        one([None, Decimal("0.10"), Decimal("9999999999.99")]),
        one([None, dt.date(9999, 12, 31), dt.date(1, 1, 1)]),
        one([None, dt.datetime(2020, 1, 1, 1, 2, 3, 456789, dt.timezone.utc)]),
        one([None, [("b", 1), ("a", None)], [("a", None), ("b", 1)], []]),
        one([None, [], [1, None]]),
    )


def frozen(row: tuple[Any, ...]) -> Any:
    return tuple(freeze(dict_as_pairs(value)) for value in row)


def dict_as_pairs(value: Any) -> Any:
    return sorted(value.items()) if isinstance(value, dict) else value


class Model:
    """The bag that the table should hold: rows by their frozen form, with their copies."""

    def __init__(self) -> None:
        self.copies: dict[Any, list[tuple[Any, ...]]] = {}

    def change(self, generator: random.Random, size: int) -> list[tuple[Any, ...]]:
        changes = []
        for _ in range(size):
            filled = [key for key, rows in self.copies.items() if rows]
            if filled and generator.random() < 0.5:
                key = generator.choice(filled)
                row = self.copies[key].pop()
                changes.append((*row, len(self.copies[key]) + 1, "delete"))
            else:
                row = random_row(generator)
                rows = self.copies.setdefault(frozen(row), [])
                rows.append(row)
                changes.append((*row, len(rows), "insert"))
        return self._net(changes)

    @staticmethod
    def _net(changes: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """One change per row and copy at most: what came and went within one change set is none."""
        last: dict[Any, list[tuple[Any, ...]]] = {}
        for change in changes:
            last.setdefault((frozen(change[:-2]), change[-2]), []).append(change)
        return [each[-1] for each in last.values() if len(each) % 2]

    def bag(self) -> Counter[Any]:
        return Counter({key: len(rows) for key, rows in self.copies.items() if rows})


def bag_of(table: pa.Table) -> Counter[Any]:
    return Counter(frozen(row) for row in zip(*(table.column(c).to_pylist() for c in SHAPE), strict=True))


def by_spark(spark: Any, address: str, version: int | None = None) -> Counter[Any]:
    at = "" if version is None else f" VERSION AS OF {version}"
    return bag_of(spark.sql(f"SELECT * FROM delta.`{address}`{at}").toArrow())


def by_delta_rs(address: str) -> Counter[Any]:
    query = QueryBuilder().register("t", DeltaTable(address)).execute("SELECT * FROM t")
    return bag_of(pa.table(query))


def by_duckdb(address: str) -> Counter[Any]:
    """DuckDB reads the files that the log names; the deletion vectors are ours to apply."""
    store = open_store(address, None)
    bag: Counter[Any] = Counter()
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for path, add in live_files(store).adds.items():
            gone = deleted_positions(store, add)
            found = database.sql(
                f"SELECT {', '.join(SHAPE)}, file_row_number FROM read_parquet($file, file_row_number = true)",
                params={"file": f"{address}/{path}"},
            ).to_arrow_table()
            keep = [
                at
                for at, number in enumerate(found.column("file_row_number").to_pylist())
                if number not in gone
            ]
            bag += bag_of(found.take(pa.array(keep, pa.int64())))
    return bag


def apply(spark: Any, address: str, way: str, changes: list[tuple[Any, ...]], epoch: int) -> None:
    table = own_table(address, None, COLUMNS)
    data = table_of(changes, WITH_KIND)
    mark = Mark("viewkeeper/v", epoch, f"viewkeeper epoch {epoch}")
    if way == "merge":
        spark.createDataFrame(data, schema_text(WITH_KIND)).createOrReplaceTempView("v_changes")
        sql = merge("v", "v_changes", COLUMNS).replace("INTO `v`", f"INTO delta.`{address}` AS `v`")
        spark.sql(sql).collect()
        return
    assert table is not None
    if way == "overwrite":
        apply_by_overwriting(table, data, mark, "v")
    else:
        apply_by_own_commit(table, data, mark, "v", partial(find_positions, spark, table))


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    """A session with the settings in which views are written."""
    own = spark.newSession()
    for key, value in OWN_SETTINGS.items():
        own.conf.set(key, value)
    return own


@pytest.mark.parametrize(("seed", "most_inline_bytes"), [(0, deletion_vectors.MOST_INLINE_BYTES), (1, 0)])
def test_mixed_ways_agree_and_spark_goes_on(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, most_inline_bytes: int
) -> None:
    """With deletion vectors in the log, and in files."""
    monkeypatch.setattr(deletion_vectors, "MOST_INLINE_BYTES", most_inline_bytes)
    generator = random.Random(seed)
    address = str(tmp_path / "rows")
    model = Model()
    first = [change[:-1] for change in model.change(generator, 40) if change[-1] == "insert"]
    writer = session.createDataFrame(table_of(first, STORED), schema_text(STORED)).write.format("delta")
    for key, value in {**KEPT_HISTORY, "delta.enableDeletionVectors": "true"}.items():
        writer = writer.option(key, value)
    writer.save(address)
    assert by_spark(session, address) == model.bag()
    versions = {0: model.bag()}
    for epoch in range(1, 7):
        way = generator.choice(["own commit", "own commit", "overwrite", "merge"])
        changes = model.change(generator, generator.choice([1, 5, 12]))
        if not changes:
            continue
        apply(session, address, way, changes, epoch)
        expected = model.bag()
        assert by_delta_rs(address) == expected, f"delta-rs after {way}"
        assert by_duckdb(address) == expected, f"DuckDB after {way}"
        assert by_spark(session, address) == expected, f"Spark after {way}"
        versions[DeltaTable(address).version()] = expected
        if epoch == 4:
            DeltaTable(address).create_checkpoint()
    for version, expected in versions.items():
        assert by_spark(session, address, version) == expected, f"time travel to {version}"
    session.sql(f"OPTIMIZE delta.`{address}`").collect()
    assert by_spark(session, address) == model.bag()
    apply(session, address, "own commit", model.change(generator, 5) or model.change(generator, 5), 20)
    assert by_spark(session, address) == by_delta_rs(address) == model.bag()
    session.sql(f"DELETE FROM delta.`{address}` WHERE i = 1").collect()
    left = Counter({key: count for key, count in model.bag().items() if key[0] != 1})
    assert by_spark(session, address) == left
    assert by_delta_rs(address) == left


def test_a_commit_by_somebody_else_is_not_overwritten(session: Any, tmp_path: Path) -> None:
    address = str(tmp_path / "rows")
    model, generator = Model(), random.Random(5)
    first = [change[:-1] for change in model.change(generator, 5) if change[-1] == "insert"]
    session.createDataFrame(table_of(first, STORED), schema_text(STORED)).write.format("delta").option(
        "delta.enableDeletionVectors", "true"
    ).save(address)
    table = own_table(address, None, COLUMNS)
    assert table is not None
    session.sql(f"DELETE FROM delta.`{address}`").collect()
    changes = table_of([(*random_row(generator), 9, "insert")], WITH_KIND)
    with pytest.raises(Exception, match="another process committed to the table of v meanwhile"):
        apply_by_own_commit(table, changes, Mark("a", 1, "m"), "v", lambda going: [])
    assert COPY_NUMBER in DeltaTable(address).schema().to_json()


def test_every_reader_reads_a_table_of_which_many_scattered_rows_went(session: Any, tmp_path: Path) -> None:
    """Their deletion vector is larger than Spark could read from the log."""
    address, rows = str(tmp_path / "rows"), 700_000
    columns = (Column("i", Simple("INT")),)
    session.range(0, rows, 1, 1).selectExpr("CAST(id AS INT) AS i", f"1 AS {COPY_NUMBER}").write.format(
        "delta"
    ).option("delta.enableDeletionVectors", "true").save(address)
    table = own_table(address, None, columns)
    assert table is not None
    (path,) = table.files.adds
    gone = [at for at in range(rows) if at % 3 == 1]
    going = pa.table({"i": pa.array(gone, pa.int32()), COPY_NUMBER: pa.array([1] * len(gone), pa.int32())})
    changes = going.append_column(CHANGE_KIND, pa.array(["delete"] * len(gone)))
    apply_by_own_commit(table, changes, Mark("a", 1, "m"), "v", lambda _: [(path, at) for at in gone])
    left = [each for each in range(rows) if each % 3 != 1]
    found = session.sql(f"SELECT i FROM delta.`{address}`").toArrow()
    assert sorted(found.column("i").to_pylist()) == left
    query = QueryBuilder().register("t", DeltaTable(address)).execute("SELECT i FROM t")
    assert sorted(pa.table(query).column("i").to_pylist()) == left
    again = own_table(address, None, columns)
    assert again is not None
    assert again.rows().num_rows == len(left)
    session.sql(f"DELETE FROM delta.`{address}` WHERE i < 100").collect()
    assert session.sql(f"SELECT count(*) FROM delta.`{address}`").collect()[0][0] == len(left) - 67
