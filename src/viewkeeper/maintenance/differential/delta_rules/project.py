"""Projection is linear.

Δ π(R)  =  π(ΔR)
"""

from __future__ import annotations

from viewkeeper.algebra.nodes import Group, Project, Window
from viewkeeper.generated_names import SIGN
from viewkeeper.maintenance.differential.derivation import Derivation, Signed
from viewkeeper.sql.rendering import alias


def signed(derivation: Derivation, query: Project) -> list[Signed]:
    assert not isinstance(query.source, (Group, Window))
    return [
        Signed(
            change.frame.selecting(
                [
                    *(alias(change.frame.over(item.expression), item.name) for item in query.items),
                    alias(change.frame.over(change.sign), SIGN),
                ]
            ),
            change.title,
        )
        for change in derivation.changes(query.source)
    ]
