"""Subqueries that give a value: scalar ones, and predicates under OR, NOT, CASE or in the select list.

Each is joined to the relation as a query with at most one row per row of the relation, and stands in the expression
as a column of that query, with what SQL says of no rows: a count is 0, everything else NULL, EXISTS is false.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from viewkeeper.algebra.expressions import aggregates, replaced
from viewkeeper.algebra.nodes import (
    Derived,
    Group,
    Item,
    OuterJoin,
    Project,
    Relation,
    aliases_in,
    aliases_of,
    inner_join,
    sql_of,
)
from viewkeeper.algebra.reading.blocks import Block, read_block
from viewkeeper.algebra.reading.correlation import correlation_keys, is_one_group, is_plain, tied
from viewkeeper.algebra.reading.reader import Reader
from viewkeeper.algebra.reading.scope import Outside, Scope
from viewkeeper.algebra.reading.sources import translated
from viewkeeper.generated_names import HIDDEN_PREFIX
from viewkeeper.sql.rendering import call, column, literal

_ROWS, _VALUES = f"{HIDDEN_PREFIX}rows", f"{HIDDEN_PREFIX}values"
_VALUE = f"{HIDDEN_PREFIX}value"


def with_values(
    reader: Reader, relation: Relation, written: Sequence[exp.Expr], scope: Scope
) -> tuple[Relation, list[exp.Expr]]:
    """The relation joined with every subquery of the expressions, and the expressions over it."""
    values = _Values(reader, relation, scope)
    found = [values.translated(each) for each in written]
    return values.relation, found


class _Values:
    def __init__(self, reader: Reader, relation: Relation, scope: Scope) -> None:
        self.reader, self.relation, self.scope = reader, relation, scope

    def translated(self, expression: exp.Expr) -> exp.Expr:
        def visit(node: exp.Expr) -> exp.Expr:
            match node:
                case exp.Column() if not isinstance(node.this, exp.Star):
                    return self.scope.column(node)
                case exp.Exists() if isinstance(node.this, exp.Query):
                    return self._exists(node.this)
                case exp.In() if node.args.get("query") is not None:
                    return self._membership(node)
                case exp.Any() | exp.All() if isinstance(node.this, exp.Query):
                    raise Outside("a comparison with ANY or ALL stands under OR, NOT or CASE")
                case exp.Query():
                    return self._scalar(node)
            return node

        result: exp.Expr = expression.transform(visit)
        return result

    def _attach(self, project: Project, keys: list[Item], outer: list[exp.Expr], called: str) -> str:
        """Join a query to the relation: by its keys, or, without keys, its one row."""
        if any(not aliases_in(each) <= aliases_of(self.relation) for each in outer):
            raise Outside("a subquery is correlated with a query that is not the one around it")
        name = self.reader.fresh(called)
        derived = Derived(name, project)
        if keys:
            self.relation = OuterJoin(self.relation, derived, tuple(tied(keys, outer, name)))
        else:
            self.relation = inner_join([self.relation, derived], [])
        return name

    def _block(self, query: exp.Expr) -> tuple[exp.Select, Scope, Block]:
        while isinstance(query, exp.Subquery):
            query = query.this
        if not isinstance(query, exp.Select):
            raise Outside(f"a subquery that gives a value uses {query.key.upper()}")
        scope = self.reader.scope_of(query, self.scope)
        return query, scope, read_block(self.reader, query, scope)

    def _exists(self, query: exp.Expr) -> exp.Expr:
        tree, _, block = self._block(query)
        if not is_plain(tree, rows_only=True):
            raise Outside("EXISTS over groups stands under OR, NOT or CASE")
        keys, outer = correlation_keys(block, self.reader)
        rows = Item(_ROWS, exp.Count(this=exp.Star()))
        name = self._attach(_grouped(block.relation, keys, [rows]), keys, outer, "found")
        return exp.paren(
            exp.GT(this=call("COALESCE", column(_ROWS, name), literal(0)), expression=literal(0))
        )

    def _membership(self, node: exp.In) -> exp.Expr:
        """x IN q: false without rows, else unknown for x NULL, else true if found, else unknown if q has NULLs."""
        if isinstance(node.this, exp.Tuple):
            raise Outside("IN compares rows under OR, NOT or CASE")
        wanted = self.translated(node.this)
        tree, scope, block = self._block(node.args["query"])
        if not is_plain(tree, rows_only=False):
            raise Outside("IN over groups stands under OR, NOT or CASE")
        keys, outer = correlation_keys(block, self.reader)
        value = translated(_unaliased(tree.selects[0]), scope)
        again = self._block(node.args["query"])
        keys_again, outer_again = correlation_keys(again[2], self.reader)
        counts = [
            Item(_ROWS, exp.Count(this=exp.Star())),
            Item(_VALUES, exp.Count(this=translated(_unaliased(again[0].selects[0]), again[1]))),
        ]
        all_rows = self._attach(
            _grouped(again[2].relation, keys_again, counts), keys_again, outer_again, "all_of"
        )
        found_keys = [*keys, Item(_VALUE, value)]
        found = self._attach(_grouped(block.relation, found_keys, []), found_keys, [*outer, wanted], "found")
        rows = call("COALESCE", column(_ROWS, all_rows), literal(0))
        return exp.Case(
            ifs=[
                exp.If(this=exp.EQ(this=rows, expression=literal(0)), true=exp.false()),
                exp.If(this=exp.Is(this=wanted.copy(), expression=exp.Null()), true=exp.null()),
                exp.If(
                    this=exp.Not(this=exp.Is(this=column(_VALUE, found), expression=exp.Null())),
                    true=exp.true(),
                ),
                exp.If(
                    this=exp.LT(this=column(_VALUES, all_rows), expression=column(_ROWS, all_rows)),
                    true=exp.null(),
                ),
            ],
            default=exp.false(),
        )

    def _scalar(self, query: exp.Expr) -> exp.Expr:
        tree, scope, block = self._block(query)
        if len(tree.selects) != 1:
            raise Outside("a scalar subquery has several columns")
        keys, outer = correlation_keys(block, self.reader)
        relation, (value,) = with_values(self.reader, block.relation, [_unaliased(tree.selects[0])], scope)
        if is_one_group(tree):
            return self._aggregated(relation, value, keys, outer)
        if is_plain(tree, rows_only=False):
            return self._only_row(relation, value, keys, outer, bool(tree.args.get("distinct")))
        raise Outside("a scalar subquery has GROUP BY, LIMIT or window functions")

    def _aggregated(
        self, relation: Relation, value: exp.Expr, keys: list[Item], outer: list[exp.Expr]
    ) -> exp.Expr:
        calls = list({sql_of(each): each for each in aggregates(value)}.values())
        items = [
            Item(f"{HIDDEN_PREFIX}aggregate_{at}", each.copy()) for at, each in enumerate(calls, start=1)
        ]
        name = self._attach(_grouped(relation, keys, items), keys, outer, "value_of")
        names: dict[str, exp.Expr] = {}
        for item, made in zip(items, calls, strict=True):
            found: exp.Expr = column(item.name, name)
            if keys and _is_count(made):
                found = call("COALESCE", found, literal(0))
            names[sql_of(made)] = found
        written = replaced(value, names)
        return exp.paren(written) if isinstance(written, exp.Binary) else written

    def _only_row(
        self, relation: Relation, value: exp.Expr, keys: list[Item], outer: list[exp.Expr], is_distinct: bool
    ) -> exp.Expr:
        """A scalar subquery that SQL allows one row only: more are an error, as they are when the query runs."""
        counted: exp.Expr = exp.Distinct(expressions=[value.copy()]) if is_distinct else exp.Star()
        items = [
            Item(_VALUE, exp.Max(this=value)),
            Item(_ROWS, exp.Count(this=counted)),
        ]
        name = self._attach(_grouped(relation, keys, items), keys, outer, "value_of")
        several = exp.GT(this=column(_ROWS, name), expression=literal(1))
        error = call("RAISE_ERROR", literal("a scalar subquery has more than one row"))
        return exp.If(this=several, true=error, false=column(_VALUE, name))


def _grouped(relation: Relation, keys: Sequence[Item], items: Sequence[Item]) -> Project:
    shown = tuple(Item(each.name, column(each.name)) for each in (*keys, *items))
    return Project(Group(relation, tuple(keys), tuple(items)), shown)


def _is_count(aggregate: exp.Expr) -> bool:
    made = aggregate.this if isinstance(aggregate, exp.Filter) else aggregate
    return isinstance(made, (exp.Count, exp.CountIf)) or made.name.lower() in ("count", "count_if")


def _unaliased(item: exp.Expr) -> exp.Expr:
    found = item.this if isinstance(item, exp.Alias) else item
    assert isinstance(found, exp.Expr)
    return found
