"""A bound query as a tree of the algebra, or the reason why it is none yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from viewkeeper.algebra.nodes import Group, InnerJoin, Item, Project, Scan, sql_of
from viewkeeper.generated_names import HIDDEN_PREFIX
from viewkeeper.sql.binding import BoundQuery
from viewkeeper.sql.rendering import column
from viewkeeper.sql.script import Fragment, parse_sql


@dataclass(frozen=True)
class OutsideAlgebra:
    """What in a query keeps it from being maintained incrementally, as a clause that can follow "because"."""

    reason: str


class _Outside(Exception):
    pass


def _functions(text: Fragment) -> frozenset[str]:
    """The names of all functions that a text calls."""
    tokens = text.tokens()
    names = (first.text.lower() for first, second in pairwise(tokens) if second.text == "(")
    return frozenset(name for name in names if name not in _NO_FUNCTIONS)


_CLAUSES = {
    "with_": "a WITH clause",
    "laterals": "LATERAL VIEW",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "windows": "window functions",
    "qualify": "QUALIFY",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "match": "MATCH_RECOGNIZE",
}
_CHANGING = {
    "rand",
    "randn",
    "random",
    "randstr",
    "uniform",
    "uuid",
    "shuffle",
    "monotonically_increasing_id",
    "spark_partition_id",
    "input_file_name",
    "input_file_block_start",
    "input_file_block_length",
    "current_timestamp",
    "current_date",
    "current_time",
    "now",
    "curdate",
    "localtimestamp",
    "unix_timestamp",
    "current_user",
    "user",
    "session_user",
    "current_catalog",
    "current_database",
    "current_schema",
    "current_timezone",
}
"""Functions whose value depends on more than their arguments."""


_MAINTAINED_AGGREGATES = (
    exp.Count,
    exp.Sum,
    exp.Avg,
    exp.Min,
    exp.Max,
    exp.Stddev,
    exp.StddevPop,
    exp.StddevSamp,
    exp.Variance,
    exp.VariancePop,
    exp.Corr,
    exp.CovarPop,
    exp.CovarSamp,
    exp.LogicalAnd,
    exp.LogicalOr,
)
"""Aggregates whose value depends on the bag of their arguments alone, and that sqlglot renders as it reads them."""

_NO_FUNCTIONS = {
    "", "(", ",", "=", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%", "and", "or", "not", "in", "on", "where",
    "from", "join", "select", "as", "by", "having", "when", "then", "else", "between", "case", "filter", "over", "using",
    "decimal", "numeric", "char", "varchar", "distinct", "like", "is", "exists", "values",
}  # fmt: skip
"""What can stand before a parenthesis without being called."""


def read_algebra(query: BoundQuery, names: Sequence[str]) -> Project | OutsideAlgebra:
    """The tree of a query whose columns have these names."""
    if not query.rendered:
        return OutsideAlgebra("its query is not understood well enough")
    try:
        tree = _read(parse_sql(query.rendered), query, names)
        _refuse_other_functions(query)
        return tree
    except _Outside as found:
        return OutsideAlgebra(str(found))


def _refuse_other_functions(query: BoundQuery) -> None:
    """Plans run our rendering, so it must call what the user calls: sqlglot renders some functions as others."""
    written, rendered = _functions(query.parsed.fragment), _functions(Fragment.whole(query.rendered))
    odd = (written - rendered) | (rendered - written - {"coalesce"})  # USING is rendered with COALESCE
    if odd:
        raise _Outside(f"{min(odd)} is not known to mean the same in our rendering")


def _read(tree: exp.Expr, query: BoundQuery, names: Sequence[str]) -> Project:
    if not isinstance(tree, exp.Select):
        raise _Outside(f"it uses {tree.key.upper()}")
    _refuse_clauses(tree)
    _refuse_expressions(tree)
    source = _read_from(tree, query)
    items = [Item(name, _without_alias(each)) for name, each in zip(names, tree.selects, strict=True)]
    if any(isinstance(item.expression, exp.Star) for item in items):
        raise _Outside("its columns are not known one by one")
    having = tree.args.get("having")
    grouping = tree.args.get("group")
    if grouping is None and having is None and not any(map(_has_aggregate, tree.selects)):
        if tree.args.get("distinct") is None:
            return Project(source, tuple(items))
        group = Group(source, tuple(items), ())
        return Project(group, tuple(Item(item.name, column(item.name)) for item in items))
    if tree.args.get("distinct") is not None:
        raise _Outside("it uses DISTINCT over groups")
    return _read_group(source, items, grouping, None if having is None else having.this)


def _refuse_clauses(tree: exp.Select) -> None:
    for clause, name in _CLAUSES.items():
        if tree.args.get(clause):
            raise _Outside(f"it uses {name}")
    distinct = tree.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        raise _Outside("it uses DISTINCT ON")


def _refuse_expressions(tree: exp.Select) -> None:
    for node in tree.walk():
        if isinstance(node, exp.Query) and node is not tree:
            raise _Outside("it has a subquery")
        if isinstance(node, exp.Window):
            raise _Outside("it uses window functions")
        if isinstance(node, (exp.Explode, exp.Inline, exp.Posexplode)):
            raise _Outside("it uses a function that makes rows")
        if isinstance(node, exp.AggFunc) and not isinstance(node, _MAINTAINED_AGGREGATES):
            raise _Outside("it uses an aggregate that is not maintained yet")
        if isinstance(node, (exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
            raise _Outside("it uses an ordered aggregate")
        if isinstance(node, exp.Anonymous):
            raise _Outside(f"it calls {node.name.lower()}, of which nothing is known")
        if isinstance(node, exp.Func):
            called = {node.sql_name().lower(), node.key.lower()}
            changing = called & _CHANGING
            if changing:
                raise _Outside(f"{min(changing)} gives another value at another time")


def _read_from(tree: exp.Select, query: BoundQuery) -> InnerJoin:
    inputs = {found.relation.lower(): found for found in query.inputs}
    conditions: list[exp.Expr] = []
    scans: list[Scan] = []
    from_clause = tree.args.get("from_")
    joins = tree.args.get("joins") or []
    for join in joins:
        if join.side or join.kind not in ("", "INNER", "CROSS"):
            raise _Outside(f"it uses {' '.join(filter(None, [join.method, join.side, join.kind]))} JOIN")
        if join.method or join.args.get("using"):
            raise _Outside("it uses a NATURAL JOIN")
        if join.args.get("on") is not None:
            conditions += _conjuncts(join.args["on"])
    for source in [from_clause.this, *(join.this for join in joins)] if from_clause is not None else []:
        if not isinstance(source, exp.Table) or source.name.lower() not in inputs:
            raise _Outside("it reads something that is no table")
        if any(value for key, value in source.args.items() if key not in ("this", "alias")):
            raise _Outside("it reads a table in a special way")
        alias = source.args.get("alias")
        if alias is not None and alias.columns:
            raise _Outside("it renames columns of a table")
        scans.append(Scan(source.alias_or_name, inputs[source.name.lower()]))
    where = tree.args.get("where")
    if where is not None:
        conditions += _conjuncts(where.this)
    for each in [*conditions, *tree.selects]:
        if any(not found.table for found in each.find_all(exp.Column)):
            raise _Outside("a column of it belongs to no table")
    return InnerJoin(tuple(scans), tuple(conditions))


def _conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    if isinstance(condition, exp.Paren):
        return _conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return _conjuncts(condition.this) + _conjuncts(condition.expression)
    return [] if condition == exp.true() else [condition]


def _without_alias(item: exp.Expr) -> exp.Expr:
    found = item.this if isinstance(item, exp.Alias) else item
    assert isinstance(found, exp.Expr)
    return found


def _has_aggregate(expression: exp.Expr) -> bool:
    return expression.find(exp.AggFunc) is not None


def _read_group(
    source: InnerJoin, items: Sequence[Item], grouping: exp.Group | None, having: exp.Expr | None
) -> Project:
    """Keys and aggregates become columns of the group; what is above them is an expression over these columns."""
    key_expressions: list[exp.Expr] = []
    if grouping is not None:
        special = any(value for key, value in grouping.args.items() if key != "expressions")
        if special or grouping.find(exp.Rollup, exp.Cube, exp.GroupingSets):
            raise _Outside("it uses GROUPING SETS, ROLLUP, CUBE or GROUP BY ALL")
        key_expressions = list(grouping.expressions)
    if any(key.is_int or key.is_string for key in key_expressions):
        raise _Outside("it groups by a constant")
    visible = {sql_of(item.expression): item.name for item in reversed(items)}
    keys = _named(key_expressions, visible, "key")
    over_keys = {sql_of(key.expression): key.name for key in keys}
    calls: dict[str, exp.Expr] = {}
    for expression in [*(item.expression for item in items), *([having] if having is not None else [])]:
        for found in expression.find_all(exp.AggFunc, exp.Filter):
            outermost = not isinstance(found.parent, exp.Filter) and found.find_ancestor(exp.AggFunc) is None
            if outermost:
                calls.setdefault(sql_of(found), found)
    aggregates = _named(list(calls.values()), visible, "aggregate")
    names = over_keys | {sql_of(each.expression): each.name for each in aggregates}
    shown = tuple(Item(item.name, _over(item.expression, names)) for item in items)
    return Project(Group(source, keys, aggregates), shown, None if having is None else _over(having, names))


def _named(expressions: Sequence[exp.Expr], visible: dict[str, str], what: str) -> tuple[Item, ...]:
    """Each expression once, named as the query names it, or by a hidden name."""
    named: dict[str, Item] = {}
    for expression in expressions:
        text = sql_of(expression)
        if text not in named:
            hidden = f"{HIDDEN_PREFIX}{what}_{len(named) + 1}"
            named[text] = Item(visible.get(text, hidden), expression)
    return tuple(named.values())


def _over(expression: exp.Expr, names: dict[str, str]) -> exp.Expr:
    """An expression over the outputs of a group."""

    def replaced(node: exp.Expr) -> exp.Expr:
        name = names.get(sql_of(node))
        return node if name is None else column(name)

    result: exp.Expr = expression.copy().transform(replaced)
    if any(found.table for found in result.find_all(exp.Column)) or _has_aggregate(result):
        raise _Outside("it shows a column that is neither grouped nor aggregated")
    return result
