"""A query under an alias: the change of the query, computed once because several terms read it."""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.nodes import Derived, output_names
from viewkeeper.algebra.to_sql import frame_from
from viewkeeper.generated_names import SIGN
from viewkeeper.maintenance.differential.derivation import Change, Derivation, titles, union
from viewkeeper.maintenance.differential.limits import Values
from viewkeeper.sql.rendering import aliased, column


def changes(derivation: Derivation, relation: Derived) -> list[Change]:
    if not derivation.is_changed(relation):
        return []
    parts = derivation.signed(relation.query)
    if not parts:
        return []
    name = derivation.derive(
        f"find the changes of {relation.alias}: {titles(parts)}",
        f"{relation.alias}_delta",
        union([part.select for part in parts]),
    )
    limits = {(relation.alias, each.lower()): Values(name, each) for each in output_names(relation.query)}
    sign = column(SIGN, relation.alias)
    frame = replace(frame_from(aliased(name, relation.alias)), carried=(sign,))
    return [Change(frame, sign, f"changes of {relation.alias}", limits)]
