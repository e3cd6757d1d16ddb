"""Where SQL leaves an answer open because rows tie, and we do not."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.nodes import Query, Scan, TopRows, Window, expressions, walk
from viewkeeper.sql.functions import function_name
from viewkeeper.sql.types import contains_map

BY_POSITION = {
    "row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "first", "last", "any_value",
}  # fmt: skip
"""Window functions whose value is that of some row, or tells where a row stands."""

_BY_FRAME = {"first_value", "last_value", "nth_value", "first", "last", "any_value"}


def is_windowed(node: exp.Expr) -> bool:
    """Whether a call is that of a window function."""
    around = node.parent
    while isinstance(around, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        node, around = around, around.parent
    return isinstance(around, exp.Window) and node.arg_key == "this"


def depends_on_ties(window: exp.Expr) -> bool:
    """Whether the value of a window function depends on the order of rows that its ORDER BY does not tell apart."""
    function = window.this
    while isinstance(function, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        function = function.this
    if function_name(function) in BY_POSITION:
        return True
    spec = window.args.get("spec")
    return spec is not None and str(spec.args.get("kind", "")).upper() == "ROWS"


def why_left_open(window: exp.Expr) -> str | None:
    """Why a total order cannot decide a window function: the frame of `last_value` and the like ends with the rows that
    tie, so telling them apart would change the frame."""
    function = window.this
    while isinstance(function, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        function = function.this
    name = function_name(function)
    if name not in _BY_FRAME:
        return None
    spec = window.args.get("spec")
    kind = "" if spec is None else str(spec.args.get("kind", "")).upper()
    if kind == "ROWS":
        return None
    starts_first = spec is None or str(spec.args.get("start", "")).upper() == "UNBOUNDED"
    ends_last = spec is not None and (
        str(spec.args.get("end", "")).upper() == "UNBOUNDED"
        and str(spec.args.get("end_side", "")).upper() == "FOLLOWING"
    )
    if starts_first and (name in ("first_value", "first", "any_value") or ends_last):
        return None
    return f"{name} over a RANGE of rows that tie is left open"


def why_not_ordered(query: Query) -> str | None:
    """Why ties cannot be broken: a column that has no order is among those that are read."""
    types = {
        (node.alias, each.name.lower()): each.data_type
        for node in walk(query)
        if isinstance(node, Scan)
        for each in node.input.columns
    }
    for node in walk(query):
        for expression in expressions(node):
            for found in expression.find_all(exp.Column):
                data_type = types.get((found.table, found.name.lower()))
                if data_type is not None and contains_map(data_type):
                    return f"{found.name} is a {data_type}, which has no order to break ties by"
    return None


def breaks_ties(query: Query) -> bool:
    """Whether the tree orders rows that the query does not: then only the tree always gives the same answer."""
    return any(
        isinstance(node, TopRows)
        or (isinstance(node, Window) and any(depends_on_ties(item.expression) for item in node.functions))
        for node in walk(query)
    )
