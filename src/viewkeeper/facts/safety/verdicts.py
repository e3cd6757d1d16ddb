"""What the analysis of a view finds, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from viewkeeper.algebra.nodes import Scan
from viewkeeper.facts.declared import Reliance
from viewkeeper.facts.safety.selects import Block, Select, Selection, Subquery, Unread
from viewkeeper.sql.names import QualifiedName


class Place(Enum):
    """Where a table is named: in FROM of the view itself, or in a subquery that can only add rows to the view by having
    more rows (positive), or only take rows away (negative)."""

    TOP = "top"
    POSITIVE = "positive"
    NEGATIVE = "negative"


@dataclass(frozen=True)
class Reference:
    """A table named in a view. `position` counts the references of the view from 1; `path` are the subqueries from the
    outermost to the one that names it."""

    scan: Scan
    position: int
    select: Select
    path: tuple[Subquery, ...]
    place: Place

    @property
    def table(self) -> QualifiedName:
        return self.scan.input.name

    @property
    def block(self) -> Block:
        """The block that names the table."""
        return self.path[-1].block if self.path else self.select.block


@dataclass(frozen=True)
class ReferenceVerdict:
    """Whether changes through a reference are decided without evaluating the view again.

    Of a reference in a negative subquery insertions are decided if it is `i_safe`, deletions and updates if it is
    `du_safe`; everywhere else all three are if it is `safe`.
    """

    reference: Reference
    reason: str
    bound: tuple[str, ...]
    """The columns of the table that are bound."""
    safe: bool | None = None
    i_safe: bool | None = None
    du_safe: bool | None = None
    keys_around: frozenset[Reliance] = frozenset()
    """The keys by which columns of the queries around are bound; of a table in FROM, those of its own block."""
    keys_inside: frozenset[Reliance] = frozenset()
    """Those by which columns of the subquery are."""

    @property
    def deciding_keys(self) -> frozenset[Reliance]:
        """The keys without which deletions from the view would not be decided."""
        is_negative = self.reference.place is Place.NEGATIVE
        return self.keys_around if is_negative else self.keys_around | self.keys_inside

    @property
    def decides_deletions(self) -> bool:
        """Whether what must leave the view, because of rows that come or go here, is known without another look."""
        return bool(self.i_safe if self.reference.place is Place.NEGATIVE else self.safe)

    @property
    def is_safe(self) -> bool:
        return bool(self.du_safe if self.reference.place is Place.NEGATIVE else self.safe)

    def to_json(self) -> dict[str, Any]:
        reference = self.reference
        verdict = (
            {"i_safe": self.i_safe, "du_safe": self.du_safe}
            if reference.place is Place.NEGATIVE
            else {"safe": self.safe}
        )
        return {
            "table": str(reference.table),
            "alias": reference.scan.alias,
            "position": reference.position,
            "kind": reference.place.value,
            **verdict,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class DuplicateVerdict:
    """`relies_on` are the keys without which there could be duplicates."""

    possible: bool
    reason: str
    relies_on: frozenset[Reliance] = frozenset()


@dataclass(frozen=True)
class ViewAnalysis:
    """`selection` is the view as it was read; for an `Unread` one there are no verdicts on references."""

    selection: Selection
    duplicates: DuplicateVerdict
    references: tuple[ReferenceVerdict, ...] = ()
    bound: tuple[str, ...] = ()
    correlated: tuple[str, ...] = ()

    @property
    def unread(self) -> str | None:
        """Why the analysis does not cover the view."""
        return self.selection.reason if isinstance(self.selection, Unread) else None

    def to_json(self) -> dict[str, Any]:
        return {
            "duplicates": {"possible": self.duplicates.possible, "reason": self.duplicates.reason},
            "references": [each.to_json() for each in self.references],
            "bound_columns": list(self.bound),
            "correlated_bound_columns": list(self.correlated),
            **({"not_analysed": self.unread} if self.unread is not None else {}),
        }
