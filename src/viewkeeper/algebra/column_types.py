"""The types of columns that come from tables as they are. Of expressions only Spark knows the types."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.nodes import Derived, Project, Relation, Scan, walk
from viewkeeper.sql.types import DataType


def column_type(expression: exp.Expr, relation: Relation) -> DataType | None:
    """The type of a column of a relation; None if it is no column, or not one of a table."""
    if not isinstance(expression, exp.Column):
        return None
    for node in walk(relation):
        match node:
            case Scan(alias, table) if alias == expression.table:
                found = {each.name.lower(): each.data_type for each in table.columns}
                return found.get(expression.name.lower())
            case Derived(alias, Project(Scan() | Derived() as source, items)) if alias == expression.table:
                inside = {item.name.lower(): item.expression for item in items}
                return column_type(inside[expression.name.lower()], source)
    return None
