"""What was declared of the tables a query reads, as far as it may be relied on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class UniqueKey:
    """Columns that are never NULL and never the same in two rows. `name` is that of the constraint."""

    columns: tuple[str, ...]
    name: str
    rely: bool = False
    """Declared RELY: trusted without a check."""


@dataclass(frozen=True)
class TotalForeignKey:
    """Columns that are never NULL and always found in the parent's key."""

    columns: tuple[str, ...]
    parent_id: str
    parent_columns: tuple[str, ...]
    name: str
    rely: bool = False


@dataclass(frozen=True)
class Declared:
    """The constraints of one table, or of a view, whose key follows from its query."""

    keys: tuple[UniqueKey, ...] = ()
    foreign_keys: tuple[TotalForeignKey, ...] = ()
    nullable_keys: tuple[UniqueKey, ...] = ()
    """UNIQUE over columns that may be NULL: never the same in two rows that have values in all of them."""
    is_append_only: bool = False


Declarations: TypeAlias = Mapping[str, Declared]
"""By the id of the table or view; what is missing has no constraints."""


@dataclass(frozen=True, order=True)
class Reliance:
    """A constraint of a table that a plan is only right with, so that it must be checked."""

    object_id: str
    constraint: str
