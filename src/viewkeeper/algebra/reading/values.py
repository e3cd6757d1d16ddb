"""Subqueries that give a value: scalar ones, and predicates under OR, NOT, CASE or in the select list.

Each is joined to the relation as a query with at most one row per row of the relation, and stands in the expression
as a column of that query, with what SQL says of no rows: a count is 0, everything else NULL, EXISTS is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.copying import copied
from viewkeeper.algebra.expressions import aggregates, qualified_columns, replaced
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
    output_names,
    sql_of,
)
from viewkeeper.algebra.open_aggregates import aggregate_of
from viewkeeper.algebra.reading.aggregates import decided_items
from viewkeeper.algebra.reading.blocks import Block, read_block
from viewkeeper.algebra.reading.correlation import correlated_groups, correlation_keys, is_one_group, is_plain
from viewkeeper.algebra.reading.reader import Reader
from viewkeeper.algebra.reading.scope import Outside, Scope
from viewkeeper.generated_names import HIDDEN_PREFIX
from viewkeeper.sql.rendering import call, column, literal

_ROWS, _VALUES = f"{HIDDEN_PREFIX}rows", f"{HIDDEN_PREFIX}values"
_VALUE = f"{HIDDEN_PREFIX}value"


@dataclass(frozen=True)
class _Rows:
    """The rows of a subquery: its relation, the keys that tie it to the rows around, what each must equal there and
    how, and the value that is asked for."""

    relation: Relation
    keys: list[Item]
    outer: list[exp.Expr]
    ties: list[type[exp.Binary]]
    value: exp.Expr | None


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

    def _attach(self, rows: _Rows, items: Sequence[Item], called: str) -> str:
        """Join the groups of a subquery to the relation: by its keys, or, without keys, the one group."""
        if any(not aliases_in(each) <= aliases_of(self.relation) for each in rows.outer):
            raise Outside("a subquery is correlated with a query that is not the one around it")
        name = self.reader.fresh(called)
        derived = Derived(name, _grouped(rows.relation, rows.keys, items))
        if rows.keys:
            ties = [
                tie(this=column(key.name, name), expression=other.copy())
                for tie, key, other in zip(rows.ties, rows.keys, rows.outer, strict=True)
            ]
            self.relation = OuterJoin(self.relation, derived, tuple(ties))
        else:
            self.relation = inner_join([self.relation, derived], [])
        return name

    def _rows(self, query: exp.Expr, value_at: int | None) -> _Rows:
        """A subquery as a relation, and what ties it to the rows around; `value_at`: one column of it as a value."""
        while isinstance(query, exp.Subquery) and not query.args.get("limit"):
            query = query.this
        is_distinct = value_at is not None and bool(query.args.get("distinct"))
        if isinstance(query, exp.Select) and is_plain(query, rows_only=value_at is None) and not is_distinct:
            scope = self.reader.scope_of(query, self.scope)
            block = read_block(self.reader, query, scope)
            if value_at is None:
                return self._tied(block, block.relation, None)
            relation, (value,) = with_values(
                self.reader, block.relation, [_unaliased(query.selects[value_at])], scope
            )
            return self._tied(block, relation, value)
        if isinstance(query, exp.Select):
            derived, conditions, names = correlated_groups(self.reader, query, self.scope)
            keys = [Item(each.this.name, each.this) for each in conditions]
            shown = None if value_at is None else column(names[value_at], derived.alias)
            return _Rows(derived, keys, [each.expression for each in conditions], [exp.EQ] * len(keys), shown)
        found = self.reader.query(query, self.scope)
        name = self.reader.fresh("subquery")
        shown = None if value_at is None else column(output_names(found)[value_at], name)
        return _Rows(Derived(name, found), [], [], [], shown)

    def _tied(self, block: Block, relation: Relation, value: exp.Expr | None) -> _Rows:
        """Equalities tie by themselves; for anything else the subquery is evaluated for each distinct combination of the
        columns it takes from around."""
        found = correlation_keys(block)
        if found is not None:
            keys, outer = found
            return _Rows(relation, keys, outer, [exp.EQ] * len(keys), value)
        own = aliases_of(block.relation)
        taken = [each for each in qualified_columns(block.outside) if each.table not in own]
        if any(each.table not in aliases_of(self.relation) for each in taken):
            raise Outside("a subquery is correlated with a query that is not the one around it")
        copy, names = copied(self.relation, self.reader.fresh)
        name = self.reader.fresh("rows_around")
        combination = [
            Item(f"{HIDDEN_PREFIX}outer_{at}", column(each.name, names[each.table]))
            for at, each in enumerate(taken, start=1)
        ]
        around = Derived(name, _grouped(copy, combination, []))
        over: dict[str, exp.Expr] = {
            sql_of(each): column(item.name, name) for each, item in zip(taken, combination, strict=True)
        }
        conditions = [replaced(each, over) for each in block.outside]
        keys = [Item(item.name, column(item.name, name)) for item in combination]
        joined = inner_join([relation, around], conditions)
        return _Rows(joined, keys, list(taken), [exp.NullSafeEQ] * len(keys), value)

    def _exists(self, query: exp.Expr) -> exp.Expr:
        name = self._attach(self._rows(query, None), [Item(_ROWS, exp.Count(this=exp.Star()))], "found")
        return exp.paren(
            exp.GT(this=call("COALESCE", column(_ROWS, name), literal(0)), expression=literal(0))
        )

    def _membership(self, node: exp.In) -> exp.Expr:
        """x IN q: false without rows, else unknown for x NULL, else true if found, else unknown if q has NULLs."""
        if isinstance(node.this, exp.Tuple):
            raise Outside("IN compares rows under OR, NOT or CASE")
        wanted = self.translated(node.this)
        query = node.args["query"]
        every = self._rows(query, 0)
        assert every.value is not None
        counts = [Item(_ROWS, exp.Count(this=exp.Star())), Item(_VALUES, exp.Count(this=every.value))]
        all_rows = self._attach(every, counts, "all_of")
        each = self._rows(query, 0)
        assert each.value is not None
        with_value = _Rows(
            each.relation,
            [*each.keys, Item(_VALUE, each.value)],
            [*each.outer, wanted],
            [*each.ties, exp.EQ],
            None,
        )
        found = self._attach(with_value, [], "found")
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
        while isinstance(query, exp.Subquery) and not query.args.get("limit"):
            query = query.this
        if not isinstance(query, exp.Select) or len(query.selects) != 1:
            raise Outside("a scalar subquery is a set operation, or has several columns")
        if not is_one_group(query):
            return self._only_row(self._rows(query, 0))
        scope = self.reader.scope_of(query, self.scope)
        block = read_block(self.reader, query, scope)
        relation, (value,) = with_values(self.reader, block.relation, [_unaliased(query.selects[0])], scope)
        return self._aggregated(self._tied(block, relation, value))

    def _aggregated(self, rows: _Rows) -> exp.Expr:
        assert rows.value is not None
        calls = list({sql_of(each): each for each in aggregates(rows.value)}.values())
        items = [
            Item(f"{HIDDEN_PREFIX}aggregate_{at}", each.copy()) for at, each in enumerate(calls, start=1)
        ]
        name = self._attach(rows, items, "value_of")
        names: dict[str, exp.Expr] = {}
        for item, made in zip(items, calls, strict=True):
            found: exp.Expr = column(item.name, name)
            of_no_rows = _of_no_rows(made) if rows.keys else None
            names[sql_of(made)] = found if of_no_rows is None else call("COALESCE", found, of_no_rows)
        written = replaced(rows.value, names)
        return exp.paren(written) if isinstance(written, exp.Binary) else written

    def _only_row(self, rows: _Rows) -> exp.Expr:
        """A scalar subquery that SQL allows one row only: more are an error, as they are when the query runs."""
        assert rows.value is not None
        items = [Item(_VALUE, exp.Max(this=rows.value)), Item(_ROWS, exp.Count(this=exp.Star()))]
        name = self._attach(rows, items, "value_of")
        several = exp.GT(this=column(_ROWS, name), expression=literal(1))
        error = call("RAISE_ERROR", literal("a scalar subquery has more than one row"))
        return exp.If(this=several, true=error, false=column(_VALUE, name))


def _grouped(relation: Relation, keys: Sequence[Item], items: Sequence[Item]) -> Project:
    shown = tuple(Item(each.name, column(each.name)) for each in (*keys, *items))
    return Project(Group(relation, tuple(keys), decided_items(items, relation)), shown)


_COUNTS = frozenset({"count", "count_if", "approx_count_distinct", "regr_count"})
_LISTS = frozenset({"collect_list", "array_agg", "collect_set"})


def _of_no_rows(aggregate: exp.Expr) -> exp.Expr | None:
    """What an aggregate gives for no rows, if that is not NULL."""
    name = aggregate_of(aggregate).name
    if name in _COUNTS:
        return literal(0)
    return call("ARRAY") if name in _LISTS else None


def _unaliased(item: exp.Expr) -> exp.Expr:
    found = item.this if isinstance(item, exp.Alias) else item
    assert isinstance(found, exp.Expr)
    return found
