"""Group inside a query: the affected groups, before and after.

A group that is the view itself is updated or read again: `updated_view`, `reread_view`.
"""

from __future__ import annotations

from viewkeeper.algebra.nodes import Project
from viewkeeper.maintenance.differential.delta_rules.affected import signed_at_affected
from viewkeeper.maintenance.differential.derivation import Derivation, Signed


def signed(derivation: Derivation, query: Project) -> list[Signed]:
    return signed_at_affected(derivation, query)
