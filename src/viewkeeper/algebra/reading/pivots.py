"""PIVOT and UNPIVOT as what they stand for.

PIVOT (sum(x) FOR k IN (1, 2))   groups by all columns that it does not mention, and shows sum(x) of the rows with k = 1,
                                 then of those with k = 2; NULL where a group has no such row, even for count.
UNPIVOT (x FOR k IN (a, b))      is a query for each of a and b, put together by UNION ALL.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

from viewkeeper.algebra.column_types import column_type
from viewkeeper.algebra.nodes import (
    Derived,
    Item,
    Project,
    Query,
    Relation,
    Scan,
    SetKind,
    SetOperation,
    aliases_of,
    inner_join,
    output_names,
)
from viewkeeper.algebra.reading.reader import Reader
from viewkeeper.algebra.reading.scope import Outside, Scope
from viewkeeper.algebra.reading.sources import read_source
from viewkeeper.sql.functions import function_name
from viewkeeper.sql.rendering import as_type, column, literal

_NULL_OF_NO_ROWS = frozenset({"sum", "avg", "mean", "min", "max"})
_PIVOTED = _NULL_OF_NO_ROWS | {"count"}
"""Of others Spark shows, where a group has no row, sometimes NULL and sometimes what they give for no rows."""


def is_pivot(tree: exp.Select) -> bool:
    """Whether a SELECT is the one that stands around a PIVOT or UNPIVOT once names are bound."""
    clause = tree.args.get("from_")
    return clause is not None and bool(clause.this.args.get("pivots")) and tree.is_star


def read_pivot(reader: Reader, tree: exp.Select, around: Scope | None, names: Sequence[str] | None) -> Query:
    source = tree.args["from_"].this
    pivots = source.args["pivots"]
    if len(pivots) != 1 or len(pivots[0].args.get("fields") or []) != 1 or tree.args.get("joins"):
        raise Outside("it uses PIVOT or UNPIVOT more than once in one FROM, or before a join")
    bare = source.copy()
    bare.set("pivots", None)
    scope = reader.scope_of(tree, around)
    read = _unpivoted if pivots[0].args.get("unpivot") else _pivoted
    return read(reader, bare, pivots[0], scope, names)


def _pivoted(
    reader: Reader, source: exp.Expr, pivot: exp.Pivot, scope: Scope, names: Sequence[str] | None
) -> Query:
    from viewkeeper.algebra.reading.selects import simple_group

    relation = read_source(reader, source, scope)
    columns = _columns_of(relation)
    (field,) = pivot.args["fields"]
    pivoted_by = [_found(each, columns) for each in _parts(field.this)]
    calls = [_call(each, columns) for each in pivot.expressions]
    mentioned = {each.name for call in (*calls, *pivoted_by) for each in call.find_all(exp.Column)}
    keys = [each for each in columns.values() if each.name not in mentioned]
    shown: list[exp.Expr] = [*keys]
    for value in field.expressions:
        is_value = _is_value(pivoted_by, _parts(_unaliased(value)), relation)
        shown += [_where(call, is_value) for call in calls]
    called = names or [*(key.name for key in keys), *(each.name for each in pivot.args["columns"])]
    if len({each.lower() for each in called}) < len(shown):
        raise Outside("the columns that PIVOT makes have no names of their own")
    items = [Item(name, each) for name, each in zip(called, shown, strict=True)]
    return simple_group(relation, keys, items, ())


def _call(written: exp.Expr, columns: dict[str, exp.Column]) -> exp.Expr:
    call = _unaliased(written)
    if function_name(call) not in _PIVOTED:
        raise Outside(f"it pivots with {function_name(call) or 'an expression'}")

    def visit(node: exp.Expr) -> exp.Expr:
        is_column = isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)
        return _found(node, columns) if is_column else node

    result: exp.Expr = call.transform(visit)
    return result


def _is_value(pivoted_by: Sequence[exp.Column], values: Sequence[exp.Expr], relation: Relation) -> exp.Expr:
    """Spark casts each value to the type of its column."""
    same = []
    for each, value in zip(pivoted_by, values, strict=True):
        data_type = column_type(each, relation)
        if data_type is None:
            raise Outside("the type of a column that it pivots by is not known from its table")
        same.append(exp.NullSafeEQ(this=each.copy(), expression=as_type(value.copy(), data_type)))
    return exp.and_(*same)


def _where(call: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """The aggregate over the rows for which the condition holds, NULL if there is none."""
    filtered = exp.Filter(this=call.copy(), expression=exp.Where(this=condition.copy()))
    if function_name(call) in _NULL_OF_NO_ROWS:
        return filtered
    rows = exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=condition.copy()))
    return exp.Case().when(exp.GT(this=rows, expression=literal(0)), filtered)


def _unpivoted(
    reader: Reader, source: exp.Expr, pivot: exp.Pivot, scope: Scope, names: Sequence[str] | None
) -> Query:
    (field,) = pivot.args["fields"]
    value_names = [each.name for target in pivot.expressions for each in _parts(target)]
    lists = [_parts(_unaliased(each)) for each in field.expressions]
    gone = {each.name.lower() for parts in lists for each in parts}
    queries: list[Query] = []
    for written, parts in zip(field.expressions, lists, strict=True):
        relation = read_source(reader, source.copy(), Scope(scope))
        columns = _columns_of(relation)
        values = [_found(each, columns) for each in parts]
        kept = [each for name, each in columns.items() if name not in gone]
        called = names or [*(each.name for each in kept), field.this.name, *value_names]
        shown = [*kept, literal(_name_in_rows(written, parts, values)), *values]
        items = tuple(Item(name, each) for name, each in zip(called, shown, strict=True))
        some = exp.or_(*(exp.Not(this=exp.Is(this=each.copy(), expression=exp.Null())) for each in values))
        conditions = [] if pivot.args.get("include_nulls") else [some]
        queries.append(Project(inner_join([relation], conditions), items))
    return reduce(lambda left, right: SetOperation(SetKind.UNION, True, left, right), queries)


def _name_in_rows(written: exp.Expr, parts: Sequence[exp.Expr], values: Sequence[exp.Column]) -> str:
    """What UNPIVOT calls a column in the rows it makes."""
    if isinstance(written, exp.PivotAlias):
        return str(written.args["alias"].name)
    if [each.name for each in parts] != [each.name for each in values]:
        raise Outside("UNPIVOT writes a column otherwise than its table does, and gives it no alias")
    return "_".join(each.name for each in values)


def _columns_of(relation: Relation) -> dict[str, exp.Column]:
    """The columns of what is pivoted, by their names in lower case."""
    (name,) = aliases_of(relation)
    match relation:
        case Scan(_, table):
            names = [each.name for each in table.columns]
        case Derived(_, query):
            names = list(output_names(query))
        case _:
            raise Outside("it uses PIVOT or UNPIVOT on something that is no table and no query")
    return {each.lower(): column(each, name) for each in names}


def _found(written: exp.Expr, columns: dict[str, exp.Column]) -> exp.Column:
    found = columns.get(written.name.lower()) if isinstance(written, (exp.Column, exp.Identifier)) else None
    if found is None:
        raise Outside("PIVOT or UNPIVOT reads something that is no column")
    return found.copy()


def _parts(written: exp.Expr) -> list[exp.Expr]:
    inner = written.unnest()
    return list(inner.expressions) if isinstance(inner, exp.Tuple) else [inner]


def _unaliased(written: exp.Expr) -> exp.Expr:
    found: exp.Expr = written.this if isinstance(written, (exp.Alias, exp.PivotAlias)) else written
    return found
