"""What would make more of a view safe: DISTINCT, a key that is not declared yet, a column that the view does not show.

Each is tried by analysing the view again with it, and offered only if that helps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from viewkeeper.algebra.nodes import Item, sql_of
from viewkeeper.facts.declared import Declarations, Declared, UniqueKey
from viewkeeper.facts.safety.analyse import analyse
from viewkeeper.facts.safety.selects import Select, Selection, Unread
from viewkeeper.facts.safety.verdicts import Place, ReferenceVerdict, ViewAnalysis
from viewkeeper.sql.names import quote_if_needed
from viewkeeper.sql.rendering import column


@dataclass(frozen=True)
class Advice:
    """`change` is SQL, or the part of the query to change; `gain` what is better then."""

    what: str
    change: str
    gain: str

    def to_json(self) -> dict[str, Any]:
        return {"what": self.what, "change": self.change, "gain": self.gain}

    def __str__(self) -> str:
        return f"{self.what}: {self.change}; then {self.gain}"


@dataclass(frozen=True)
class _Attempt:
    """A change, and the view and the declarations with it. Of those on one topic the first that helps is enough."""

    topic: str
    what: str
    change: str
    selection: Selection
    declared: Declarations


def advice(analysis: ViewAnalysis, declared: Declarations) -> tuple[Advice, ...]:
    if isinstance(analysis.selection, Unread):
        return ()
    found: dict[str, Advice] = {}
    for attempt in _attempts(analysis, declared):
        if attempt.topic not in found:
            gain = _gain(analysis, analyse(attempt.selection, attempt.declared))
            if gain:
                found[attempt.topic] = Advice(attempt.what, attempt.change, gain)
    return tuple(dict.fromkeys(found.values()))


def _gain(before: ViewAnalysis, after: ViewAnalysis) -> str:
    """What the second analysis grants and the first does not."""
    gains = []
    if before.duplicates.possible and not after.duplicates.possible:
        gains.append("no row of the view occurs twice")
    for old, new in zip(before.references, after.references, strict=True):
        alias = new.reference.scan.alias
        if new.is_safe and not old.is_safe:
            gains.append(f"deletions and updates of {alias} are decided by a key")
        elif new.i_safe and not old.i_safe:
            gains.append(f"insertions into {alias} are decided by the bound columns")
    return "; ".join(gains)


def _attempts(analysis: ViewAnalysis, declared: Declarations) -> Iterator[_Attempt]:
    selection = analysis.selection
    if analysis.duplicates.possible and isinstance(selection, Select):
        yield _Attempt(
            "duplicates",
            "if copies of a row do not matter, add DISTINCT",
            "SELECT DISTINCT …",
            replace(selection, is_distinct=True),
            declared,
        )
    for verdict in analysis.references:
        if not verdict.is_safe:
            yield from _keys(verdict, analysis, declared)
            if isinstance(selection, Select):
                yield from _columns(verdict, selection, declared)


def _keys(verdict: ReferenceVerdict, analysis: ViewAnalysis, declared: Declarations) -> Iterator[_Attempt]:
    """Keys that would be bound: one over columns that may be NULL, or one over the bound columns."""
    table = verdict.reference.scan.input
    known = declared.get(table.object_id, Declared())

    def with_key(columns: tuple[str, ...]) -> Declarations:
        key = UniqueKey(columns, "")
        return {**declared, table.object_id: replace(known, keys=(*known.keys, key))}

    for key in known.nullable_keys:
        names = ", ".join(map(quote_if_needed, key.columns))
        yield _Attempt(
            f"a key of {verdict.reference.scan.alias}",
            f"if {names} of {table.name} is never NULL, declare it so",
            f"{table.name} ({names} NOT NULL)",
            analysis.selection,
            with_key(key.columns),
        )
    if verdict.bound:
        names = ", ".join(map(quote_if_needed, verdict.bound))
        yield _Attempt(
            f"a key of {verdict.reference.scan.alias}",
            f"if no two rows of {table.name} have the same {names}, and it is never NULL, declare the key",
            f"ALTER TABLE {table.name} ADD UNIQUE ({names})",
            analysis.selection,
            with_key(verdict.bound),
        )


def _columns(verdict: ReferenceVerdict, select: Select, declared: Declarations) -> Iterator[_Attempt]:
    """Columns to show: those that a key lacks, or those of the view's tables that a subquery asks for."""
    scan = verdict.reference.scan
    if verdict.reference.place is Place.TOP and not verdict.reference.path:
        keys = declared.get(scan.input.object_id, Declared()).keys
        lists = [
            [column(name, scan.alias) for name in key.columns if name not in verdict.bound] for key in keys
        ]
    else:
        own = {each.alias for each in select.block.tables}
        asked = [
            found
            for condition in verdict.reference.path[0].block.conditions
            for found in condition.find_all(exp.Column)
            if found.table in own
        ]
        lists = [list({sql_of(each): each for each in asked}.values())]
    for wanted in sorted((each for each in lists if each), key=len):
        names = ", ".join(f"{each.table}.{each.name}" for each in wanted)
        items = tuple(Item(f"{each.table}_{each.name}", each) for each in wanted)
        yield _Attempt(
            f"columns for {scan.alias}",
            f"show {names} in the view",
            f"SELECT …, {names}",
            replace(select, items=select.items + items),
            declared,
        )
