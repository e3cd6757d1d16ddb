"""A maintenance plan: ordered steps, each with the SQL it runs and the states it reads.

Building a plan touches nothing. EXPLAIN prints the steps, execution walks the same steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from viewkeeper.sql.names import QualifiedName


class Strategy(Enum):
    """How a view's change was found; the word that reports use."""

    NONE = "none"
    RECOMPUTE = "recompute"


class State(Enum):
    """The state in which a step reads a table or view."""

    OLD = "old"
    NEW = "new"


@dataclass(frozen=True)
class Read:
    """A relation of generated SQL: which object it shows, in which state."""

    relation: str
    object_id: str
    name: QualifiedName
    state: State

    def __str__(self) -> str:
        moment = "before" if self.state is State.OLD else "after"
        return f"{self.relation} = {self.name} {moment} the changes"


@dataclass(frozen=True)
class EvaluateQuery:
    """Evaluate the view's query, in the user's own words, as a relation for the next steps."""

    relation: str
    sql: str
    reads: tuple[Read, ...]

    title = "evaluate the query"


@dataclass(frozen=True)
class LoadRows:
    """Write the rows of a new view."""

    sql: str
    reads: tuple[Read, ...]

    title = "load the view"


@dataclass(frozen=True)
class WriteChangeSet:
    """Compute the view's change set and store it, before the view itself is touched."""

    sql: str
    reads: tuple[Read, ...]

    title = "store the change set"


@dataclass(frozen=True)
class ApplyChangeSet:
    """Apply the stored change set to the view: one commit. `target` and `changes` name relations in the SQL."""

    sql: str
    target: str
    changes: str
    reads: tuple[Read, ...] = ()

    title = "apply the change set"


Step: TypeAlias = EvaluateQuery | LoadRows | WriteChangeSet | ApplyChangeSet


@dataclass(frozen=True)
class MaintenancePlan:
    view: QualifiedName
    strategy: Strategy
    reason: str
    steps: tuple[Step, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "view": str(self.view),
            "strategy": self.strategy.value,
            "reason": self.reason,
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
