"""A view's whole query in one state, with all columns that the view's table keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.algebra.nodes import Item, Project, Relation, Scan, scans
from viewkeeper.algebra.ties import breaks_ties
from viewkeeper.algebra.to_sql import Frame, Writer, below, frame_from
from viewkeeper.generated_names import state_relation
from viewkeeper.maintenance.group_state import hidden_items
from viewkeeper.maintenance.plan import Read, State
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Column, Input
from viewkeeper.sql.rendering import aliased, as_type, render
from viewkeeper.sql.types import as_stored


def stored_project(view: ViewDefinition, query: Project) -> Project:
    """The query with all columns of the view's table, each of the type that the table has."""
    hidden = {item.name: item.expression for item in hidden_items(query)}
    values = [item.expression for item in query.items] + [hidden[each.name] for each in view.hidden]
    items = tuple(
        Item(each.name, stored_as(query, below(value, query.source), each))
        for value, each in zip(values, view.stored, strict=True)
    )
    return replace(query, items=items)


def stored_as(query: Project, value: exp.Expr, wanted: Column) -> exp.Expr:
    """A value as a column of the view's table: cast, unless it is a column of a table that has that type already."""
    if isinstance(value, exp.Column):
        for scan in scans(query):
            for each in scan.input.columns:
                if (scan.alias, each.name.lower(), each.data_type) == (
                    value.table, value.name.lower(), as_stored(wanted.data_type)
                ):  # fmt: skip
                    return value
    return as_type(value, wanted.data_type)


def stored_query(view: ViewDefinition, query: Project, state: State) -> tuple[str, tuple[Read, ...]]:
    reads: dict[str, Read] = {}

    def leaf(relation: Relation) -> Frame | None:
        if not isinstance(relation, Scan):
            return None
        table = relation.input
        name = state_relation(table.relation, state.value)
        reads[name] = Read(name, table.object_id, table.name, state)
        return frame_from(aliased(name, relation.alias))

    whole = stored_project(view, query)
    return render(Writer(whole).query(whole, leaf)), tuple(reads.values())


def hidden_query(query: Project) -> str:
    """Only the hidden columns, over relations called as the inputs are: for Spark to tell their types."""
    return _over(replace(query, items=hidden_items(query)), lambda table: table.relation)


def visible_query(view: ViewDefinition, relation_for: Callable[[Input], str]) -> str:
    """The query over other relations, in the user's own words; in ours where the user's leave the answer open."""
    query = view.algebra
    if isinstance(query, OutsideAlgebra) or not (breaks_ties(query) or view.ties_broken):
        return view.query.text_over(relation_for).text
    return our_query(view, relation_for)


def our_query(view: ViewDefinition, relation_for: Callable[[Input], str]) -> str:
    """Our reading of the query over other relations, each column of the type that the view has."""
    query = view.algebra
    assert isinstance(query, Project)
    return _over(stored_project(replace(view, hidden=()), query), relation_for)


def as_read(query: Project) -> str:
    """Our reading of a query without casts, over relations called as the inputs are: for Spark to tell its types."""
    return _over(query, lambda table: table.relation)


def _over(query: Project, relation_for: Callable[[Input], str]) -> str:
    def leaf(relation: Relation) -> Frame | None:
        if not isinstance(relation, Scan):
            return None
        return frame_from(aliased(relation_for(relation.input), relation.alias))

    return render(Writer(query).query(query, leaf))
