"""Semi and anti joins.

    Δ (L ⋉ R)  =  ΔL ⋉ R_new  +  (L′ ⋉ R_new − L′ ⋉ R_old)        L′ = L_old ⋉ ΔR

Only rows of L that some changed row of R is a partner of can pass now and not before, or the other way round. The
condition may be anything; for anti joins read ▷ for the joins with R_new and R_old.
"""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.nodes import SemiJoin, aliases_of
from viewkeeper.maintenance.differential.delta_rules.touched import changes_by_partners
from viewkeeper.maintenance.differential.derivation import Change, Derivation
from viewkeeper.maintenance.differential.limits import across
from viewkeeper.maintenance.plan import State


def changes(derivation: Derivation, join: SemiJoin) -> list[Change]:
    kind = "left anti" if join.is_anti else "left semi"

    def joined(change: Change, state: State) -> Change:
        right = derivation.rows(
            join.right, state, across(join.conditions, change.limits, onto=aliases_of(join.right))
        )
        frame = derivation.writer.joined(join, change.frame, right, kind, join.conditions)
        return replace(change, frame=frame)

    found = [joined(change, State.NEW) for change in derivation.changes(join.left)]
    return found + changes_by_partners(derivation, join.left, join.right, join.conditions, joined)
