"""Aggregates of a group on their way into the tree: those that SQL leaves open are decided, or are the reason why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from viewkeeper.algebra.column_types import column_type
from viewkeeper.algebra.nodes import Constant, Item, Node, Relation, expressions, sql_of, walk
from viewkeeper.algebra.open_aggregates import Aggregate, aggregate_of, decisions
from viewkeeper.algebra.reading.scope import Outside
from viewkeeper.sql.functions import calls, why_not_of_the_bag
from viewkeeper.sql.types import contains_map

_WITHOUT_ORDER = frozenset({
    "map", "map_concat", "map_entries", "map_filter", "map_from_arrays", "map_from_entries", "map_zip_with", "str_to_map",
    "transform_keys", "transform_values", "from_json", "from_csv", "from_xml", "from_avro", "from_protobuf",
    "parse_json", "try_parse_json", "to_variant_object", "variant_get", "try_variant_get", "variant_explode",
    "variant_explode_outer", "make_interval", "try_make_interval", "collate",
})  # fmt: skip
"""Functions whose values may be, or have in them, what has no order (maps, variants, calendar intervals), or one in which
different values are equal (collated strings)."""

_TYPES = (exp.DType.MAP, exp.DType.VARIANT)


def decided_items(items: Sequence[Item], relation: Relation) -> tuple[Item, ...]:
    """The aggregates of a group over a relation, each with one answer."""
    found = [aggregate_of(item.expression) for item in items]
    for each in found:
        if each.is_open:
            _refuse_undecided(each, relation)
    decided = decisions([item.expression for item in items])
    return tuple(
        replace(item, expression=decided.get(sql_of(item.expression), item.expression)) for item in items
    )


def _refuse_undecided(found: Aggregate, relation: Relation) -> None:
    reason = why_not_of_the_bag(found.name)
    unordered = why_not_ordered(found.value, relation) if found.is_understood else None
    if unordered is not None:
        reason = f"{reason}, and {unordered} to break ties by"
    if unordered is not None or not found.is_understood:
        raise Outside(str(reason), found.name)


def why_not_ordered(expression: exp.Expr, relation: Relation) -> str | None:
    """Why the values of an expression over a relation may have no total order; None if they have one. A column that is
    computed below may be made of anything that is read there."""
    made_of = [expression]
    if any(column_type(found, relation) is None for found in expression.find_all(exp.Column)):
        made_of += [each for node in walk(relation) for each in _written_in(node)]
    return next(filter(None, (_why_without_order(each, relation) for each in made_of)), None)


def _written_in(node: Node) -> tuple[exp.Expr, ...]:
    return (node.rows,) if isinstance(node, Constant) else expressions(node)


def _why_without_order(expression: exp.Expr, relation: Relation) -> str | None:
    for found in expression.find_all(exp.Column):
        data_type = column_type(found, relation)
        if data_type is not None and contains_map(data_type):
            return f"{found.name} is a {data_type}, which has no order"
    for call in calls(expression):
        if call.name in _WITHOUT_ORDER:
            return f"what {call.name} makes may have no order"
    for part in expression.find_all(exp.DataType):
        if part.this in _TYPES or part.args.get("collate"):
            return f"{sql_of(part)} has no total order"
    return None
