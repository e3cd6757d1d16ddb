"""Trees without needless queries in queries.

    SELECT g.k, g.s + 1 FROM (SELECT k, sum(x) AS s FROM t GROUP BY k) g WHERE g.s > 5
    SELECT k, sum(x) + 1 FROM t GROUP BY k HAVING sum(x) > 5

mean the same, and the second can be maintained from what the view stores. An outer join is an inner one if a condition
above it rejects the NULLs of missing partners. Whatever is here may be left out: plans of trees that were not simplified
give the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from viewkeeper.algebra.additive_aggregates import with_additive_aggregates
from viewkeeper.algebra.expressions import standing_for
from viewkeeper.algebra.nodes import (
    Attribute,
    Constant,
    Derived,
    Generate,
    Group,
    InnerJoin,
    Item,
    OuterJoin,
    Project,
    Query,
    Relation,
    Scan,
    SemiJoin,
    SetOperation,
    TopRows,
    Window,
    aliases_of,
    inner_join,
)
from viewkeeper.algebra.nullability import rejects_nulls_of
from viewkeeper.algebra.rebuilding import Rebuilding


def simplified(query: Project) -> Project:
    """The query with columns of the same names and the same rows."""
    return with_additive_aggregates(_as_one_query(query))


def _as_one_query(query: Project) -> Project:
    source = query.source
    match source:
        case Group(relation) | Window(relation):
            below, columns = _merged(_simplified_inside(relation))
            result = replace(query, source=replace(source, source=below))
        case _:
            below, columns = _merged(_simplified_inside(source))
            result = replace(query, source=below)
    return _over_groups(_with(columns).project(result))


def _simplified_query(query: Query) -> Query:
    match query:
        case Project():
            return _as_one_query(query)
        case SetOperation(_, _, left, right):
            return replace(query, left=_simplified_query(left), right=_simplified_query(right))
        case TopRows(inner):
            return replace(query, query=_simplified_query(inner))


def _simplified_inside(relation: Relation) -> Relation:
    match relation:
        case Scan() | Constant():
            return relation
        case Derived(_, query):
            return replace(relation, query=_simplified_query(query))
        case InnerJoin(sources):
            return replace(relation, sources=tuple(map(_simplified_inside, sources)))
        case OuterJoin(left, right) | SemiJoin(left, right):
            return replace(relation, left=_simplified_inside(left), right=_simplified_inside(right))
        case Generate(source):
            return replace(relation, source=_simplified_inside(source))


Columns = Mapping[Attribute, exp.Expr]
"""What stands for the columns of queries that are gone, by alias and name in lower case."""


def _merged(relation: Relation) -> tuple[Relation, Columns]:
    """The relation without queries in it that only join, filter and compute."""
    match relation:
        case Derived(
            alias, Project(Scan() | Derived() | InnerJoin() | OuterJoin() | SemiJoin() as source, items)
        ) if not any(_is_constant(item) for item in items):
            return source, _columns(alias, items)
        case Scan() | Constant() | Derived():
            return relation, {}
        case InnerJoin(sources, conditions):
            found = [_merged(each) for each in sources]
            columns: Columns = {key: value for _, some in found for key, value in some.items()}
            over = tuple(map(_with(columns).expression, conditions))
            return inner_join([_as_inner(each, over) for each, _ in found], conditions), columns
        case OuterJoin(left, right, _, is_full):
            left, columns = _merged_scan(left) if is_full else _merged(left)
            right, more = _merged_scan(right)
            return replace(relation, left=left, right=right), {**columns, **more}
        case SemiJoin(left, right):
            left, columns = _merged(left)
            right, more = _merged(right)
            return replace(relation, left=left, right=right), {**columns, **more}
        case Generate(source):
            source, columns = _merged(source)
            return replace(relation, source=source), columns


def _as_inner(relation: Relation, conditions: Sequence[exp.Expr]) -> Relation:
    """An outer join as far as one is left, when only rows that fulfil the conditions count."""
    if not isinstance(relation, OuterJoin):
        return relation
    needs_left, needs_right = (
        any(rejects_nulls_of(each, aliases_of(side)) for each in conditions)
        for side in (relation.left, relation.right)
    )
    match relation:
        case OuterJoin(left, right, on, is_full) if needs_right and (needs_left or not is_full):
            return inner_join([_as_inner(left, conditions), _as_inner(right, conditions)], on)
        case OuterJoin(left, right, on, True) if needs_right:
            return OuterJoin(right, left, on)
        case OuterJoin(left, right, on, True) if needs_left:
            return OuterJoin(_as_inner(left, conditions), right, on)
        case OuterJoin(left, _, _, False):
            return replace(relation, left=_as_inner(left, conditions))
    return relation


def _merged_scan(relation: Relation) -> tuple[Relation, Columns]:
    """Of rows that may be missing in a join only columns become NULL: an expression over them need not."""
    match relation:
        case Derived(alias, Project(Scan() as scan, items)) if all(_is_column(item) for item in items):
            return scan, _columns(alias, items)
        case _:
            return relation, {}


def _is_constant(item: Item) -> bool:
    """A constant would mean a position where it is grouped by."""
    return item.expression.find(exp.Column) is None


def _is_column(item: Item) -> bool:
    return isinstance(item.expression, exp.Column)


def _over_groups(query: Project) -> Project:
    """A query that only filters and computes over one with groups or window functions is part of it."""
    match query:
        case Project(Derived(alias, Project(Group() | Window() as source, items, having)), shown, None):
            conditions: tuple[exp.Expr, ...] = ()
        case Project(
            InnerJoin((Derived(alias, Project(Group() | Window() as source, items, having)),), conditions),
            shown,
            None,
        ):
            pass
        case _:
            return query
    inside = _with(_columns(alias, items))
    parts = [*([] if having is None else [having]), *map(inside.expression, conditions)]
    return Project(
        source,
        tuple(Item(item.name, inside.expression(item.expression)) for item in shown),
        exp.and_(*parts) if parts else None,
    )


def _columns(alias: str, items: tuple[Item, ...]) -> Columns:
    return {(alias, item.name.lower()): item.expression for item in items}


def _with(columns: Columns) -> Rebuilding:
    """Columns of queries that are gone become what they stood for."""

    def replaced(node: exp.Expr) -> exp.Expr:
        found = columns.get((node.table, node.name.lower())) if isinstance(node, exp.Column) else None
        return node if found is None else standing_for(node, found)

    return Rebuilding(lambda expression: expression.transform(replaced) if columns else expression)
