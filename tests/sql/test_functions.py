"""What is known of Spark's functions, and the calls in a tree."""

from __future__ import annotations

import pytest
from sqlglot import exp

from viewkeeper.sql.functions import (
    BUILTIN,
    NONDETERMINISTIC,
    TIME_DEPENDENT,
    AggregateKind,
    FunctionKind,
    aggregate_kind,
    calls,
    is_aggregate,
    is_generator,
    kind_of,
    why_not_deterministic,
    why_not_of_the_bag,
    why_not_repeatable,
)
from viewkeeper.sql.script import parse_sql


def names(text: str) -> list[tuple[str, int]]:
    return sorted((call.name, call.argument_count) for call in calls(parse_sql(f"SELECT {text}")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NVL(a, b)", [("nvl", 2)]),
        ("nvl(upper(a), 1)", [("nvl", 2), ("upper", 1)]),
        ("COUNT(*)", [("count", 1)]),
        ("COUNT(DISTINCT a, b)", [("count", 1)]),
        ("COUNT(a, b)", [("count", 2)]),
        ("any(a)", [("bool_or", 1)]),
        ("std(a)", [("stddev", 1)]),
        ("unix_timestamp()", [("unix_timestamp", 0)]),
        ("current_date", [("current_date", 0)]),
        ("user", [("user", 0)]),
        ("t.user", []),
        ("a::INT", [("cast", 2)]),
        ("TRY_CAST(a AS INT)", [("try_cast", 2)]),
        ("CASE WHEN a THEN b END", [("case", 1)]),
        ("IF(a, b, c)", [("if", 3)]),
        ("a AND b OR NOT c", []),
        ("a + b * c || d", []),
        ("EXISTS(SELECT 1)", []),
        ("EXISTS(a, x -> x)", [("exists", 2)]),
        ("sales.upper(a)", [("sales.upper", 1)]),
        ("system.builtin.upper(a)", [("upper", 1)]),
        ("`nvl`(a, 1)", [("nvl", 2)]),
        ("SUM(a) FILTER(WHERE b) OVER (PARTITION BY lower(c))", [("lower", 1), ("sum", 1)]),
        ("a RLIKE b", [("rlike", 2)]),
        ("EXTRACT(YEAR FROM a)", [("extract", 2)]),
        ("TRANSFORM(a, x -> f(x))", [("f", 1), ("transform", 2)]),
        ("(SELECT max(a) FROM t)", [("max", 1)]),
    ],
)
def test_calls(text: str, expected: list[tuple[str, int]]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("upper", FunctionKind.SCALAR),
        ("date_add", FunctionKind.SCALAR),
        ("timestampadd", FunctionKind.SCALAR),
        ("sum", FunctionKind.AGGREGATE),
        ("lag", FunctionKind.WINDOW),
        ("explode_outer", FunctionKind.GENERATOR),
        ("window", FunctionKind.TIME_WINDOW),
        ("range", FunctionKind.TABLE),
    ],
)
def test_kinds(name: str, kind: FunctionKind) -> None:
    assert BUILTIN[name] is kind
    assert kind_of(exp.Anonymous(this=name.upper())) is kind


def test_aggregates_and_generators() -> None:
    assert is_aggregate(exp.Anonymous(this="COUNT")) and is_aggregate(exp.Count(this=exp.Star()))
    assert not is_aggregate(exp.Upper(this=exp.column("a"))) and not is_aggregate(exp.column("sum"))
    assert is_generator(exp.Anonymous(this="explode")) and is_generator(exp.Posexplode(this=exp.column("a")))


def test_every_name_is_a_builtin_function() -> None:
    assert BUILTIN.keys() >= NONDETERMINISTIC | TIME_DEPENDENT


def test_every_aggregate_is_of_a_kind() -> None:
    aggregates = {name for name, kind in BUILTIN.items() if kind is FunctionKind.AGGREGATE}
    by_kind = {kind: {name for name in aggregates if aggregate_kind(name) is kind} for kind in AggregateKind}
    assert aggregates - set().union(*by_kind.values()) == {"measure"}
    assert all(
        "sketch" in name or "_agg" in name or "top_k" in name for name in by_kind[AggregateKind.SKETCH]
    )
    assert {"min", "sum", "median", "regr_r2", "bit_xor"} <= by_kind[AggregateKind.BAG]
    assert {"first", "collect_set", "mode", "percentile_approx"} <= by_kind[AggregateKind.ORDERED]
    assert by_kind[AggregateKind.GROUPING] == {"grouping", "grouping_id"}
    assert aggregate_kind("upper") is None and aggregate_kind("unheard_of") is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("sum", None),
        ("grouping", None),
        ("any_value", "any_value takes the value of whichever row comes first"),
        ("collect_set", "collect_set lists values in the order they come"),
        ("mode", "mode picks any of several equally good values"),
        ("approx_percentile", "approx_percentile approximates, and how depends on the order of the rows"),
        ("hll_sketch_agg", "the bytes of hll_sketch_agg depend on how it was put together"),
        ("measure", "measure is no aggregate that is known"),
    ],
)
def test_why_not_of_the_bag(name: str, reason: str | None) -> None:
    assert why_not_of_the_bag(name) == reason


@pytest.mark.parametrize(
    ("name", "count", "reason"),
    [
        ("upper", 1, None),
        ("uuid", 0, "uuid gives another value each time"),
        ("now", 0, "now gives another value at another time"),
        ("unix_timestamp", 0, "unix_timestamp gives another value at another time"),
        ("unix_timestamp", 1, None),
        ("aes_encrypt", 2, "aes_encrypt makes a random initialization vector"),
        ("aes_encrypt", 5, None),
    ],
)
def test_why_not_deterministic(name: str, count: int, reason: str | None) -> None:
    assert why_not_deterministic(name, count) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("upper(a) || nvl(b, 'x')", None),
        ("a + INTERVAL 1 DAY", None),
        ("lower(rand())", "rand gives another value each time"),
        ("current_user", "current_user gives another value at another time"),
        ("mine(a)", "mine is no function of Spark"),
        ("sales.upper(a)", "sales.upper is no function of Spark"),
        ("DATE 'today'", "'today' means another day on another day"),
        ("a > 'Yesterday'", "'Yesterday' means another day on another day"),
        ("date('now')", "'now' means another day on another day"),
        ("'now UTC'::TIMESTAMP", "'now UTC' means another day on another day"),
        ("a IN ('tomorrow', 'x')", "'tomorrow' means another day on another day"),
        ("CASE WHEN a THEN 'today' ELSE 'later' END", None),
        ("'today'", None),
        ("a = 'nowhere'", None),
    ],
)
def test_why_not_repeatable(text: str, reason: str | None) -> None:
    assert why_not_repeatable(parse_sql(f"SELECT {text} FROM t")) == reason
