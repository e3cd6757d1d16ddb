"""A stand-in that has equality, for values of types that have none: maps and variants.

A map becomes the sorted array of its entries, so two maps with the same entries are equal in any order; a
variant becomes its JSON text. Inside arrays and structs the same is done element by element; NULL stays NULL.
"""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.sql.rendering import call, lambda_of, literal
from viewkeeper.sql.types import Array, DataType, Map, Simple, Struct, contains_map


def is_comparable_in_merge(data_type: DataType) -> bool:
    """Whether the stand-in works in the condition of a MERGE: Delta takes no lambda function there."""
    match data_type:
        case Simple():
            return True
        case Array(element):
            return not contains_map(element)
        case Map(key, item):
            return not contains_map(key) and not contains_map(item)
        case Struct(fields):
            return all(is_comparable_in_merge(field_type) for _, field_type in fields)


def comparable(value: exp.Expr, data_type: DataType) -> exp.Expr:
    """
    >>> from viewkeeper.sql.rendering import column
    >>> comparable(column("m"), Map(Simple("STRING"), Simple("INT"))).sql("spark")
    'SORT_ARRAY(MAP_ENTRIES(`m`))'
    """
    if not contains_map(data_type):
        return value
    match data_type:
        case Simple():
            return call("TO_JSON", value)
        case Array(element):
            return call("TRANSFORM", value, lambda_of("e", comparable(exp.to_identifier("e"), element)))
        case Map(key, item):
            entries = call("MAP_ENTRIES", value)
            if contains_map(key) or contains_map(item):
                entry = exp.to_identifier("e")
                pair = call(
                    "STRUCT",
                    comparable(exp.Dot(this=entry, expression=exp.to_identifier("key")), key),
                    comparable(exp.Dot(this=entry.copy(), expression=exp.to_identifier("value")), item),
                )
                entries = call("TRANSFORM", entries, lambda_of("e", pair))
            return call("SORT_ARRAY", entries)
        case Struct(fields):
            parts: list[exp.Expr] = []
            for name, field_type in fields:
                inner = exp.Dot(this=value.copy(), expression=exp.to_identifier(name, quoted=True))
                parts += [literal(name), comparable(inner, field_type)]
            return exp.If(
                this=exp.Is(this=value.copy(), expression=exp.Null()),
                true=exp.Null(),
                false=call("NAMED_STRUCT", *parts),
            )
