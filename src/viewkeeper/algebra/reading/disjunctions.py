"""Subqueries under OR and NOT as branches, each of which asks for its subqueries by themselves.

    SELECT … WHERE p AND (a OR b)     SELECT … WHERE p AND a UNION SELECT … WHERE p AND b        as sets
    EXISTS (… a OR b)                 EXISTS (… a) OR EXISTS (… b)                               likewise IN, and ANY
    NOT EXISTS (… a OR b)             NOT EXISTS (… a) AND NOT EXISTS (… b)                      likewise NOT IN, and ALL
    NOT (a OR b)                      NOT a AND NOT b
    NOT (x < ANY q)                   x >= ALL q

These hold for unknown truth values too: only rows for which a condition is true pass, and NOT of unknown is unknown. What has no
subquery is not taken apart. The queries are for analysis: whoever counts copies needs the query as it is.

    >>> from viewkeeper.sql.script import parse_sql
    >>> tree = parse_sql("SELECT t.a FROM t WHERE t.c = 1 AND (t.b = 2 OR NOT (t.a = 3 OR EXISTS (SELECT 1 FROM u)))")
    >>> print(as_union(tree).sql())
    SELECT t.a FROM t WHERE t.c = 1 AND t.b = 2 UNION SELECT t.a FROM t WHERE t.c = 1 AND NOT (t.a = 3) AND NOT EXISTS(SELECT 1 FROM u)
    >>> print(without_disjunctions(tree).sql())
    SELECT t.a FROM t WHERE t.c = 1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import product
from typing import TypeAlias

from sqlglot import exp

from viewkeeper.algebra.expressions import conjuncts, outermost_subqueries, without_parentheses
from viewkeeper.algebra.reading.correlation import is_plain
from viewkeeper.algebra.reading.scope import Outside
from viewkeeper.sql.rendering import all_of

MOST_BRANCHES = 4
"""Every branch has rules of its own, which ask all others: their text grows with the square of this number."""

_Branch: TypeAlias = tuple[exp.Expr, ...]
"""Conditions that must all hold."""

_OPPOSITE: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}


def without_disjunctions(tree: exp.Expr) -> exp.Select | None:
    """The select without its disjunctions, if the query is one select: it can only have more rows."""
    while isinstance(tree, exp.Subquery) and not tree.args.get("limit"):
        tree = tree.this
    if not isinstance(tree, exp.Select) or not is_plain(tree, rows_only=False):
        return None
    kept: list[exp.Expr] = []
    for condition in _conditions(tree):
        try:
            branches = _branches(condition, False)
        except Outside:
            continue
        if len(branches) == 1:
            kept += branches[0]
    return _where(tree, kept)


def as_union(tree: exp.Expr) -> exp.Query:
    """The query as unions of branches, where it only matters which rows there are. With LIMIT, or under UNION ALL, it stays as
    it is."""
    assert isinstance(tree, exp.Query)
    if tree.args.get("limit") or tree.args.get("offset"):
        return tree
    match tree:
        case exp.Subquery() if not tree.args.get("with_"):
            return as_union(tree.this)
        case exp.SetOperation() if tree.args.get("distinct"):
            found = tree.copy()
            found.set("this", as_union(tree.this))
            found.set("expression", as_union(tree.expression))
            return found
        case exp.Select() if is_plain(tree, rows_only=False):
            return reduce(_union, _selects(tree))
        case _:
            return tree


def _union(one: exp.Query, other: exp.Query) -> exp.Query:
    return exp.Union(this=one, expression=other, distinct=True)


def _selects(select: exp.Select) -> list[exp.Query]:
    """One select for each branch of its conditions."""
    return [_where(select, branch) for branch in _all(_branches(each, False) for each in _conditions(select))]


def _conditions(select: exp.Select) -> list[exp.Expr]:
    where = select.args.get("where")
    return conjuncts(None if where is None else where.this)


def _where(select: exp.Select, conditions: Sequence[exp.Expr]) -> exp.Select:
    found = select.copy()
    found.set("where", exp.Where(this=all_of(each.copy() for each in conditions)) if conditions else None)
    return found


def _branches(condition: exp.Expr, is_negated: bool) -> list[_Branch]:
    """The condition, or its negation, as branches of which one must hold."""
    inner = without_parentheses(condition)
    match inner:
        case _ if not outermost_subqueries(inner):
            return [(exp.Not(this=exp.paren(inner)) if is_negated else condition,)]
        case exp.Not():
            return _branches(inner.this, not is_negated)
        case exp.And() | exp.Or():
            sides = [_branches(each, is_negated) for each in (inner.this, inner.expression)]
            return _all(sides) if isinstance(inner, exp.And) is not is_negated else _any(sides)
        case exp.Exists() if isinstance(inner.this, exp.Query):
            return _asked(inner, "this", is_negated)
        case exp.In() if inner.args.get("query") is not None:
            return _asked(inner, "query", is_negated)
        case exp.Binary() if type(inner) in _OPPOSITE and isinstance(inner.expression, (exp.Any, exp.All)):
            return _compared(inner, is_negated)
        case _:
            return [(exp.Not(this=exp.paren(inner)) if is_negated else condition,)]


def _asked(predicate: exp.Expr, place: str, is_negated: bool) -> list[_Branch]:
    """EXISTS or IN over each branch of its subquery."""
    found = []
    for each in _of_subquery(predicate.args[place], rows_only=isinstance(predicate, exp.Exists)):
        asked = predicate.copy()
        asked.set(place, each)
        found.append(exp.Not(this=asked) if is_negated else asked)
    return _one_or_all(found, is_negated)


def _compared(comparison: exp.Expr, is_negated: bool) -> list[_Branch]:
    """A comparison with ANY or ALL over each branch of its subquery; its negation is the opposite of both."""
    quantified = comparison.expression
    is_all = isinstance(quantified, exp.All) is not is_negated
    operator = _OPPOSITE[type(comparison)] if is_negated else type(comparison)
    found: list[exp.Expr] = [
        operator(this=comparison.this.copy(), expression=(exp.All if is_all else exp.Any)(this=each))
        for each in _of_subquery(without_parentheses(quantified.this), rows_only=False)
    ]
    return _one_or_all(found, is_all)


def _of_subquery(query: exp.Expr, rows_only: bool) -> list[exp.Expr]:
    inner = query
    while isinstance(inner, exp.Subquery) and not inner.args.get("limit") and not inner.args.get("with_"):
        inner = inner.this
    if isinstance(inner, exp.Select) and is_plain(inner, rows_only):
        return list(_selects(inner))
    return [query.copy()]


def _one_or_all(predicates: Sequence[exp.Expr], all_of_them: bool) -> list[_Branch]:
    return _bounded([tuple(predicates)] if all_of_them else [(each,) for each in predicates])


def _all(parts: Iterable[list[_Branch]]) -> list[_Branch]:
    found: list[_Branch] = [()]
    for part in parts:
        found = _bounded([(*one, *other) for one, other in product(found, part)])
    return found


def _any(parts: Iterable[list[_Branch]]) -> list[_Branch]:
    return _bounded([branch for part in parts for branch in part])


def _bounded(branches: list[_Branch]) -> list[_Branch]:
    if len(branches) > MOST_BRANCHES:
        raise Outside(f"its subqueries under OR make more than {MOST_BRANCHES} branches")
    return branches
