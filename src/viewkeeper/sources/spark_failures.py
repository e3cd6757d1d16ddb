"""What Spark raises, as our own errors at the user's own line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from viewkeeper.errors import (
    ConcurrencyProblem,
    CorruptWarehouseError,
    InvalidStatementError,
    Location,
    QueryFailedError,
    SparkUnavailableError,
    SqlSyntaxError,
    StorageError,
    UnknownNameError,
    UnsupportedError,
    VersionGoneError,
    ViewkeeperError,
)
from viewkeeper.sql.names import did_you_mean
from viewkeeper.sql.references import Substitution

_GONE = (
    "Connection refused",
    "Answer from Java side is empty",
    "Error while sending or receiving",
    "StatusCode.UNAVAILABLE",
    "Socket closed",
    "Connection reset",
    "SparkContext was shut down",
    "Broken pipe",
    "failed to connect to all addresses",
)
_DAMAGED = (
    "FAILED_READ_FILE",
    "FileNotFoundException",
    "is not a Parquet file",
    "DELTA_FILE_NOT_FOUND",
    "Could not read footer",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    "DELTA_STATE_RECOVER_ERROR",
    "DELTA_LOG_FILE_NOT_FOUND",
)

_ABSENT = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_PATH_DOES_NOT_EXIST",
    "PATH_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
)
_WRAPPERS = ("TASK_WRITE_FAILED", "INTERNAL_ERROR", "JOB_CANCELLED")


@contextmanager
def spark_failures(what: str, text: Substitution | None = None) -> Iterator[None]:
    """Turn what Spark raises inside the block into our errors; `text` is the SQL that Spark got."""
    try:
        yield
    except (ViewkeeperError, KeyboardInterrupt, GeneratorExit):
        raise
    except Exception as error:
        if not _is_sparks(error):
            raise
        raise spark_failure(error, what, text) from error


def _is_sparks(error: BaseException) -> bool:
    module = type(error).__module__.split(".")[0]
    return module in ("pyspark", "py4j", "grpc") or isinstance(error, (ConnectionError, EOFError))


def spark_failure(error: Any, what: str, text: Substitution | None = None) -> ViewkeeperError:
    whole = str(error)
    if _is_gone(error, whole):
        return SparkUnavailableError(
            f"Spark died or cannot be reached while {what}.", "repeat the statement; nothing was lost."
        )
    if "No space left on device" in whole or "Disk quota exceeded" in whole:
        return StorageError(
            f"the disk is full: {what} could not be finished.", "free some space and repeat the statement."
        )
    if "Permission denied" in whole or "AccessDenied" in whole:
        return StorageError(
            f"no permission to write while {what}.", "check the rights on the warehouse's folder."
        )
    if "ConcurrentTransactionException" in whole or "DELTA_CONCURRENT" in whole:
        return ConcurrencyProblem(
            f"another process committed to the same table while {what}.", "repeat the statement."
        )
    condition, message = _innermost(error)
    location = _location(error, text)
    if any(sign in condition or sign in whole for sign in _DAMAGED):
        return CorruptWarehouseError(
            f"a data file is missing or damaged: {message}", "restore the file from a backup."
        )
    return _by_condition(condition, message, location, error)


def _is_gone(error: Any, text: str) -> bool:
    """Whether there is no Spark any more: py4j then fails in ways of its own, not with an exception of Java."""
    kind = type(error)
    if kind.__module__.startswith("py4j") and kind.__name__ != "Py4JJavaError":
        return True
    return isinstance(error, (ConnectionError, EOFError)) or any(sign in text for sign in _GONE)


def _by_condition(condition: str, message: str, location: Location | None, error: Any) -> ViewkeeperError:
    if condition.startswith("PARSE_") or type(error).__name__ == "ParseException":
        return SqlSyntaxError(f"Spark cannot parse this: {message}", "", location)
    if condition.startswith("UNRESOLVED_ROUTINE"):
        name = _parameter(error, "routineName").replace("`", "")
        return UnknownNameError(f"there is no function {name}.", "check its name and spelling.", location)
    if condition.startswith(("UNRESOLVED_COLUMN", "UNRESOLVED_FIELD", "UNRESOLVED_USING")):
        name = _parameter(error, "objectName").replace("`", "") or "here"
        proposals = [each.strip().replace("`", "") for each in _parameter(error, "proposal").split(",")]
        return UnknownNameError(f"there is no column {name} here.", did_you_mean(name, proposals), location)
    if condition.startswith(_ABSENT):
        return UnknownNameError(f"a table is not there: {message}", "", location)
    if condition.startswith(("DELTA_UNSUPPORTED", "UNSUPPORTED_", "DELTA_GEOSPATIAL", "NOT_SUPPORTED")):
        return UnsupportedError(f"this is not supported: {message}", "", location)
    if "DELTA_TIME_TRAVEL" in condition or "DELTA_VERSION" in condition or "VERSION_NOT" in condition:
        return VersionGoneError(
            f"that version cannot be read: {message}", "choose a version that is still kept.", location
        )
    if type(error).__name__ == "AnalysisException" and not condition.startswith("DIVIDE"):
        return InvalidStatementError(f"Spark refuses this: {message}", "", location)
    return QueryFailedError(f"the query failed while running: {message}", "", location)


def _innermost(error: Any) -> tuple[str, str]:
    """The condition and message of what really happened, below the wrappers that Spark puts around it."""
    condition, message = _condition(error), _first_sentence(str(error))
    trace = f"{error}\n{_stack_trace(error)}"
    for found in re.finditer(r"Caused by: [\w.$]+: \[([A-Z_0-9.]+)\] (.*)", trace):
        if found[1] not in _WRAPPERS:
            condition, message = found[1], _first_sentence(found[2])
    plain = re.findall(r"Caused by: (?:[\w$]+\.)*([\w$]+: .*)", trace)
    if not condition and plain:
        message = _first_sentence(plain[-1])
    return condition, message


def _stack_trace(error: Any) -> str:
    try:
        return str(error.getStackTrace() or "")
    except Exception:
        return ""


def _condition(error: Any) -> str:
    for name in ("getCondition", "getErrorClass"):
        getter = getattr(error, name, None)
        if getter is not None:
            try:
                found = getter()
            except Exception:
                continue
            if found:
                return str(found)
    bracketed = re.match(r"\s*\[([A-Z_.0-9]+)\]", str(error))
    return bracketed[1] if bracketed else ""


def _parameter(error: Any, name: str) -> str:
    try:
        return str((error.getMessageParameters() or {}).get(name, ""))
    except Exception:
        return ""


def _location(error: Any, text: Substitution | None) -> Location | None:
    """The place in the user's text: from the query context, or from Spark's `(line 1, pos 8)`."""
    if text is None:
        return None
    try:
        for context in error.getQueryContext() or []:
            start, stop = context.startIndex(), context.stopIndex()
            if start >= 0:
                return text.locate(start, stop + 1)
    except Exception:
        pass
    position = re.search(r"\(line (\d+), pos (\d+)\)|[Ll]ine (\d+) position (\d+)", str(error))
    if position is None:
        return None
    line, column = (int(part) for part in position.groups() if part is not None)
    start = sum(len(each) + 1 for each in text.text.split("\n")[: line - 1]) + column
    return text.locate(start, start + 1)


def _first_sentence(text: str) -> str:
    """Spark's message without its code, its SQLSTATE and the plan below it."""
    text = re.sub(r"^\s*(?:\([\w.]+\)\s*)?\[[A-Z_.0-9]+\]\s*", "", text.strip())
    text = re.split(r"\s*SQLSTATE|\n== SQL|\nJVM stacktrace|;\n", text)[0]
    text = re.split(r"\s+at (?:org|java|scala|io|jdk)\.", text)[0]
    line = " ".join(text.split())
    return (line[:400] if line else "no message").rstrip(".;") + "."
