"""Outer joins.

    Δ (L ⟕ R)  =  ΔL ⟕ R_new  +  (L′ ⟕ R_new − L′ ⟕ R_old)        L′ = L_old ⋉ ΔR
    L ⟗ R      =  (L ⟕ R)  +  NULLs for L × (R ▷ L)

The condition may be anything. A right join is a left join with the sides exchanged.
"""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.nodes import OuterJoin, SemiJoin, aliases_of
from viewkeeper.algebra.to_sql import nulls_for
from viewkeeper.maintenance.differential.delta_rules import semi_join
from viewkeeper.maintenance.differential.delta_rules.touched import changes_by_partners
from viewkeeper.maintenance.differential.derivation import Change, Derivation
from viewkeeper.maintenance.differential.limits import across
from viewkeeper.maintenance.plan import State


def changes(derivation: Derivation, join: OuterJoin) -> list[Change]:
    one_sided = replace(join, is_full=False)

    def joined(change: Change, state: State) -> Change:
        right = derivation.rows(
            join.right, state, across(join.conditions, change.limits, onto=aliases_of(join.right))
        )
        frame = derivation.writer.joined(one_sided, change.frame, right, "left", join.conditions)
        return replace(change, frame=frame)

    found = [joined(change, State.NEW) for change in derivation.changes(join.left)]
    found += changes_by_partners(derivation, join.left, join.right, join.conditions, joined)
    return found + _without_partners(derivation, join) if join.is_full else found


def _without_partners(derivation: Derivation, join: OuterJoin) -> list[Change]:
    """The rows of the right side that have no partner, with NULLs for the left side."""
    alone = SemiJoin(join.right, join.left, join.conditions, is_anti=True, origin="full join")
    return [
        replace(change, frame=nulls_for(change.frame, aliases_of(join.left)))
        for change in semi_join.changes(derivation, alone)
    ]
