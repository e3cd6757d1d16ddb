"""What went wrong below delta-rs, in the words of our own errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from viewkeeper.errors import CorruptWarehouseError, StorageError, ViewkeeperError

_FULL = ("no space left", "disk quota", "storage full")
_DENIED = ("permission denied", "access denied", "forbidden", "read-only file system", "unauthorized")


def storage_failure(error: BaseException, what: str) -> ViewkeeperError:
    """Full disk, missing permission, damage: told apart by the text, the only thing delta-rs gives."""
    text = str(error)
    lowered = text.lower()
    if any(sign in lowered for sign in _FULL):
        return StorageError(
            f"the disk is full: {what} cannot be written.", "free some space and repeat the statement."
        )
    if any(sign in lowered for sign in _DENIED):
        return StorageError(f"no permission to use {what}.", "check the rights on the warehouse's folder.")
    first_line = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    return CorruptWarehouseError(
        f"{what} cannot be read: {first_line[:300]}", "restore the warehouse's files from a backup."
    )


@contextmanager
def storage_failures(what: str) -> Iterator[None]:
    """Turn failures of delta-rs inside the block into our errors; lost races pass through."""
    try:
        yield
    except (CommitFailedError, TableNotFoundError):
        raise
    except (DeltaError, OSError, ValueError) as error:
        raise storage_failure(error, what) from error
    except Exception as error:
        if type(error).__module__.split(".")[0] in ("deltalake", "pyarrow", "builtins", "arro3"):
            raise storage_failure(error, what) from error
        raise
