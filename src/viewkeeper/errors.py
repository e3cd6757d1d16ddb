"""The one tree of errors that Viewkeeper raises.

The class says whose turn it is: the user's (`UserError`), the warehouse's (`WarehouseProblem`), another
process's (`ConcurrencyProblem`) or the machine's (`EnvironmentProblem`). Every error carries its facts as
fields: `message`, `hint` and, where SQL was at fault, `location`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Location:
    """A stretch of the user's own SQL text.

    >>> where = Location.of_span("SELECT a\\nFROM t WHERE bb = 1", 22, 24)
    >>> print(where.underlined())
    line 2: FROM t WHERE bb = 1
                         ^^
    """

    line: int
    column: int
    length: int
    line_text: str

    @staticmethod
    def of_span(text: str, start: int, end: int) -> Location:
        """Locate the characters `start` up to (not including) `end` of `text`."""
        start = max(0, min(start, len(text)))
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", start)
        if line_end == -1:
            line_end = len(text)
        length = max(1, min(end, line_end) - start)
        return Location(
            text.count("\n", 0, start) + 1, start - line_start + 1, length, text[line_start:line_end]
        )

    def underlined(self) -> str:
        prefix = f"line {self.line}: "
        shown = self.line_text.replace("\t", " ")
        return f"{prefix}{shown}\n{' ' * (len(prefix) + self.column - 1)}{'^' * self.length}"


class ViewkeeperError(Exception):
    """The root of the tree. `str(error)` is the whole story: what, where, and the way out."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "", location: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.location = location

    def __str__(self) -> str:
        parts = [self.message]
        if self.location is not None:
            parts.append(self.location.underlined())
        if self.hint:
            parts.append(f"To do: {self.hint}")
        return "\n".join(parts)

    def as_json(self) -> dict[str, Any]:
        location = self.location
        return {
            "error": type(self).__name__,
            "message": self.message,
            "hint": self.hint,
            "position": None
            if location is None
            else {"line": location.line, "column": location.column, "length": location.length},
        }


class UserError(ViewkeeperError):
    """The statement cannot be carried out as written; nothing was changed."""


class SqlSyntaxError(UserError):
    """The text is not SQL that we or Spark can parse."""


class UnknownNameError(UserError):
    """A table, view, column, function or constraint that does not exist."""


class NameExistsError(UserError):
    """The name is taken."""


class InvalidStatementError(UserError):
    """It parses, but it cannot mean anything: wrong types, a key on a missing column, a cycle of views."""


class UnsupportedError(UserError):
    """Sensible SQL that Viewkeeper (or Delta below it) does not take."""


class InUseError(UserError):
    """Something else depends on the object."""


class RefreshPolicyError(UserError):
    """The view's REFRESH policy forbids what would have to be done."""


class QueryFailedError(UserError):
    """The query was understood and failed while running, for instance a division by zero."""


class WarehouseProblem(ViewkeeperError):
    """The warehouse or its files are not what they should be."""

    exit_code = 3


class NotAWarehouseError(WarehouseProblem):
    """The path holds something else, or nothing."""


class FormatVersionError(WarehouseProblem):
    """The warehouse was written by a newer Viewkeeper."""


class CorruptWarehouseError(WarehouseProblem):
    """Catalogue, journal or data files are damaged or missing."""


class ChangeSetMismatchError(WarehouseProblem):
    """The rows that a change set deletes are not in the view, or those that it inserts are."""


class ForeignCommitError(WarehouseProblem):
    """Somebody else wrote into a table that only Viewkeeper may write."""


class VersionGoneError(WarehouseProblem):
    """A version or epoch that is no longer kept."""


class ConstraintViolatedError(WarehouseProblem):
    """Rows of a table violate a declared constraint that a refresh relies on."""

    def __init__(self, message: str, hint: str = "", table: str = "", constraint: str = "") -> None:
        super().__init__(message, hint)
        self.table = table
        self.constraint = constraint


class SchemaChangedError(WarehouseProblem):
    """A column that is known of a table was dropped, renamed or given another type."""


class FeedGoneError(WarehouseProblem):
    """The changes of a table since the last refresh can no longer be read."""


class ConcurrencyProblem(ViewkeeperError):
    """Another process is at work on the same objects."""

    exit_code = 4


class RefreshConflictError(ConcurrencyProblem):
    """Somebody else is refreshing an overlapping set of views."""


class TakenOverError(ConcurrencyProblem):
    """Our own epoch was taken over by another process, which took us for dead."""


class EnvironmentProblem(ViewkeeperError):
    """Java, Spark, the disk or the network let us down."""

    exit_code = 5


class StorageError(EnvironmentProblem):
    """Files cannot be read or written: no permission, a full disk, an unreachable store."""


class SparkUnavailableError(EnvironmentProblem):
    """Spark cannot be started, or died."""


def told(error: BaseException) -> str:
    """An error in one sentence, also one that is not ours.

    >>> told(KeyError("a"))
    "unexpected KeyError: 'a'"
    >>> told(KeyboardInterrupt())
    'it was interrupted.'
    """
    if isinstance(error, ViewkeeperError):
        return error.message
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted."
    lines = str(error).strip().splitlines()
    return f"unexpected {type(error).__name__}: {lines[0][:300] if lines else 'no message'}"
