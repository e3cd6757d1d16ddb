"""The change of a view that is a join: its terms, added up over the columns it shows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

from viewkeeper.algebra.nodes import InnerJoin, Project
from viewkeeper.generated_names import state_relation
from viewkeeper.maintenance.bag_changes import merge, signed_changes, touched_rows
from viewkeeper.maintenance.differential.terms import Kinds, Walk, plan_walk, term_of
from viewkeeper.maintenance.plan import ApplyChangeSet, Derive, Read, State, Step, WriteChangeSet
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.maintenance.whole_query import stored_as
from viewkeeper.sql.rendering import render, union_all


def join_steps(view: ViewDefinition, query: Project, kinds: Kinds) -> tuple[Walk, tuple[Step, ...]]:
    assert isinstance(query.source, InnerJoin)
    walk = plan_walk(query.source, kinds, view.declared)
    items = [
        stored_as(query.source, item.expression.copy(), each)
        for item, each in zip(query.items, view.columns, strict=True)
    ]
    delta = find_changes(view, query.source, walk, items, is_shared=True)
    if delta is None:
        return walk, ()
    old = old_rows(view)
    touched = state_relation(view.stem, "touched")
    changes = state_relation(view.stem, "changes")
    return walk, (
        delta,
        Derive(
            "find these rows in the view",
            touched,
            touched_rows(old.relation, delta.relation, view.stored),
            (old,),
        ),
        WriteChangeSet(signed_changes(delta.relation, touched, view.stored), ()),
        ApplyChangeSet(merge(view.stem, changes, view.stored), view.stem, changes),
    )


def find_changes(
    view: ViewDefinition, join: InnerJoin, walk: Walk, items: Sequence[exp.Expr], is_shared: bool = False
) -> Derive | None:
    """All terms as one relation of signed rows; None if no change can reach the view."""
    terms = [term_of(join, move, [item.copy() for item in items]) for move in walk.moves]
    if not terms:
        return None
    reads: tuple[Read, ...] = tuple(dict.fromkeys(read for term in terms for read in term.reads))
    selects: list[exp.Query] = [term.select for term in terms]
    return Derive(
        f"find the changes: {', '.join(term.title for term in terms)}",
        state_relation(view.stem, "delta"),
        render(reduce(union_all, selects)),
        reads,
        is_shared,
    )


def old_rows(view: ViewDefinition) -> Read:
    return Read(state_relation(view.stem, "old"), view.id, view.name, State.OLD)
