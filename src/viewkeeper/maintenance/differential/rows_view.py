"""The change of a view from the signed rows of its query: found in the view, counted, and numbered as copies."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.algebra.nodes import Project
from viewkeeper.generated_names import state_relation
from viewkeeper.maintenance.bag_changes import signed_changes
from viewkeeper.maintenance.differential.derivation import Derivation, Signed, titles, union
from viewkeeper.maintenance.plan import Limit, Read, SignedRows, State, Step, WriteChangeSet
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.maintenance.whole_query import stored_project


def rows_steps(
    view: ViewDefinition, query: Project, derivation: Derivation, leaving: Sequence[Signed] = ()
) -> tuple[Step, ...]:
    """`leaving` are rows of the view that are known to leave it, every copy of them."""
    parts = [*leaving, *derivation.signed(stored_project(view, query))]
    if not parts:
        return ()
    delta = derivation.derive(
        f"find the changes: {titles(parts)}",
        "delta",
        union([part.select for part in parts]),
        ends=True,
    )
    names = tuple(each.name for each in view.stored)
    limit = Limit(names, delta, names, keeps_nulls=True)
    alike = Read(state_relation(view.stem, "alike"), view.id, view.name, State.OLD, limit)
    return (
        *derivation.steps,
        WriteChangeSet(
            signed_changes(delta, alike.relation, view.stored),
            (alike,),
            SignedRows(delta),
        ),
    )


def old_rows(view: ViewDefinition, limit: Limit | None = None) -> Read:
    """The view before the changes, or as far as a relation of the plan points to its rows."""
    whole = state_relation(view.stem, "old")
    return Read(whole if limit is None else limit.name(whole), view.id, view.name, State.OLD, limit)
