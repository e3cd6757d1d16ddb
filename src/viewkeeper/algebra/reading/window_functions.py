"""Window functions: what they are partitioned by, and an order that leaves nothing open.

SQL does not say in which order rows come that the ORDER BY of a window does not tell apart. Where the value depends on
it, the columns that the SELECT reads are added to the order, so that the answer is always the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from viewkeeper.algebra.expressions import qualified_columns, replaced, windows
from viewkeeper.algebra.nodes import Item, Relation, Window, sql_of
from viewkeeper.algebra.reading.scope import Outside
from viewkeeper.algebra.ties import depends_on_ties, why_left_open
from viewkeeper.generated_names import HIDDEN_PREFIX
from viewkeeper.sql.rendering import column


def with_windows_written_out(tree: exp.Select) -> exp.Select:
    """A SELECT in which nothing refers to its WINDOW clause any more."""
    defined = {each.name.lower(): each for each in tree.args.get("windows") or []}
    if not defined:
        return tree
    result = tree.copy()
    result.set("windows", None)
    places = [*result.selects, *filter(None, map(result.args.get, ("qualify", "order")))]
    for window in [found for place in places for found in windows(place) if found.alias]:
        for part, value in defined[window.alias.lower()].args.items():
            if part != "this" and value is not None:
                window.set(part, [each.copy() for each in value] if isinstance(value, list) else value.copy())
        window.set("alias", None)
    return result


def read_windows(
    items: Sequence[Item], having: Sequence[exp.Expr], relation: Relation
) -> tuple[Window, tuple[Item, ...], exp.Expr | None]:
    """The windows of a SELECT, and its columns and its filter over them."""
    written = [*(item.expression for item in items), *having]
    found = list({sql_of(each): each for expression in written for each in windows(expression)}.values())
    read = qualified_columns(written)
    functions = tuple(
        Item(f"{HIDDEN_PREFIX}window_{at}", _in_total_order(each, read))
        for at, each in enumerate(found, start=1)
    )
    names: dict[str, exp.Expr] = {
        sql_of(each): column(item.name) for each, item in zip(found, functions, strict=True)
    }
    shown = tuple(Item(item.name, replaced(item.expression, names)) for item in items)
    condition = exp.and_(*(replaced(each, names) for each in having)) if having else None
    return Window(relation, functions, _common_partition(found)), shown, condition


def _common_partition(found: Sequence[exp.Expr]) -> tuple[exp.Expr, ...]:
    lists = [{sql_of(key): key for key in each.args.get("partition_by") or []} for each in found]
    if not lists:
        return ()
    return tuple(key for text, key in lists[0].items() if all(text in other for other in lists[1:]))


def _in_total_order(window: exp.Expr, read: Sequence[exp.Column]) -> exp.Expr:
    if not depends_on_ties(window):
        return window
    reason = why_left_open(window)
    if reason is not None:
        raise Outside(reason)
    result = window.copy()
    order = result.args.get("order")
    keys = list(order.expressions) if order is not None else []
    known = {sql_of(key.this) for key in keys}
    keys += [
        exp.Ordered(this=each.copy(), desc=False, nulls_first=True)
        for each in read
        if sql_of(each) not in known
    ]
    result.set("order", exp.Order(expressions=keys))
    return result
