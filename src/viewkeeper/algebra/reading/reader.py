"""Reads queries: WITH, set operations, and what their parts become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.algebra.nodes import (
    Derived,
    Group,
    Item,
    Project,
    Query,
    SetKind,
    SetOperation,
    TopRows,
    output_names,
)
from viewkeeper.algebra.reading.scope import Outside, Scope
from viewkeeper.generated_names import HIDDEN_PREFIX
from viewkeeper.sql.binding import Input
from viewkeeper.sql.rendering import column


@dataclass
class Reader:
    """Reads one query of a view. Every alias that it gives out is used once."""

    inputs: Mapping[str, Input]
    _used: set[str] = field(default_factory=set)

    def fresh(self, wanted: str) -> str:
        found, number = wanted, 2
        while found.lower() in self._used:
            found, number = f"{wanted}_{number}", number + 1
        self._used.add(found.lower())
        return found

    def query(self, tree: exp.Expr, around: Scope | None, names: Sequence[str] | None = None) -> Query:
        """A query that reads nothing of the queries around it; `names` rename its columns."""
        from viewkeeper.algebra.reading.selects import read_select

        match tree:
            case exp.Subquery():
                return self._in_parentheses(tree, around, names)
            case exp.Select():
                return read_select(self, tree, around, names)
            case exp.SetOperation():
                return self._set_operation(tree, around, names)
            case _:
                raise Outside(f"it uses {tree.key.upper()}")

    def scope_of(self, tree: exp.Query, around: Scope | None) -> Scope:
        """A new scope, with what the query's own WITH clause defines."""
        scope = Scope(around)
        clause = tree.args.get("with_")
        if clause is not None:
            if clause.args.get("recursive"):
                raise Outside("it uses a recursive WITH clause")
            for cte in clause.expressions:
                scope.ctes[cte.alias.lower()] = cte
                scope = Scope(scope)
        return scope

    def _in_parentheses(self, tree: exp.Subquery, around: Scope | None, names: Sequence[str] | None) -> Query:
        scope = self.scope_of(tree, around)
        inner = self.query(tree.this, scope, names)
        return self.in_order(inner, tree, tuple(output_names(inner)))

    def _set_operation(
        self, tree: exp.SetOperation, around: Scope | None, names: Sequence[str] | None
    ) -> Query:
        if tree.args.get("by_name"):
            raise Outside("it uses a set operation BY NAME")
        kind = {exp.Union: SetKind.UNION, exp.Intersect: SetKind.INTERSECT, exp.Except: SetKind.EXCEPT}.get(
            type(tree)
        )
        if kind is None:
            raise Outside(f"it uses {tree.key.upper()}")
        scope = self.scope_of(tree, around)
        left = self.query(tree.this, scope, names)
        right = self.query(tree.expression, scope)
        is_all = not tree.args.get("distinct")
        shown = output_names(left)
        if kind is SetKind.UNION and not is_all:
            result = self.distinct(SetOperation(kind, True, left, right), "all_rows")
        else:
            result = SetOperation(kind, is_all, left, right)
        return self.in_order(result, tree, shown)

    def distinct(self, query: Query, called: str) -> Query:
        name = self.fresh(HIDDEN_PREFIX + called)
        keys = tuple(Item(each, column(each, name)) for each in output_names(query))
        group = Group(Derived(name, query), keys, ())
        return Project(group, tuple(Item(each.name, column(each.name)) for each in keys))

    def in_order(self, query: Query, tree: exp.Query, shown: Sequence[str]) -> Query:
        """The query with the ORDER BY and LIMIT of a set operation or of parentheses: by its own columns."""
        limit, offset = row_limits(tree)
        if limit is None and not offset:
            return query
        order = []
        written = ordered_items(tree)
        if len(written) == 1 and is_all(written[0].this) and "all" not in map(str.lower, shown):
            order = [ordered_by(column(each), written[0]) for each in shown]
            written = []
        for each in written:
            key = each.this
            if not isinstance(key, exp.Column) or key.name not in shown:
                raise Outside("it orders by more than columns before LIMIT")
            order.append(ordered_by(column(key.name), each))
        return TopRows(query, tuple(order), limit, offset)

    def pass_through(self, query: Query, names: Sequence[str], called: str) -> Project:
        """Some columns of a query, by position among `names`."""
        name = self.fresh(HIDDEN_PREFIX + called)
        items = tuple(Item(each, column(each, name)) for each in names)
        return Project(Derived(name, query), items)


def row_limits(tree: exp.Query) -> tuple[int | None, int]:
    """LIMIT and OFFSET as numbers."""
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    values: list[int | None] = []
    for clause in (limit, offset):
        value = None if clause is None or is_all(clause.expression) else clause.expression
        if value is not None and not value.is_int:
            raise Outside("LIMIT or OFFSET is not a plain number")
        values.append(None if value is None else int(value.to_py()))
    return values[0], values[1] or 0


def is_all(expression: exp.Expr) -> bool:
    """Whether this is the ALL of ORDER BY ALL or LIMIT ALL."""
    found = expression
    return (
        isinstance(found, exp.Column)
        and not found.table
        and not found.this.quoted
        and found.name.upper() == "ALL"
    ) or (isinstance(found, exp.Var) and found.name.upper() == "ALL")


def ordered_items(tree: exp.Query) -> list[exp.Ordered]:
    order = tree.args.get("order")
    return [] if order is None else list(order.expressions)


def ordered_by(key: exp.Expr, like: exp.Ordered) -> exp.Ordered:
    """The same direction and place of NULLs for another key."""
    return exp.Ordered(this=key, desc=like.args.get("desc"), nulls_first=like.args.get("nulls_first"))
