"""Deletions that the view alone decides.

If a view shows a key of a table, or columns that are equal to it, the rows of the view that came from a row of that table
are found by these columns: no other table has to be read. In the same way rows of the view that a new row of a NOT EXISTS
blocks are found, if the subquery asks for columns that the view shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.expressions import equality_sides, without_parentheses
from viewkeeper.algebra.nodes import Attribute, Item, aliases_in
from viewkeeper.facts.declared import Declarations, UniqueKey
from viewkeeper.facts.keys import attribute_of, is_exact
from viewkeeper.facts.safety.bound_columns import BoundColumns, is_constant, types_of
from viewkeeper.facts.safety.selects import Block, Select, blocks
from viewkeeper.facts.safety.verdicts import Place, Reference
from viewkeeper.sql.rendering import column


@dataclass(frozen=True)
class DecidedByView:
    """`columns` of the view, each with what it must equal in a changed row; `block` is what a changed row must meet (its
    other tables as they are now), `key` the key that makes it true."""

    columns: tuple[Item, ...]
    block: Block
    key: UniqueKey | None = None


def decided_by_view(
    reference: Reference, names: Sequence[str], declared: Declarations
) -> DecidedByView | None:
    """How the view tells which of its rows leave, when a row goes from the reference (in a negative subquery: comes)."""
    if len(reference.path) > 1:
        return None
    shown = _Shown(reference.select, names)
    if reference.place is Place.NEGATIVE:
        return _by_comparison(reference, shown)
    return _by_key(reference, shown, declared)


def _by_key(reference: Reference, shown: _Shown, declared: Declarations) -> DecidedByView | None:
    scan = reference.scan
    conditions = [
        *reference.select.block.conditions,
        *(each for sub in reference.path for each in sub.block.conditions),
    ]
    known = BoundColumns((scan,), tuple(conditions), declared, shown.types)
    for key in known.keys_of(scan):
        columns: list[Item] = []
        fixed: list[exp.Expr] = []
        for name in key.columns:
            own = column(name, scan.alias)
            names = shown.columns_equal_to(own, conditions) if shown.is_exact(own) else []
            constant = shown.constant_equal_to(own, conditions)
            if names:
                columns.append(Item(names[0], own))
            elif constant is not None:
                fixed.append(exp.EQ(this=own, expression=constant.copy()))
            else:
                break
        else:
            if columns:
                return _decided(columns, Block((scan,), tuple(fixed)), key)
    return None


def _by_comparison(reference: Reference, shown: _Shown) -> DecidedByView | None:
    """The subquery compares columns of its own with columns that the view shows, and nothing else of the query around."""
    block = reference.block
    own = {scan.alias for scan in block.tables}
    columns: list[Item] = []
    inside: list[exp.Expr] = []
    for condition in block.conditions:
        if aliases_in(condition) <= own:
            inside.append(condition)
            continue
        sides = equality_sides(condition)
        mine = [each for each in sides or () if aliases_in(each) and aliases_in(each) <= own]
        others = [without_parentheses(each) for each in sides or () if not aliases_in(each) & own]
        if len(mine) != 1 or len(others) != 1 or not isinstance(others[0], exp.Column):
            return None
        names = shown.columns_equal_to(others[0], reference.select.block.conditions)
        if not names:
            return None
        columns.append(Item(names[0], mine[0]))
    if not columns:
        return None
    return _decided(columns, Block(block.tables, tuple(inside), block.subqueries), None)


def _decided(columns: Sequence[Item], block: Block, key: UniqueKey | None) -> DecidedByView:
    """Each column of the view once: what else must equal it must equal what it is compared with."""
    first: dict[str, Item] = {}
    same: list[exp.Expr] = []
    for item in columns:
        known = first.setdefault(item.name, item)
        if known is not item:
            same.append(exp.EQ(this=known.expression.copy(), expression=item.expression.copy()))
    more = Block(block.tables, (*block.conditions, *same), block.subqueries)
    return DecidedByView(tuple(first.values()), more, key)


class _Shown:
    """Which columns of a view show a column of a table, or one that is always equal to it."""

    def __init__(self, select: Select, names: Sequence[str]) -> None:
        self.types = types_of(scan for block in blocks(select.block) for scan in block.tables)
        self._names: dict[Attribute, list[str]] = {}
        for at, name in enumerate(names):
            shown = select.shows(at)
            if isinstance(shown, exp.Column):
                self._names.setdefault(attribute_of(shown), []).append(name)

    def is_exact(self, wanted: exp.Column) -> bool:
        return is_exact(self.types[attribute_of(wanted)])

    def columns_equal_to(self, wanted: exp.Column, conditions: Iterable[exp.Expr]) -> list[str]:
        equal = self._equal_to(attribute_of(wanted), list(conditions))
        return [name for attribute in equal for name in self._names.get(attribute, ())]

    def constant_equal_to(self, wanted: exp.Column, conditions: Iterable[exp.Expr]) -> exp.Expr | None:
        known = list(conditions)
        equal = self._equal_to(attribute_of(wanted), known)
        for one, other in _equalities(known):
            if isinstance(one, exp.Column) and attribute_of(one) in equal and is_constant(other):
                return other
        return None

    def _equal_to(self, wanted: Attribute, conditions: Sequence[exp.Expr]) -> list[Attribute]:
        """The column itself first, then those that the conditions make the same, value for value."""
        found = [wanted]
        for attribute in found:
            for one, other in _equalities(conditions):
                if isinstance(one, exp.Column) and isinstance(other, exp.Column):
                    pair = attribute_of(one), attribute_of(other)
                    same = self.types.get(pair[0]) == self.types.get(pair[1]) and is_exact(
                        self.types.get(pair[0])
                    )
                    if pair[0] == attribute and same and pair[1] not in found:
                        found.append(pair[1])
        return found


def _equalities(conditions: Iterable[exp.Expr]) -> list[tuple[exp.Expr, exp.Expr]]:
    found = []
    for condition in conditions:
        sides = equality_sides(condition)
        if sides is not None:
            one, other = map(without_parentheses, sides)
            found += [(one, other), (other, one)]
    return found
