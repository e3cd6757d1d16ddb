"""Set operations.

    Δ (A UNION ALL B)   =  ΔA + ΔB
    Δ (A op B)          =  (A_new ⋉ K) op (B_new ⋉ K)  −  (A_old ⋉ K) op (B_old ⋉ K)      K = the rows of ΔA and ΔB

INTERSECT and EXCEPT, with ALL or without, decide row by row: a row that did not change on either side stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from viewkeeper.algebra.nodes import Item, Project, Query, SetKind, SetOperation, TopRows, output_names
from viewkeeper.algebra.to_sql import as_relation, set_operation
from viewkeeper.generated_names import HIDDEN_PREFIX, SIGN
from viewkeeper.maintenance.differential.derivation import Derivation, Signed, titles, union
from viewkeeper.maintenance.differential.limits import Values, limits_in_query
from viewkeeper.maintenance.plan import State
from viewkeeper.sql.rendering import alias, column, literal, select_from, semi_joined


def signed(derivation: Derivation, query: SetOperation) -> list[Signed]:
    names = output_names(query)
    left = derivation.signed(query.left)
    query = replace(query, right=_with_distinct_names(query.right, names))
    right = [
        Signed(_renamed(each.select, output_names(query.right), names), each.title)
        for each in derivation.signed(query.right)
    ]
    parts = left + right
    if query.kind is SetKind.UNION or not parts:
        return parts
    inner = as_relation(union([part.select for part in parts]), f"{HIDDEN_PREFIX}changed")
    affected = derivation.derive(
        f"find the affected rows: {titles(parts)}",
        f"{query.kind.value}_affected",
        select_from(inner, [column(name) for name in names]).distinct(copy=False),
    )
    found = []
    for state, sign, words in ((State.NEW, 1, "these rows now"), (State.OLD, -1, "these rows before")):
        both = set_operation(
            query.kind,
            query.is_all,
            _at(derivation, query.left, state, affected, names),
            _at(derivation, query.right, state, affected, names),
        )
        items = [column(name) for name in names]
        found.append(
            Signed(
                select_from(as_relation(both, f"{HIDDEN_PREFIX}rows"), [*items, alias(literal(sign), SIGN)]),
                words,
            )
        )
    return found


def _with_distinct_names(query: Query, names: tuple[str, ...]) -> Query:
    """The right side under the names of the left, if two of its own columns have the same: SELECT id, CAST(id AS DOUBLE)."""
    if len({name.lower() for name in output_names(query)}) == len(names):
        return query
    match query:
        case Project(_, items):
            renamed = (Item(name, item.expression) for name, item in zip(names, items, strict=True))
            return replace(query, items=tuple(renamed))
        case SetOperation(_, _, left):
            return replace(query, left=_with_distinct_names(left, names))
        case TopRows():
            return query


def _at(
    derivation: Derivation, query: Query, state: State, affected: str, names: tuple[str, ...]
) -> exp.Select:
    """One side, only at the affected rows, with the columns named as on the left."""
    side = f"{HIDDEN_PREFIX}side"
    own = output_names(query)
    values = {
        mine.lower(): Values(affected, name, or_null=True) for mine, name in zip(own, names, strict=True)
    }
    limits = limits_in_query(query, values, derivation.reading(lambda _: state))
    rows = as_relation(derivation.query_rows(query, state, limits), side)
    same = (
        exp.NullSafeEQ(this=column(mine, side), expression=column(name, affected))
        for mine, name in zip(own, names, strict=True)
    )
    items = [alias(column(mine, side), name) for mine, name in zip(own, names, strict=True)]
    return semi_joined(select_from(rows, items), affected, same)


def _renamed(select: exp.Query, own: tuple[str, ...], names: tuple[str, ...]) -> exp.Query:
    if own == names:
        return select
    relation = as_relation(select, f"{HIDDEN_PREFIX}side")
    items = [alias(column(mine), name) for mine, name in zip(own, names, strict=True)]
    return select_from(relation, [*items, column(SIGN)])
