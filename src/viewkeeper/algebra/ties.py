"""Where SQL leaves an answer open because rows tie, and we do not."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.nodes import Query, TopRows, Window, walk
from viewkeeper.sql.functions import function_name

_BY_POSITION = {
    "row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "first", "last", "any_value",
}  # fmt: skip


def depends_on_ties(window: exp.Expr) -> bool:
    """Whether the value of a window function depends on the order of rows that its ORDER BY does not tell apart."""
    function = window.this
    while isinstance(function, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        function = function.this
    if function_name(function) in _BY_POSITION:
        return True
    spec = window.args.get("spec")
    return spec is not None and str(spec.args.get("kind", "")).upper() == "ROWS"


def breaks_ties(query: Query) -> bool:
    """Whether the tree says more than the query does: then only the tree always gives the same answer."""
    return any(
        isinstance(node, TopRows)
        or (isinstance(node, Window) and any(depends_on_ties(item.expression) for item in node.functions))
        for node in walk(query)
    )
