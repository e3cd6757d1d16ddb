"""The FROM clause of a random view: tables, subqueries, VALUES, joined in every way; and LATERAL VIEW."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.testing.views.draft import EXACT, INTEGER, STRING, Column, Draft, Term, columns_of
from viewkeeper.testing.views.expressions import condition, equality, inequality, literal


@dataclass(frozen=True)
class From:
    """The clause after FROM, the columns in sight behind it, and the conditions that WHERE must have."""

    sql: str
    terms: tuple[Term, ...]
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Source:
    sql: str
    what: str
    """Equal for two sources that read the same."""
    alias: str
    columns: tuple[Column, ...]

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(column.of(self.alias) for column in self.columns)


def random_from(draft: Draft, depth: int) -> From:
    sources = [_source(draft, depth)]
    text, terms = sources[0].sql, sources[0].terms
    for _ in range(draft.pick((0, 0, 1, 1, 1, 2))):
        right = _source(draft, depth, again=sources[-1] if draft.chance(0.15) else None)
        if any(each.what == right.what for each in sources):
            draft.uses("self-join")
        sources.append(right)
        joined, terms = _joined(draft, terms, sources[-2], right)
        text = f"{text}{joined}"
    if draft.chance(0.08):
        return _with_comma(draft, From(text, terms), _source(draft, depth))
    if draft.chance(0.09):
        exploded, column = _explode(draft, terms)
        return From(f"{text} {exploded}", (*terms, column))
    return From(text, terms)


def _with_comma(draft: Draft, left: From, right: _Source) -> From:
    """The comma comes last: what is before it would not be in sight in a later ON."""
    draft.uses("comma join")
    equal = equality(draft, left.terms, right.terms) if draft.chance(0.8) else None
    return From(f"{left.sql}, {right.sql}", (*left.terms, *right.terms), () if equal is None else (equal,))


def plain_from(draft: Draft, depth: int) -> From:
    """One source."""
    source = _source(draft, depth)
    return From(source.sql, source.terms)


def _source(draft: Draft, depth: int, again: _Source | None = None) -> _Source:
    alias = draft.name("r")
    if again is not None and not again.what.startswith("("):
        return _Source(f"{again.what} AS {alias}", again.what, alias, again.columns)
    if draft.common and draft.chance(0.3):
        name, query = draft.pick(draft.common)
        return _Source(f"{name} AS {alias}", name, alias, query.columns)
    if depth > 0 and draft.chance(0.2):
        draft.uses("subquery in from")
        query = draft.subquery(draft, depth - 1)
        return _Source(f"({query.sql}) AS {alias}", "(", alias, query.columns)
    if draft.chance(0.05):
        return _values(draft, alias)
    table = draft.table()
    columns = [column for column in columns_of(table) if column.kind in EXACT]
    if sum(column.is_int for column in columns) > 1 and draft.chance(0.06):
        return (_pivot if draft.chance(0.5) else _unpivot)(draft, str(table.name), alias, columns)
    return _Source(f"{table.name} AS {alias}", str(table.name), alias, columns_of(table))


def _values(draft: Draft, alias: str) -> _Source:
    draft.uses("values")
    rows = [f"(1, {literal(draft, STRING)})", "(2, NULL)", f"({literal(draft, INTEGER)}, 'a')"]
    text = f"(VALUES {', '.join(rows[: draft.generator.randint(1, 3)])}) AS {alias}(x, y)"
    return _Source(text, "(values", alias, (Column("x", INTEGER), Column("y", STRING)))


def _pivot(draft: Draft, table: str, alias: str, columns: Sequence[Column]) -> _Source:
    """Not with count: where there is no row it is NULL for Spark, and 0 for DuckDB."""
    draft.uses("pivot")
    by, summed = draft.generator.sample([each for each in columns if each.is_int], 2)
    kept = [each for each in draft.some(columns, 1, 2) if each not in (by, summed)]
    names = ", ".join(each.name for each in (*kept, by, summed))
    function = draft.pick(("sum", "min", "max"))
    values = f"{function}({summed.name}) FOR {by.name} IN (1 AS p1, 2 AS p2)"
    text = f"(SELECT * FROM (SELECT {names} FROM {table} AS {draft.name('r')}) PIVOT ({values})) AS {alias}"
    return _Source(text, "(pivot", alias, (*kept, Column("p1", INTEGER), Column("p2", INTEGER)))


def _unpivot(draft: Draft, table: str, alias: str, columns: Sequence[Column]) -> _Source:
    draft.uses("unpivot")
    first, second = draft.generator.sample([each for each in columns if each.is_int], 2)
    kept = [each for each in draft.some(columns, 1, 2) if each not in (first, second)]
    names = ", ".join(each.name for each in (*kept, first, second))
    nulls = draft.pick(("", "INCLUDE NULLS "))
    turned = f"UNPIVOT {nulls}(v FOR n IN ({first.name} AS First, {second.name}))"
    text = f"(SELECT * FROM (SELECT {names} FROM {table} AS {draft.name('r')}) {turned}) AS {alias}"
    return _Source(text, "(unpivot", alias, (*kept, Column("n", STRING), Column("v", INTEGER)))


def _joined(
    draft: Draft, terms: tuple[Term, ...], last: _Source, right: _Source
) -> tuple[str, tuple[Term, ...]]:
    """The text of one more join, and what is in sight then."""
    both = (*terms, *right.terms)
    kind = draft.pick(("inner",) * 6 + ("left",) * 5 + ("right", "full") * 2 + ("semi", "anti", "cross"))
    if kind == "cross":
        draft.uses("cross join")
        return f" CROSS JOIN {right.sql}", both
    shared = _shared(last, right)
    if kind in ("inner", "left") and shared and draft.chance(0.2) and last.terms == terms:
        draft.uses("join using", f"{kind} join")
        return f" {kind.upper()} JOIN {right.sql} USING ({draft.pick(shared)})", both
    draft.uses(f"{kind} join")
    words = {"semi": "LEFT SEMI", "anti": "LEFT ANTI"}.get(kind, kind.upper())
    on = _on(draft, terms, right.terms)
    if kind == "anti":
        on = f"{on} AND {condition(draft, right.terms)}"
    return f" {words} JOIN {right.sql} ON {on}", terms if kind in ("semi", "anti") else both


def _shared(last: _Source, right: _Source) -> list[str]:
    """The columns that both have, of the same kind, and that are no columns of USING before."""
    kinds = {column.name: column.kind for column in last.columns}
    return [
        column.name
        for column in right.columns
        if kinds.get(column.name) == column.kind and column.is_stored and column.kind in (INTEGER, STRING)
    ]


def _on(draft: Draft, left: Sequence[Term], right: Sequence[Term]) -> str:
    parts = [equality(draft, left, right) if draft.chance(0.85) else None]
    if parts[0] is not None and draft.chance(0.1):
        parts.append(equality(draft, left, right))
    if parts[0] is None or draft.chance(0.08):
        parts.append(inequality(draft, left, right))
        if parts[-1] is not None:
            draft.uses("non-equi join")
    if draft.chance(0.15):
        draft.uses("one-sided on")
        parts.append(condition(draft, left if draft.chance(0.5) else right))
    found = [part for part in parts if part is not None]
    if found and draft.chance(0.1):
        draft.uses("or in on")
        found[-1] = f"({found[-1]} OR {condition(draft, right)})"
    if not found or draft.chance(0.04):
        draft.uses("constant on")
        found.append(draft.pick(("TRUE", "TRUE", "TRUE", "1 = 1", "1 = 0")))
    return " AND ".join(found)


def _explode(draft: Draft, terms: Sequence[Term]) -> tuple[str, Term]:
    """LATERAL VIEW explode(…) and the column that it adds."""
    alias, column = draft.name("e"), draft.name("x")
    integers = [term for term in terms if term.is_int]
    if integers and draft.chance(0.5):
        draft.uses("explode sequence")
        end = draft.pick(integers).sql
        # Spark counts down where the end is before the start, DuckDB does not.
        what = f"sequence(1, CASE WHEN {end} > 1 THEN {end} ELSE 1 END)"
    else:
        draft.uses("explode array")
        items = [term.sql for term in draft.some(integers, 0, 2)]
        what = f"array({', '.join([*items, '1', '2'])})"
    return f"LATERAL VIEW explode({what}) {alias} AS {column}", Term(f"{alias}.{column}", INTEGER)
