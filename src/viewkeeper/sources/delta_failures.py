"""What went wrong below delta-rs, in the words of our own errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile

from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from viewkeeper.errors import CorruptWarehouseError, StorageError, ViewkeeperError

_FULL = ("no space left", "disk quota", "storage full")
_DENIED = ("permission denied", "access denied", "forbidden", "read-only file system", "unauthorized")
_UNREACHABLE = ("error sending request", "connection refused", "connect error", "timed out", "dns error")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BACKTRACE = re.compile(r"\s*(\d+: |at \S+:\d+|stack backtrace)")


def storage_failure(error: BaseException, what: str) -> ViewkeeperError:
    """Full disk, missing permission, damage: told apart by the text, the only thing delta-rs gives."""
    text = _causes(error)
    lowered = text.lower()
    if any(sign in lowered for sign in _FULL):
        return StorageError(
            f"the disk is full: {what} cannot be written.", "free some space and repeat the statement."
        )
    if any(sign in lowered for sign in _DENIED):
        return StorageError(f"no permission to use {what}.", "check the rights on the warehouse's folder.")
    if any(sign in lowered for sign in _UNREACHABLE):
        return StorageError(
            f"{what} cannot be reached: {_shortened(text)}",
            "check the address and the network, then repeat the statement.",
        )
    return CorruptWarehouseError(
        f"{what} cannot be read: {_shortened(text)}", "restore the warehouse's files from a backup."
    )


def _causes(error: BaseException) -> str:
    """The text of delta-rs in one line: a chain of causes, one a line, in colours, at times with a backtrace."""
    lines = _COLOUR.sub("", str(error)).splitlines()
    causes = [line.strip(" ↳") for line in takewhile(lambda line: not _BACKTRACE.match(line), lines)]
    return ": ".join(cause for cause in causes if cause) or type(error).__name__


def _shortened(text: str) -> str:
    """What failed is said at the start, and why at the end."""
    return text if len(text) <= 300 else f"{text[:100]} … {text[-200:]}"


@contextmanager
def storage_failures(what: str) -> Iterator[None]:
    """Turn failures of delta-rs inside the block into our errors; lost races and missing tables pass through."""
    try:
        yield
    except CommitFailedError:
        raise
    except TableNotFoundError as error:
        # delta-rs says so, too, of a folder that we may not look into or create.
        if any(sign in str(error).lower() for sign in _DENIED):
            raise storage_failure(error, what) from error
        raise
    except (DeltaError, OSError, ValueError) as error:
        raise storage_failure(error, what) from error
    except BaseException as error:
        module = type(error).__module__.split(".")[0]
        known = module in ("deltalake", "pyarrow", "obstore", "builtins", "arro3") and isinstance(
            error, Exception
        )
        if known or module == "pyo3_runtime":  # a panic of delta-rs
            raise storage_failure(error, what) from error
        raise
