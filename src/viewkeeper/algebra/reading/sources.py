"""FROM: tables, queries, VALUES, and the joins between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.algebra.expressions import conjuncts, outermost_subqueries
from viewkeeper.algebra.nodes import (
    Constant,
    Derived,
    Generate,
    Item,
    OuterJoin,
    Project,
    Query,
    Relation,
    Scan,
    SemiJoin,
    aliases_in,
    aliases_of,
    inner_join,
)
from viewkeeper.algebra.reading.reader import Reader
from viewkeeper.algebra.reading.scope import Outside, Scope
from viewkeeper.sql.functions import is_generator
from viewkeeper.sql.rendering import column


@dataclass
class Joined:
    """Sources that are joined so far, with the conditions between them. A comma starts another list, because what
    follows it is joined before the comma is."""

    sources: list[Relation] = field(default_factory=list)
    conditions: list[exp.Expr] = field(default_factory=list)

    def relation(self) -> Relation:
        return inner_join(self.sources, self.conditions)


def read_from(reader: Reader, tree: exp.Select, scope: Scope) -> tuple[list[Relation], list[exp.Expr]]:
    """The sources of a SELECT and the conditions of its inner joins."""
    clause = tree.args.get("from_")
    if clause is None:
        raise Outside("it reads no table")
    lists = [Joined([read_source(reader, clause.this, scope)])]
    for join in [*(clause.this.args.get("joins") or []), *(tree.args.get("joins") or [])]:
        _add_join(reader, join, scope, lists)
    sources = [source for each in lists for source in each.sources]
    conditions = [condition for each in lists for condition in each.conditions]
    for lateral in tree.args.get("laterals") or []:
        relation = Joined(sources, conditions).relation()
        sources, conditions = [_lateral_view(reader, relation, lateral, scope)], []
    return sources, conditions


def _add_join(reader: Reader, join: exp.Join, scope: Scope, lists: list[Joined]) -> None:
    if join.method or join.args.get("using"):
        raise Outside("it uses a NATURAL JOIN")
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if isinstance(join.this, exp.Lateral):
        whole = _in_one(lists)
        outer = side == "LEFT" or bool(join.this.args.get("outer"))
        whole.sources, whole.conditions = (
            [_lateral_view(reader, whole.relation(), join.this, scope, outer)],
            [],
        )
        return
    right = read_source(reader, join.this, scope)
    on = [_condition(each, scope) for each in conjuncts(join.args.get("on"))]
    if not side and kind in ("", "INNER", "CROSS"):
        if not kind and join.args.get("on") is None:
            lists.append(Joined([right]))
        else:
            last = _list_for(lists, on, right)
            last.sources.append(right)
            last.conditions += on
        return
    last = _list_for(lists, on, right)
    left = last.relation()
    last.conditions = []
    if any(not aliases_in(each) <= aliases_of(left) | aliases_of(right) for each in on):
        raise Outside("the condition of an outer or semi join reads a query around it")
    match side, kind:
        case ("LEFT" | "", "SEMI" | "ANTI"):
            last.sources = [SemiJoin(left, right, tuple(on), kind == "ANTI", f"{kind} JOIN")]
        case ("LEFT", "" | "OUTER"):
            last.sources = [OuterJoin(left, right, tuple(on))]
        case ("RIGHT", "" | "OUTER"):
            last.sources = [OuterJoin(right, left, tuple(on))]
        case ("FULL", "" | "OUTER"):
            last.sources = [OuterJoin(left, right, tuple(on), is_full=True)]
        case _:
            raise Outside(f"it uses {' '.join(filter(None, [side, kind]))} JOIN")


def _list_for(lists: list[Joined], on: list[exp.Expr], right: Relation) -> Joined:
    """The list that a join belongs to: the last one, unless its condition reads sources before the comma."""
    known = frozenset().union(*(aliases_of(source) for source in lists[-1].sources)) | aliases_of(right)
    if all(aliases_in(each) <= known for each in on):
        return lists[-1]
    return _in_one(lists)


def _in_one(lists: list[Joined]) -> Joined:
    whole = Joined(
        [source for each in lists for source in each.sources],
        [condition for each in lists for condition in each.conditions],
    )
    lists[:] = [whole]
    return whole


def _condition(condition: exp.Expr, scope: Scope) -> exp.Expr:
    if outermost_subqueries(condition):
        raise Outside("it has a subquery in the condition of a join")
    return translated(condition, scope)


def translated(expression: exp.Expr, scope: Scope) -> exp.Expr:
    """An expression without subqueries over the aliases of the tree."""

    def visit(node: exp.Expr) -> exp.Expr:
        return (
            scope.column(node)
            if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)
            else node
        )

    result: exp.Expr = expression.transform(visit)
    return result


def read_source(reader: Reader, node: exp.Expr, scope: Scope) -> Relation:
    if any(node.args.get(part) for part in ("pivots", "sample", "laterals")):
        raise Outside("it uses TABLESAMPLE, or PIVOT or UNPIVOT in a special way")
    match node:
        case exp.Table():
            return _table(reader, node, scope)
        case exp.Subquery() if isinstance(node.this, (exp.Table, exp.Subquery)) and not node.alias:
            return _parenthesis(reader, node, scope)
        case exp.Subquery():
            names = node.alias_column_names or None
            query = reader.query(node.this, scope, names)
            return _named(reader, scope, node.alias, query)
        case exp.Values():
            return _values(reader, node, scope)
        case _:
            raise Outside("it reads something that is no table")


def _named(reader: Reader, scope: Scope, written: str, query: Query) -> Derived:
    name = reader.fresh(written or "rows")
    scope.add(written or name, name)
    return Derived(name, query)


def _parenthesis(reader: Reader, node: exp.Subquery, scope: Scope) -> Relation:
    """A join in parentheses: its aliases are visible outside."""
    lists = [Joined([read_source(reader, node.this, scope)])]
    for join in [*(node.this.args.get("joins") or []), *(node.args.get("joins") or [])]:
        _add_join(reader, join, scope, lists)
    return _in_one(lists).relation()


def _table(reader: Reader, node: exp.Table, scope: Scope) -> Relation:
    written = node.alias_or_name
    if not isinstance(node.this, exp.Identifier):
        raise Outside("it calls a function that makes a table")
    special = [key for key, value in node.args.items() if value and key not in ("this", "alias", "joins")]
    renamed = node.alias_column_names
    found = scope.cte(node.name)
    if found is not None and not node.args.get("db"):
        if special:
            raise Outside("it reads a table in a special way")
        cte, defined = found
        names = renamed or cte.alias_column_names or None
        return _named(reader, scope, written, reader.query(cte.this, Scope(defined.parent), names))
    if special or node.name.lower() not in reader.inputs:
        raise Outside("it reads a table in a special way")
    table = reader.inputs[node.name.lower()]
    name = reader.fresh(written)
    if not renamed:
        scope.add(written, name)
        return Scan(name, table)
    outer = reader.fresh(written)
    scope.add(written, outer)
    items = tuple(
        Item(new, column(each.name, name)) for new, each in zip(renamed, table.columns, strict=True)
    )
    return Derived(outer, Project(Scan(name, table), items))


def _values(reader: Reader, node: exp.Values, scope: Scope) -> Relation:
    name = reader.fresh(node.alias or "rows")
    scope.add(node.alias or name, name)
    first = node.expressions[0]
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    names = node.alias_column_names or [f"col{at}" for at in range(1, width + 1)]
    return Constant(name, tuple(names), node)


def _lateral_view(
    reader: Reader, relation: Relation, lateral: exp.Lateral, scope: Scope, outer: bool = False
) -> Relation:
    call = lateral.this
    if isinstance(call, exp.Query) or outermost_subqueries(call) or not is_generator(call):
        raise Outside("it uses a LATERAL subquery")
    function = translated(call, scope)
    written = lateral.alias
    columns = tuple(lateral.alias_column_names)
    if not columns:
        raise Outside("the columns of a LATERAL VIEW have no names")
    name = reader.fresh(written if written.isascii() and written.isidentifier() else "lateral")
    scope.add(written or name, name)
    return Generate(relation, function, name, columns, outer or bool(lateral.args.get("outer")))
