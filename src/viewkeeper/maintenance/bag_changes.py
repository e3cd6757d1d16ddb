"""Change sets of bags: which copies of which rows to insert and to delete.

A row that is there m times and shall be there n times gives n − m insertions or m − n deletions. Copies are
numbered, so that equal rows can be told apart:

    n > m: insert the copies m+1 … n        n < m: delete the copies n+1 … m
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from viewkeeper.generated_names import (
    CHANGE_KIND,
    COPY_NUMBER,
    DELETED,
    ENTERS,
    FILE,
    IDENTITY,
    INSERTED,
    LEAVES,
    OLD_COUNT,
    POSITION,
    SIGN,
    SIGNED_COUNT,
)
from viewkeeper.maintenance.comparable import comparable, is_comparable_in_merge
from viewkeeper.maintenance.plan import ApplyChangeSet
from viewkeeper.sql.binding import Column
from viewkeeper.sql.rendering import (
    alias,
    all_of,
    call,
    column,
    explode_sequence,
    literal,
    relation_named,
    render,
    select_from,
    semi_joined,
    union_all,
)
from viewkeeper.sql.types import contains_type


def stored_items(columns: Sequence[Column]) -> list[exp.Expr]:
    """What a row of a view's table consists of: its columns, then the copy number and, if needed, its identity."""
    items: list[exp.Expr] = [*(column(c.name) for c in columns), column(COPY_NUMBER)]
    odd = [c for c in columns if not is_comparable_in_merge(c.data_type)]
    if odd:
        parts = [comparable(column(c.name), c.data_type) for c in odd]
        items.append(alias(call("TO_JSON", call("STRUCT", *parts)), IDENTITY))
    return items


def numbered_rows(relation: str, columns: Sequence[Column], ordered_by: Sequence[str] = ()) -> str:
    """Every row of a relation, its copies numbered.

    >>> from viewkeeper.sql.types import Simple
    >>> print(numbered_rows("v_query", [Column("a", Simple("INT"))]))
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
    counted = grouped_rows(
        relation_named(relation), columns, [alias(call("COUNT", exp.Star()), SIGNED_COUNT)]
    )
    copies = explode_sequence(literal(1), column(SIGNED_COUNT), COPY_NUMBER)
    numbered = select_from(counted.subquery(copy=False), stored_items(columns)).lateral(
        copies, append=True, copy=False
    )
    return render(numbered.order_by(*map(column, ordered_by)) if ordered_by else numbered)


def difference(new: str, old: str, columns: Sequence[Column]) -> str:
    """The change set that makes one relation of the other."""
    return render(_copies(_difference(new, old, columns), columns))


def signed_difference(new: str, old: str, columns: Sequence[Column]) -> str:
    """Each row that two relations hold a different number of times, with the difference of the numbers."""
    return render(_difference(new, old, columns))


def signed_changes(delta: str, old: str, columns: Sequence[Column]) -> str:
    """The change set of signed rows; `old` holds at least what the view has of these rows already."""
    names = [each.name for each in columns]
    held = _alike(old, delta, columns, names)
    signed = union_all(
        _tagged(delta, names, column(SIGN), literal(0)),
        held.select(alias(literal(0), SIGN), alias(literal(1), OLD_COUNT)),
    )
    return render(_copies(_netted(signed, columns), columns))


def set_changes(candidates: str, old: str | None, columns: Sequence[Column]) -> str:
    """The change set of a view without duplicates, given rows that may leave it and rows that are to be in it.

    A row that is in the view goes if it leaves and does not enter; one that is not comes if it enters. `old` holds what the
    view has of these rows; without it the candidates tell themselves which of them it has.
    """
    names = [each.name for each in columns]
    marks = [column(LEAVES), column(ENTERS)]
    was_there = column(OLD_COUNT) if old is None else alias(literal(0), OLD_COUNT)
    rows: exp.Query = select_from(relation_named(candidates), [*map(column, names), *marks, was_there])
    if old is not None:
        none = [alias(literal(0), each) for each in (LEAVES, ENTERS)]
        held = select_from(relation_named(old), [*map(column, names), *none, alias(literal(1), OLD_COUNT)])
        rows = union_all(rows, held)
    is_in_view = call("MAX" if old is None else "SUM", column(OLD_COUNT))
    leaves, enters = (exp.EQ(this=call("MAX", each), expression=literal(1)) for each in marks)
    goes = all_of([exp.GT(this=is_in_view.copy(), expression=literal(0)), leaves, exp.Not(this=enters)])
    comes = all_of([exp.EQ(this=is_in_view.copy(), expression=literal(0)), enters.copy()])
    change = exp.If(
        this=goes,
        true=exp.Neg(this=is_in_view.copy()),
        false=exp.If(this=comes, true=literal(1), false=literal(0)),
    )
    counts = [alias(change, SIGNED_COUNT), alias(is_in_view, OLD_COUNT)]
    differs = exp.NEQ(this=change.copy(), expression=literal(0))
    return render(_copies(grouped_rows(rows.subquery(), columns, counts).having(differs), columns))


def leaving_changes(leaving: str, columns: Sequence[Column]) -> str:
    """The change set of rows that go, with the sign −1; they are all that the view has of them."""
    names = [each.name for each in columns]
    return render(_copies(_netted(_tagged(leaving, names, column(SIGN), literal(1)), columns), columns))


def touched_rows(relation: str, delta: str, columns: Sequence[Column]) -> str:
    """The rows of a relation that equal some row of the delta, NULLs matching NULLs."""
    return render(_alike(relation, delta, columns, [each.name for each in columns]))


def positions(rows: str, going: str, columns: Sequence[Column]) -> str:
    """File and position of the stored rows that equal some row of another relation in all stored columns."""
    return render(_alike(rows, going, columns, [FILE, POSITION]))


def _alike(rows: str, others: str, columns: Sequence[Column], shown: Sequence[str]) -> exp.Select:
    """Of the rows that equal some row of another relation in these columns, NULLs matching NULLs, what is to be shown."""
    same = [
        exp.NullSafeEQ(
            this=comparable(column(each.name, rows), each.data_type),
            expression=comparable(column(each.name, others), each.data_type),
        )
        for each in columns
    ]
    return semi_joined(
        select_from(relation_named(rows), [column(name, rows) for name in shown]), others, same
    )


def _difference(new: str, old: str, columns: Sequence[Column]) -> exp.Select:
    names = [each.name for each in columns]
    signed = union_all(
        _tagged(new, names, literal(1), literal(0)), _tagged(old, names, literal(-1), literal(1))
    )
    return _netted(signed, columns)


def _tagged(relation: str, names: Sequence[str], sign: exp.Expr, is_old: exp.Expr) -> exp.Select:
    items = [*(column(name) for name in names), alias(sign, SIGN), alias(is_old, OLD_COUNT)]
    return select_from(relation_named(relation), items)


def _netted(signed: exp.Query, columns: Sequence[Column]) -> exp.Select:
    """Signed rows added up; what adds up to nothing is no change."""
    counts = [
        alias(call("SUM", column(SIGN)), SIGNED_COUNT),
        alias(call("SUM", column(OLD_COUNT)), OLD_COUNT),
    ]
    differs = exp.NEQ(this=call("SUM", column(SIGN)), expression=literal(0))
    return grouped_rows(signed.subquery(copy=False), columns, counts).having(differs, copy=False)


def grouped_rows(
    relation: exp.Expr, columns: Sequence[Column], counts: Sequence[exp.Expr], tells_zeros_apart: bool = False
) -> exp.Select:
    """The distinct rows of a relation with counts; types without equality are grouped by a stand-in.

    0.0 and -0.0 are equal, and a view may hold either. Where expressions of a query will read the rows they must be told
    apart, for an expression can: CAST(x AS STRING).
    """
    items: list[exp.Expr] = []
    keys: list[exp.Expr] = []
    for each in columns:
        key = comparable(column(each.name), each.data_type)
        keys.append(key)
        has_two_zeros = tells_zeros_apart and any(
            contains_type(each.data_type, kind) for kind in ("FLOAT", "DOUBLE")
        )
        if has_two_zeros:
            keys.append(exp.cast(key.copy(), "string"))
        plain = isinstance(key, exp.Column) and not has_two_zeros
        items.append(column(each.name) if plain else alias(call("ANY_VALUE", column(each.name)), each.name))
    return select_from(relation, [*items, *counts]).group_by(*keys, copy=False)


def _copies(netted: exp.Select, columns: Sequence[Column]) -> exp.Select:
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
    items = [*stored_items(columns), alias(kind, CHANGE_KIND)]
    return select_from(netted.subquery(copy=False), items).lateral(copies, append=True, copy=False)


def merge(target: str, changes: str, columns: Sequence[Column]) -> str:
    """Delete and insert by row and copy number, NULLs matching NULLs."""
    stored = [column(c.name) for c in columns] + [column(COPY_NUMBER)]
    if not all(is_comparable_in_merge(each.data_type) for each in columns):
        stored.append(column(IDENTITY))
    kind = column(CHANGE_KIND, changes)
    statement = exp.Merge(
        this=relation_named(target),
        using=relation_named(changes),
        on=_same_copy(target, changes, columns),
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
    return render(statement)


def merge_matches(target: str, changes: str, columns: Sequence[Column]) -> str:
    """How many rows a change set has, of each kind, that are in the target already."""
    kind = column(CHANGE_KIND, changes)
    counted = select_from(relation_named(changes), [kind, alias(call("COUNT", exp.Star()), SIGNED_COUNT)])
    matched = counted.join(relation_named(target), on=_same_copy(target, changes, columns))
    return render(matched.group_by(kind.copy()))


def _same_copy(target: str, changes: str, columns: Sequence[Column]) -> exp.Expr:
    """The same row with the same copy number. Types that MERGE cannot compare are compared by their identity."""
    conditions: list[exp.Expr] = [
        exp.EQ(this=column(COPY_NUMBER, target), expression=column(COPY_NUMBER, changes))
    ]
    for each in columns:
        if is_comparable_in_merge(each.data_type):
            conditions.append(
                exp.NullSafeEQ(
                    this=comparable(column(each.name, target), each.data_type),
                    expression=comparable(column(each.name, changes), each.data_type),
                )
            )
    if not all(is_comparable_in_merge(each.data_type) for each in columns):
        conditions.append(exp.EQ(this=column(IDENTITY, target), expression=column(IDENTITY, changes)))
    return all_of(conditions)


def apply_to_view(target: str, changes: str, columns: Sequence[Column]) -> ApplyChangeSet:
    """The last step of every plan that changes a view."""
    return ApplyChangeSet(
        merge(target, changes, columns), target, changes, merge_matches(target, changes, columns)
    )
