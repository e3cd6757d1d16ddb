"""A few made-up rows of a table, for asking whether two queries mean the same.

Values come from small pools, so that rows of different tables meet in joins; NULL is among them where a column may be NULL, and
so are the constants that the query compares with. Columns of keys differ from row to row. Fractions are halves and quarters: sums of
them are exact in any order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from sqlglot import exp

from viewkeeper.sql.binding import Column
from viewkeeper.sql.rendering import as_type, call, literal, select_all
from viewkeeper.sql.types import Array, DataType, Map, Simple, Struct

ROWS = 7
_MAX_CONSTANTS = 4
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?")


def sample_rows(
    columns: Sequence[Column], keys: Collection[str], constants: Sequence[str | int], count: int = ROWS
) -> exp.Select:
    """SELECT over VALUES with rows of these columns; `keys` are the names of columns that differ from row to row."""
    rows = [
        exp.Tuple(
            expressions=[
                _value(each, each.name in keys, constants, row, at) for at, each in enumerate(columns)
            ]
        )
        for row in range(max(count, 1))
    ]
    names = exp.TableAlias(
        this=exp.to_identifier("sample"),
        columns=[exp.to_identifier(each.name, quoted=True) for each in columns],
    )
    found = select_all(exp.Values(expressions=rows, alias=names))
    return found if count else found.where(exp.false(), copy=False)


def constants_in(tree: exp.Expr) -> tuple[str | int, ...]:
    """Some of the literals of a query, each once."""
    found: dict[str | int, None] = {}
    for each in tree.find_all(exp.Literal):
        if each.is_string:
            found[each.name] = None
        elif each.is_int:
            found[int(each.name)] = None
    return tuple(found)


def _value(column: Column, is_key: bool, constants: Sequence[str | int], row: int, at: int) -> exp.Expr:
    null = as_type(exp.Null(), column.data_type)
    if is_key:
        return _unique(column.data_type, row)
    if column.nullable and row == ROWS - 1:
        return null
    pool: list[exp.Expr] = _pool(column.data_type, constants)
    if column.nullable:
        pool.insert(2, null)
    # Every column goes through its pool at another pace, and the second row is the first once more.
    step = max(row - 1, 0)
    return pool[(step * (1 + at % 3) + at) % len(pool)]


def _unique(data_type: DataType, row: int) -> exp.Expr:
    match data_type:
        case Simple("DATE" | "TIMESTAMP" | "TIMESTAMP_NTZ"):
            return as_type(literal(f"2024-01-0{row + 1}"), data_type)
        case Simple("STRING") | Simple("BINARY"):
            return as_type(literal("abcdefghij"[row]), data_type)
        case Simple("BOOLEAN"):
            return as_type(literal("true"), data_type)
        case Simple(name) if name.startswith(("CHAR", "VARCHAR")):
            return as_type(literal("abcdefghij"[row]), Simple("STRING"))
        case Simple():
            return as_type(literal(row + 1), data_type)
        case _:
            return _pool(data_type, ())[0]


def _pool(data_type: DataType, constants: Sequence[str | int]) -> list[exp.Expr]:
    """Some values of a type, none of them NULL."""
    numbers = [each for each in constants if isinstance(each, int)]
    words = [each for each in constants if isinstance(each, str)]
    values: list[exp.Expr]
    match data_type:
        case Array(element):
            inner = _pool(element, constants)
            values = [call("ARRAY", inner[0], inner[-1]), call("ARRAY"), call("ARRAY", inner[0])]
        case Map(key, value):
            inner = _pool(value, constants)
            values = [call("MAP", _pool(key, constants)[0], each) for each in inner[:2]]
        case Struct(fields):
            pools = [_pool(each, constants) for _, each in fields]
            values = [
                call("STRUCT", *(pool[(at + shift) % len(pool)] for at, pool in enumerate(pools)))
                for shift in (0, 1)
            ]
        case Simple("BOOLEAN"):
            values = [exp.true(), exp.false()]
        case Simple("VARIANT"):
            return [call("PARSE_JSON", literal(text)) for text in ('{"a": 1}', '{"a": 2, "b": [1]}')]
        case Simple("DATE" | "TIMESTAMP" | "TIMESTAMP_NTZ"):
            times = [each for each in words if _DATE.fullmatch(each)][:_MAX_CONSTANTS]
            values = [literal(each) for each in ("2024-01-01", *times, "2024-01-02", "2024-02-01")]
        case Simple("TINYINT"):
            values = [literal(each) for each in dict.fromkeys((1, *_between(numbers, 127), 2, 3, 0))]
        case Simple("SMALLINT"):
            values = [literal(each) for each in dict.fromkeys((1, *_between(numbers, 32_767), 2, 3, 0))]
        case Simple("INT" | "BIGINT"):
            values = [
                literal(each) for each in dict.fromkeys((1, *_between(numbers, 1_000_000_000), 2, 3, 0))
            ]
        case Simple("FLOAT" | "DOUBLE"):
            few = [literal(each) for each in _between(numbers, 1_000_000)]
            values = [literal(1), exp.Literal.number("2.5"), *few, exp.Literal.number("0.25")]
        case Simple(name) if name.startswith("DECIMAL"):
            values = [
                literal(0),
                exp.Literal.number("0.5"),
                *(literal(each) for each in _between(numbers, 9)[:2]),
            ]
        case Simple(name) if name.startswith(("CHAR", "VARCHAR")):
            return [as_type(literal(each), Simple("STRING")) for each in ("a", *_short(words), "b")]
        case Simple():
            values = [literal(each) for each in ("a", *_short(words), "b", "A ", "")]
    return [as_type(each, data_type) for each in values]


def _between(numbers: Sequence[int], most: int) -> list[int]:
    return [near for each in numbers[:_MAX_CONSTANTS] for near in (each, each + 1) if near <= most]


def _short(words: Sequence[str]) -> list[str]:
    return [each for each in words if len(each) < 40][:_MAX_CONSTANTS]
