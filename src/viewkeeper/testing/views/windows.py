"""Random window functions, and ORDER BY with LIMIT: always over an order that leaves no choice."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.testing.views.draft import INTEGER, Column, Draft, Query, Term, exact, of_kind


def window_query(draft: Draft, source: str, terms: Sequence[Term], where: str) -> Query:
    """Some columns, and windows over them. Rows that are equal in these are ordered anyhow: nobody can tell."""
    used = draft.some(sorted(set(exact(terms)), key=lambda term: term.sql), 1, 3)
    items = [*used, *(_call(draft, used) for _ in range(draft.pick((1, 1, 2))))]
    columns = tuple(Column(draft.name("c"), term.kind, is_int=term.is_int) for term in items)
    shown = [f"{term.sql} AS {column.name}" for term, column in zip(items, columns, strict=True)]
    query = f"SELECT {', '.join(shown)} FROM {source}{where}"
    construct = draft.pick(("plain",) * 16 + ("first of each", "qualify", "named window", "named window"))
    if construct == "plain":
        return Query(query, columns)
    draft.uses(construct)
    window = f"({_partition(draft, used)}{_order(draft, used)})"
    if construct == "named window":
        draft.uses("window count")
        counted = Column(draft.name("c"), INTEGER)
        query = f"SELECT {', '.join(shown)}, count(*) OVER w AS {counted.name} FROM {source}{where}"
        return Query(f"{query} WINDOW w AS {window}", (*columns, counted))
    draft.uses("row_number")
    first = f"row_number() OVER {window}"
    # Of rows that tie any may be kept, so nothing is shown that tells them apart.
    columns, shown = columns[: len(used)], shown[: len(used)]
    query = f"SELECT {', '.join(shown)} FROM {source}{where}"
    if construct == "qualify":
        return Query(f"{query} QUALIFY {first} <= 2", columns)
    draft.uses("subquery in from")
    alias, number = draft.name("r"), draft.name("n")
    names = ", ".join(f"{alias}.{column.name}" for column in columns)
    numbered = f"SELECT {', '.join(shown)}, {first} AS {number} FROM {source}{where}"
    return Query(f"SELECT {names} FROM ({numbered}) AS {alias} WHERE {alias}.{number} <= 2", columns)


def _call(draft: Draft, used: Sequence[Term]) -> Term:
    partition = _partition(draft, used)
    integers = of_kind(used, INTEGER)
    names = ["rank", "dense_rank", "row_number", "lag", "first_value", "window count", "window min"]
    name = draft.pick(names + ["window sum"] * (2 if integers else 0))
    draft.uses(name)
    term = draft.pick(used)
    match name:
        case "rank" | "dense_rank":
            return Term(f"{name}() OVER ({partition}{_order(draft, draft.some(used, 1, 2))})", INTEGER)
        case "row_number":
            return Term(f"row_number() OVER ({partition}{_order(draft, used)})", INTEGER)
        case "lag" | "first_value":
            return Term(f"{name}({term.sql}) OVER ({partition}{_order(draft, used)})", term.kind)
        case "window count":
            return Term(f"count({term.sql}) OVER ({_framed(draft, partition, used)})", INTEGER)
        case "window min":
            return Term(f"min({term.sql}) OVER ({_framed(draft, partition, used)})", term.kind)
        case _:
            return Term(f"sum({draft.pick(integers).sql}) OVER ({_framed(draft, partition, used)})", INTEGER)


def _partition(draft: Draft, used: Sequence[Term]) -> str:
    if draft.chance(0.2):
        draft.uses("window over all")
        return ""
    return f"PARTITION BY {', '.join(term.sql for term in draft.some(used, 1, 2))} "


def _framed(draft: Draft, partition: str, used: Sequence[Term]) -> str:
    """All of the partition, the rows up to this one, or a frame of rows."""
    match draft.pick(("all", "ordered", "framed")):
        case "all":
            return partition.strip()
        case "ordered":
            return f"{partition}{_order(draft, draft.some(used, 1, 2))}"
        case _:
            draft.uses("window frame")
            start = draft.pick(("1 PRECEDING", "UNBOUNDED PRECEDING"))
            end = draft.pick(("CURRENT ROW", "1 FOLLOWING"))
            return f"{partition}{_order(draft, used)} ROWS BETWEEN {start} AND {end}"


def _order(draft: Draft, terms: Sequence[Term]) -> str:
    return f"ORDER BY {_ordering(draft, [term.sql for term in terms])}"


def _ordering(draft: Draft, names: Sequence[str]) -> str:
    directions = ("ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST")
    shuffled = draft.generator.sample(names, len(names))
    return ", ".join(f"{name} {draft.pick(directions)}" for name in shuffled)


def first_rows(draft: Draft, query: Query) -> Query:
    """The first rows in an order by all columns."""
    draft.uses("limit")
    text = f"{query.sql} ORDER BY {_ordering(draft, [column.name for column in query.columns])}"
    text = f"{text} LIMIT {draft.pick((1, 2, 3, 5))}"
    if draft.chance(0.3):
        draft.uses("offset")
        text = f"{text} OFFSET {draft.pick((1, 1, 2))}"
    return Query(text, query.columns)
