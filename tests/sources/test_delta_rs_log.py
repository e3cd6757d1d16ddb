"""The logs of real Delta tables, written with delta-rs."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType

from viewkeeper.errors import CorruptWarehouseError, UnsupportedError
from viewkeeper.generated_names import CHANGE_EPOCH, CHANGE_KIND, DELETED, INSERTED
from viewkeeper.sources import delta_rs_log
from viewkeeper.sources.delta_rs_log import DeltaRsLog
from viewkeeper.sources.table_log import Commit, epoch_marker

LOG = DeltaRsLog()
ONE_ROW = pa.table({"id": [1]})


@pytest.fixture
def address(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def append(address: str, rows: pa.Table = ONE_ROW, metadata: str | None = None, **options: Any) -> None:
    properties = (
        CommitProperties(custom_metadata={"userMetadata": metadata}) if metadata is not None else None
    )
    write_deltalake(address, rows, mode="append", commit_properties=properties, **options)


def commit_file(address: str, version: int) -> Path:
    return Path(address, "_delta_log", f"{version:020}.json")


def rewrite(address: str, version: int, change: Any) -> None:
    """Put every action of a commit through `change`, which drops it by returning None."""
    file = commit_file(address, version)
    actions = [change(json.loads(line)) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(action) + "\n" for action in actions if action is not None))


# --------------------------------------------------------------------------------------- exists and version


def test_a_table_exists_once_it_is_written(address: str) -> None:
    assert not LOG.exists(address)
    append(address)
    assert LOG.exists(address)
    Path(address, "sub").mkdir()
    assert not LOG.exists(f"{address}/sub")
    assert not LOG.exists(str(Path(address).parent))


def test_looking_for_a_table_creates_no_folder(address: str) -> None:
    assert not LOG.exists(f"{address}/deep/down")
    assert not Path(address).exists()


def test_the_version_is_that_of_the_newest_commit(address: str) -> None:
    for version in range(4):
        append(address)
        assert LOG.version(address) == version


@pytest.mark.parametrize(
    "ask", [LOG.version, LOG.shape, LOG.row_count, lambda address: LOG.commits_after(address, 0)],
    ids=["version", "shape", "row_count", "commits_after"],
)  # fmt: skip
@pytest.mark.parametrize("folder", [False, True], ids=["no folder", "an empty folder"])
def test_a_missing_table_is_named(address: str, ask: Any, folder: bool) -> None:
    if folder:
        Path(address).mkdir()
    with pytest.raises(CorruptWarehouseError) as caught:
        ask(address)
    assert str(caught.value) == (
        f"there is no Delta table at {address}.\n"
        "To do: check the address, or restore the folder from a backup."
    )


def test_a_damaged_table_is_named(address: str) -> None:
    append(address)
    commit_file(address, 0).write_text("garbage")
    with pytest.raises(CorruptWarehouseError, match=f"^the Delta table at {address} cannot be read: "):
        LOG.version(address)


# ---------------------------------------------------------------------------------------------------- shape


TYPES = [
    (pa.bool_(), "BOOLEAN"),
    (pa.int8(), "TINYINT"),
    (pa.int16(), "SMALLINT"),
    (pa.int32(), "INT"),
    (pa.int64(), "BIGINT"),
    (pa.float32(), "FLOAT"),
    (pa.float64(), "DOUBLE"),
    (pa.string(), "STRING"),
    (pa.large_string(), "STRING"),
    (pa.binary(), "BINARY"),
    (pa.date32(), "DATE"),
    (pa.timestamp("us", "UTC"), "TIMESTAMP"),
    (pa.timestamp("us"), "TIMESTAMP_NTZ"),
    (pa.decimal128(10, 2), "DECIMAL(10,2)"),
    (pa.decimal128(38, 0), "DECIMAL(38,0)"),
    (pa.list_(pa.int32()), "ARRAY<INT>"),
    (pa.map_(pa.string(), pa.float64()), "MAP<STRING, DOUBLE>"),
    (
        pa.struct([("a", pa.int32()), ("b c", pa.list_(pa.string()))]),
        "STRUCT<`a`: INT, `b c`: ARRAY<STRING>>",
    ),
    (pa.list_(pa.struct([("m", pa.map_(pa.int32(), pa.date32()))])), "ARRAY<STRUCT<`m`: MAP<INT, DATE>>>"),
]


def test_the_shape_of_a_table_with_every_type_that_delta_rs_can_write(address: str) -> None:
    append(address, pa.table({f"c{at}": pa.array([None], kind) for at, (kind, _) in enumerate(TYPES)}))
    shape = LOG.shape(address)
    assert [(c.name, str(c.data_type)) for c in shape.columns] == [
        (f"c{at}", sql) for at, (_, sql) in enumerate(TYPES)
    ]
    assert all(column.nullable for column in shape.columns)
    assert not shape.has_change_feed


def test_the_shape_has_nullability_comments_and_names_as_they_are_written(address: str) -> None:
    fields = [
        Field("Id", PrimitiveType("long"), nullable=False, metadata={"comment": "the key"}),
        Field("größe", PrimitiveType("string"), metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(20)"}),
    ]
    DeltaTable.create(address, Schema(fields))
    first, second = LOG.shape(address).columns
    assert (first.name, str(first.data_type), first.nullable, first.comment) == (
        "Id",
        "BIGINT",
        False,
        "the key",
    )
    assert (second.name, str(second.data_type), second.nullable, second.comment) == (
        "größe",
        "VARCHAR(20)",
        True,
        None,
    )


@pytest.mark.parametrize(
    ("value", "has_feed"), [("true", True), ("false", False), ("TRUE", True), (None, False)]
)
def test_the_shape_says_whether_there_is_a_change_feed(
    address: str, value: str | None, has_feed: bool
) -> None:
    """Delta itself reads the property in any case."""
    append(address)
    configuration = {} if value is None else {"delta.enableChangeDataFeed": value}

    def set_property(action: dict[str, Any]) -> dict[str, Any]:
        if "metaData" in action:
            action["metaData"]["configuration"] = configuration
        return action

    rewrite(address, 0, set_property)
    assert LOG.shape(address).has_change_feed is has_feed


def test_the_shape_tells_a_table_from_another_one_that_took_its_place(address: str) -> None:
    append(address)
    first = LOG.shape(address).delta_id
    append(address)
    assert LOG.shape(address).delta_id == first
    shutil.rmtree(address)
    append(address)
    assert LOG.shape(address).delta_id not in (first, "", "None")


def test_the_shape_follows_the_newest_version(address: str) -> None:
    append(address)
    append(address, pa.table({"id": [1], "more": ["x"]}), schema_mode="merge")
    assert [column.name for column in LOG.shape(address).columns] == ["id", "more"]


def test_a_type_that_delta_knows_and_we_do_not_is_refused(address: str) -> None:
    append(address, pa.table({"nothing": pa.nulls(1)}))
    with pytest.raises(UnsupportedError, match="void"):
        LOG.shape(address)


# -------------------------------------------------------------------------------------------------- commits


def test_commits_come_oldest_first_with_their_markers(address: str) -> None:
    append(address)
    append(address, metadata=epoch_marker(7))
    append(address, metadata="nightly load")
    DeltaTable(address).optimize.compact()
    DeltaTable(address).delete("id = 1")
    everything = [
        Commit(0, "WRITE", None, sets_columns=True),
        Commit(1, "WRITE", 7),
        Commit(2, "WRITE", None),
        Commit(3, "OPTIMIZE", None),
        Commit(4, "DELETE", None),
    ]
    for after in range(-1, 6):
        assert list(LOG.commits_after(address, after)) == everything[after + 1 :]
    assert [commit.changes_rows for commit in everything] == [True, True, True, False, True]


def test_operations_that_keep_all_rows_are_known_as_such(address: str) -> None:
    for _ in range(2):
        append(address)
    table = DeltaTable(address)
    table.optimize.compact()
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 40 days"})
    table.alter.add_constraint({"positive": "id > 0"})
    table.alter.drop_constraint("positive")
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    found = LOG.commits_after(address, 1)
    assert len(found) >= 4
    assert [commit for commit in found if commit.changes_rows] == []


def test_repairing_a_table_drops_rows(address: str) -> None:
    append(address)
    append(address)
    Path(DeltaTable(address).file_uris()[0].removeprefix("file://")).unlink()
    DeltaTable(address).repair()
    (commit,) = LOG.commits_after(address, 1)
    assert (commit.operation, commit.changes_rows) == ("FSCK", True)


def test_restoring_a_table_changes_rows(address: str) -> None:
    append(address)
    append(address)
    DeltaTable(address).restore(0)
    (commit,) = LOG.commits_after(address, 1)
    assert (commit.version, commit.operation, commit.changes_rows) == (2, "RESTORE", True)


def test_a_commit_without_information_does_not_shift_the_versions_of_the_others(address: str) -> None:
    """Delta does not ask writers for commitInfo; `DeltaTable.history` counts as if it did."""
    for epoch in range(4):
        append(address, metadata=epoch_marker(epoch))
    rewrite(address, 2, lambda action: None if "commitInfo" in action else action)
    assert list(LOG.commits_after(address, 0)) == [
        Commit(1, "WRITE", 1),
        Commit(2, "UNKNOWN", None),
        Commit(3, "WRITE", 3),
    ]
    assert list(LOG.commits_after(address, 2)) == [Commit(3, "WRITE", 3)]


def test_a_commit_made_meanwhile_does_not_shift_the_versions_of_the_others(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other writer is between our look at the version and our look at the commits."""
    append(address)
    append(address, metadata=epoch_marker(7))

    class Racing(DeltaTable):
        def version(self) -> int:
            version = super().version()
            DeltaTable(address).alter.set_table_properties({"delta.logRetentionDuration": "interval 40 days"})
            return version

    monkeypatch.setattr(delta_rs_log, "DeltaTable", Racing)
    assert list(LOG.commits_after(address, 0)) == [Commit(1, "WRITE", 7)]


def test_commits_whose_log_is_gone_are_unknown_and_not_forgotten(address: str) -> None:
    """Were they left out, a change in one of them would never reach a view."""
    append(address, configuration={"delta.logRetentionDuration": "interval 0 seconds"})
    for _ in range(4):
        append(address)
    DeltaTable(address).create_checkpoint()
    for version in range(5):
        os.utime(commit_file(address, version), (1, 1))
    DeltaTable(address).cleanup_metadata()
    DeltaTable(address).alter.set_table_properties({"delta.logRetentionDuration": "interval 40 days"})
    assert not commit_file(address, 2).exists(), "the log was not cleaned up"
    found = LOG.commits_after(address, 1)
    assert [commit.version for commit in found] == [2, 3, 4, 5]
    assert found[0] == Commit(2, "UNKNOWN", None, sets_columns=True)
    assert found[0].changes_rows
    assert not found[-1].changes_rows


def test_the_commits_of_other_writers_are_read_however_they_are_written(address: str) -> None:
    """Spaces, information that is not in the first line, a file whose name reads like it."""
    append(address)
    append(address)
    information = {"commitInfo": {"operation": "MERGE", "userMetadata": epoch_marker(5), "note": "größe"}}
    remove = {"remove": {"path": '"commitInfo"', "dataChange": True}}
    commit_file(address, 1).write_text(
        f"{json.dumps(remove)}\n{json.dumps(information, indent=None)}\n", "utf-8"
    )
    assert list(LOG.commits_after(address, 0)) == [Commit(1, "MERGE", 5)]


# -------------------------------------------------------------------------------------------------- counting


def test_rows_are_counted(address: str) -> None:
    DeltaTable.create(address, Schema([Field("id", PrimitiveType("long"))]))
    assert LOG.row_count(address) == 0
    append(address, pa.table({"id": list(range(10))}))
    append(address, pa.table({"id": list(range(5))}))
    assert LOG.row_count(address) == 15
    DeltaTable(address).delete("id < 2")
    assert LOG.row_count(address) == 11


def test_rows_are_counted_without_statistics(address: str) -> None:
    append(address, pa.table({"id": list(range(10))}))
    rewrite(address, 0, without_statistics)
    assert LOG.row_count(address) == 10


def without_statistics(action: dict[str, Any]) -> dict[str, Any]:
    action.get("add", {}).pop("stats", None)
    return action


def test_rows_that_a_deletion_vector_hides_are_not_counted(address: str) -> None:
    append(address, pa.table({"id": list(range(10))}))

    def hide(action: dict[str, Any]) -> dict[str, Any]:
        if "protocol" in action:
            features = ["deletionVectors"]
            return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features,
                                 "writerFeatures": features}}  # fmt: skip
        if "add" in action:
            action["add"]["deletionVector"] = inline_deletion_vector([1, 3, 9])
        return action

    rewrite(address, 0, hide)
    assert pa.table(DeltaTable(address).scan()).column("id").to_pylist() == [0, 2, 4, 5, 6, 7, 8]
    assert LOG.row_count(address) == 7


def inline_deletion_vector(rows: Sequence[int]) -> dict[str, Any]:
    """As the Delta protocol has it: a magic number, one 32-bit Roaring bitmap with one array container, in Z85."""
    bitmap = struct.pack(f"<IIHHI{len(rows)}H", 12346, 1, 0, len(rows) - 1, 16, *rows)
    content = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    padded = content + b"\0" * (-len(content) % 4)
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    groups = [int.from_bytes(padded[at : at + 4], "big") for at in range(0, len(padded), 4)]
    text = "".join(digits[group // 85**power % 85] for group in groups for power in (4, 3, 2, 1, 0))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(content), "cardinality": len(rows)}


# ------------------------------------------------------------------------------------------------ change sets


def write_change_set(address: str, epoch: int, inserted: int, deleted: int) -> None:
    """As a refresh writes it: partitioned by epoch and kind, marked with the epoch, even when it is empty."""
    kinds = [INSERTED] * inserted + [DELETED] * deleted
    rows = pa.table(
        {
            "id": pa.array(range(len(kinds)), pa.int64()),
            CHANGE_KIND: pa.array(kinds, pa.string()),
            CHANGE_EPOCH: pa.array([epoch] * len(kinds), pa.int64()),
        }
    )
    append(address, rows, epoch_marker(epoch), partition_by=[CHANGE_EPOCH, CHANGE_KIND])


def test_the_size_of_a_change_set(address: str) -> None:
    assert LOG.change_set_size(address, 1) is None
    write_change_set(address, 1, inserted=5, deleted=0)
    write_change_set(address, 2, inserted=3, deleted=4)
    write_change_set(address, 3, inserted=0, deleted=2)
    assert [LOG.change_set_size(address, epoch) for epoch in (1, 2, 3, 4)] == [(5, 0), (3, 4), (0, 2), None]


def test_an_empty_change_set_is_known_from_one_that_was_never_written(address: str) -> None:
    write_change_set(address, 1, inserted=1, deleted=1)
    write_change_set(address, 2, inserted=0, deleted=0)
    assert LOG.version(address) == 1, "an empty change set is a commit, too"
    assert LOG.change_set_size(address, 2) == (0, 0)
    assert LOG.change_set_size(address, 3) is None


def test_a_change_set_in_several_files(address: str) -> None:
    """Two tasks of Spark, or two commits."""
    write_change_set(address, 1, inserted=2, deleted=1)
    write_change_set(address, 1, inserted=3, deleted=0)
    assert LOG.change_set_size(address, 1) == (5, 1)
    DeltaTable(address).optimize.compact()
    assert LOG.change_set_size(address, 1) == (5, 1)


def test_a_change_set_is_found_after_many_others(address: str) -> None:
    for epoch in range(1, 26):
        write_change_set(address, epoch, inserted=1, deleted=0)
    assert LOG.change_set_size(address, 1) == (1, 0)
    assert LOG.change_set_size(address, 25) == (1, 0)


def test_a_change_set_written_without_statistics(address: str) -> None:
    write_change_set(address, 1, inserted=3, deleted=4)
    write_change_set(address, 2, inserted=1, deleted=0)
    rewrite(address, 0, without_statistics)
    assert LOG.change_set_size(address, 1) == (3, 4)
    assert LOG.change_set_size(address, 2) == (1, 0)


def test_a_table_that_holds_no_change_sets_is_named(address: str) -> None:
    append(address)
    with pytest.raises(
        CorruptWarehouseError, match=f"^the Delta table at {address} cannot be read: .*{CHANGE_EPOCH}"
    ):
        LOG.change_set_size(address, 1)


def test_the_rows_of_a_feed_are_estimated_without_reading_it(address: str) -> None:
    """Rows that come in files of their own are counted; of updates and deletions the log tells only bytes."""
    texts = [f"text {number * 7919 % 20_000}" for number in range(20_000)]
    rows = pa.table({"id": pa.array(range(20_000)), "text": pa.array(texts)})
    append(address, rows, configuration={"delta.enableChangeDataFeed": "true"})
    append(address, rows.slice(0, 3_000))
    assert LOG.estimated_feed_rows(address, 0, 1) == 3_000
    DeltaTable(address).update(updates={"text": "'changed'"}, predicate="id < 10000")
    images = pa.table(DeltaTable(address).load_cdf(starting_version=2, ending_version=2)).num_rows
    assert images == 26_000
    assert images / 3 < LOG.estimated_feed_rows(address, 1, 2) < images * 3
    assert LOG.estimated_feed_rows(address, 2, 2) == 0
