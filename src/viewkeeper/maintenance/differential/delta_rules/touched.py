"""The rows of one side of a join whose partners on the other side changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from viewkeeper.algebra.nodes import Relation, SemiJoin
from viewkeeper.maintenance.differential.derivation import Change, Derivation, called
from viewkeeper.maintenance.differential.limits import across
from viewkeeper.maintenance.plan import State
from viewkeeper.sql.rendering import literal


def changes_by_partners(
    derivation: Derivation,
    rows: Relation,
    partners: Relation,
    conditions: Sequence[exp.Expr],
    joined: Callable[[Change, State], Change],
) -> list[Change]:
    """What the old rows of one side become, because their partners changed: joined with the new partners, minus joined
    with the old ones. Only rows that a changed partner matches can differ."""
    if not derivation.is_changed(partners):
        return []
    partner_changes = derivation.changes(partners)
    if not partner_changes:
        return []
    only = partner_changes[0]
    if len(partner_changes) == 1 and only.frame.is_one_relation:
        changed, values = only.frame, only.limits
    else:
        delta = derivation.signed_relation(partners, partner_changes, called(partners))
        changed, values = derivation.flat_frame(partners, delta), derivation.flat_limits(partners, delta)
    semi = SemiJoin(rows, partners, tuple(conditions), is_anti=False, origin="changed partners")
    before = derivation.rows(rows, State.OLD, across(conditions, values))
    frame = derivation.writer.joined(semi, before, changed, "left semi", conditions)
    touched = derivation.derive(
        f"find the rows of {called(rows)} with changed partners",
        f"{called(rows)}_touched",
        frame.selecting(derivation.writer.flat_items(frame, rows)),
    )
    found = []
    for state, sign, words in ((State.NEW, 1, "now"), (State.OLD, -1, "before")):
        start = Change(
            derivation.flat_frame(rows, touched),
            literal(sign),
            f"{called(rows)} with changed {called(partners)}, {words}",
            derivation.flat_limits(rows, touched),
        )
        found.append(joined(start, state))
    return found
