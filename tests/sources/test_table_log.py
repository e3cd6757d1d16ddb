"""What a commit and a schema say."""

from __future__ import annotations

import json

import pytest

from viewkeeper.errors import UnsupportedError
from viewkeeper.sources.table_log import HARMLESS_OPERATIONS, Commit, columns_of_schema, epoch_marker
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import Array, Simple


@pytest.mark.parametrize("epoch", [0, 7, 2**40])
def test_our_commits_are_known_by_their_marker(epoch: int) -> None:
    assert Commit.of(3, "MERGE", epoch_marker(epoch)) == Commit(3, "MERGE", epoch)


@pytest.mark.parametrize(
    "metadata", [None, "", "nightly load", "viewkeeper epoch", "viewkeeper epoch x", "not viewkeeper epoch 7",
                 "viewkeeper epoch 7 or so", "viewkeeper epoch -7", "viewkeeper epoch 7\n"],
)  # fmt: skip
def test_the_commits_of_others_have_no_epoch(metadata: str | None) -> None:
    assert Commit.of(3, "WRITE", metadata).epoch is None


@pytest.mark.parametrize("operation", sorted(HARMLESS_OPERATIONS))
def test_harmless_operations_change_no_rows(operation: str) -> None:
    assert not Commit.of(1, operation, None).changes_rows


@pytest.mark.parametrize(
    "operation",
    ["WRITE", "MERGE", "UPDATE", "DELETE", "RESTORE", "TRUNCATE", "STREAMING UPDATE", "CREATE TABLE AS SELECT",
     "REPLACE TABLE", "CLONE", "FSCK", "DROP COLUMNS", "something new", None],
)  # fmt: skip
def test_everything_else_may_change_rows(operation: str | None) -> None:
    assert Commit.of(1, operation, None).changes_rows


def test_a_commit_that_says_nothing_is_unknown() -> None:
    assert Commit.of(4, None, None) == Commit(4, "UNKNOWN", None, sets_columns=True)


SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": False, "metadata": {"comment": "the key"}},
        {
            "name": "tags",
            "type": {"type": "array", "elementType": "string", "containsNull": True},
            "nullable": True,
        },
        {
            "name": "code",
            "type": "string",
            "nullable": True,
            "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"},
        },
    ],
}
COLUMNS = (
    Column("id", Simple("BIGINT"), False, "the key"),
    Column("tags", Array(Simple("STRING")), True, None),
    Column("code", Simple("CHAR(3)"), True, None),
)


def test_columns_are_read_from_text_and_from_json() -> None:
    assert columns_of_schema(json.dumps(SCHEMA)) == COLUMNS
    assert columns_of_schema(SCHEMA) == COLUMNS


def test_a_type_that_we_do_not_know_is_named() -> None:
    schema = {"fields": [{"name": "x", "type": "void", "nullable": True, "metadata": {}}]}
    with pytest.raises(UnsupportedError, match="void"):
        columns_of_schema(schema)
