"""What a user writes is written back: calls, operators, literals and types."""

from __future__ import annotations

import pytest
from sqlglot import exp
from sqlglot.errors import ParseError

from tests.sql.expressions import AS_WRITTEN, IN_OTHER_WORDS
from tests.sql.expressions_on_one_row import ON_ONE_ROW
from viewkeeper.sql.dialect import SparkAsWritten, transpile
from viewkeeper.sql.functions import BUILTIN, FunctionKind, function_name
from viewkeeper.sql.rendering import render
from viewkeeper.sql.script import Fragment, parse_sql


def expression(text: str) -> exp.Expr:
    tree = parse_sql(f"SELECT {text} FROM t")
    assert isinstance(tree, exp.Select)
    found: exp.Expr = tree.selects[0]
    return found


def rewritten(text: str) -> str:
    return render(expression(text), pretty=False)


def words(text: str) -> list[str]:
    """The tokens of a text; the case of words does not matter."""
    tokens = Fragment.whole(text).tokens()
    return [token.text if "STRING" in token.token_type.name else token.text.upper() for token in tokens]


@pytest.mark.parametrize("text", AS_WRITTEN)
def test_written_word_by_word(text: str) -> None:
    assert words(rewritten(text)) == words(text)


@pytest.mark.parametrize(("text", "other"), IN_OTHER_WORDS.items())
def test_written_in_other_words(text: str, other: str) -> None:
    assert rewritten(text) == other


@pytest.mark.parametrize("text", [*AS_WRITTEN, *IN_OTHER_WORDS, *ON_ONE_ROW])
def test_the_second_time_nothing_changes(text: str) -> None:
    assert rewritten(rewritten(text)) == rewritten(text)


SAME_FUNCTION = {
    "MEAN": "AVG", "STD": "STDDEV", "VAR_SAMP": "VARIANCE", "EVERY": "BOOL_AND", "SOME": "BOOL_OR", "ANY": "BOOL_OR",
}  # fmt: skip
OPERATORS = {"AND", "OR", "NOT", "IN", "BETWEEN", "CASE", "WHEN", "CAST", "TRY_CAST"}
ARGUMENTS = (
    "",
    "c",
    "c, d",
    "'MM', c",
    "c, 'yyyy-MM-dd'",
    "c, 1, 'x'",
    "c, d, TRUE, 4",
    "1, 'x', c, d, 5",
    "c, d, 1, 2, 3, 4, 5",
)


@pytest.mark.parametrize("name", sorted({name.upper() for name in BUILTIN} - OPERATORS))
def test_every_builtin_function_with_any_arguments(name: str) -> None:
    needed = {"IF": 3, "TRANSFORM": 2}.get(name)
    for arguments in ARGUMENTS:
        if needed in (None, len(arguments.split(","))):
            call = expression(f"{name}({arguments})")
            same = {f"{each}({arguments})" for each in (name, SAME_FUNCTION.get(name, name))}
            assert render(call, pretty=False) in same
            assert isinstance(call, exp.AggFunc) or BUILTIN[name.lower()] is not FunctionKind.AGGREGATE
            assert BUILTIN[function_name(call)] is BUILTIN[name.lower()]


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a = b IN (c)", "(a = b) IN (c)"),
        ("a = b > c", "(a = b) > c"),
        ("a || b + c", "(a || b) + c"),
        ("a | b & c", "a | (b & c)"),
        ("a ^ b | c", "(a ^ b) | c"),
        ("a & b << c", "a & (b << c)"),
        ("a << b + c", "a << (b + c)"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("a = b AND c LIKE d", "(a = b) AND (c LIKE d)"),
        ("NOT a = b", "NOT (a = b)"),
        ("a LIKE b = c", "a LIKE (b = c)"),
        ("a NOT BETWEEN b AND c > d", "a NOT BETWEEN b AND (c > d)"),
        ("a <=> b = c", "(a <=> b) = c"),
    ],
)
def test_precedence(text: str, grouped: str) -> None:
    def bare(tree: exp.Expr) -> exp.Expr:
        return tree.transform(lambda node: node.this if isinstance(node, exp.Paren) else node)

    assert bare(expression(text)) == bare(expression(grouped))


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("COUNT(DISTINCT a)", exp.Count),
        ("SUM(a)", exp.Sum),
        ("MEAN(a)", exp.Avg),
        ("MIN(a)", exp.Min),
        ("MAX(a)", exp.Max),
        ("STD(a)", exp.Stddev),
        ("STDDEV_POP(a)", exp.StddevPop),
        ("STDDEV_SAMP(a)", exp.StddevSamp),
        ("VAR_SAMP(a)", exp.Variance),
        ("VAR_POP(a)", exp.VariancePop),
        ("CORR(a, b)", exp.Corr),
        ("COVAR_POP(a, b)", exp.CovarPop),
        ("COVAR_SAMP(a, b)", exp.CovarSamp),
        ("EVERY(a)", exp.LogicalAnd),
        ("ANY(a)", exp.LogicalOr),
        ("COALESCE(a, b)", exp.Coalesce),
        ("IF(a, b, c)", exp.If),
        ("GROUPING(a)", exp.Grouping),
        ("EXPLODE(a)", exp.Explode),
        ("EXPLODE_OUTER(a)", exp.ExplodeOuter),
        ("POSEXPLODE(a)", exp.Posexplode),
        ("ROW_NUMBER()", exp.RowNumber),
        ("FIRST_VALUE(a)", exp.FirstValue),
        ("NVL(a, b)", exp.Anonymous),
        ("COLLECT_LIST(a)", exp.AnonymousAggFunc),
        ("FIRST_VALUE(a, TRUE)", exp.AnonymousAggFunc),
        ("MAX_BY(a, b)", exp.AnonymousAggFunc),
        ("1L", exp.Var),
        ("a LIKE ANY ('x')", exp.Like),
        ("EXISTS(SELECT 1)", exp.Exists),
        ("EXISTS(a, x -> x)", exp.Anonymous),
    ],
)
def test_nodes_that_can_be_relied_on(text: str, node: type[exp.Expr]) -> None:
    assert isinstance(expression(text), node)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("DATE_ADD(MONTH, 1, day)", ["day"]),
        ("TIMESTAMPDIFF(hour, a, b)", ["a", "b"]),
        ("TRANSFORM(a, X -> x + b)", ["a", "b"]),
        ("TRANSFORM(a, x -> x.y.z)", ["a"]),
        ("EXTRACT(YEAR FROM d)", ["d"]),
        ("INTERVAL 1 DAY 2 HOURS", []),
        ("interval + 1", ["interval"]),
        ("array[0]", ["array"]),
    ],
)
def test_what_is_a_column(text: str, columns: list[str]) -> None:
    assert sorted(found.name for found in expression(text).find_all(exp.Column)) == columns


@pytest.mark.parametrize("text", ["a LIKE", "SUBSTRING(a FROM)", "CAST(a INT)", "a >>"])
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(ParseError):
        expression(text)


def test_values_without_parentheses_have_an_alias() -> None:
    tree = parse_sql("SELECT x FROM VALUES 'a', 'b' AS t(x)")
    assert render(tree, pretty=False) == "SELECT x FROM VALUES ('a'), ('b') AS t(x)"


def test_marks_survive_copying() -> None:
    text = "a NOT IN (1) AND b <=> DATE '2024-01-31'"
    tree = expression(text).copy().transform(lambda node: node)
    assert tree.sql(SparkAsWritten) == text


def test_built_trees_need_no_marks() -> None:
    is_not_null = exp.Not(this=exp.Is(this=exp.column("a"), expression=exp.null()))
    assert render(is_not_null, pretty=False) == "NOT a IS NULL"
    assert (
        render(exp.NullSafeEQ(this=exp.column("a"), expression=exp.column("b"))) == "a IS NOT DISTINCT FROM b"
    )


@pytest.mark.parametrize(
    ("text", "duckdb"),
    [
        ("SELECT nvl(a, 1) FROM t", "SELECT COALESCE(a, 1) FROM t"),
        ("SELECT a <=> b FROM t", "SELECT a IS NOT DISTINCT FROM b FROM t"),
    ],
)
def test_other_engines_get_the_shared_nodes(text: str, duckdb: str) -> None:
    assert transpile(text, "duckdb") == duckdb
