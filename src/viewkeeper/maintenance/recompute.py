"""The recompute strategy: evaluate the whole query, and write only the bag difference.

With N the query's bag and O the stored bag, a row r that N holds n times and O holds m times gives
n − m insertions or m − n deletions. Copies are numbered, so that equal rows can be told apart:

    n > m: insert the copies m+1 … n        n < m: delete the copies n+1 … m
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from viewkeeper.generated_names import (
    CHANGE_KIND,
    COPY_NUMBER,
    DELETED,
    IDENTITY,
    INSERTED,
    OLD_COUNT,
    SIGN,
    SIGNED_COUNT,
    query_relation,
    state_relation,
)
from viewkeeper.maintenance.comparable import comparable, is_comparable_in_merge
from viewkeeper.maintenance.plan import (
    ApplyChangeSet,
    EvaluateQuery,
    LoadRows,
    MaintenancePlan,
    Read,
    State,
    Step,
    Strategy,
    WriteChangeSet,
)
from viewkeeper.sql.binding import BoundQuery, Column
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.rendering import (
    alias,
    call,
    column,
    explode_sequence,
    literal,
    relation_named,
    render,
    select_as_stored,
    select_from,
    union_all,
)
from viewkeeper.sql.types import as_stored


def plan_load(
    view: QualifiedName, query: BoundQuery, columns: Sequence[Column], reason: str
) -> MaintenancePlan:
    """The first load of a view."""
    evaluate = _evaluate(view, query, columns)
    return MaintenancePlan(
        view, Strategy.RECOMPUTE, reason, (evaluate, LoadRows(_numbered_rows(evaluate.relation, columns), ()))
    )


def plan_recompute(
    view: QualifiedName, view_id: str, query: BoundQuery, columns: Sequence[Column], reason: str
) -> MaintenancePlan:
    """Recompute an existing view, and change only the rows that differ."""
    evaluate = _evaluate(view, query, columns)
    stem = _stem(view, query)
    old = Read(state_relation(stem, "old"), view_id, view, State.OLD)
    changes = state_relation(stem, "changes")
    steps: tuple[Step, ...] = (
        evaluate,
        WriteChangeSet(_bag_difference(evaluate.relation, old.relation, columns), (old,)),
        ApplyChangeSet(_merge(stem, changes, columns), stem, changes),
    )
    return MaintenancePlan(view, Strategy.RECOMPUTE, reason, steps)


def _stem(view: QualifiedName, query: BoundQuery) -> str:
    """The view's own name in generated SQL, distinct from the relations its query reads."""
    stem, number = view.relation_stem, 2
    taken = {found.relation.lower() for found in query.inputs}
    while stem.lower() in taken:
        stem, number = f"{view.relation_stem}{number}", number + 1
    return stem


def _evaluate(view: QualifiedName, query: BoundQuery, columns: Sequence[Column]) -> EvaluateQuery:
    reads = tuple(
        Read(state_relation(found.relation, "new"), found.object_id, found.name, State.NEW)
        for found in query.inputs
    )
    text = query.text_over(lambda found: state_relation(found.relation, "new")).text
    if any(as_stored(each.data_type) != each.data_type for each in columns):
        text = select_as_stored(text, [(each.name, each.data_type) for each in columns])
    return EvaluateQuery(query_relation(_stem(view, query)), text, reads)


def _grouped(relation: exp.Expr, columns: Sequence[Column], counts: Sequence[exp.Expr]) -> exp.Select:
    """The distinct rows of a relation with counts; types without equality are grouped by a stand-in."""
    items: list[exp.Expr] = []
    keys: list[exp.Expr] = []
    for each in columns:
        key = comparable(column(each.name), each.data_type)
        keys.append(key)
        plain = isinstance(key, exp.Column)
        items.append(column(each.name) if plain else alias(call("ANY_VALUE", column(each.name)), each.name))
    return select_from(relation, [*items, *counts]).group_by(*keys)


def _numbered_rows(relation: str, columns: Sequence[Column]) -> str:
    """
    >>> from viewkeeper.sql.types import Simple
    >>> print(_numbered_rows("v_query", [Column("a", Simple("INT"))]))
    SELECT
      `a`,
      `_vk_copy`
    FROM (
      SELECT
        `a`,
        COUNT(*) AS `_vk_count`
      FROM `v_query`
      GROUP BY
        `a`
    )
    LATERAL VIEW
    EXPLODE(SEQUENCE(1, CAST(`_vk_count` AS INT))) AS `_vk_copy`
    """
    counted = _grouped(relation_named(relation), columns, [alias(call("COUNT", exp.Star()), SIGNED_COUNT)])
    copies = explode_sequence(literal(1), column(SIGNED_COUNT), COPY_NUMBER)
    return render(select_from(counted.subquery(), _stored_items(columns)).lateral(copies, append=True))


def _stored_items(columns: Sequence[Column]) -> list[exp.Expr]:
    """What a row of a view's table consists of: the visible columns, then the hidden ones."""
    items: list[exp.Expr] = [*(column(c.name) for c in columns), column(COPY_NUMBER)]
    odd = [c for c in columns if not is_comparable_in_merge(c.data_type)]
    if odd:
        parts = [comparable(column(c.name), c.data_type) for c in odd]
        items.append(alias(call("TO_JSON", call("STRUCT", *parts)), IDENTITY))
    return items


def signed_difference(new: str, old: str, columns: Sequence[Column]) -> str:
    """Each row that two relations hold a different number of times, with the difference of the numbers."""
    return render(_signed_difference(new, old, columns))


def _signed_difference(new: str, old: str, columns: Sequence[Column]) -> exp.Select:
    names = [column(c.name) for c in columns]
    signed = union_all(
        select_from(relation_named(new), [*names, alias(literal(1), SIGN)]),
        select_from(relation_named(old), [*(name.copy() for name in names), alias(literal(-1), SIGN)]),
    )
    is_old = exp.LT(this=column(SIGN), expression=literal(0))
    counts = [
        alias(call("SUM", column(SIGN)), SIGNED_COUNT),
        alias(call("SUM", exp.If(this=is_old, true=literal(1), false=literal(0))), OLD_COUNT),
    ]
    differs = exp.NEQ(this=call("SUM", column(SIGN)), expression=literal(0))
    return _grouped(signed.subquery(), columns, counts).having(differs)


def _bag_difference(new: str, old: str, columns: Sequence[Column]) -> str:
    wanted = exp.Add(this=column(OLD_COUNT), expression=column(SIGNED_COUNT))
    copies = explode_sequence(
        exp.Add(this=call("LEAST", column(OLD_COUNT), wanted), expression=literal(1)),
        call("GREATEST", column(OLD_COUNT), wanted.copy()),
        COPY_NUMBER,
    )
    kind = exp.If(
        this=exp.GT(this=column(SIGNED_COUNT), expression=literal(0)),
        true=literal(INSERTED),
        false=literal(DELETED),
    )
    items = [*_stored_items(columns), alias(kind, CHANGE_KIND)]
    return render(
        select_from(_signed_difference(new, old, columns).subquery(), items).lateral(copies, append=True)
    )


def _merge(target: str, changes: str, columns: Sequence[Column]) -> str:
    """Delete and insert by row and copy number, NULLs matching NULLs."""
    conditions: list[exp.Expr] = [
        exp.EQ(this=column(COPY_NUMBER, target), expression=column(COPY_NUMBER, changes))
    ]
    stored = [column(c.name) for c in columns] + [column(COPY_NUMBER)]
    for each in columns:
        if is_comparable_in_merge(each.data_type):
            conditions.append(
                exp.NullSafeEQ(
                    this=comparable(column(each.name, target), each.data_type),
                    expression=comparable(column(each.name, changes), each.data_type),
                )
            )
    if not all(is_comparable_in_merge(each.data_type) for each in columns):
        stored.append(column(IDENTITY))
        conditions.append(exp.EQ(this=column(IDENTITY, target), expression=column(IDENTITY, changes)))
    kind = column(CHANGE_KIND, changes)
    merge = exp.Merge(
        this=relation_named(target),
        using=relation_named(changes),
        on=exp.and_(*conditions),
        whens=exp.Whens(
            expressions=[
                exp.When(
                    matched=True,
                    condition=exp.EQ(this=kind.copy(), expression=literal(DELETED)),
                    then=exp.Var(this="DELETE"),
                ),
                exp.When(
                    matched=False,
                    condition=exp.EQ(this=kind, expression=literal(INSERTED)),
                    then=exp.Insert(
                        this=exp.Tuple(expressions=stored),
                        expression=exp.Tuple(expressions=[column(item.name, changes) for item in stored]),
                    ),
                ),
            ]
        ),
    )
    return render(merge)
