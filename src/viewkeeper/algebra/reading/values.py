"""Subqueries that give a value: scalar ones, and predicates under OR, NOT, CASE or in the select list.

Each is joined to the relation as a query with at most one row per row of the relation, and stands in the expression
as a column of that query, with what SQL says of no rows: a count is 0, everything else NULL, EXISTS is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.copying import copied
from viewkeeper.algebra.expressions import aggregates, qualified_columns, replaced, without_parentheses
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
    how, and the values that are asked for."""

    relation: Relation
    keys: list[Item]
    outer: list[exp.Expr]
    ties: list[type[exp.Binary]]
    values: tuple[exp.Expr, ...] = ()

    @property
    def value(self) -> exp.Expr:
        (found,) = self.values
        return found


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
                    return self._is_in(node)
                case exp.Not() if isinstance(
                    inner := without_parentheses(node.this), exp.In
                ) and inner.args.get("query"):
                    return self._is_not_in(inner)
                case exp.Any() | exp.All() if isinstance(node.this, exp.Query):
                    raise Outside("a comparison with ANY or ALL stands under OR, NOT or CASE")
                case exp.Query():
                    return self._scalar(node)
            return node

        result: exp.Expr = with_not_inside(expression).transform(visit)
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

    def _rows(self, query: exp.Expr, columns: int = 0) -> _Rows:
        """A subquery as a relation, and what ties it to the rows around, with its first columns as values."""
        while isinstance(query, exp.Subquery) and not query.args.get("limit"):
            query = query.this
        if isinstance(query, exp.Query) and columns and len(query.selects) != columns:
            raise Outside("IN compares rows of different length")
        is_distinct = columns > 0 and bool(query.args.get("distinct"))
        if isinstance(query, exp.Select) and is_plain(query, rows_only=not columns) and not is_distinct:
            scope = self.reader.scope_of(query, self.scope)
            block = read_block(self.reader, query, scope)
            if not columns:
                return self._tied(block, block.relation, ())
            written = [_unaliased(each) for each in query.selects]
            relation, values = with_values(self.reader, block.relation, written, scope)
            return self._tied(block, relation, tuple(values))
        if isinstance(query, exp.Select):
            derived, conditions, names = correlated_groups(self.reader, query, self.scope)
            keys = [Item(each.this.name, each.this) for each in conditions]
            shown = tuple(column(each, derived.alias) for each in names[:columns])
            return _Rows(derived, keys, [each.expression for each in conditions], [exp.EQ] * len(keys), shown)
        found = self.reader.query(query, self.scope)
        name = self.reader.fresh("subquery")
        return _Rows(
            Derived(name, found),
            [],
            [],
            [],
            tuple(column(each, name) for each in output_names(found)[:columns]),
        )

    def _tied(self, block: Block, relation: Relation, values: tuple[exp.Expr, ...]) -> _Rows:
        """Equalities tie by themselves; for anything else the subquery is evaluated for each distinct combination of the
        columns it takes from around."""
        found = correlation_keys(block)
        if found is not None:
            keys, outer = found
            return _Rows(relation, keys, outer, [exp.EQ] * len(keys), values)
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
        return _Rows(joined, keys, list(taken), [exp.NullSafeEQ] * len(keys), values)

    def _exists(self, query: exp.Expr) -> exp.Expr:
        name = self._attach(self._rows(query), [Item(_ROWS, exp.Count(this=exp.Star()))], "found")
        return exp.paren(
            exp.GT(this=call("COALESCE", column(_ROWS, name), literal(0)), expression=literal(0))
        )

    def _is_in(self, node: exp.In) -> exp.Expr:
        """x IN q as Spark answers it: true if some row of q equals x, else false. It is never unknown."""
        wanted = [self.translated(each) for each in _compared(node.this)]
        found = self._attach(self._with_values(node.args["query"], wanted), [], "found")
        return exp.paren(exp.Not(this=exp.Is(this=column(f"{_VALUE}_1", found), expression=exp.Null())))

    def _is_not_in(self, node: exp.In) -> exp.Expr:
        """x NOT IN q as Spark answers it: true if every row of q is known to differ from x, else false."""
        (written,) = _compared(node.this)[:1]
        if len(_compared(node.this)) > 1:
            raise Outside("NOT IN compares rows under OR or CASE, or as a value")
        wanted = self.translated(written)
        query = node.args["query"]
        every = self._rows(query, 1)
        counts = [Item(_ROWS, exp.Count(this=exp.Star())), Item(_VALUES, exp.Count(this=every.value))]
        all_rows = self._attach(every, counts, "all_of")
        found = self._attach(self._with_values(query, [wanted]), [], "found")
        rows = call("COALESCE", column(_ROWS, all_rows), literal(0))
        return exp.paren(
            exp.or_(
                exp.EQ(this=rows, expression=literal(0)),
                exp.and_(
                    exp.Not(this=exp.Is(this=wanted.copy(), expression=exp.Null())),
                    exp.Is(this=column(f"{_VALUE}_1", found), expression=exp.Null()),
                    exp.EQ(this=column(_VALUES, all_rows), expression=column(_ROWS, all_rows)),
                ),
            )
        )

    def _with_values(self, query: exp.Expr, wanted: Sequence[exp.Expr]) -> _Rows:
        """The rows of a subquery, tied to the rows around by their columns too."""
        rows = self._rows(query, len(wanted))
        keys = [Item(f"{_VALUE}_{at}", each) for at, each in enumerate(rows.values, start=1)]
        return _Rows(
            rows.relation,
            [*rows.keys, *keys],
            [*rows.outer, *wanted],
            [*rows.ties, *([exp.EQ] * len(wanted))],
        )

    def _scalar(self, query: exp.Expr) -> exp.Expr:
        while isinstance(query, exp.Subquery) and not query.args.get("limit"):
            query = query.this
        if not isinstance(query, exp.Select) or len(query.selects) != 1:
            raise Outside("a scalar subquery is a set operation, or has several columns")
        if not is_one_group(query):
            return self._only_row(self._rows(query, 1))
        scope = self.reader.scope_of(query, self.scope)
        block = read_block(self.reader, query, scope)
        relation, (value,) = with_values(self.reader, block.relation, [_unaliased(query.selects[0])], scope)
        return self._aggregated(self._tied(block, relation, (value,)))

    def _aggregated(self, rows: _Rows) -> exp.Expr:
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
        items = [Item(_VALUE, exp.Max(this=rows.value)), Item(_ROWS, exp.Count(this=exp.Star()))]
        name = self._attach(rows, items, "value_of")
        several = exp.GT(this=column(_ROWS, name), expression=literal(1))
        error = call("RAISE_ERROR", literal("a scalar subquery has more than one row"))
        return exp.If(this=several, true=error, false=column(_VALUE, name))


def with_not_inside(expression: exp.Expr) -> exp.Expr:
    """NOT of AND and OR as Spark has it before it looks at subqueries: at the IN that it is about, where it has a meaning of its own."""

    def visit(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Not):
            return node
        match without_parentheses(node.this):
            case exp.Not() as inner if _has_in(inner):
                return exp.paren(with_not_inside(inner.this.copy()))
            case (exp.And() | exp.Or()) as inner if _has_in(inner):
                other = exp.Or if isinstance(inner, exp.And) else exp.And
                sides = [
                    with_not_inside(exp.Not(this=exp.paren(each.copy())))
                    for each in (inner.this, inner.expression)
                ]
                return exp.paren(other(this=sides[0], expression=sides[1]))
            case _:
                return node

    return expression.transform(visit)


def _has_in(expression: exp.Expr) -> bool:
    return any(each.args.get("query") is not None for each in expression.find_all(exp.In))


def _compared(expression: exp.Expr) -> list[exp.Expr]:
    inner = without_parentheses(expression)
    return list(inner.expressions) if isinstance(inner, exp.Tuple) else [inner]


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
