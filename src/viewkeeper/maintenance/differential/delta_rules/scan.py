"""Scan: its change set.

ΔT  =  the parts of the change set, each with its sign
"""

from __future__ import annotations

from viewkeeper.algebra.nodes import Scan
from viewkeeper.algebra.to_sql import frame_from
from viewkeeper.generated_names import state_relation
from viewkeeper.maintenance.differential.derivation import Change, Derivation
from viewkeeper.maintenance.differential.kinds import IN_ORDER, WORDS, sign_of
from viewkeeper.maintenance.differential.limits import Values
from viewkeeper.maintenance.plan import Read, State
from viewkeeper.sql.rendering import aliased, literal


def changes(derivation: Derivation, scan: Scan) -> list[Change]:
    parts = derivation.kinds.get(scan.input.object_id, frozenset())
    return [part_change(derivation, scan, part) for part in IN_ORDER if part in parts]


def part_change(derivation: Derivation, scan: Scan, part: State) -> Change:
    table = scan.input
    relation = state_relation(table.relation, part.value)
    derivation.known(Read(relation, table.object_id, table.name, part))
    return Change(
        frame_from(aliased(relation, scan.alias)),
        literal(sign_of(part)),
        f"{WORDS[part]} {scan.alias}",
        {(scan.alias, each.name.lower()): Values(relation, each.name) for each in table.columns},
    )
