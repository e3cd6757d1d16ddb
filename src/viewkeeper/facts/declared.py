"""What was declared of the tables a query reads, as far as it may be relied on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from viewkeeper.sql.binding import Column
from viewkeeper.sql.statements import Key


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


def declared_by(
    columns: Iterable[Column],
    keys: Sequence[Key],
    foreign_keys: Iterable[TotalForeignKey],
    is_append_only: bool = False,
) -> Declared:
    """What follows from constraints over these columns: only where none of its columns can be NULL is a key a key, and a
    foreign key total. The primary key is the first."""
    never_null = {column.name.lower() for column in columns if not column.nullable}

    def is_total(names: Iterable[str]) -> bool:
        return never_null.issuperset(name.lower() for name in names)

    unique = [
        UniqueKey(key.columns, key.name or "", key.rely)
        for key in sorted(keys, key=lambda key: not key.primary)
    ]
    return Declared(
        tuple(key for key in unique if is_total(key.columns)),
        tuple(key for key in foreign_keys if is_total(key.columns)),
        tuple(key for key in unique if not is_total(key.columns)),
        is_append_only,
    )


Declarations: TypeAlias = Mapping[str, Declared]
"""By the id of the table or view; what is missing has no constraints."""


@dataclass(frozen=True, order=True)
class Reliance:
    """A constraint of a table that a plan is only right with, so that it must be checked."""

    object_id: str
    constraint: str
