"""Changes that cannot reach a view, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from viewkeeper.facts.declared import Reliance, UniqueKey


@dataclass(frozen=True)
class Dropped:
    """A part of a change set that cannot reach the view, and the foreign key that says so."""

    what: str
    reason: str
    relies_on: Reliance
    parent_id: str

    def __str__(self) -> str:
        return f"{self.what} cannot reach the view: {self.reason}"


def reliances(dropped: Iterable[Dropped], keys: Mapping[str, UniqueKey]) -> frozenset[Reliance]:
    """What must hold for what was dropped: the foreign keys, and the keys of the parents, by which a new row is told
    from a changed one."""
    found = list(dropped)
    told_apart = {Reliance(each.parent_id, keys[each.parent_id].name) for each in found}
    return frozenset(told_apart | {each.relies_on for each in found})
