"""The change of a view of groups or windows: the affected ones are read again, and compared with what the view shows."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.nodes import Group, Project, Window
from viewkeeper.generated_names import query_relation, state_relation
from viewkeeper.maintenance.bag_changes import difference
from viewkeeper.maintenance.differential.delta_rules.affected import affected_keys, affected_rows, key_items
from viewkeeper.maintenance.differential.derivation import Derivation
from viewkeeper.maintenance.differential.rows_view import old_rows
from viewkeeper.maintenance.plan import Derive, Limit, State, Step, WriteChangeSet
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.maintenance.whole_query import stored_project
from viewkeeper.sql.rendering import column, relation_named, render, select_from, semi_joined


def shown_keys(query: Project) -> dict[str, str] | None:
    """Under which columns of the view the keys of its groups or partitions are stored; None if one is not."""
    source = query.source
    assert isinstance(source, (Group, Window))
    found: dict[str, str] = {}
    for key in key_items(source):
        shown = [
            item.name for item in query.items if _shows(item.expression, key.name, key.expression, source)
        ]
        if not shown and not isinstance(source, Group):
            return None
        found[key.name] = shown[0] if shown else key.name
    return found


def _shows(expression: exp.Expr, name: str, value: exp.Expr, source: Group | Window) -> bool:
    if isinstance(source, Group):
        return isinstance(expression, exp.Column) and not expression.table and expression.name == name
    return expression == value


def reread_steps(view: ViewDefinition, query: Project, derivation: Derivation) -> tuple[Step, ...]:
    source = query.source
    assert isinstance(source, (Group, Window))
    keys = shown_keys(query)
    assert keys is not None
    changes = derivation.changes(source.source)
    if not changes:
        return ()
    affected = affected_keys(derivation, source, changes, ends=True)
    frame = affected_rows(derivation, source, State.NEW, affected)
    again = derivation.writer.project(stored_project(view, query), frame)
    new = query_relation(view.stem)
    what = "groups" if isinstance(source, Group) else "partitions"
    old = old_rows(view, Limit(tuple(keys.values()), affected, tuple(keys), keeps_nulls=True))
    touched = state_relation(view.stem, "touched")
    same = (
        exp.NullSafeEQ(this=column(shown, old.relation), expression=column(key, affected))
        for key, shown in keys.items()
    )
    in_view = select_from(
        relation_named(old.relation), [column(each.name, old.relation) for each in view.stored]
    )
    return (
        *derivation.steps,
        Derive(f"read these {what} again", new, render(again), derivation.reads_of(again)),
        Derive(
            f"find these {what} in the view",
            touched,
            render(semi_joined(in_view, affected, same)),
            (old,),
        ),
        WriteChangeSet(difference(new, touched, view.stored), ()),
    )
