"""Random subqueries in conditions and select lists: EXISTS, IN, scalar; correlated or not."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.testing.views.draft import (
    BOOLEAN,
    DATE,
    DECIMAL,
    INTEGER,
    STRING,
    Draft,
    Term,
    exact,
    of_kind,
)
from viewkeeper.testing.views.expressions import condition, equality, inequality, literal
from viewkeeper.testing.views.sources import From, plain_from, random_from


def condition_with_subqueries(draft: Draft, terms: Sequence[Term], depth: int) -> str:
    """A condition of which at least one part is a subquery: by itself, or under AND, OR, NOT or CASE."""
    inner = subquery_condition(draft, terms, depth)
    match draft.pick(("alone", "alone", "and", "or", "not", "case", "two")):
        case "and":
            return f"{inner} AND {condition(draft, terms)}"
        case "or":
            draft.uses("subquery under or")
            return f"({inner} OR {condition(draft, terms)})"
        case "not":
            draft.uses("subquery under not")
            return f"NOT ({inner})"
        case "case":
            draft.uses("subquery in case")
            return f"CASE WHEN {condition(draft, terms)} THEN {inner} ELSE {condition(draft, terms)} END"
        case "two":
            draft.uses("subquery under or")
            return f"({inner} OR {subquery_condition(draft, terms, depth)})"
        case _:
            return inner


def subquery_condition(draft: Draft, terms: Sequence[Term], depth: int) -> str:
    writers = [_exists, _exists, _in, _in, _comparison]
    return draft.pick(writers)(draft, terms, depth)


def _exists(draft: Draft, terms: Sequence[Term], depth: int) -> str:
    inside, where = _correlated(draft, terms, depth, 0.9)
    negated = draft.chance(0.5)
    draft.uses("not exists" if negated else "exists")
    return f"{'NOT ' if negated else ''}EXISTS (SELECT 1 FROM {inside.sql}{where})"


def _in(draft: Draft, terms: Sequence[Term], depth: int) -> str:
    before = set(draft.constructs)
    inside, where = _correlated(draft, terms, depth, 0.3)
    pairs = [
        (one, other)
        for one in exact(terms)
        for other in inside.terms
        if one.kind == other.kind and one.kind != DATE
    ]
    if not pairs:
        draft.constructs = before
        return _exists(draft, terms, depth)
    one, other = draft.pick(pairs)
    grouped = ""
    if _is_correlated(where, terms):
        draft.uses("correlated in")
    elif other.kind != BOOLEAN and draft.chance(0.3):
        draft.uses("grouped subquery", "group by", "max")
        grouped = f" GROUP BY {draft.pick(exact(inside.terms)).sql}"
    what = f"max({other.sql})" if grouped else other.sql
    negated = draft.chance(0.5)
    draft.uses("not in subquery" if negated else "in subquery")
    return f"{one.sql} {'NOT ' if negated else ''}IN (SELECT {what} FROM {inside.sql}{where}{grouped})"


def _comparison(draft: Draft, terms: Sequence[Term], depth: int) -> str:
    scalar = scalar_subquery(draft, terms, depth)
    others = of_kind(terms, scalar.kind)
    other = draft.pick(others).sql if others else literal(draft, scalar.kind)
    return f"{other} {draft.pick(('=', '<', '<=', '>=', '<>'))} {scalar.sql}"


def scalar_subquery(
    draft: Draft, terms: Sequence[Term], depth: int, kinds: Sequence[str] = (INTEGER, DECIMAL, STRING, DATE)
) -> Term:
    """One aggregate of a subquery, of one of these kinds; so there is one row whatever happens."""
    inside, where = _correlated(draft, terms, depth, 0.6)
    draft.uses("correlated scalar subquery" if _is_correlated(where, terms) else "scalar subquery")
    comparable = [term for term in inside.terms if term.kind in kinds]
    if not comparable or draft.chance(0.4):
        draft.uses("count")
        return Term(f"(SELECT count(*) FROM {inside.sql}{where})", INTEGER)
    term = draft.pick(comparable)
    call = draft.pick(("min", "max", "sum") if term.kind == INTEGER else ("min", "max"))
    draft.uses(call)
    return Term(f"(SELECT {call}({term.sql}) FROM {inside.sql}{where})", term.kind)


def _is_correlated(where: str, terms: Sequence[Term]) -> bool:
    return any(term.sql in where for term in terms)


def _correlated(draft: Draft, terms: Sequence[Term], depth: int, share: float) -> tuple[From, str]:
    """A FROM clause and its WHERE, which compares with the columns outside in this share of cases."""
    inside = (
        random_from(draft, depth - 1) if depth > 0 and draft.chance(0.25) else plain_from(draft, depth - 1)
    )
    parts = list(inside.conditions)
    if draft.chance(share):
        equal = equality(draft, inside.terms, terms) if draft.chance(0.9) else None
        parts += [equal] if equal is not None else []
        if equal is None or draft.chance(0.15):
            unequal = inequality(draft, inside.terms, terms)
            if unequal is not None:
                draft.uses("non-equi correlation")
                parts.append(unequal)
    if draft.chance(0.3):
        parts.append(condition(draft, inside.terms))
    return inside, f" WHERE {' AND '.join(parts)}" if parts else ""
