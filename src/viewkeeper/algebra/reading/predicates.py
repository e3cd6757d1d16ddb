"""EXISTS, IN and comparisons with ANY and ALL that a row must pass: semi and anti joins.

EXISTS q           semi join on the correlated conditions of q
x IN q             semi join, and x = y
x op ANY q         semi join, and x op y
NOT EXISTS q       anti join
x NOT IN q         anti join on x = y being true or unknown: one NULL on either side blocks the row; so does x <> ALL q
x op ALL q         anti join on x op y being false or unknown
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.expressions import without_parentheses
from viewkeeper.algebra.nodes import (
    Derived,
    Relation,
    SemiJoin,
    aliases_in,
    aliases_of,
    inner_join,
    output_names,
)
from viewkeeper.algebra.nullability import is_never_null
from viewkeeper.algebra.reading.blocks import read_block
from viewkeeper.algebra.reading.correlation import correlated_groups, is_plain
from viewkeeper.algebra.reading.reader import Reader
from viewkeeper.algebra.reading.scope import Outside, Scope
from viewkeeper.algebra.reading.values import with_values
from viewkeeper.sql.rendering import call, column


@dataclass(frozen=True)
class Predicate:
    """A predicate over a subquery: what is compared (nothing for EXISTS), how, and whether a row must have none."""

    query: exp.Expr
    compared: tuple[exp.Expr, ...]
    comparison: type[exp.Binary]
    is_anti: bool
    origin: str


_NEGATED = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}

_NOT_ANY = "<> ALL"
"""The same as NOT IN."""


def is_predicate(condition: exp.Expr) -> bool:
    return _predicate(condition) is not None


def _predicate(condition: exp.Expr) -> Predicate | None:
    inner = without_parentheses(condition)
    negated = isinstance(inner, exp.Not)
    if negated:
        inner = without_parentheses(inner.this)
    match inner:
        case exp.Exists() if isinstance(inner.this, exp.Query):
            return Predicate(inner.this, (), exp.EQ, negated, "NOT EXISTS" if negated else "EXISTS")
        case exp.In() if inner.args.get("query") is not None:
            query = inner.args["query"]
            compared = _row(inner.this)
            return Predicate(query, compared, exp.EQ, negated, "NOT IN" if negated else "IN")
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() if not negated:
            quantified = inner.expression
            if isinstance(quantified, (exp.Any, exp.All)) and isinstance(
                without_parentheses(quantified.this), exp.Query
            ):
                is_all = isinstance(quantified, exp.All)
                word = f"{_NEGATED[type(inner)]} {'ALL' if is_all else 'ANY'}"
                comparison = exp.EQ if word == _NOT_ANY else type(inner)
                return Predicate(
                    without_parentheses(quantified.this), _row(inner.this), comparison, is_all, word
                )
    return None


def _row(expression: exp.Expr) -> tuple[exp.Expr, ...]:
    inner = without_parentheses(expression)
    return tuple(inner.expressions) if isinstance(inner, exp.Tuple) else (inner,)


def with_predicate(
    reader: Reader, relation: Relation, condition: exp.Expr, scope: Scope, existential: bool
) -> tuple[Relation, list[exp.Expr]]:
    """The relation without the rows that fail, and the conditions that read what is further out."""
    predicate = _predicate(condition)
    assert predicate is not None
    relation, compared = with_values(reader, relation, list(predicate.compared), scope)
    right, conditions, values = _right_side(reader, predicate, scope)
    if predicate.compared:
        if len(values) != len(compared):
            raise Outside("IN compares rows of different length")
        conditions += _comparison(predicate, compared, values, relation, right)
    known = aliases_of(relation) | aliases_of(right)
    further = [each for each in conditions if not aliases_in(each) <= known]
    if not further:
        join = SemiJoin(relation, right, tuple(conditions), predicate.is_anti, predicate.origin)
        return join, []
    if predicate.is_anti or not existential:
        raise Outside("a subquery is correlated with a query that is not the one around it")
    near = [each for each in conditions if aliases_in(each) <= known]
    return inner_join([relation, right], near), further


def _right_side(
    reader: Reader, predicate: Predicate, scope: Scope
) -> tuple[Relation, list[exp.Expr], list[exp.Expr]]:
    """The subquery as a relation, its correlated conditions, and its columns as expressions over it."""
    tree = predicate.query
    while isinstance(tree, exp.Subquery) and not tree.args.get("limit") and not tree.args.get("with_"):
        tree = tree.this
    if isinstance(tree, exp.Select) and is_plain(tree, predicate.compared == ()):
        inner = reader.scope_of(tree, scope)
        block = read_block(reader, tree, inner, existential=True)
        if not predicate.compared:
            return block.relation, list(block.outside), []
        right, values = with_values(
            reader, block.relation, [_unaliased(each) for each in tree.selects], inner
        )
        return right, list(block.outside), values
    if isinstance(tree, exp.Select):
        derived, conditions, names = correlated_groups(reader, tree, scope)
        return derived, conditions, [column(name, derived.alias) for name in names]
    query = reader.query(tree, scope)
    name = reader.fresh("subquery")
    return Derived(name, query), [], [column(each, name) for each in output_names(query)]


def _unaliased(item: exp.Expr) -> exp.Expr:
    found = item.this if isinstance(item, exp.Alias) else item
    assert isinstance(found, exp.Expr)
    return found


def _comparison(
    predicate: Predicate,
    compared: list[exp.Expr],
    values: list[exp.Expr],
    left: Relation,
    right: Relation,
) -> list[exp.Expr]:
    pairs = [
        predicate.comparison(this=one.copy(), expression=other.copy())
        for one, other in zip(compared, values, strict=True)
    ]
    if not predicate.is_anti:
        return list(pairs)
    never_null = all(is_never_null(each, left) for each in compared) and all(
        is_never_null(each, right) for each in values
    )
    whole = exp.and_(*pairs)
    if predicate.origin in ("NOT IN", _NOT_ANY):
        return list(pairs) if never_null else [call("COALESCE", whole, exp.true())]
    return [exp.Not(this=call("COALESCE", exp.paren(whole), exp.false()))]
