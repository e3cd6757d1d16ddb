"""What kind of number an expression gives, as far as the tree alone tells.

Exact numbers add up to the same sum in any order, floating-point numbers do not. Of most functions only Spark knows the type:
their kind is None, which whoever needs an exact number takes for floating.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TypeAlias

from sqlglot import exp

from viewkeeper.algebra.nodes import (
    Attribute,
    Constant,
    Derived,
    Generate,
    Group,
    InnerJoin,
    OuterJoin,
    Project,
    Query,
    Relation,
    Scan,
    SemiJoin,
    SetOperation,
    TopRows,
    Window,
    output_names,
)
from viewkeeper.errors import UnsupportedError
from viewkeeper.sql.functions import function_name
from viewkeeper.sql.types import DataType, Simple, read_type_text


class Number(Enum):
    SMALL = "TINYINT, SMALLINT or INT"
    BIG = "BIGINT"
    DECIMAL = "DECIMAL"
    FLOATING = "FLOAT or DOUBLE"

    @property
    def is_whole(self) -> bool:
        return self in (Number.SMALL, Number.BIG)


Kinds: TypeAlias = Mapping[Attribute, Number | None]
"""The kinds of columns, by alias and name in lower case; outputs of groups and windows have the alias ''."""

_WIDTH = (Number.SMALL, Number.BIG, Number.DECIMAL, Number.FLOATING)
_PLAIN = {
    "TINYINT": Number.SMALL,
    "SMALLINT": Number.SMALL,
    "INT": Number.SMALL,
    "BIGINT": Number.BIG,
    "FLOAT": Number.FLOATING,
    "DOUBLE": Number.FLOATING,
}
_OF_FUNCTIONS: Mapping[str, Number] = {
    **dict.fromkeys(
        ("length", "char_length", "character_length", "len", "year", "month", "day", "dayofmonth", "dayofweek",
         "dayofyear", "quarter", "hour", "minute", "datediff", "date_diff", "size", "cardinality", "instr",
         "row_number", "rank", "dense_rank", "ntile"),
        Number.SMALL,
    ),
    **dict.fromkeys(("count", "count_if", "regr_count", "approx_count_distinct", "div"), Number.BIG),
}  # fmt: skip
_OF_ARGUMENTS = frozenset({
    "coalesce", "nvl", "ifnull", "nullif", "least", "greatest", "abs", "negative", "positive", "mod", "pmod",
    "min", "max", "first", "first_value", "last", "last_value", "any_value", "lag", "lead", "nth_value",
})  # fmt: skip


def kind_of_type(data_type: DataType | None) -> Number | None:
    """
    >>> kind_of_type(Simple("SMALLINT")), kind_of_type(Simple("DECIMAL(9,2)")), kind_of_type(Simple("STRING"))
    (<Number.SMALL: 'TINYINT, SMALLINT or INT'>, <Number.DECIMAL: 'DECIMAL'>, None)
    """
    name = data_type.name if isinstance(data_type, Simple) else ""
    return Number.DECIMAL if name.startswith("DECIMAL") else _PLAIN.get(name)


def number_kind(expression: exp.Expr, kinds: Kinds) -> Number | None:
    """The kind of an expression over columns of these kinds; None if it is not known, or no number."""

    def of(node: exp.Expr | None) -> Number | None:
        return None if node is None else number_kind(node, kinds)

    match expression:
        case exp.Column():
            return kinds.get((expression.table.lower(), expression.name.lower()))
        case exp.Paren() | exp.Neg() | exp.Filter() | exp.Window() | exp.IgnoreNulls() | exp.RespectNulls():
            return of(expression.this)
        case exp.Distinct():
            return of(expression.expressions[0]) if len(expression.expressions) == 1 else None
        case exp.Literal():
            return None if expression.is_string else _of_number(expression.name)
        case exp.Cast() | exp.TryCast():
            return kind_of_type(_type(expression.to))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod():
            return _widest([of(expression.this), of(expression.expression)])
        case exp.IntDiv():
            return Number.BIG
        case exp.Div():
            found = _widest([of(expression.this), of(expression.expression)])
            return Number.FLOATING if found is not None and found.is_whole else found
        case exp.Case():
            return _of_branches(expression, [each.args["true"] for each in expression.args["ifs"]], of)
        case exp.If():
            return _of_branches(expression, [expression.args["true"]], of, "false")
    return _of_call(expression, of)


def _of_branches(
    expression: exp.Expr,
    branches: list[exp.Expr],
    of: Callable[[exp.Expr], Number | None],
    otherwise: str = "default",
) -> Number | None:
    last = expression.args.get(otherwise)
    known = [
        each for each in [*branches, *([] if last is None else [last])] if not isinstance(each, exp.Null)
    ]
    return _widest(map(of, known))


def _of_call(expression: exp.Expr, of: Callable[[exp.Expr], Number | None]) -> Number | None:
    name = function_name(expression)
    if name in _OF_FUNCTIONS:
        return _OF_FUNCTIONS[name]
    if name == "if":
        return _widest(of(each) for each in arguments(expression)[1:] if not isinstance(each, exp.Null))
    if name in _OF_ARGUMENTS:
        given = arguments(expression)
        if name in ("nullif", "nth_value"):
            given = given[:1]
        return _widest(of(each) for each in given if not isinstance(each, exp.Null))
    if name in ("sum", "avg", "mean", "round", "bround"):
        found = of(arguments(expression)[0])
        if found is not None and found.is_whole:
            return {"sum": Number.BIG, "avg": Number.FLOATING, "mean": Number.FLOATING}.get(name, found)
        return found
    return None


def arguments(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of a call, whatever node it became."""
    found: list[exp.Expr] = []
    for value in node.args.values():
        found += [
            each for each in (value if isinstance(value, list) else [value]) if isinstance(each, exp.Expr)
        ]
    return found


def _widest(kinds: Iterable[Number | None]) -> Number | None:
    """What Spark makes of numbers of several kinds."""
    found = list(kinds)
    if not found or None in found:
        return None
    return max((each for each in found if each is not None), key=_WIDTH.index)


def _of_number(text: str) -> Number | None:
    """
    >>> _of_number("7"), _of_number("4000000000"), _of_number("1.50"), _of_number("1e3")
    (<Number.SMALL: 'TINYINT, SMALLINT or INT'>, <Number.BIG: 'BIGINT'>, <Number.DECIMAL: 'DECIMAL'>, <Number.FLOATING: 'FLOAT or DOUBLE'>)
    """
    if "e" in text.lower():
        return Number.FLOATING
    if "." in text or len(text) > 18:
        return Number.DECIMAL
    return Number.SMALL if text.isdigit() and int(text) < 1 << 31 else Number.BIG


def _type(to: exp.Expr) -> DataType | None:
    try:
        return read_type_text(to.sql(dialect="spark"))
    except UnsupportedError:
        return None


# ------------------------------------------------------------------------------------------- columns of relations


def kinds_in(relation: Relation) -> dict[Attribute, Number | None]:
    """The kinds of the columns that a relation has under its aliases."""
    match relation:
        case Scan(alias, table):
            return {
                (alias.lower(), each.name.lower()): kind_of_type(each.data_type) for each in table.columns
            }
        case Constant(alias, columns, rows):
            tuples = [arguments(each) for each in rows.expressions]
            return {
                (alias.lower(), name.lower()): _widest(
                    number_kind(row[at], {}) for row in tuples if not isinstance(row[at], exp.Null)
                )
                for at, name in enumerate(columns)
                if all(at < len(row) for row in tuples)
            }
        case Derived(alias, query):
            found = kinds_of(query)
            names = output_names(query)
            return {(alias.lower(), name.lower()): kind for name, kind in zip(names, found, strict=True)}
        case InnerJoin(sources):
            return {key: kind for source in sources for key, kind in kinds_in(source).items()}
        case OuterJoin(left, right):
            return kinds_in(left) | kinds_in(right)
        case SemiJoin(left):
            return kinds_in(left)
        case Generate(source):
            return kinds_in(source)


def kinds_below(source: Relation | Group | Window) -> dict[Attribute, Number | None]:
    """The kinds of what the expressions of a projection over this may name."""
    match source:
        case Group(relation, keys, aggregates):
            inside = kinds_in(relation)
            return {
                ("", each.name.lower()): number_kind(each.expression, inside) for each in (*keys, *aggregates)
            }
        case Window(relation, functions):
            inside = kinds_in(relation)
            made = {("", each.name.lower()): number_kind(each.expression, inside) for each in functions}
            return inside | made
        case _:
            return kinds_in(source)


def kinds_of(query: Query) -> tuple[Number | None, ...]:
    """The kinds of a query's columns."""
    match query:
        case Project(source, items):
            below = kinds_below(source)
            return tuple(number_kind(item.expression, below) for item in items)
        case SetOperation(_, _, left, right):
            return tuple(_widest(pair) for pair in zip(kinds_of(left), kinds_of(right), strict=True))
        case TopRows(inner):
            return kinds_of(inner)
