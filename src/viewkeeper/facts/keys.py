"""Which columns of a query tell its rows apart, and why.

Equal columns and constants determine each other, and a key determines every column of its scan. If the columns
of the query determine a key of every scan, no two rows of the query are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from viewkeeper.algebra.nodes import Group, InnerJoin, Item, Project, Scan
from viewkeeper.facts.declared import Declarations, Declared, Reliance, UniqueKey
from viewkeeper.sql.types import DataType, Simple

Attribute: TypeAlias = tuple[str, str]
"""Alias of a scan and a column of it, in lower case."""


@dataclass(frozen=True)
class KeyFact:
    """Columns of the query that are its key, the reason, and the constraints that make it one."""

    columns: tuple[str, ...]
    reason: str
    relies_on: frozenset[Reliance] = frozenset()


def key_of(query: Project, declared: Declarations) -> KeyFact | None:
    """A key among the columns of the query, as small as it can be made."""
    if isinstance(query.source, Group):
        return _key_of_groups(query, query.source)
    return _key_of_join(query.items, query.source, declared)


def _key_of_groups(query: Project, group: Group) -> KeyFact | None:
    shown = {
        item.expression.name: item.name for item in query.items if isinstance(item.expression, exp.Column)
    }
    if any(key.name not in shown for key in group.keys):
        return None
    columns = tuple(shown[key.name] for key in group.keys)
    return KeyFact(
        columns, f"there is one row for each {', '.join(columns)}" if columns else "there is one row"
    )


def _key_of_join(items: tuple[Item, ...], join: InnerJoin, declared: Declarations) -> KeyFact | None:
    shown = {
        _attribute(item.expression): item.name for item in items if isinstance(item.expression, exp.Column)
    }
    kept = list(shown)
    relied = _keys_reached(kept, join, declared)
    if relied is None:
        return None
    for attribute in reversed(list(shown)):
        fewer = [each for each in kept if each != attribute]
        reached = _keys_reached(fewer, join, declared)
        if reached is not None:
            kept, relied = fewer, reached
    columns = tuple(shown[attribute] for attribute in kept)
    because = "; ".join(f"({', '.join(key)}) is a key of {scan}" for scan, key in relied.items())
    reliances = frozenset(
        Reliance(scan.input.object_id, key.name)
        for scan in join.scans
        for key in _keys(scan, declared)
        if relied[scan.alias] == key.columns
    )
    return KeyFact(columns, f"{', '.join(columns)} determines every row: {because}", reliances)


def _keys_reached(
    start: Iterable[Attribute], join: InnerJoin, declared: Declarations
) -> dict[str, tuple[str, ...]] | None:
    """For each scan a key that the attributes determine; None if one has none."""
    known = set(start) | constants(join)
    same = equalities(join)
    reached: dict[str, tuple[str, ...]] = {}
    while True:
        before = len(known)
        for left, right in same:
            if left in known or right in known:
                known |= {left, right}
        for scan in join.scans:
            for key in _keys(scan, declared):
                if all((scan.alias.lower(), name.lower()) in known for name in key.columns):
                    reached.setdefault(scan.alias, key.columns)
                    known |= {(scan.alias.lower(), each.name.lower()) for each in scan.input.columns}
        if len(known) == before:
            return reached if len(reached) == len(join.scans) else None


def _keys(scan: Scan, declared: Declarations) -> tuple[UniqueKey, ...]:
    return declared.get(scan.input.object_id, Declared()).keys


def equalities(join: InnerJoin) -> list[tuple[Attribute, Attribute]]:
    """Columns that the conditions make the same, value for value."""
    types = _types(join)
    found = []
    for condition in join.conditions:
        if not isinstance(condition, exp.EQ):
            continue
        left, right = condition.this, condition.expression
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            pair = _attribute(left), _attribute(right)
            if types.get(pair[0]) == types.get(pair[1]) and _is_exact(types.get(pair[0])):
                found.append(pair)
    return found


def constants(join: InnerJoin) -> set[Attribute]:
    """Columns that the conditions fix to one value."""
    types = _types(join)
    found = set()
    for condition in join.conditions:
        if isinstance(condition, exp.EQ):
            for one, other in (
                (condition.this, condition.expression),
                (condition.expression, condition.this),
            ):
                if isinstance(one, exp.Column) and isinstance(other, exp.Literal):
                    attribute = _attribute(one)
                    if _is_exact(types.get(attribute)):
                        found.add(attribute)
    return found


def _types(join: InnerJoin) -> dict[Attribute, DataType]:
    return {
        (scan.alias.lower(), each.name.lower()): each.data_type
        for scan in join.scans
        for each in scan.input.columns
    }


def _attribute(expression: exp.Expr) -> Attribute:
    assert isinstance(expression, exp.Column)
    return expression.table.lower(), expression.name.lower()


def _is_exact(data_type: DataType | None) -> bool:
    """Whether values that are equal are the same: not so for 0.0 and -0.0, nor for padded CHAR."""
    return isinstance(data_type, Simple) and not data_type.name.startswith(("FLOAT", "DOUBLE", "CHAR"))
