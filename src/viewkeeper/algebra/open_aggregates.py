"""Aggregates whose answer SQL leaves open, as expressions that have one.

SQL does not say in which order the rows of a group come. Here they come in the order of what these aggregates read: of all of
them together, so that two lists of one SELECT still fit each other, and two values that are the first belong to one row.

    first(x)               min(x)
    last(x)                max(x)
    collect_list(x)        sort_array(collect_list(x))
    max_by(x, y)           max(struct(y, x)).x, of the rows where y is known
    mode(x)                mode(x, true)
    listagg(x)             listagg(x) WITHIN GROUP (ORDER BY x)
    listagg(DISTINCT x)    array_join(sort_array(collect_list(DISTINCT x)), ''), NULL if there is none

    first(x), last(y)      min(struct(x, y)).x, max(struct(x, y)).y

Each is an answer that SQL allows. What becomes a minimum or a maximum is kept as one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.expressions import aggregates, replaced
from viewkeeper.algebra.nodes import sql_of
from viewkeeper.generated_names import HIDDEN_PREFIX
from viewkeeper.sql.functions import function_name
from viewkeeper.sql.rendering import alias, call, lambda_of

_FIRST = frozenset({"first", "first_value", "any_value"})
_LAST = frozenset({"last", "last_value"})
_LISTS = frozenset({"collect_list", "array_agg"})
_TEXTS = frozenset({"listagg", "string_agg"})
_BY_ANOTHER = frozenset({"max_by", "min_by"})
_BY_ROWS = _FIRST | _LAST | _LISTS | _TEXTS | _BY_ANOTHER
DECIDED = _BY_ROWS | {"collect_set", "mode"}
"""Aggregates that have one answer here, in all but a few forms."""

_FIELD = f"{HIDDEN_PREFIX}order_"
_ELEMENT = f"{HIDDEN_PREFIX}element"


@dataclass(frozen=True)
class Aggregate:
    """A call with all that may stand around it. `keeps_nulls` is what IGNORE NULLS or RESPECT NULLS say."""

    name: str
    arguments: tuple[exp.Expr, ...]
    is_distinct: bool = False
    condition: exp.Expr | None = None
    keeps_nulls: bool | None = None
    order: exp.Expr | None = None

    @property
    def value(self) -> exp.Expr:
        return self.arguments[0]

    @property
    def is_open(self) -> bool:
        if self.name == "mode":
            is_decided = len(self.arguments) > 1 and self.arguments[1] == exp.true()
            return self.order is None and not is_decided
        return self.name in DECIDED

    @property
    def takes_rows(self) -> bool:
        """Whether the answer depends on the order of rows, not of values."""
        return self.name in _BY_ROWS and not self.is_distinct

    @property
    def is_understood(self) -> bool:
        """Whether it is one of the forms that are decided."""
        count = len(self.arguments)
        if self.name in _FIRST | _LAST:
            return count == 1 or (count == 2 and isinstance(self.arguments[1], exp.Boolean))
        if self.name in _BY_ANOTHER:
            return count == 2 and not self.is_distinct and self.keeps_nulls is None
        if self.name == "mode":
            is_plain = count == 1 or (count == 2 and self.arguments[1] == exp.false())
            return is_plain and not self.is_distinct and self.keeps_nulls is None
        most = 2 if self.name in _TEXTS else 1
        return 1 <= count <= most and not self.keeps_nulls


def aggregate_of(expression: exp.Expr) -> Aggregate:
    """A call as `aggregates` finds it, taken apart.

    >>> from viewkeeper.sql.script import parse_sql
    >>> found = aggregate_of(parse_sql("SELECT first(x) FILTER (WHERE y > 1) IGNORE NULLS FROM t").selects[0])
    >>> found.name, sql_of(found.condition), found.keeps_nulls
    ('first', 'y > 1', False)
    """
    match expression:
        case exp.Filter():
            return replace(aggregate_of(expression.this), condition=expression.expression.this)
        case exp.IgnoreNulls() | exp.RespectNulls():
            keeps = isinstance(expression, exp.RespectNulls)
            return replace(aggregate_of(expression.this), keeps_nulls=keeps)
        case exp.WithinGroup():
            return replace(aggregate_of(expression.this), order=expression.expression)
    values: list[object] = [expression.this, *expression.args.values()]
    if isinstance(expression, (exp.Anonymous, exp.AnonymousAggFunc)):
        values = list(expression.expressions)
    arguments = list({id(each): each for each in values if isinstance(each, exp.Expr)}.values())
    is_distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if is_distinct:
        arguments = [*arguments[0].expressions, *arguments[1:]]
    return Aggregate(function_name(expression), tuple(arguments), is_distinct)


def row_order(found: Sequence[Aggregate]) -> tuple[exp.Expr, ...]:
    """The order in which the rows of a group come to these aggregates: by all that they show of rows."""
    shown = {sql_of(each.value): each.value for each in found if each.is_open and each.takes_rows}
    return tuple(shown.values())


def open_aggregates(select: exp.Expr) -> list[exp.Expr]:
    """The aggregates of a SELECT itself whose answer SQL leaves open, each once."""
    is_limited = select.args.get("limit") is not None or select.args.get("offset") is not None
    parts = ("having", "qualify", *(["order"] if is_limited else []))
    clauses = [select.args.get(part) for part in parts]
    places = [*select.args.get("expressions", []), *(each for each in clauses if each is not None)]
    found = {sql_of(each): each for place in places for each in aggregates(place)}
    return [each for each in found.values() if aggregate_of(each).is_open]


def with_decided_aggregates(tree: exp.Expr) -> exp.Expr:
    """The text of a query in which nothing is left open that this module decides."""
    result = tree.copy()
    for select in list(result.find_all(exp.Select)):
        found = open_aggregates(select)
        decided = decisions(found)
        for part in ("expressions", "having", "qualify", "order"):
            value = select.args.get(part)
            if decided and isinstance(value, list):
                select.set(part, [replaced(each, decided) for each in value])
            elif decided and value is not None:
                select.set(part, replaced(value, decided))
    return result


def ties_broken(tree: exp.Expr) -> list[str]:
    """What the text of a query leaves open and how it is decided, in sentences.

    >>> from viewkeeper.sql.script import parse_sql
    >>> print(*ties_broken(parse_sql("SELECT first(x), mode(y), collect_set(z) FROM t")), sep="\\n")
    SQL leaves FIRST(x) open: rows come in the order of x
    SQL leaves MODE(y) open: the least of several most frequent values is taken
    SQL leaves COLLECT_SET(z) open: values come in ascending order
    """
    sentences: dict[str, None] = {}
    for select in tree.find_all(exp.Select):
        found = [(sql_of(each), aggregate_of(each)) for each in open_aggregates(select)]
        rows = ", ".join(sql_of(each) for each in row_order([each for _, each in found]))
        by_rows = ", ".join(text for text, each in found if each.takes_rows)
        if by_rows:
            sentences[f"SQL leaves {by_rows} open: rows come in the order of {rows}"] = None
        for text, each in found:
            if each.name == "mode":
                sentences[f"SQL leaves {text} open: the least of several most frequent values is taken"] = (
                    None
                )
            elif not each.takes_rows:
                sentences[f"SQL leaves {text} open: values come in ascending order"] = None
    return list(sentences)


def decisions(calls: Sequence[exp.Expr]) -> Mapping[str, exp.Expr]:
    """What stands for each of the aggregates of one group that are open and understood, by its SQL.

    >>> from viewkeeper.sql.script import parse_sql
    >>> for text in ("SELECT last(x) FROM t", "SELECT max_by(x, y) FROM t", "SELECT first(x), collect_list(y) FROM t"):
    ...     print(*map(sql_of, decisions(parse_sql(text).selects).values()), sep="; ")
    MAX(x)
    (MAX(STRUCT(y AS `_vk_order_0`, x AS `_vk_order_1`)) FILTER(WHERE NOT y IS NULL)).`_vk_order_1`
    (MIN(STRUCT(x AS `_vk_order_1`, y AS `_vk_order_2`))).`_vk_order_1`; TRANSFORM(SORT_ARRAY(COLLECT_LIST(STRUCT(x AS `_vk_order_1`, y AS `_vk_order_2`)) FILTER(WHERE NOT y IS NULL)), _vk_element -> (_vk_element).`_vk_order_2`)
    """
    found = {sql_of(each): aggregate_of(each) for each in calls}
    rows = row_order(list(found.values()))
    return {text: _decided(each, rows) for text, each in found.items() if each.is_open and each.is_understood}


def _decided(found: Aggregate, rows: Sequence[exp.Expr]) -> exp.Expr:
    value = found.value.copy()
    if found.name in _FIRST | _LAST:
        return _of_one_row(found, rows)
    if found.name in _BY_ANOTHER:
        return _by_another(found, rows)
    if found.name in _TEXTS:
        return _text(found, rows)
    if found.name == "mode":
        return _where(found, exp.Mode(this=value, deterministic=exp.true()))
    if found.takes_rows and len(rows) > 1:
        listed = _where(found, _aggregate("COLLECT_LIST", _row(rows)), _is_known(value))
        # In parentheses, for in HAVING DuckDB takes the field for a column.
        element = exp.Paren(this=exp.to_identifier(_ELEMENT))
        field = exp.Dot(this=element, expression=_field(rows, value))
        return exp.Transform(this=call("SORT_ARRAY", listed), expression=lambda_of(_ELEMENT, field))
    argument = exp.Distinct(expressions=[value]) if found.is_distinct else value
    return call("SORT_ARRAY", _where(found, _aggregate(found.name.upper(), argument)))


def _of_one_row(found: Aggregate, rows: Sequence[exp.Expr]) -> exp.Expr:
    extreme: Callable[..., exp.Expr] = exp.Min if found.name in _FIRST else exp.Max
    value = found.value.copy()
    if len(rows) == 1 or not found.takes_rows:
        return _where(found, extreme(this=value))
    skips_nulls = found.keeps_nulls is False or found.arguments[1:] == (exp.true(),)
    of_rows = _where(found, extreme(this=_row(rows)), *([_is_known(value)] if skips_nulls else []))
    return exp.Dot(this=exp.Paren(this=of_rows), expression=_field(rows, value))


def _by_another(found: Aggregate, rows: Sequence[exp.Expr]) -> exp.Expr:
    value, by = (each.copy() for each in found.arguments)
    extreme: Callable[..., exp.Expr] = exp.Max if found.name == "max_by" else exp.Min
    of_rows = _where(found, extreme(this=_row(rows, by)), _is_known(by))
    return exp.Dot(this=exp.Paren(this=of_rows), expression=_field(rows, value))


def _text(found: Aggregate, rows: Sequence[exp.Expr]) -> exp.Expr:
    """Texts put together in the order that is asked for, and then of rows. Of distinct ones Spark takes no other order than
    by themselves."""
    if found.is_distinct and found.order is None:
        return _distinct_text(found)
    arguments = [each.copy() for each in found.arguments]
    keys = [] if found.order is None else [each.copy() for each in found.order.expressions]
    if found.is_distinct:
        arguments = [exp.Distinct(expressions=arguments)]
    else:
        known = {sql_of(each.this) for each in keys}
        keys += [
            exp.Ordered(this=each.copy(), desc=False, nulls_first=True)
            for each in rows
            if sql_of(each) not in known
        ]
    made = _aggregate(found.name.upper(), *arguments)
    return _where(found, exp.WithinGroup(this=made, expression=exp.Order(expressions=keys)))


def _distinct_text(found: Aggregate) -> exp.Expr:
    """Distinct texts by way of a sorted list: beside other aggregates of distinct values Spark 4.2 fails at an ORDER BY."""
    distinct = exp.Distinct(expressions=[found.value.copy()])
    listed = call("SORT_ARRAY", _where(found, _aggregate("COLLECT_LIST", distinct)))
    separators = [each.copy() for each in found.arguments[1:] if not isinstance(each, exp.Null)]
    joined = call("ARRAY_JOIN", listed, *(separators or [exp.Literal.string("")]))
    is_any = exp.GT(this=call("SIZE", listed.copy()), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=is_any, true=joined)])


def _aggregate(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.AnonymousAggFunc(this=name, expressions=list(arguments))


def _row(rows: Sequence[exp.Expr], by: exp.Expr | None = None) -> exp.Expr:
    """What is shown of a row as one value, ordered by another before if there is one."""
    parts = [*([] if by is None else [(0, by)]), *enumerate(rows, start=1)]
    return call("STRUCT", *(alias(each.copy(), f"{_FIELD}{at}") for at, each in parts))


def _field(rows: Sequence[exp.Expr], value: exp.Expr) -> exp.Identifier:
    at = [sql_of(each) for each in rows].index(sql_of(value))
    return exp.to_identifier(f"{_FIELD}{at + 1}", quoted=True)


def _is_known(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))


def _where(found: Aggregate, made: exp.Expr, *more: exp.Expr) -> exp.Expr:
    """The aggregate of those rows that its FILTER lets through, and that are wanted besides."""
    conditions = [*([] if found.condition is None else [found.condition.copy()]), *more]
    return exp.Filter(this=made, expression=exp.Where(this=exp.and_(*conditions))) if conditions else made
