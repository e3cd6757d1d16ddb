"""LATERAL VIEW is linear: what a function makes of a row depends on that row alone.

Δ generate(R)  =  generate(ΔR)
"""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.nodes import Generate
from viewkeeper.maintenance.differential.derivation import Change, Derivation


def changes(derivation: Derivation, node: Generate) -> list[Change]:
    return [
        replace(change, frame=derivation.writer.generated(node, change.frame))
        for change in derivation.changes(node.source)
    ]
