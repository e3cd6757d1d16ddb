"""Joins along foreign keys that always find their parent."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.nodes import InnerJoin, Query, Scan, walk
from viewkeeper.facts.declared import Declarations, Declared, Reliance, TotalForeignKey, UniqueKey
from viewkeeper.facts.keys import equalities


@dataclass(frozen=True)
class ParentJoin:
    """A child scan joined to its parent scan by all columns of a foreign key of the child's table."""

    child: str
    parent: str
    foreign_key: TotalForeignKey
    child_id: str

    @property
    def reliance(self) -> Reliance:
        return Reliance(self.child_id, self.foreign_key.name)


def parent_joins(join: InnerJoin, declared: Declarations) -> tuple[ParentJoin, ...]:
    equal = {frozenset(pair) for pair in equalities(join)}
    tables = [source for source in join.sources if isinstance(source, Scan)]
    found = []
    for child in tables:
        for foreign_key in declared.get(child.input.object_id, Declared()).foreign_keys:
            for parent in tables:
                if parent is not child and parent.input.object_id == foreign_key.parent_id:
                    wanted = _pairs(child, parent, foreign_key)
                    if all(pair in equal for pair in wanted):
                        found.append(
                            ParentJoin(child.alias, parent.alias, foreign_key, child.input.object_id)
                        )
    return tuple(found)


def change_keys(query: Query, declared: Declarations) -> dict[str, UniqueKey]:
    """For each parent of such joins the key by which its changes are to be told apart: one that a foreign key names.

    That a parent is gone means for its children that the values they name are gone. So deletions and insertions say nothing to
    a child unless they are told apart by these very columns.
    """
    facts = [
        found for node in walk(query) if isinstance(node, InnerJoin) for found in parent_joins(node, declared)
    ]
    keys: dict[str, UniqueKey] = {}
    for parent_id in dict.fromkeys(fact.foreign_key.parent_id for fact in facts):
        named = [fact.foreign_key for fact in facts if fact.foreign_key.parent_id == parent_id]
        for key in declared.get(parent_id, Declared()).keys:
            if any(names_key(each, key) for each in named):
                keys[parent_id] = key
                break
    return keys


def names_key(foreign_key: TotalForeignKey, key: UniqueKey) -> bool:
    """Whether the columns that a foreign key names are those of a key, in any order."""
    return {each.lower() for each in foreign_key.parent_columns} == {each.lower() for each in key.columns}


def _pairs(child: Scan, parent: Scan, foreign_key: TotalForeignKey) -> list[frozenset[tuple[str, str]]]:
    return [
        frozenset({(child.alias.lower(), own.lower()), (parent.alias.lower(), other.lower())})
        for own, other in zip(foreign_key.columns, foreign_key.parent_columns, strict=True)
    ]
