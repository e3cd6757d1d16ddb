"""A view's whole query in one state, with all columns that the view's table keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from viewkeeper.algebra.nodes import Group, InnerJoin, Project, Scan
from viewkeeper.generated_names import state_relation
from viewkeeper.maintenance.group_state import below, hidden_items
from viewkeeper.maintenance.plan import Read, State
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Column
from viewkeeper.sql.rendering import alias, aliased, as_type, render, select_from
from viewkeeper.sql.types import as_stored


def stored_query(view: ViewDefinition, query: Project, state: State) -> tuple[str, tuple[Read, ...]]:
    source = query.source
    if isinstance(source, InnerJoin):
        select, reads = whole_join(source, state, stored_columns(view, query))
        return render(select), reads
    select, reads = whole_join(source.source, state, stored_columns(view, query))
    return render(grouped(select, query, source)), reads


def stored_columns(view: ViewDefinition, query: Project) -> list[exp.Expr]:
    """Visible and hidden columns as expressions over the join below."""
    source = query.source
    hidden = {item.name: item for item in hidden_items(query)}
    values = [
        item.expression.copy() if isinstance(source, InnerJoin) else below(item.expression, source)
        for item in query.items
    ]
    values += [hidden[each.name].expression.copy() for each in view.hidden]
    join = source if isinstance(source, InnerJoin) else source.source
    return [stored_as(join, value, each) for value, each in zip(values, view.stored, strict=True)]


def stored_as(join: InnerJoin, value: exp.Expr, wanted: Column) -> exp.Expr:
    """A value over the join as a column of the view's table: cast, unless it is a column of that type already."""
    if isinstance(value, exp.Column):
        for scan in join.scans:
            for each in scan.input.columns:
                if (scan.alias, each.name.lower(), each.data_type) == (
                    value.table, value.name.lower(), as_stored(wanted.data_type)
                ):  # fmt: skip
                    return alias(value, wanted.name)
    return alias(as_type(value, wanted.data_type), wanted.name)


def whole_join(
    join: InnerJoin, state: State, items: Sequence[exp.Expr]
) -> tuple[exp.Select, tuple[Read, ...]]:
    """The join with every scan in one state, in the query's own order."""
    reads = dict.fromkeys(
        Read(state_relation(scan.input.relation, state.value), scan.input.object_id, scan.input.name, state)
        for scan in join.scans
    )
    return _join(join, lambda scan: state_relation(scan.input.relation, state.value), items), tuple(reads)


def hidden_query(query: Project) -> str:
    """Only the hidden columns, over relations called as the inputs are: for Spark to tell their types."""
    source = query.source
    assert isinstance(source, Group)
    items = [alias(item.expression.copy(), item.name) for item in hidden_items(query)]
    return render(grouped(_join(source.source, lambda scan: scan.input.relation, items), query, source))


def _join(join: InnerJoin, relation: Callable[[Scan], str], items: Sequence[exp.Expr]) -> exp.Select:
    first, *others = join.scans
    select = select_from(aliased(relation(first), first.alias), items)
    for scan in others:
        select = select.join(aliased(relation(scan), scan.alias), join_type="cross")
    return select.where(*(each.copy() for each in join.conditions)) if join.conditions else select


def grouped(select: exp.Select, query: Project, group: Group) -> exp.Select:
    if group.keys:
        select = select.group_by(*(key.expression.copy() for key in group.keys))
    return select if query.having is None else select.having(below(query.having, group))
