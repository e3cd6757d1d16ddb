"""Random queries: selections, groups, sets, windows, the first rows; nested in each other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from viewkeeper.testing.tables import Schema
from viewkeeper.testing.views.aggregates import aggregate
from viewkeeper.testing.views.draft import BOOLEAN, DOUBLE, INTEGER, Column, Draft, Query, Term, exact
from viewkeeper.testing.views.expressions import combined, condition, value
from viewkeeper.testing.views.sources import From, random_from
from viewkeeper.testing.views.subqueries import condition_with_subqueries, scalar_subquery, subquery_condition
from viewkeeper.testing.views.windows import first_rows, window_query

DEEPEST = 3


@dataclass(frozen=True)
class RandomView:
    """A query in Spark SQL, and the names of the constructs in it."""

    text: str
    constructs: frozenset[str]


def random_view(
    generator: random.Random, schema: Schema, largest: int | None = None, may_fail: bool = False
) -> RandomView:
    """A view over tables of the schema; it reads at least one, and has at most so many characters. One that may fail divides,
    sometimes by zero."""
    while True:
        draft = Draft(generator, schema, random_query, may_fail)
        query = (
            _with_common(draft) if draft.chance(0.15) else random_query(draft, draft.pick((1, 2, 2, DEEPEST)))
        )
        is_small = largest is None or len(query.sql) <= largest
        if is_small and any(f"{table.name} AS" in query.sql for table in schema.tables):
            return RandomView(query.sql, frozenset(draft.constructs))


def _with_common(draft: Draft) -> Query:
    """WITH c AS (…) and a query that reads it once or more."""
    draft.uses("cte")
    name = draft.name("c")
    common = random_query(draft, 1)
    draft.common.append((name, common))
    before = set(draft.constructs)
    while not (times := (query := random_query(draft, 1)).sql.count(f"{name} AS")):
        draft.constructs = set(before)
    if times > 1:
        draft.uses("cte used twice")
    return Query(f"WITH {name} AS ({common.sql}) {query.sql}", query.columns)


def random_query(draft: Draft, depth: int) -> Query:
    writers: list[Callable[[Draft, int], Query]] = [_distinct, _first_rows, _first_rows]
    writers += [_selection] * 6
    writers += [_grouped] * 6
    writers += [_window] * 4
    writers += [_grouping_sets] * 2
    if depth > 0:
        writers += [_star]
        writers += [_set_operation] * 4
    return draft.pick(writers)(draft, depth)


def _where(draft: Draft, source: From, depth: int) -> str:
    parts = list(source.conditions)
    if depth > 0 and draft.chance(0.3):
        parts.append(condition_with_subqueries(draft, source.terms, depth))
    elif draft.chance(0.35):
        parts.append(combined(draft, lambda: condition(draft, source.terms)))
    if parts:
        draft.uses("where")
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _named(draft: Draft, terms: Sequence[Term]) -> tuple[str, tuple[Column, ...]]:
    """A select list of these, each under a new name."""
    columns = tuple(Column(draft.name("c"), term.kind, is_int=term.is_int) for term in terms)
    shown = [f"{term.sql} AS {column.name}" for term, column in zip(terms, columns, strict=True)]
    return ", ".join(shown), columns


def _selection(draft: Draft, depth: int, exact_only: bool = False) -> Query:
    source = random_from(draft, depth)
    where = _where(draft, source, depth)
    terms = exact(source.terms) if exact_only else source.terms
    items = [value(draft, terms) for _ in range(draft.generator.randint(1, 4))]
    if depth > 0 and draft.chance(0.15):
        draft.uses("subquery in select list")
        items.append(_subquery_value(draft, source.terms, depth))
    shown, columns = _named(draft, items)
    return Query(f"SELECT {shown} FROM {source.sql}{where}", columns)


def _subquery_value(draft: Draft, terms: Sequence[Term], depth: int) -> Term:
    match draft.pick(("scalar", "scalar", "condition", "case")):
        case "scalar":
            return scalar_subquery(draft, terms, depth)
        case "condition":
            return Term(f"({subquery_condition(draft, terms, depth)})", BOOLEAN)
        case _:
            draft.uses("subquery in case", "case")
            inner = subquery_condition(draft, terms, depth)
            return Term(f"CASE WHEN {inner} THEN 1 WHEN {condition(draft, terms)} THEN 2 END", INTEGER)


def _star(draft: Draft, depth: int) -> Query:
    draft.uses("star", "subquery in from")
    query, alias = random_query(draft, depth - 1), draft.name("r")
    terms = [column.of(alias) for column in query.columns]
    where = f" WHERE {combined(draft, lambda: condition(draft, terms))}"
    return Query(f"SELECT * FROM ({query.sql}) AS {alias}{where}", query.columns)


def _distinct(draft: Draft, depth: int) -> Query:
    draft.uses("distinct")
    query = _selection(draft, depth, exact_only=True)
    return Query(query.sql.replace("SELECT ", "SELECT DISTINCT ", 1), query.columns)


# --------------------------------------------------------------------------------------------------- groups


def _grouped(draft: Draft, depth: int, exact_only: bool = False) -> Query:
    source = random_from(draft, depth)
    where = _where(draft, source, depth)
    keys = [_key(draft, source) for _ in range(draft.pick((0, 1, 1, 1, 2)))]
    keys = list({key.sql: key for key in keys}.values()) if exact(source.terms) else []
    draft.uses("group by" if keys else "one group")
    shown_keys = keys
    if keys and draft.chance(0.1):
        draft.uses("hidden group key")
        shown_keys = keys[1:]
    calls = [aggregate(draft, source.terms, exact_only) for _ in range(draft.generator.randint(1, 3))]
    if draft.chance(0.15):
        calls.append(_around_aggregate(draft, source.terms, exact_only))
    shown, columns = _named(draft, [*shown_keys, *calls])
    grouping = f" GROUP BY {', '.join(key.sql for key in keys)}" if keys else ""
    having = _having(draft, source, keys, depth) if draft.chance(0.2) else ""
    return Query(f"SELECT {shown} FROM {source.sql}{where}{grouping}{having}", columns)


def _key(draft: Draft, source: From) -> Term:
    columns = exact(source.terms)
    if not columns or not draft.chance(0.25):
        return draft.pick(columns or source.terms)
    key = value(draft, columns)
    if any(term.sql == key.sql for term in source.terms) or not _mentions(key, columns):
        return draft.pick(columns)
    draft.uses("group by expression")
    return key


def _mentions(term: Term, columns: Sequence[Term]) -> bool:
    return any(column.sql in term.sql for column in columns)


def _around_aggregate(draft: Draft, terms: Sequence[Term], exact_only: bool) -> Term:
    draft.uses("aggregate in expression", "count")
    if draft.may_fail and not exact_only and draft.chance(0.4):
        draft.uses("division")
        above = draft.pick(("count(*)", f"count({draft.pick(terms).sql})"))
        below = draft.pick(("count(*)", "count(*)", f"(count(*) - {draft.pick((1, 2, 7))})"))
        return Term(f"{above} / {below}", DOUBLE)
    call = aggregate(draft, terms, exact_only=True)
    if call.kind != INTEGER:
        return Term(f"CASE WHEN count(*) > 1 THEN {call.sql} END", call.kind)
    if draft.chance(0.3):
        return Term(f"{call.sql} > 1", BOOLEAN)
    return Term(draft.pick((f"COALESCE({call.sql}, 0) + count(*)", f"{call.sql} - 1")), INTEGER)


def _having(draft: Draft, source: From, keys: Sequence[Term], depth: int) -> str:
    draft.uses("having", "count")
    if depth > 0 and draft.chance(0.5):
        draft.uses("subquery in having")
        outside = [key for key in keys if key in source.terms]
        return f" HAVING count(*) <= {scalar_subquery(draft, outside, depth, (INTEGER,)).sql}"
    if draft.chance(0.5):
        return f" HAVING count(*) {draft.pick(('>', '<', '<>'))} {draft.pick(('1', '2'))}"
    call = aggregate(draft, source.terms, exact_only=True)
    if call.kind == INTEGER:
        return f" HAVING {call.sql} {draft.pick(('>', '<='))} {draft.pick(('1', '2', 'count(*)'))}"
    return f" HAVING {call.sql} IS NOT NULL"


def _grouping_sets(draft: Draft, depth: int) -> Query:
    source = random_from(draft, depth)
    keys = draft.some(sorted(set(exact(source.terms)), key=lambda term: term.sql), 1, 2)
    if not keys:
        return _grouped(draft, depth)
    where = _where(draft, source, depth)
    kind = draft.pick(("rollup", "cube", "grouping sets"))
    draft.uses(kind)
    names = [key.sql for key in keys]
    inside = ", ".join(names)
    grouping = f"{kind.upper()} ({inside})"
    if kind == "grouping sets":
        grouping = f"GROUPING SETS ({', '.join([f'({inside})', *(f'({name})' for name in names[1:]), '()'])})"
    calls = [aggregate(draft, source.terms) for _ in range(draft.generator.randint(1, 2))]
    if draft.chance(0.4):
        draft.uses("grouping")
        calls.append(Term(f"grouping({names[0]})", INTEGER))
    shown, columns = _named(draft, [*keys, *calls])
    # Of no rows at all, DuckDB makes a row for the empty grouping set, Spark none.
    return Query(f"SELECT {shown} FROM {source.sql}{where} GROUP BY {grouping} HAVING count(*) > 0", columns)


# ----------------------------------------------------------------------------------------------------- sets


def _set_operation(draft: Draft, depth: int) -> Query:
    """Two or three operands; the names of the columns are those of the first."""
    first = _operand(draft, depth)
    operator = _operator(draft)
    text = f"{first.sql} {operator} "
    second = _operand_like(draft, first, depth, operator.startswith("INTERSECT"))
    if not draft.chance(0.25):
        return Query(f"{text}{second}", first.columns)
    draft.uses("three operands")
    operator, third = _operator(draft), _operand_like(draft, first, depth)
    if draft.chance(0.5):
        return Query(f"({text}{second}) {operator} {third}", first.columns)
    return Query(f"{text}({second} {operator} {third})", first.columns)


def _operator(draft: Draft) -> str:
    operators = ("union", "union all", "union all", "intersect", "intersect all", "except", "except all")
    operator = draft.pick(operators)
    draft.uses(operator)
    return operator.upper()


def _operand(draft: Draft, depth: int) -> Query:
    if draft.chance(0.2):
        return _grouped(draft, min(depth, 1), exact_only=True)
    return _selection(draft, min(depth, 1), exact_only=True)


def _operand_like(draft: Draft, first: Query, depth: int, has_to_meet: bool = False) -> str:
    """Columns of the same kinds; often most of the same rows, so that the operands have something in common."""
    if draft.chance(0.85 if has_to_meet else 0.4):
        draft.uses("subquery in from", "where")
        alias = draft.name("r")
        terms = [column.of(alias) for column in first.columns]
        return f"SELECT * FROM ({first.sql}) AS {alias} WHERE {condition(draft, terms)}"
    source = random_from(draft, min(depth, 1) - 1)
    where = _where(draft, source, min(depth, 1) - 1)
    shown, _ = _named(draft, [value(draft, source.terms, column.kind) for column in first.columns])
    return f"SELECT {shown} FROM {source.sql}{where}"


# ---------------------------------------------------------------------------------------------------- order


def _window(draft: Draft, depth: int) -> Query:
    source = random_from(draft, depth)
    if not exact(source.terms):
        return _grouped(draft, depth)
    return window_query(draft, source.sql, source.terms, _where(draft, source, depth))


def _first_rows(draft: Draft, depth: int) -> Query:
    return first_rows(draft, _operand(draft, depth))
