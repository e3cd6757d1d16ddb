"""What delta-rs, pyarrow and the system say, in the words of our own errors."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, TableNotFoundError

from viewkeeper.errors import CorruptWarehouseError, InUseError, StorageError, ViewkeeperError
from viewkeeper.sources.delta_failures import storage_failure, storage_failures

FULL = "the disk is full: the shop cannot be written.\nTo do: free some space and repeat the statement."
DENIED = "no permission to use the shop.\nTo do: check the rights on the warehouse's folder."


def told(error: BaseException) -> ViewkeeperError:
    with pytest.raises(ViewkeeperError) as caught, storage_failures("the shop"):
        raise error
    assert caught.value.__cause__ is error
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        OSError(122, "Disk quota exceeded"),
        OSError("Generic LocalFileSystem error\n  \x1b[31m↳\x1b[0m No space left on device (os error 28)\n"),
        DeltaError(
            "Failed to parse parquet: External: Unable to copy data: No space left on device (os error 28)"
        ),
    ],
    ids=str,
)
def test_a_full_disk(error: Exception) -> None:
    failure = told(error)
    assert isinstance(failure, StorageError)
    assert str(failure) == FULL


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(13, "Permission denied", "/shop"),
        OSError(30, "Read-only file system"),
        OSError(
            "Kernel error -> Generic LocalFileSystem error\n  \x1b[31m↳\x1b[0m Permission denied (os error 13)\n"
        ),
        DeltaError("Generic S3 error: Client error with status 403 Forbidden: AccessDenied"),
        # delta-rs says «not found» of folders that it may not look into or create.
        TableNotFoundError('Local path "/shop" does not exist\nError: Os { message: "Permission denied" }'),
    ],
    ids=str,
)
def test_no_permission(error: Exception) -> None:
    failure = told(error)
    assert isinstance(failure, StorageError)
    assert str(failure) == DENIED


def test_a_store_that_cannot_be_reached_is_not_called_damaged() -> None:
    """The real thing: nobody listens at that port."""
    options = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_REGION": "nowhere",
        "max_retries": "0",
    }
    with pytest.raises(StorageError) as caught, storage_failures("the shop"):
        DeltaTable("s3://bucket/shop", storage_options=options)
    assert caught.value.message.startswith("the shop cannot be reached: ")
    assert "127.0.0.1:9" in caught.value.message
    assert caught.value.hint == "check the address and the network, then repeat the statement."


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            DeltaError("bad\x1b[31m\n   ↳\x1b[0m worse\n      0: <unknown>\n      1: start_thread\n"),
            "bad: worse",
        ),
        (DeltaProtocolError("no such feature"), "no such feature"),
        (
            pa.ArrowInvalid("Parquet magic bytes not found in footer."),
            "Parquet magic bytes not found in footer.",
        ),
        (FileNotFoundError(2, "No such file or directory", "x"), "[Errno 2] No such file or directory: 'x'"),
        (KeyError("epoch"), "'epoch'"),
        (TypeError("not a number"), "not a number"),
        (DeltaError(""), "DeltaError"),
        (DeltaError(" \n "), "DeltaError"),
    ],
    ids=repr,
)
def test_everything_else_is_damage(error: Exception, text: str) -> None:
    failure = told(error)
    assert isinstance(failure, CorruptWarehouseError)
    assert failure.message == f"the shop cannot be read: {text}"
    assert failure.hint == "restore the warehouse's files from a backup."


def test_of_a_long_text_the_beginning_and_the_end_are_kept() -> None:
    failure = storage_failure(DeltaError(f"beginning {'x' * 5000} end"), "the shop")
    assert failure.message.startswith("the shop cannot be read: beginning xxx")
    assert failure.message.endswith("xxx end")
    assert len(failure.message) < 400


def test_a_panic_of_delta_rs_is_damage_too(tmp_path: Path) -> None:
    """The real thing, and no Exception even: such a folder is more than it can bear."""
    with (
        pytest.raises(CorruptWarehouseError, match=r"^the shop cannot be read: Invalid object store url"),
        storage_failures("the shop"),
    ):
        write_deltalake(str(tmp_path / "[1]"), pa.table({"a": [1]}))


def test_lost_races_and_missing_tables_pass_through(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"a": [1]}))
    stale = DeltaTable(str(tmp_path / "t"))
    write_deltalake(str(tmp_path / "t"), pa.table({"a": [2]}), mode="overwrite")
    with pytest.raises(CommitFailedError), storage_failures("the shop"):
        write_deltalake(
            stale,
            pa.table({"a": [3]}),
            mode="overwrite",
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    with pytest.raises(TableNotFoundError), storage_failures("the shop"):
        DeltaTable(str(tmp_path / "none"))


@pytest.mark.parametrize("error", [InUseError("ours"), KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_our_own_errors_and_the_end_of_the_process_pass_through(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, storage_failures("the shop"):
        raise error
    assert caught.value is error


def test_nothing_happens_when_nothing_fails() -> None:
    with storage_failures("the shop"):
        done = True
    assert done
