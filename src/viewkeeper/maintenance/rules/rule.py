"""A rule: when rows of a table come, go or change, what happens to the view.

Actions are SQL over transition tables: the rows that were inserted, deleted or updated (their old and their new images),
tables as they were before, tables as they are now, the view itself, and the rows that rules have put into the view already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from sqlglot import exp

from viewkeeper.facts.declared import Reliance
from viewkeeper.maintenance.plan import State
from viewkeeper.sql.binding import Input
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.statements import Operation


class Effect(Enum):
    """What a rule does to the view; in this order rules run."""

    REMATERIALIZE = "rematerialize"
    DELETE = "delete"
    INSERT = "insert"
    RECOUNT = "recount"


class Certainty(Enum):
    """How a rule knows that rows leave the view."""

    BY_THE_VIEW = "the view alone decides: it holds what tells which rows are meant"
    BY_KEY = "the rows come from no other row: the reference is safe"
    BLOCKED = "all that looks the same in the view is blocked together: the reference is I-safe"
    EXCLUDED = "the right side of EXCEPT has them now"
    CHECKED = "each row is looked up once more: the reference is not safe"
    COUNTED = "copies are counted"


_HAPPENED = {
    Operation.INSERT: "inserted into",
    Operation.DELETE: "deleted from",
    Operation.UPDATE: "updated",
}


@dataclass(frozen=True)
class Trigger:
    """`columns`: of an update, those whose change matters."""

    operation: Operation
    table: QualifiedName
    object_id: str
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        columns = f" ({', '.join(self.columns)})" if self.columns else ""
        return f"{_HAPPENED[self.operation]} {self.table}{columns}"


@dataclass(frozen=True)
class TransitionTable:
    """A table in one state; without a table, the view: as it is (NEW), or what was put into it so far (INSERTED)."""

    table: Input | None
    state: State

    def shown(self, view: str) -> str:
        name = view if self.table is None else str(self.table.name)
        return name if self.state is State.NEW else f"{self.state.value} {name}"


@dataclass(frozen=True)
class Check:
    """Only rows that this query has, or has not."""

    query: exp.Query
    must_have: bool
    asks_view: bool = False
    """Whether the query is the view itself, or what was put into it."""


@dataclass(frozen=True)
class Action:
    """Rows that leave or enter the view. `rows` are over relations of generated names, `tables` says what these are.

    `columns` are those columns of the view that the rows have: all, or enough to tell which rows are meant. Checks are on
    all columns. `matches_nulls`: a NULL of the rows means a NULL of the view. A `sign` is given where copies are counted.
    `was_in_view`: the rows are such that the view held them before, for certain. `relies_on` are the keys without which the
    action would be wrong.
    """

    rows: exp.Query
    columns: tuple[str, ...]
    tables: Mapping[str, TransitionTable] = field(hash=False)
    certainty: Certainty
    checks: tuple[Check, ...] = ()
    sign: int = 0
    matches_nulls: bool = True
    was_in_view: bool = False
    relies_on: frozenset[Reliance] = frozenset()

    @property
    def checks_of_tables(self) -> tuple[Check, ...]:
        """The checks that do not ask the view itself."""
        return tuple(each for each in self.checks if not each.asks_view)


@dataclass(frozen=True)
class RuleRun:
    """What a refresh makes of a rule, after the operation that triggers it and no other."""

    runs: bool
    how: str


@dataclass(frozen=True)
class Rule:
    """`anew_in_the_paper` are the triggering operations on which the published scheme evaluates the whole view."""

    name: str
    triggers: tuple[Trigger, ...]
    effect: Effect
    actions: tuple[Action, ...] = ()
    precedes: tuple[str, ...] = ()
    reason: str = ""
    anew_in_the_paper: tuple[Operation, ...] = ()

    def to_json(self, shown: str, run: RuleRun) -> dict[str, Any]:
        return {
            "name": self.name,
            "triggers": [
                {
                    "operation": each.operation.value.lower(),
                    "table": str(each.table),
                    "columns": list(each.columns),
                }
                for each in self.triggers
            ],
            "effect": self.effect.value,
            "reason": self.reason,
            "rematerializes_in_the_paper": [each.value.lower() for each in self.anew_in_the_paper],
            "precedes": list(self.precedes),
            "in_a_refresh": {"runs": run.runs, "how": run.how},
            "sql": shown,
        }
