"""What groups and windows share: old and new are evaluated only where something changed, and subtracted.

    Δ N(R)  =  N(R_new ⋉ K) − N(R_old ⋉ K)        K = the key values of ΔR, NULLs among them

Rows with different keys never meet in N, so nothing outside of K can have changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from viewkeeper.algebra.nodes import Group, Item, Project, Window
from viewkeeper.algebra.to_sql import Frame, as_relation, extended
from viewkeeper.generated_names import HIDDEN_PREFIX, SIGN
from viewkeeper.maintenance.differential.derivation import Change, Derivation, Signed, called, titles, union
from viewkeeper.maintenance.differential.limits import Limits, Values, attribute_of
from viewkeeper.maintenance.plan import State
from viewkeeper.sql.rendering import alias, column, literal, select_from, semi_joined


def key_items(source: Group | Window) -> tuple[Item, ...]:
    """The key as columns over the relation below."""
    if isinstance(source, Group):
        return source.keys
    return tuple(
        Item(f"{HIDDEN_PREFIX}partition_{at}", each) for at, each in enumerate(source.partition, start=1)
    )


def affected_keys(
    derivation: Derivation, source: Group | Window, changes: Sequence[Change], ends: bool = False
) -> str:
    """The relation of the keys that occur in the changes."""
    keys = key_items(source)
    selects: list[exp.Query] = [
        change.frame.selecting([alias(change.frame.over(key.expression), key.name) for key in keys])
        for change in changes
    ]
    inner = as_relation(union(selects), f"{HIDDEN_PREFIX}changed")
    what = "groups" if isinstance(source, Group) else "partitions"
    return derivation.derive(
        f"find the affected {what}: {titles(changes)}",
        f"{called(source.source)}_affected",
        select_from(inner, [column(key.name) for key in keys]).distinct(copy=False),
        shared=True,
        ends=ends,
    )


def affected_rows(derivation: Derivation, source: Group | Window, state: State, affected: str) -> Frame:
    """The relation below in one state, only at the affected keys."""
    keys = key_items(source)
    frame = derivation.rows(source.source, state, key_limits(keys, affected))
    if frame.select.args.get("laterals"):
        frame = derivation.writer.flattened(frame, source.source)
    same = (
        exp.NullSafeEQ(this=frame.over(key.expression), expression=column(key.name, affected)) for key in keys
    )
    return replace(frame, select=semi_joined(extended(frame.select), affected, same))


def key_limits(keys: Sequence[Item], affected: str) -> Limits:
    found: dict[tuple[str, str], Values] = {}
    for key in keys:
        attribute = attribute_of(key.expression)
        if attribute is not None:
            found.setdefault(attribute, Values(affected, key.name, or_null=True))
    return found


def signed_at_affected(derivation: Derivation, query: Project) -> list[Signed]:
    """Old and new of a query over a group or window, at what is affected; without a key, all of it."""
    source = query.source
    assert isinstance(source, (Group, Window))
    if not derivation.is_changed(source.source):
        return []
    if key_items(source):
        changes = derivation.changes(source.source)
        if not changes:
            return []
        affected = affected_keys(derivation, source, changes)
        frames = {
            state: affected_rows(derivation, source, state, affected) for state in (State.NEW, State.OLD)
        }
    else:
        frames = {state: derivation.rows(source.source, state) for state in (State.NEW, State.OLD)}
    return [
        Signed(with_sign(derivation.writer.project(query, frames[state]), query, sign), words)
        for state, sign, words in (
            (State.NEW, 1, f"{called(source.source)} as it is now"),
            (State.OLD, -1, f"{called(source.source)} as it was"),
        )
    ]


def with_sign(rows: exp.Query, query: Project, sign: int) -> exp.Select:
    names = [column(item.name) for item in query.items]
    relation = as_relation(rows, f"{HIDDEN_PREFIX}rows")
    return select_from(relation, [*names, alias(literal(sign), SIGN)])
