"""A maintenance plan: ordered steps, each with the SQL it runs and the states it reads.

Building a plan touches nothing. EXPLAIN prints the steps, execution walks the same steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from viewkeeper.facts.declared import Reliance
from viewkeeper.sql.names import QualifiedName


class Strategy(Enum):
    """How a view's change was found; the word that reports use."""

    NONE = "none"
    DIFFERENTIAL = "differential"
    RULES = "rules"
    RECOMPUTE = "recompute"


class State(Enum):
    """What of a table or view a step reads: all its rows at some moment, or a part of its change set.

    An update is the removal of its old image and the addition of its new one.
    """

    OLD = "old"
    NEW = "new"
    BETWEEN = "between"
    REMOVED = "removed"
    ADDED = "added"
    DELETED = "deleted"
    INSERTED = "inserted"
    OLD_UPDATED = "old_updated"
    NEW_UPDATED = "new_updated"

    @property
    def is_change(self) -> bool:
        return self not in (State.OLD, State.NEW, State.BETWEEN)


_SHOWN = {
    State.OLD: "{} before the changes",
    State.NEW: "{} after the changes",
    State.BETWEEN: "{} before the changes, without the rows that were deleted or updated",
    State.REMOVED: "the rows that were deleted from {}, and the old images of updates",
    State.ADDED: "the rows that were inserted into {}, and the new images of updates",
    State.DELETED: "the rows that were deleted from {}",
    State.INSERTED: "the rows that were inserted into {}",
    State.OLD_UPDATED: "the old images of the rows that were updated in {}",
    State.NEW_UPDATED: "the new images of the rows that were updated in {}",
}


@dataclass(frozen=True)
class Limit:
    """Only rows that have in each of `columns` a value that `relation` has in the column at the same place in
    `of_columns`. The relation is a part of a change set, what an earlier step derived and computed, or a table that is read
    under a limit itself. `keeps_nulls` lets rows through that have NULL where the relation has it too."""

    columns: tuple[str, ...]
    relation: str
    of_columns: tuple[str, ...]
    keeps_nulls: bool = False

    def name(self, relation: str) -> str:
        """What a relation is called under this limit: the same table may be read under several, in a self-join."""
        of_columns = "" if self.of_columns == self.columns else f"_{'_'.join(self.of_columns)}"
        nulls = "_or_null" if self.keeps_nulls else ""
        return f"{relation}_by_{'_'.join(self.columns)}_of_{self.relation}{of_columns}{nulls}"

    def __str__(self) -> str:
        nulls = " or NULL" if self.keeps_nulls else ""
        if len(self.columns) == 1:
            return f"only where {self.columns[0]} is a {self.of_columns[0]} of {self.relation}{nulls}"
        of_columns = f"({', '.join(self.of_columns)}) of " if self.of_columns != self.columns else ""
        return f"only where ({', '.join(self.columns)}) have values of {of_columns}{self.relation}{nulls}"


@dataclass(frozen=True)
class Read:
    """A relation of generated SQL: which object it shows, in which state.

    A limit never changes the answer; it is there so that files without such rows need not be read. Neither does
    `only_if`: without rows in that earlier relation, nothing is read.
    """

    relation: str
    object_id: str
    name: QualifiedName
    state: State
    limit: Limit | None = None
    only_if: str | None = None

    def __str__(self) -> str:
        limited = f", {self.limit}" if self.limit is not None else ""
        if self.only_if is not None:
            limited += f", if {self.only_if} has rows"
        return f"{self.relation} = {_SHOWN[self.state].format(self.name)}{limited}"


@dataclass(frozen=True)
class Derive:
    """A relation for the next steps. Nothing is computed before a step needs it, unless several need it: then
    `is_shared` has it computed once. With `ends_if_empty`, no rows mean that the view does not change: the plan is at
    its end."""

    title: str
    relation: str
    sql: str
    reads: tuple[Read, ...] = ()
    is_shared: bool = False
    ends_if_empty: bool = False


@dataclass(frozen=True)
class CheckConstraint:
    """Look for rows that violate a constraint on which later steps rely. `sql` gives the violating values."""

    table: QualifiedName
    constraint: str
    what: str
    sql: str
    reads: tuple[Read, ...]

    @property
    def title(self) -> str:
        return f"check {self.constraint} of {self.table}: {self.what}"


@dataclass(frozen=True)
class LoadRows:
    """Write the rows of a new view."""

    sql: str
    reads: tuple[Read, ...]

    title = "load the view"


@dataclass(frozen=True)
class SignedRows:
    """A relation of the plan that has rows with signs. `are_all_copies` says that they go, all that the view has of them."""

    relation: str
    are_all_copies: bool = False


@dataclass(frozen=True)
class WriteChangeSet:
    """Compute the view's change set and store it, before the view itself is touched.

    `signed` says that it is the change set of signed rows, which can be counted without running the SQL.
    """

    sql: str
    reads: tuple[Read, ...]
    signed: SignedRows | None = None

    @property
    def title(self) -> str:
        asks = self.signed is not None and not self.signed.are_all_copies
        return f"{'find these rows in the view, and ' if asks else ''}store the change set"


@dataclass(frozen=True)
class ApplyChangeSet:
    """Apply the stored change set to the view: one commit. `target` and `changes` name relations in the SQL; `matches`
    counts, for each kind of change, the rows of the change set that the view has already."""

    sql: str
    target: str
    changes: str
    matches: str
    reads: tuple[Read, ...] = ()

    title = "apply the change set"


Step: TypeAlias = Derive | CheckConstraint | LoadRows | WriteChangeSet | ApplyChangeSet


@dataclass(frozen=True)
class MaintenancePlan:
    """`facts` are sentences on what the plan leaves out and why, `relies_on` the constraints that it needs.

    Of the constraints in `spot_checked` it needs only what they say of rows that went; this it checks, and no more.
    """

    view: QualifiedName
    strategy: Strategy
    reason: str
    steps: tuple[Step, ...]
    facts: tuple[str, ...] = ()
    relies_on: frozenset[Reliance] = frozenset()
    spot_checked: frozenset[Reliance] = frozenset()

    def to_json(self) -> dict[str, Any]:
        return {
            "view": str(self.view),
            "strategy": self.strategy.value,
            "reason": self.reason,
            "facts": list(self.facts),
            "steps": [
                {
                    "step": type(step).__name__,
                    "title": step.title,
                    "reads": [
                        {"relation": read.relation, "object": str(read.name), "state": read.state.value}
                        for read in step.reads
                    ],
                    "sql": step.sql,
                }
                for step in self.steps
            ],
        }
