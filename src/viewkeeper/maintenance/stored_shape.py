"""Which hidden columns a new view's table keeps, once the types of its columns are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.algebra.nodes import Group
from viewkeeper.maintenance.group_state import hidden_items, inexact_sum
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.maintenance.whole_query import hidden_query
from viewkeeper.sql.binding import Column
from viewkeeper.sql.statements import RefreshPolicy


def with_hidden_columns(
    view: ViewDefinition, columns_of: Callable[[str], Sequence[Column]]
) -> ViewDefinition:
    """The view with its hidden columns; `columns_of` tells the columns of a query over the view's inputs."""
    query = view.algebra
    if isinstance(query, OutsideAlgebra) or view.policy is RefreshPolicy.FULL:
        return view
    if not hidden_items(query):
        return view
    hidden = tuple(replace(each, nullable=True) for each in columns_of(hidden_query(query)))
    if isinstance(query.source, Group) and inexact_sum(query, view.columns + hidden) is not None:
        keys = {key.name for key in query.source.keys}
        hidden = tuple(each for each in hidden if each.name in keys)
    return view.with_hidden(hidden)
