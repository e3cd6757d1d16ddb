"""SELECT: its columns, groups, windows, DISTINCT, ORDER BY and LIMIT, over the relation of its FROM and WHERE.

What stands above something else in one SELECT (windows over groups, DISTINCT over windows, a subquery in HAVING) becomes
a query over a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.expressions import aggregates, conjuncts, outermost_subqueries, replaced, windows
from viewkeeper.algebra.nodes import (
    Derived,
    Generate,
    Group,
    Item,
    Project,
    Query,
    Relation,
    TopRows,
    Window,
    inner_join,
    sql_of,
)
from viewkeeper.algebra.reading.aggregates import decided_items
from viewkeeper.algebra.reading.blocks import read_block
from viewkeeper.algebra.reading.grouping_sets import grouping_sets, over_grouping_sets, without_positions
from viewkeeper.algebra.reading.pivots import is_pivot, read_pivot
from viewkeeper.algebra.reading.reader import Reader, is_all, ordered_by, ordered_items, row_limits
from viewkeeper.algebra.reading.scope import Outside, Scope
from viewkeeper.algebra.reading.values import with_values
from viewkeeper.algebra.reading.window_functions import read_windows, with_windows_written_out
from viewkeeper.generated_names import HIDDEN_PREFIX
from viewkeeper.sql.functions import function_name, is_generator
from viewkeeper.sql.rendering import column

_CLAUSES = {
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "match": "MATCH_RECOGNIZE",
    "connect": "CONNECT BY",
}


def read_select(reader: Reader, tree: exp.Select, around: Scope | None, names: Sequence[str] | None) -> Query:
    if is_pivot(tree):
        return read_pivot(reader, tree, around, names)
    scope = reader.scope_of(tree, around)
    block = read_block(reader, tree, scope)
    if block.outside:
        raise Outside("a query in FROM, or in a set operation, is correlated with the query around it")
    return shape_select(reader, tree, block.relation, scope, names)


@dataclass(frozen=True)
class _Shape:
    """A SELECT on its way: the relation so far, its columns over the relation, what is kept of its rows."""

    relation: Relation
    items: tuple[Item, ...]
    having: tuple[exp.Expr, ...] = ()


def shape_select(
    reader: Reader,
    tree: exp.Select,
    relation: Relation,
    scope: Scope,
    names: Sequence[str] | None,
    correlated: tuple[Item, ...] = (),
) -> Query:
    """The query over its relation; `correlated` are keys (over the relation) that it must show and group by too."""
    for clause, called in _CLAUSES.items():
        if tree.args.get(clause):
            raise Outside(f"it uses {called}")
    tree = with_windows_written_out(tree)
    distinct = tree.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        raise Outside("it uses DISTINCT ON")
    items = _items(tree, names)
    limit, offset = row_limits(tree)
    order, sorting = _order(tree, items) if limit is not None or offset else ((), ())
    everything = (*items, *sorting)
    having, qualify = tree.args.get("having"), tree.args.get("qualify")
    conditions = tuple(conjuncts(None if having is None else having.this))
    kept = () if qualify is None else (qualify.this,)
    grouping = tree.args.get("group")
    is_grouped = (
        grouping is not None or having is not None or any(aggregates(i.expression) for i in everything)
    )
    if is_grouped:
        query = _grouped(reader, tree, relation, scope, everything, conditions, kept, correlated)
    else:
        relation, shown = _with_values(reader, relation, everything, scope)
        relation, shown = _generated(reader, relation, shown)
        query = _rows(_Shape(relation, shown, _translate(reader, relation, kept, scope)), correlated)
    if distinct is not None:
        query = _distinct(reader, query)
    if limit is None and not offset:
        return query
    top = TopRows(query, order, limit, offset)
    if not sorting:
        return top
    shown_names = [item.name for item in (*items, *correlated)]
    return reader.pass_through(top, shown_names, "first_rows")


def _items(tree: exp.Select, names: Sequence[str] | None) -> tuple[Item, ...]:
    selects = tree.selects
    if any(isinstance(each, exp.Star) or each.is_star for each in selects):
        raise Outside("its columns are not known one by one")
    called = list(names) if names is not None else [each.alias_or_name for each in selects]
    if len(called) != len(selects) or any(isinstance(each, exp.Aliases) for each in selects):
        raise Outside("its columns are not known one by one")
    return tuple(
        Item(name, each.this if isinstance(each, exp.Alias) else each)
        for name, each in zip(called, selects, strict=True)
    )


def _order(tree: exp.Select, items: Sequence[Item]) -> tuple[tuple[exp.Expr, ...], tuple[Item, ...]]:
    """The order over the columns of the query, and the columns that are there for the order alone."""
    by_alias = {each.alias_or_name.lower(): item.name for each, item in zip(tree.selects, items, strict=True)}
    by_text = {sql_of(item.expression): item.name for item in items}
    order: list[exp.Expr] = []
    extra: list[Item] = []
    written = ordered_items(tree)
    if len(written) == 1 and is_all(written[0].this) and "all" not in by_alias:
        return tuple(ordered_by(column(item.name), written[0]) for item in items), ()
    for each in written:
        key = each.this
        name = by_text.get(sql_of(key))
        if name is None and isinstance(key, exp.Column) and not key.table:
            name = by_alias.get(key.name.lower())
        if name is None:
            name = f"{HIDDEN_PREFIX}order_{len(extra) + 1}"
            extra.append(Item(name, key))
        order.append(ordered_by(column(name), each))
    return tuple(order), tuple(extra)


def _with_values(
    reader: Reader, relation: Relation, items: Sequence[Item], scope: Scope
) -> tuple[Relation, tuple[Item, ...]]:
    relation, found = with_values(reader, relation, [item.expression for item in items], scope)
    return relation, tuple(replace(item, expression=each) for item, each in zip(items, found, strict=True))


def _generated(
    reader: Reader, relation: Relation, items: Sequence[Item]
) -> tuple[Relation, tuple[Item, ...]]:
    """A function that makes rows as a column of its own: a LATERAL VIEW."""
    shown = []
    for item in items:
        if is_generator(item.expression):
            if function_name(item.expression) not in ("explode", "explode_outer"):
                raise Outside(f"{function_name(item.expression)} makes columns that have no names")
            name = reader.fresh("generated")
            relation = Generate(relation, item.expression, name, (item.name,))
            item = replace(item, expression=column(item.name, name))
        elif any(is_generator(node) for node in item.expression.walk()):
            raise Outside("a function that makes rows stands inside an expression")
        shown.append(item)
    return relation, tuple(shown)


def _translate(
    reader: Reader, relation: Relation, written: Sequence[exp.Expr], scope: Scope
) -> tuple[exp.Expr, ...]:
    after, found = with_values(reader, relation, written, scope)
    if after is not relation:
        raise Outside("a condition over window functions has a subquery")
    return tuple(found)


def _rows(shape: _Shape, correlated: tuple[Item, ...]) -> Query:
    """A SELECT without groups over its relation: with window functions, or plain."""
    items = (*shape.items, *correlated)
    if not any(windows(item.expression) for item in items) and not shape.having:
        return Project(shape.relation, items)
    window, shown, having = read_windows(items, shape.having, shape.relation)
    return Project(window, shown, having)


def _distinct(reader: Reader, query: Query) -> Query:
    """DISTINCT is a group by all columns; over plain rows it needs no query of its own, unless a column is a constant: a
    number would mean a position there."""
    if (
        isinstance(query, Project)
        and not isinstance(query.source, (Group, Window))
        and all(item.expression.find(exp.Column) for item in query.items)
    ):
        group = Group(query.source, query.items, ())
        return Project(group, tuple(Item(item.name, column(item.name)) for item in query.items))
    return reader.distinct(query, "distinct_rows")


# -- groups


def _grouped(
    reader: Reader,
    tree: exp.Select,
    relation: Relation,
    scope: Scope,
    items: Sequence[Item],
    having: Sequence[exp.Expr],
    kept: Sequence[exp.Expr],
    correlated: tuple[Item, ...],
) -> Query:
    """Group first; what a group cannot show by itself is a query over the groups."""
    grouping = without_positions(tree.args.get("group"), [item.expression for item in items])
    keys, sets = grouping_sets(grouping)
    if grouping is not None and grouping.args.get("all"):
        keys = [item.expression for item in items if not aggregates(item.expression)]
    if any(key.is_int or key.is_string for key in keys):
        raise Outside("it groups by a constant")
    needs_more = bool(kept) or any(
        outermost_subqueries(each) or windows(each)
        for each in [*(item.expression for item in items), *having]
    )
    relation, over_keys = with_values(reader, relation, keys, scope)
    if sets is not None and (needs_more or correlated):
        raise Outside("GROUPING SETS, ROLLUP or CUBE meet subqueries or window functions in one SELECT")
    if not needs_more:
        written = [*(item.expression for item in items), *having]
        _, translated = with_values(reader, relation, written, scope)
        if sets is not None:
            to_tree = dict(zip(map(sql_of, keys), over_keys, strict=True))
            in_tree = [[to_tree[sql_of(key)] for key in each] for each in sets]
            by_text = {sql_of(key): key for key in over_keys}
            relation, over_keys, translated = over_grouping_sets(
                reader, relation, by_text, in_tree, translated
            )
        shown = [replace(item, expression=each) for item, each in zip(items, translated, strict=False)]
        all_keys = [*over_keys, *(item.expression for item in correlated)]
        return simple_group(relation, all_keys, (*shown, *correlated), translated[len(items) :])
    return _over_groups(reader, tree, relation, scope, keys, over_keys, items, having, kept, correlated)


def simple_group(
    relation: Relation, keys: Sequence[exp.Expr], items: Sequence[Item], having: Sequence[exp.Expr]
) -> Project:
    """Keys and aggregates become columns of the group; what is above them is an expression over these columns."""
    visible = {sql_of(item.expression): item.name for item in reversed(items)}
    key_items = _named(keys, visible, "key")
    calls = {
        sql_of(found): found
        for expression in [*(item.expression for item in items), *having]
        for found in aggregates(expression)
    }
    call_items = _named(list(calls.values()), visible, "aggregate")
    names: dict[str, exp.Expr] = {
        sql_of(each.expression): column(each.name) for each in (*key_items, *call_items)
    }
    shown = tuple(Item(item.name, _over(item.expression, names)) for item in items)
    condition = exp.and_(*(_over(each, names) for each in having)) if having else None
    return Project(Group(relation, key_items, decided_items(call_items, relation)), shown, condition)


def _named(expressions: Sequence[exp.Expr], visible: dict[str, str], what: str) -> tuple[Item, ...]:
    """Each expression once, named as the query names it, or by a hidden name."""
    named: dict[str, Item] = {}
    for expression in expressions:
        text = sql_of(expression)
        if text not in named:
            hidden = f"{HIDDEN_PREFIX}{what}_{len(named) + 1}"
            named[text] = Item(visible.get(text, hidden), expression)
    return tuple(named.values())


def _over(expression: exp.Expr, names: dict[str, exp.Expr]) -> exp.Expr:
    """An expression over the outputs of a group."""
    result = replaced(expression, names)
    if any(found.table for found in result.find_all(exp.Column)) or aggregates(result):
        raise Outside("it shows a column that is neither grouped nor aggregated")
    return result


def _over_groups(
    reader: Reader,
    tree: exp.Select,
    relation: Relation,
    scope: Scope,
    keys: Sequence[exp.Expr],
    over_keys: Sequence[exp.Expr],
    items: Sequence[Item],
    having: Sequence[exp.Expr],
    kept: Sequence[exp.Expr],
    correlated: tuple[Item, ...],
) -> Query:
    """A query over the query of the groups: for subqueries and window functions above aggregates."""
    written = [*(item.expression for item in items), *kept, *having]
    calls = list({sql_of(each): each for expression in written for each in aggregates(expression)}.values())
    relation, over_calls = with_values(reader, relation, calls, scope)
    name = reader.fresh(HIDDEN_PREFIX + "groups")
    shown = [
        *(Item(f"{HIDDEN_PREFIX}key_{at}", each) for at, each in enumerate(over_keys, start=1)),
        *(Item(f"{HIDDEN_PREFIX}aggregate_{at}", each) for at, each in enumerate(over_calls, start=1)),
        *correlated,
    ]
    group_keys = [*over_keys, *(item.expression for item in correlated)]
    inner = simple_group(relation, group_keys, shown, ())
    scope = Scope(scope, {name.lower(): name})
    names: dict[str, exp.Expr] = {}
    for at, key in enumerate(keys, start=1):
        above_groups = names[sql_of(key)] = column(f"{HIDDEN_PREFIX}key_{at}", name)
        if isinstance(key, exp.Column):
            scope.columns[key.table.lower(), key.name.lower()] = above_groups
    for at, made in enumerate(calls, start=1):
        names[sql_of(made)] = column(f"{HIDDEN_PREFIX}aggregate_{at}", name)
    above: Relation = Derived(name, inner)
    outer = [replaced(each, names) for each in written]
    above, translated = with_values(reader, above, outer, scope)
    above = inner_join([above], translated[len(items) + len(kept) :])
    shown_above = tuple(replace(item, expression=each) for item, each in zip(items, translated, strict=False))
    ties = tuple(Item(each.name, column(each.name, name)) for each in correlated)
    return _rows(_Shape(above, shown_above, tuple(translated[len(items) :][: len(kept)])), ties)
