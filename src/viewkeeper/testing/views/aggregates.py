"""Random aggregate calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from viewkeeper.testing.views.draft import (
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    INTEGER,
    STRING,
    Draft,
    Term,
    exact,
    of_kind,
)
from viewkeeper.testing.views.expressions import condition, value


def aggregate(draft: Draft, terms: Sequence[Term], exact_only: bool = False) -> Term:
    """A call over these columns; with a FILTER sometimes. Only of a kind that rounds nothing, if that is asked for."""
    writers: list[Callable[[Draft, Sequence[Term]], Term]] = [
        _count,
        _count,
        _count_distinct,
        _extreme,
        _extreme,
        _of_one_row,
        _of_one_row,
        _by_another,
        _by_another,
        _listed,
    ]
    writers += [_sum, _sum, _sum] if of_kind(terms, INTEGER) + of_kind(terms, DECIMAL) else []
    writers += [_sum_distinct, _bits, _bits] if of_kind(terms, INTEGER) else []
    writers += [_boolean] * 4 if of_kind(terms, BOOLEAN) else []
    if not exact_only:
        writers += [_average, _average, _deviation, _correlation] if of_kind(terms, INTEGER) else []
        writers += [_deviation, _deviation, _correlation] if of_kind(terms, DECIMAL) else []
        writers += [_sum_of_doubles] if [term for term in of_kind(terms, DOUBLE) if term.is_stored] else []
    found = draft.pick(writers)(draft, terms)
    if draft.chance(0.12) and not found.sql.startswith("array_join("):
        draft.uses("filter clause")
        found = Term(f"{found.sql} FILTER (WHERE {condition(draft, terms)})", found.kind)
    if found.sql.startswith("corr("):
        # Of fewer than two rows DuckDB's answer is NaN, Spark's NULL.
        return Term(f"nullif({found.sql}, CAST('NaN' AS DOUBLE))", DOUBLE)
    return found


def _count(draft: Draft, terms: Sequence[Term]) -> Term:
    draft.uses("count")
    return Term("count(*)" if draft.chance(0.5) else f"count({draft.pick(terms).sql})", INTEGER)


def _count_distinct(draft: Draft, terms: Sequence[Term]) -> Term:
    if not exact(terms):
        return _count(draft, terms)
    draft.uses("count distinct")
    return Term(f"count(DISTINCT {draft.pick(exact(terms)).sql})", INTEGER)


def _extreme(draft: Draft, terms: Sequence[Term]) -> Term:
    candidates = [term for term in terms if term.is_exact and term.kind != BOOLEAN]
    if not candidates:
        return _count(draft, terms)
    call = draft.pick(("min", "max"))
    draft.uses(call)
    found = draft.pick(candidates)
    return Term(f"{call}({found.sql})", found.kind)


def _of_one_row(draft: Draft, terms: Sequence[Term]) -> Term:
    candidates = exact(terms)
    if not candidates:
        return _count(draft, terms)
    call = draft.pick(("first", "last", "any_value"))
    draft.uses(call)
    found = draft.pick(candidates)
    return Term(f"{call}({found.sql})", found.kind)


def _by_another(draft: Draft, terms: Sequence[Term]) -> Term:
    candidates = exact(terms)
    if not candidates:
        return _count(draft, terms)
    call = draft.pick(("max_by", "min_by"))
    draft.uses(call)
    found = draft.pick(candidates)
    return Term(f"{call}({found.sql}, {draft.pick(candidates).sql})", found.kind)


def _listed(draft: Draft, terms: Sequence[Term]) -> Term:
    """Values in one string, which can be stored and compared as any other. Of no values DuckDB makes NULL, Spark an empty
    list."""
    candidates = of_kind(terms, INTEGER) + of_kind(terms, STRING)
    if not candidates:
        return _count(draft, terms)
    call = draft.pick(("collect_list", "collect_set", "listagg"))
    draft.uses(call)
    found = draft.pick(candidates).sql
    if call == "listagg":
        return Term(f"listagg(CAST({found} AS STRING), ',')", STRING)
    return Term(f"array_join({call}(CAST({found} AS STRING)), ',')", STRING)


def _sum(draft: Draft, terms: Sequence[Term]) -> Term:
    draft.uses("sum")
    kind = draft.pick([term.kind for term in terms if term.kind in (INTEGER, DECIMAL)])
    return Term(f"sum({value(draft, terms, kind).sql})", kind)


def _sum_distinct(draft: Draft, terms: Sequence[Term]) -> Term:
    draft.uses("sum distinct")
    return Term(f"sum(DISTINCT {draft.pick(of_kind(terms, INTEGER)).sql})", INTEGER)


def _sum_of_doubles(draft: Draft, terms: Sequence[Term]) -> Term:
    draft.uses("sum")
    stored = [term for term in of_kind(terms, DOUBLE) if term.is_stored]
    return Term(f"sum({draft.pick(stored).sql})", DOUBLE)


def _boolean(draft: Draft, terms: Sequence[Term]) -> Term:
    call = draft.pick(("bool_and", "bool_or"))
    draft.uses(call)
    return Term(f"{call}({draft.pick(of_kind(terms, BOOLEAN)).sql})", BOOLEAN)


def _average(draft: Draft, terms: Sequence[Term]) -> Term:
    draft.uses("avg")
    return Term(f"avg({draft.pick(of_kind(terms, INTEGER)).sql})", DOUBLE)


def _deviation(draft: Draft, terms: Sequence[Term]) -> Term:
    numbers = of_kind(terms, INTEGER) + of_kind(terms, DECIMAL)
    if draft.chance(0.3):
        draft.uses("covariance")
        call = draft.pick(("covar_pop", "covar_samp"))
        return Term(f"{call}({draft.pick(numbers).sql}, {draft.pick(numbers).sql})", DOUBLE)
    draft.uses("stddev")
    call = draft.pick(("stddev_samp", "stddev_pop", "var_samp", "var_pop"))
    return Term(f"{call}({draft.pick(numbers).sql})", DOUBLE)


def _correlation(draft: Draft, terms: Sequence[Term]) -> Term:
    draft.uses("corr")
    numbers = of_kind(terms, INTEGER) + of_kind(terms, DECIMAL)
    return Term(f"corr({draft.pick(numbers).sql}, {draft.pick(numbers).sql})", DOUBLE)


def _bits(draft: Draft, terms: Sequence[Term]) -> Term:
    call = draft.pick(("bit_and", "bit_or", "bit_xor"))
    draft.uses(call)
    return Term(f"{call}({draft.pick(of_kind(terms, INTEGER)).sql})", INTEGER)
