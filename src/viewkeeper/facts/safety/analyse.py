"""The analysis of a view: can it hold duplicates, and which of its references to tables are safe.

A reference is safe if a row of the view decides which row of that table it came from: a key of the table is bound. Then a
row that is deleted there takes its rows of the view along, whatever else the tables hold; no other row can have made them.

In a subquery that must have *no* row (NOT EXISTS, NOT IN, comparisons with ALL), a row more can only take rows of the view
away. It is known which, if the subquery asks only for bound columns of the query around (I-safe): then all that looks the
same in the view is blocked together. If also a key of the table is bound (DU-safe), the row that is deleted was the only one
that blocked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.nodes import Attribute, Query, Scan
from viewkeeper.facts.declared import Declarations, Reliance
from viewkeeper.facts.keys import attribute_of, key_of
from viewkeeper.facts.safety.bound_columns import Bound, BoundColumns, types_of
from viewkeeper.facts.safety.common_types import with_common_types
from viewkeeper.facts.safety.selects import (
    Block,
    Combined,
    Select,
    Selection,
    Subquery,
    Unread,
    blocks,
    read_selection,
    selects,
)
from viewkeeper.facts.safety.verdicts import (
    DuplicateVerdict,
    Place,
    Reference,
    ReferenceVerdict,
    ViewAnalysis,
)
from viewkeeper.sql.binding import Column


def analyse_query(query: Query, columns: Sequence[Column], declared: Declarations) -> ViewAnalysis:
    """Everything that is known of a query that makes these columns of a view."""
    selection = with_common_types(read_selection(query), columns)
    if isinstance(selection, Unread):
        key = key_of(query, declared)
        reason = "no key of its rows is known" if key is None else key.reason
        return ViewAnalysis(selection, DuplicateVerdict(key is None, reason))
    return analyse(selection, declared)


def analyse_branches(
    query: Query, core: Query | None, columns: Sequence[Column], declared: Declarations
) -> ViewAnalysis:
    """The same of a view that has the rows of a union of branches. How often it has them is as in its core, the query without
    the disjunctions: a key that each branch binds by a constant of its own is not bound."""
    found = analyse_query(query, columns, declared)
    if core is None or not isinstance(found.selection, Combined):
        return found
    duplicates = analyse_query(core, columns, declared).duplicates
    if duplicates.possible:
        reason = "a row can occur twice, and the branches of its OR do not tell how often"
        return ViewAnalysis(Unread(reason), duplicates)
    return replace(found, duplicates=duplicates)


def analyse(selection: Selection, declared: Declarations) -> ViewAnalysis:
    parts = [_SelectAnalysis(select, declared) for select in selects(selection)]
    verdicts: list[ReferenceVerdict] = []
    for part in parts:
        verdicts += part.verdicts(len(verdicts))
    return ViewAnalysis(
        selection,
        _duplicates(selection, declared),
        tuple(verdicts),
        tuple(name for part in parts for name in part.top.names),
        tuple(name for part in parts for name in part.correlated),
    )


def _duplicates(selection: Selection, declared: Declarations) -> DuplicateVerdict:
    match selection:
        case Combined(kind, keeps_copies):
            if keeps_copies:
                return DuplicateVerdict(True, "UNION ALL keeps a row that both sides have twice")
            return DuplicateVerdict(False, f"{kind.value.upper()} leaves no row twice")
        case Select(is_distinct=True):
            return DuplicateVerdict(False, "DISTINCT leaves no row twice")
        case Select():
            return _duplicates_of_select(selection, _SelectAnalysis(selection, declared).top)
        case Unread():
            raise AssertionError("an unread view has no selects")


def _duplicates_of_select(select: Select, bound: BoundColumns) -> DuplicateVerdict:
    keys = {scan.alias: bound.bound_key(scan) for scan in select.block.tables}
    unbound = next((scan for scan in select.block.tables if keys[scan.alias] is None), None)
    if unbound is not None:
        what = f"several rows of {unbound.alias} can make the same row of the view"
        return DuplicateVerdict(True, f"{what}: {bound.why_not_bound(unbound)}")
    reasons = [
        bound.why_bound(scan, key) for scan in select.block.tables if (key := keys[scan.alias]) is not None
    ]
    sentences = dict.fromkeys(sentence for reason in reasons for sentence in reason.split("; "))
    return DuplicateVerdict(False, f"a key of every table is bound: {'; '.join(sentences)}", bound.relies_on)


def _all_columns(scan: Scan, sentence: str) -> dict[Attribute, Bound]:
    return {(scan.alias.lower(), each.name.lower()): Bound(sentence) for each in scan.input.columns}


@dataclass(frozen=True)
class _Around:
    """What a subquery knows of the queries around it: what is bound there, and why a change inside may still not be
    decided, if so."""

    bound: Mapping[Attribute, Bound]
    keys: frozenset[Reliance]
    path: tuple[Subquery, ...] = ()
    can_add: bool = True
    why_open: str | None = None


class _SelectAnalysis:
    def __init__(self, select: Select, declared: Declarations) -> None:
        self._select, self._declared = select, declared
        self._types = types_of(scan for block in blocks(select.block) for scan in block.tables)
        self.correlated: list[str] = []
        self.top = self._bound(select.block.tables, select.block.conditions, {})
        self.top.show(select.shows(at) for at in range(len(select.items)))
        self.top.close()

    def verdicts(self, before: int) -> list[ReferenceVerdict]:
        """The verdicts on all references; `before` is the number of references in earlier selects."""
        found = [self._top_verdict(scan) for scan in self._select.block.tables]
        for subquery in self._select.block.subqueries:
            found += self._in_subquery(subquery, _Around(self.top.found, self.top.relies_on))
        return [
            _numbered(self._select, each, position) for position, each in enumerate(found, start=before + 1)
        ]

    def _bound(
        self, tables: tuple[Scan, ...], conditions: tuple[exp.Expr, ...], around: Mapping[Attribute, Bound]
    ) -> BoundColumns:
        return BoundColumns(tables, conditions, self._declared, self._types, around)

    def _top_verdict(self, scan: Scan) -> _Found:
        key, bound = self.top.bound_key(scan), self.top.names_of(scan)
        if key is None:
            return _Found(scan, (), Place.TOP, self.top.why_not_bound(scan), bound, safe=False)
        why, keys = self.top.why_bound(scan, key), self.top.relies_on
        return _Found(scan, (), Place.TOP, why, bound, safe=True, keys_around=keys)

    def _in_subquery(self, subquery: Subquery, around: _Around) -> Iterator[_Found]:
        """The verdicts on a subquery and on those inside it. EXISTS inside asks for rows of both: they are one."""
        can_add = around.can_add is not subquery.is_negative
        whole = _witness(subquery.block)
        bound = self._bound(whole.tables, whole.conditions, around.bound)
        bound.close()
        self.correlated += bound.names
        own = types_of(whole.tables)
        asked = [
            column
            for condition in whole.conditions
            for column in condition.find_all(exp.Column)
            if attribute_of(column) not in own
        ]
        unbound = next((each for each in asked if attribute_of(each) not in around.bound), None)
        why_open = around.why_open
        if why_open is None and unbound is not None and subquery.is_negative:
            why_open = f"the subquery asks for {unbound.table}.{unbound.name} of the query around, which is not bound"
        for path, block in _paths(subquery, around.path):
            for scan in block.tables:
                found = self._verdict(scan, path, bound, can_add, why_open)
                yield replace(found, keys_around=around.keys, keys_inside=bound.relies_on)
        if can_add:
            known = {**around.bound, **bound.found}
        else:
            every = "a row of the subquery is looked at by itself"
            known = {key: each for scan in whole.tables for key, each in _all_columns(scan, every).items()}
        for path, block in _paths(subquery, around.path):
            for inner in block.subqueries:
                if inner.is_negative:
                    keys = around.keys | bound.relies_on
                    yield from self._in_subquery(inner, _Around(known, keys, path, can_add, why_open))

    def _verdict(
        self,
        scan: Scan,
        path: tuple[Subquery, ...],
        bound: BoundColumns,
        can_add: bool,
        why_open: str | None,
    ) -> _Found:
        key = bound.bound_key(scan)
        why = bound.why_not_bound(scan) if key is None else bound.why_bound(scan, key)
        names = bound.names_of(scan)
        if can_add:
            is_safe = key is not None and why_open is None
            return _Found(scan, path, Place.POSITIVE, why_open or why, names, safe=is_safe)
        if why_open is not None:
            return _Found(scan, path, Place.NEGATIVE, why_open, names, i_safe=False, du_safe=False)
        only = "the subquery asks only for bound columns of the query around"
        has_key = key is not None
        return _Found(scan, path, Place.NEGATIVE, f"{only}; {why}", names, i_safe=True, du_safe=has_key)


@dataclass(frozen=True)
class _Found:
    """A verdict on a reference that has no number yet."""

    scan: Scan
    path: tuple[Subquery, ...]
    place: Place
    reason: str
    bound: tuple[str, ...]
    safe: bool | None = None
    i_safe: bool | None = None
    du_safe: bool | None = None
    keys_around: frozenset[Reliance] = frozenset()
    keys_inside: frozenset[Reliance] = frozenset()


def _witness(block: Block) -> Block:
    """A block together with the subqueries inside it that must have rows: rows of all of them are found together."""
    tables, conditions = block.tables, block.conditions
    for subquery in block.subqueries:
        if not subquery.is_negative:
            inner = _witness(subquery.block)
            tables, conditions = tables + inner.tables, conditions + inner.conditions
    return Block(tables, conditions)


def _paths(subquery: Subquery, around: tuple[Subquery, ...]) -> Iterator[tuple[tuple[Subquery, ...], Block]]:
    """The blocks that `_witness` takes together, each with the subqueries that lead to it."""
    path = (*around, subquery)
    yield path, subquery.block
    for inner in subquery.block.subqueries:
        if not inner.is_negative:
            yield from _paths(inner, path)


def _numbered(select: Select, found: _Found, position: int) -> ReferenceVerdict:
    reference = Reference(found.scan, position, select, found.path, found.place)
    return ReferenceVerdict(
        reference,
        found.reason,
        found.bound,
        found.safe,
        found.i_safe,
        found.du_safe,
        found.keys_around,
        found.keys_inside,
    )
