"""What is known of Spark's functions: which are builtin, and what their values depend on.

>>> why_not_deterministic("rand", 0)
'rand gives another value each time'
>>> aggregate_kind("max"), aggregate_kind("collect_list")
(<AggregateKind.BAG: 'bag'>, <AggregateKind.ORDERED: 'ordered'>)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files

from sqlglot import exp


class FunctionKind(Enum):
    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    WINDOW = "window"
    GENERATOR = "generator"
    """Makes rows: explode, inline, stack …"""
    TABLE = "table"
    TIME_WINDOW = "time_window"
    """Groups rows by time: window, session_window, and window_time over them."""


def _builtin() -> dict[str, FunctionKind]:
    text = files("viewkeeper.sql").joinpath("spark_functions.json").read_text()
    listed = {name: FunctionKind(kind) for name, kind in json.loads(text).items()}
    return listed | dict.fromkeys(_ONLY_SYNTAX, FunctionKind.SCALAR)


_ONLY_SYNTAX = ("try_cast", "timestampadd", "timestampdiff", "timediff")
"""Calls that Spark's grammar knows and its list of functions does not."""

BUILTIN: Mapping[str, FunctionKind] = _builtin()
"""Spark's own functions, in lower case. Written by tools/list_spark_functions.py."""

NONDETERMINISTIC = frozenset({
    "rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id",
    "spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length",
    "java_method", "reflect", "try_reflect", "python_worker_logs",
    "kll_sketch_merge_bigint", "kll_sketch_merge_double", "kll_sketch_merge_float",
})  # fmt: skip
"""Functions that may give another value for the same arguments, also in the same query."""

TIME_DEPENDENT = frozenset({
    "current_date", "curdate", "current_time", "current_timestamp", "now", "localtimestamp", "current_timezone",
    "current_user", "user", "session_user", "current_catalog", "current_database", "current_schema",
    "current_path", "version",
})  # fmt: skip
"""Functions that tell when, where or by whom a query is run."""

WITHOUT_PARENTHESES = frozenset({
    "current_date", "current_time", "current_timestamp", "localtimestamp", "current_user", "user", "session_user",
    "current_catalog", "current_database", "current_schema", "current_path", "grouping__id",
})  # fmt: skip
"""Functions that Spark knows without parentheses too, where no column has the name."""


def why_not_deterministic(name: str, argument_count: int) -> str | None:
    """Why a call may have another value later, as a clause that can follow "because"; None if it may not."""
    if name in NONDETERMINISTIC:
        return f"{name} gives another value each time"
    if name in TIME_DEPENDENT or (name == "unix_timestamp" and argument_count == 0):
        return f"{name} gives another value at another time"
    if name == "aes_encrypt" and argument_count < 5:
        return "aes_encrypt makes a random initialization vector"
    return None


class AggregateKind(Enum):
    BAG = "bag"
    """The value depends on the bag of arguments alone (for FLOAT and DOUBLE, up to rounding)."""
    ORDERED = "ordered"
    """The value also depends on the order in which rows arrive."""
    SKETCH = "sketch"
    """A summary whose bytes depend on how it was put together."""
    GROUPING = "grouping"
    """Tells which grouping set a row belongs to."""


_BAG = frozenset({
    "count", "count_if", "sum", "avg", "mean", "min", "max", "any", "some", "every", "bool_and", "bool_or",
    "bit_and", "bit_or", "bit_xor", "bitmap_and_agg", "bitmap_or_agg", "bitmap_construct_agg",
    "std", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp", "skewness", "kurtosis",
    "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2",
    "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
    "median", "percentile", "percentile_cont", "percentile_disc", "approx_count_distinct",
})  # fmt: skip

_ORDERED: Mapping[str, str] = {
    **dict.fromkeys(
        ("first", "first_value", "last", "last_value", "any_value"),
        "takes the value of whichever row comes first",
    ),
    **dict.fromkeys(
        ("collect_list", "array_agg", "collect_set", "listagg", "string_agg"),
        "lists values in the order they come",
    ),
    **dict.fromkeys(("max_by", "min_by", "mode"), "picks any of several equally good values"),
    **dict.fromkeys(
        ("approx_percentile", "percentile_approx", "approx_top_k", "histogram_numeric"),
        "approximates, and how depends on the order of the rows",
    ),
    **dict.fromkeys(
        ("try_sum", "try_avg"), "is NULL after an overflow, which depends on the order of the rows"
    ),
}


def aggregate_kind(name: str) -> AggregateKind | None:
    """What the value of an aggregate depends on; None for what is no builtin aggregate, or not known.

    `measure` is not known: what it means stands in a metric view.
    """
    if name in ("grouping", "grouping_id", "grouping__id"):
        return AggregateKind.GROUPING
    if name in _BAG:
        return AggregateKind.BAG
    if name in _ORDERED:
        return AggregateKind.ORDERED
    is_aggregate = BUILTIN.get(name) is FunctionKind.AGGREGATE and name != "measure"
    return AggregateKind.SKETCH if is_aggregate else None


def why_not_of_the_bag(name: str) -> str | None:
    """Why the value of an aggregate depends on more than the bag of its arguments, as a clause; None if it does not.

    >>> why_not_of_the_bag("max_by")
    'max_by picks any of several equally good values'
    """
    match aggregate_kind(name):
        case AggregateKind.BAG | AggregateKind.GROUPING:
            return None
        case AggregateKind.ORDERED:
            return f"{name} {_ORDERED[name]}"
        case AggregateKind.SKETCH:
            return f"the bytes of {name} depend on how it was put together"
        case None:
            return f"{name} is no aggregate that is known"


# ------------------------------------------------------------------------------------------------ calls in trees


@dataclass(frozen=True)
class Call:
    """A call in a tree. `name` is in lower case, and has its schema if it is written with one."""

    name: str
    node: exp.Expr
    argument_count: int


_OWN_NAMES: Mapping[type[exp.Expr], str] = {
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.VariancePop: "var_pop",
    exp.TryCast: "cast",
    exp.RegexpLike: "rlike",
}
"""Nodes that have another name in Spark than in sqlglot."""


def function_name(node: exp.Expr) -> str:
    """The name of the function that a node calls, in lower case; empty if it calls none.

    >>> function_name(exp.Anonymous(this="NVL")), function_name(exp.LogicalOr()), function_name(exp.column("a"))
    ('nvl', 'bool_or', '')
    """
    if isinstance(node, (exp.Anonymous, exp.AnonymousAggFunc)):
        return _qualifier(node) + node.name.lower()
    if isinstance(node, exp.Column):
        return node.name.lower() if not node.table and node.name.lower() in WITHOUT_PARENTHESES else ""
    if not isinstance(node, exp.Func) or isinstance(node, exp.Connector):
        return ""
    is_branch = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
    if is_branch or (isinstance(node, exp.Exists) and isinstance(node.this, exp.Query)):
        return ""
    if isinstance(node, exp.TryCast) and node.args.get("safe"):
        return "try_cast"
    return _OWN_NAMES.get(type(node)) or node.sql_name().lower()


def _qualifier(node: exp.Expr) -> str:
    """`sales.` of sales.f(x); Spark's own system.builtin is nothing."""
    parent = node.parent
    if not isinstance(parent, exp.Dot) or parent.expression is not node:
        return ""
    parts = [part.name.lower() for part in parent.this.find_all(exp.Identifier)]
    return "" if parts in (["builtin"], ["system", "builtin"]) else f"{'.'.join(parts)}."


def calls(tree: exp.Expr) -> Iterator[Call]:
    """Every call in a tree, whatever nodes they became.

    >>> from viewkeeper.sql.script import parse_sql
    >>> [call.name for call in calls(parse_sql("SELECT nvl(SUM(x), 0), date_add(DAY, 1, d) FROM t"))]
    ['nvl', 'date_add', 'sum']
    """
    for node in tree.walk():
        if name := function_name(node):
            yield Call(name, node, _argument_count(node))


def _argument_count(node: exp.Expr) -> int:
    if isinstance(node, (exp.Anonymous, exp.AnonymousAggFunc)):
        return len(node.expressions)
    if isinstance(node, exp.Column):
        return 0
    return sum(
        len(value) if isinstance(value, list) else isinstance(value, exp.Expr) for value in node.args.values()
    )


def kind_of(node: exp.Expr) -> FunctionKind | None:
    """The kind of the builtin function that a node calls."""
    return BUILTIN.get(function_name(node))


def is_aggregate(node: exp.Expr) -> bool:
    return kind_of(node) is FunctionKind.AGGREGATE


def is_generator(node: exp.Expr) -> bool:
    return kind_of(node) is FunctionKind.GENERATOR


# ---------------------------------------------------------------------------------------------- what cannot be run again

_TIME_WORDS = re.compile(r"\s*(now|today|tomorrow|yesterday)(\s.*)?", re.IGNORECASE | re.DOTALL)


def why_not_repeatable(tree: exp.Expr) -> str | None:
    """Why an expression may have another value when it is run again, as a clause; None if it may not.

    >>> from viewkeeper.sql.script import parse_sql
    >>> why_not_repeatable(parse_sql("SELECT CAST('today' AS DATE)"))
    "'today' means another day on another day"
    """
    for call in calls(tree):
        if call.name not in BUILTIN:
            return f"{call.name} is no function of Spark"
        if reason := why_not_deterministic(call.name, call.argument_count):
            return reason
    for text in tree.find_all(exp.Literal):
        if text.is_string and _TIME_WORDS.fullmatch(text.name) and _may_be_a_time(text):
            return f"'{text.name}' means another day on another day"
    return None


def _may_be_a_time(text: exp.Literal) -> bool:
    """Whether Spark may read a string as a time: it is cast, compared, or the argument of a function."""
    place = text.parent
    return isinstance(place, (exp.Predicate, exp.Func)) and not isinstance(
        place, (exp.If, exp.Case, exp.Coalesce)
    )
