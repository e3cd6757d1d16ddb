"""Random values and conditions over the columns in sight, without subqueries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from viewkeeper.testing.values import DATES, DECIMALS, DOUBLES, INTEGERS, STRINGS
from viewkeeper.testing.views.draft import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    EXACT,
    INTEGER,
    STRING,
    Draft,
    Term,
    of_kind,
)

_COMPARISONS = ("=", "<>", "<>", "<", "<=", "<=", ">", ">=", ">=")
"""Mostly those that let many rows pass: a view without rows tells little."""


def literal(draft: Draft, kind: str) -> str:
    match kind:
        case "integer":
            return str(draft.pick(INTEGERS))
        case "decimal":
            return str(draft.pick(DECIMALS))
        case "string":
            return f"'{draft.pick(STRINGS)}'"
        case "date":
            return f"DATE '{draft.pick(DATES)}'"
        case "boolean":
            return draft.pick(("TRUE", "FALSE"))
        case _:
            return f"CAST('{draft.pick(DOUBLES)}' AS DOUBLE)"


# --------------------------------------------------------------------------------------------------- values


def value(draft: Draft, terms: Sequence[Term], kind: str | None = None) -> Term:
    """A column, or an expression over columns; of the given kind, or of any."""
    if kind is None:
        kind = draft.pick(terms).kind if terms else INTEGER
    columns = of_kind(terms, kind)
    if not columns:
        return Term(literal(draft, kind), kind)
    if draft.chance(0.65):
        return draft.pick(columns)
    writers: list[Callable[[Draft, Sequence[Term], list[Term], str], Term]] = [_case, _coalesce]
    stored = [term for term in columns if term.is_stored]
    if stored and kind in (INTEGER, DECIMAL, DOUBLE):
        writers += [_arithmetic, _arithmetic]
    if kind == STRING:
        writers += [_string_function, _string_function]
    if kind == INTEGER and of_kind(terms, DATE):
        writers.append(_date_function)
    return draft.pick(writers)(draft, terms, columns, kind)


def _case(draft: Draft, terms: Sequence[Term], columns: list[Term], kind: str) -> Term:
    draft.uses("case")
    otherwise = draft.pick(("", f" ELSE {literal(draft, kind)}", f" ELSE {draft.pick(columns).sql}"))
    return Term(f"CASE WHEN {condition(draft, terms)} THEN {draft.pick(columns).sql}{otherwise} END", kind)


def _coalesce(draft: Draft, terms: Sequence[Term], columns: list[Term], kind: str) -> Term:
    draft.uses("coalesce")
    parts = [term.sql for term in draft.some(columns, 1, 2)]
    return Term(f"COALESCE({', '.join(parts)}, {literal(draft, kind)})", kind)


def _arithmetic(draft: Draft, terms: Sequence[Term], columns: list[Term], kind: str) -> Term:
    draft.uses("arithmetic")
    stored = [term for term in columns if term.is_stored]
    one, other = draft.pick(stored).sql, draft.pick(stored).sql
    if kind == INTEGER and draft.chance(0.4):
        return Term(draft.pick((f"{one} % 2", f"{one} % 3", f"abs({one})", f"-{one}")), kind)
    operator = draft.pick(("+", "-", "*"))
    return Term(f"{one} {operator} {other if draft.chance(0.6) else draft.pick(('1', '2'))}", kind)


def _string_function(draft: Draft, terms: Sequence[Term], columns: list[Term], kind: str) -> Term:
    draft.uses("string function")
    one, other = draft.pick(columns).sql, draft.pick(columns).sql
    return Term(draft.pick((f"upper({one})", f"concat({one}, {other})", f"substring({one}, 1, 1)")), kind)


def _date_function(draft: Draft, terms: Sequence[Term], columns: list[Term], kind: str) -> Term:
    draft.uses("date function")
    date = draft.pick(of_kind(terms, DATE)).sql
    return Term(draft.pick((f"month({date})", f"day({date})", f"datediff({date}, DATE '2024-01-01')")), kind)


# ----------------------------------------------------------------------------------------------- conditions


def condition(draft: Draft, terms: Sequence[Term]) -> str:
    """One comparison of columns in sight; it may be unknown."""
    comparable = [term for term in terms if term.is_exact or term.is_stored]
    if not comparable:
        return "1 = 1"
    term = draft.pick(comparable)
    writers = [_against_literal, _against_literal, _against_column, _against_column, _is_null, _in_list]
    writers += {
        INTEGER: [_between],
        DATE: [_between],
        STRING: [_like],
        BOOLEAN: [_boolean_column] * 4,
    }.get(term.kind, [])
    return draft.pick(writers)(draft, term, of_kind(comparable, term.kind))


def _against_literal(draft: Draft, term: Term, same_kind: Sequence[Term]) -> str:
    return f"{term.sql} {draft.pick(_COMPARISONS)} {literal(draft, term.kind)}"


def _against_column(draft: Draft, term: Term, same_kind: Sequence[Term]) -> str:
    others = [each for each in same_kind if each != term]
    if not others:
        return _against_literal(draft, term, same_kind)
    return compare(draft, term, draft.pick(others), draft.pick(_COMPARISONS))


def compare(draft: Draft, one: Term, other: Term, operator: str) -> str:
    if operator == "=" and draft.chance(0.15):
        draft.uses("null-safe equality")
        operator = "<=>"
    return f"{one.sql} {operator} {other.sql}"


def _is_null(draft: Draft, term: Term, same_kind: Sequence[Term]) -> str:
    draft.uses("is null")
    is_negated = _is_key_like(term) or draft.chance(0.6)
    return f"{term.sql} IS {'NOT ' if is_negated else ''}NULL"


def _in_list(draft: Draft, term: Term, same_kind: Sequence[Term]) -> str:
    draft.uses("in list")
    items = [literal(draft, term.kind) for _ in range(draft.generator.randint(2, 4))]
    items += ["NULL"] if draft.chance(0.08) else []
    return f"{term.sql} {draft.pick(('', 'NOT '))}IN ({', '.join(items)})"


def _between(draft: Draft, term: Term, same_kind: Sequence[Term]) -> str:
    draft.uses("between")
    least, most = ("0", "5") if term.kind == INTEGER else ("DATE '2024-01-01'", "DATE '2024-03-01'")
    ends = draft.pick(((least, most), (least, most), (draft.pick(same_kind).sql, most)))
    return f"{term.sql} BETWEEN {' AND '.join(ends)}"


def _like(draft: Draft, term: Term, same_kind: Sequence[Term]) -> str:
    draft.uses("like")
    return f"{term.sql} {draft.pick(('', 'NOT '))}LIKE '{draft.pick(('a%', '%b', '_', '_%'))}'"


def _boolean_column(draft: Draft, term: Term, same_kind: Sequence[Term]) -> str:
    draft.uses("boolean column")
    return draft.pick((term.sql, f"NOT {term.sql}", f"{term.sql} IS TRUE", f"{term.sql} IS NOT FALSE"))


def combined(draft: Draft, leaf: Callable[[], str], depth: int = 2) -> str:
    """Conditions joined by AND, OR and NOT."""
    if depth == 0 or draft.chance(0.6):
        return leaf()
    one, other = combined(draft, leaf, depth - 1), combined(draft, leaf, depth - 1)
    match draft.pick(("and", "and", "or", "or", "not")):
        case "and":
            return f"({one} AND {other})"
        case "or":
            draft.uses("or")
            return f"({one} OR {other})"
        case _:
            draft.uses("not")
            return f"NOT ({one})"


def equality(draft: Draft, left: Sequence[Term], right: Sequence[Term]) -> str | None:
    """A column of one side equals one of the other, if any kind is on both; keys meet most often."""
    pairs = [
        (one, other)
        for one in left
        for other in right
        if one.kind == other.kind and one.kind in EXACT and one.kind != BOOLEAN
    ]
    if not pairs:
        return None
    likely = [pair for pair in pairs if _is_key_like(pair[0]) and _is_key_like(pair[1])]
    one, other = draft.pick(likely if likely and draft.chance(0.6) else pairs)
    return compare(draft, one, other, "=")


def _is_key_like(term: Term) -> bool:
    return term.sql.partition(".")[2][:1] in ("k", "f", "u")


def inequality(draft: Draft, left: Sequence[Term], right: Sequence[Term]) -> str | None:
    pairs = [
        (one, other)
        for one in left
        for other in right
        if one.kind == other.kind and one.kind in (INTEGER, DECIMAL, STRING, DATE)
    ]
    if not pairs:
        return None
    one, other = draft.pick(pairs)
    return f"{one.sql} {draft.pick(('<', '<=', '>', '<>'))} {other.sql}"
