"""Which values matter in which columns: where a relation is joined with few rows, only few of its own count.

A limit says: whoever reads this relation needs no rows but those that have one of some values in a column. It goes
down through the tree as far as that stays true, and across equalities; what it reaches are scans, of which then only
some files are read. A scan that is read under a limit has few rows, and limits in turn what it is joined with. Leaving limits
out changes no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp

from viewkeeper.algebra.nodes import (
    Attribute,
    Constant,
    Derived,
    Generate,
    Group,
    InnerJoin,
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
    output_names,
)
from viewkeeper.algebra.to_sql import below
from viewkeeper.sql.binding import Column


@dataclass(frozen=True)
class Values:
    """The values that a column of a relation of the plan has."""

    relation: str
    column: str
    or_null: bool = False


Limits: TypeAlias = Mapping[Attribute, Values]
"""By alias and column, the column in lower case."""


Reading: TypeAlias = Callable[[Scan, Limits], "str | None"]
"""The relation of the plan that a scan is read as, if the limits leave few of its rows."""


def attribute_of(expression: exp.Expr) -> Attribute | None:
    inner = expression
    while isinstance(inner, exp.Paren):
        inner = inner.this
    return (inner.table, inner.name.lower()) if isinstance(inner, exp.Column) and inner.table else None


def limits_in(relation: Relation, limits: Limits, reading: Reading) -> Limits:
    """All limits that follow for the columns of scans in a relation. They are for reading the scans: what follows once
    must not be asked what follows from it, for it may only hold for rows that can have partners."""
    match relation:
        case Scan() | Constant():
            return limits
        case InnerJoin(sources, conditions):
            found = along_scans(sources, conditions, across(conditions, limits), reading)
            return _inside(sources, found, reading)
        case OuterJoin(left, right):
            found = _across_outer_join(relation, _through_nulls(relation, limits))
            return _inside((left, right), found, reading)
        case SemiJoin(left, right, conditions, is_anti):
            onto = aliases_of(right) if is_anti else None
            return _inside((left, right), across(conditions, limits, onto), reading)
        case Generate(source):
            return _inside((source,), limits, reading)
        case Derived(alias, query):
            mine = {name: values for (of, name), values in limits.items() if of == alias}
            return {**limits, **limits_in_query(query, mine, reading)}


def along(
    aliases: Iterable[str],
    conditions: Sequence[exp.Expr],
    limits: Limits,
    values: Callable[[str, Limits], Limits],
) -> tuple[Limits, Limits]:
    """The limits, and those that follow table by table in an inner join: the rows of a table that is read under a limit are
    few, and only they can have partners. `values` tells the values in the columns of such a table. Besides, all that is known
    then, of tables that are read already too."""
    found, known, waiting = dict(limits), dict(limits), list(aliases)
    while True:
        limited = {alias for alias, _ in found}
        alias = next((each for each in waiting if each in limited), None)
        if alias is None:
            return found, across(conditions, known)
        waiting.remove(alias)
        known = {**values(alias, found), **known}
        spread = across(conditions, known)
        found |= {key: each for key, each in spread.items() if key[0] in waiting}


def along_scans(
    sources: Sequence[Relation], conditions: Sequence[exp.Expr], limits: Limits, reading: Reading
) -> Limits:
    """The same for the scans among the sources of an inner join."""
    scans = {source.alias: source for source in sources if isinstance(source, Scan)}

    def values(alias: str, found: Limits) -> Limits:
        relation, columns = reading(scans[alias], found), scans[alias].input.columns
        return {} if relation is None else values_in(relation, alias, columns)

    return along(scans, conditions, limits, values)[0]


def values_in(relation: str, alias: str, columns: Iterable[Column]) -> Limits:
    """The values that a table's columns have, where it is read as this relation of the plan."""
    return {(alias, each.name.lower()): Values(relation, each.name) for each in columns}


def _inside(relations: Iterable[Relation], limits: Limits, reading: Reading) -> Limits:
    """The limits that are left of these inside of the relations, and what follows there."""
    found = dict(limits)
    for relation in relations:
        mine = aliases_of(relation)
        within = {key: values for key, values in found.items() if key[0] in mine}
        below_it = limits_in(relation, within, reading)
        found = {**{key: values for key, values in found.items() if key[0] not in mine}, **below_it}
    return found


def _through_nulls(join: OuterJoin, limits: Limits) -> Limits:
    """A row that a limit hides makes its partners look as if they had none, and NULLs come in its place: only where
    rows with NULL do not matter may the side that can be missing be limited."""
    optional = aliases_of(join.right) | (aliases_of(join.left) if join.is_full else frozenset())
    return {key: values for key, values in limits.items() if key[0] not in optional or not values.or_null}


def _across_outer_join(join: OuterJoin, limits: Limits) -> Limits:
    """Rows that are kept without a partner need not fulfil the condition: from their side a limit goes to the other and
    not back. Where only rows with partners matter, it goes everywhere."""
    left, right = aliases_of(join.left), aliases_of(join.right)
    of_left = {key: values for key, values in limits.items() if key[0] in left}
    of_right = {key: values for key, values in limits.items() if key[0] in right}
    if not join.is_full:
        found = {**limits, **across(join.conditions, of_right)}
        return across(join.conditions, found, onto=right)
    return {
        **across(join.conditions, of_left, onto=right),
        **across(join.conditions, of_right, onto=left),
        **limits,
    }


def across(conditions: Iterable[exp.Expr], limits: Limits, onto: frozenset[str] | None = None) -> Limits:
    """The limits, and what equalities make of them; for columns of these aliases, or all."""
    pairs: list[tuple[Attribute, Attribute, bool]] = []
    for condition in conditions:
        if isinstance(condition, (exp.EQ, exp.NullSafeEQ)):
            one, other = attribute_of(condition.this), attribute_of(condition.expression)
            if one is not None and other is not None:
                is_null_safe = isinstance(condition, exp.NullSafeEQ)
                pairs += [(one, other, is_null_safe), (other, one, is_null_safe)]
    found = dict(limits)
    growing = True
    while growing:
        growing = False
        for one, other, is_null_safe in pairs:
            if one in found and other not in found and (onto is None or other[0] in onto):
                values = found[one]
                found[other] = replace(values, or_null=is_null_safe)
                growing = True
    return found


def limits_in_query(query: Query, mine: Mapping[str, Values], reading: Reading) -> Limits:
    """The limits in a query, when only rows with such values in its columns (by name in lower case) matter."""
    if not mine:
        return {}
    match query:
        case TopRows():
            return {}
        case SetOperation(_, _, left, right):
            names = [name.lower() for name in output_names(left)]
            others = [name.lower() for name in output_names(right)]
            partner = {other: mine[name] for name, other in zip(names, others, strict=True) if name in mine}
            return {**limits_in_query(left, mine, reading), **limits_in_query(right, partner, reading)}
        case Project(source, items):
            shown = {item.name.lower(): item.expression for item in items if item.name.lower() in mine}
            wanted = [(expression, mine[name]) for name, expression in shown.items()]
            return limits_below(source, wanted, reading)


def limits_below(
    source: Relation | Group | Window, wanted: Iterable[tuple[exp.Expr, Values]], reading: Reading
) -> Limits:
    """The limits in a relation, when only rows with such values of these expressions over its outputs matter."""
    found: dict[Attribute, Values] = {}
    keys = {item.name for item in source.keys} if isinstance(source, Group) else set()
    partition = [attribute_of(each) for each in source.partition] if isinstance(source, Window) else []
    for expression, values in wanted:
        if isinstance(source, Group) and not (isinstance(expression, exp.Column) and expression.name in keys):
            continue
        attribute = attribute_of(below(expression, source))
        if attribute is not None and (not isinstance(source, Window) or attribute in partition):
            found.setdefault(attribute, values)
    relation = source.source if isinstance(source, (Group, Window)) else source
    return limits_in(relation, found, reading)
