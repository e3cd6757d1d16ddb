"""The net effect of a change feed in SQL, for feeds that Spark reads."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from viewkeeper.generated_names import (
    CHANGE_EPOCH,
    CHANGE_KIND,
    COPY_NUMBER,
    DELETED,
    INSERTED,
    SIGN,
    SIGNED_COUNT,
    USERS_CHANGE,
    USERS_EPOCH,
)
from viewkeeper.maintenance.bag_changes import grouped_rows
from viewkeeper.sql.binding import Column
from viewkeeper.sql.rendering import (
    alias,
    as_type,
    call,
    column,
    explode_sequence,
    literal,
    relation_named,
    render,
    select_from,
)
from viewkeeper.sql.script import parse_sql
from viewkeeper.sql.types import Simple, contains_type


def lost_bytes(columns: Sequence[Column]) -> str | None:
    """A condition that finds rows of a change feed in which Spark has put the replacement character for bytes of a text:
    it decodes all texts there.

    >>> lost_bytes([Column("a", Simple("INT")), Column("t", Simple("STRING"))])
    "CONTAINS(CAST(`t` AS STRING), '\ufffd')"
    """
    texts = [
        exp.cast(column(each.name), "string") for each in columns if contains_type(each.data_type, "STRING")
    ]
    found = [call("CONTAINS", each, literal("\ufffd")) for each in texts]
    return exp.or_(*found).sql(dialect="spark") if found else None


def signed_feed(feed: str, columns: Sequence[Column], present: Sequence[str] | None = None) -> str:
    """The rows of a Delta change feed with their signs. Columns that it does not have, as `present` tells, are NULL."""
    kind = column("_change_type")
    is_removal = exp.In(this=kind, expressions=[literal("delete"), literal("update_preimage")])
    sign = exp.If(this=is_removal, true=literal(-1), false=literal(1))
    known = {name.lower() for name in (present or [each.name for each in columns])}
    items = [
        column(each.name)
        if each.name.lower() in known
        else alias(as_type(exp.Null(), each.data_type), each.name)
        for each in columns
    ]
    return render(select_from(relation_named(feed), [*items, alias(sign, SIGN)]))


def net_rows(signed: str, columns: Sequence[Column], keeps: str | None = None) -> str:
    """Signed rows added up: each row that remains, with its signed number of copies. That 0.0 became -0.0 is a change. Rows
    for which the condition `keeps` holds remain in any case."""
    counts = [alias(call("SUM", column(SIGN)), SIGNED_COUNT)]
    remains: exp.Expr = exp.NEQ(this=call("SUM", column(SIGN)), expression=literal(0))
    if keeps is not None:
        remains = exp.or_(remains, call("BOOL_OR", parse_sql(keeps)))
    return render(grouped_rows(relation_named(signed), columns, counts, True).having(remains))


def part_of(net: str, columns: Sequence[Column], sign: int) -> str:
    """The rows of net changes with one sign, each as often as it is counted."""
    counted = exp.Mul(this=column(SIGNED_COUNT), expression=literal(sign))
    copies = explode_sequence(literal(1), counted, COPY_NUMBER)
    positive = exp.GT(this=counted.copy(), expression=literal(0))
    select = select_from(relation_named(net), [column(c.name) for c in columns])
    return render(select.lateral(copies, append=True).where(positive))


def visible_changes(
    table: exp.Expr, columns: Sequence[Column], first: int, last: int, failed: Sequence[int]
) -> exp.Subquery:
    """The change sets of a view in some epochs, as users read them: its own columns, the epoch, the kind of change.

    What changed in hidden columns only is no change, and neither is what a failed epoch left.
    """
    sign = exp.If(this=column(CHANGE_KIND).eq(literal(DELETED)), true=literal(-1), false=literal(1))
    shown = [*columns, Column(USERS_EPOCH, Simple("BIGINT"))]
    items = [*(column(c.name) for c in columns), alias(column(CHANGE_EPOCH), USERS_EPOCH), alias(sign, SIGN)]
    epoch = column(CHANGE_EPOCH)
    mine = select_from(table, items).where(exp.Between(this=epoch, low=literal(first), high=literal(last)))
    if failed:
        mine = mine.where(exp.Not(this=exp.In(this=epoch.copy(), expressions=[literal(e) for e in failed])))
    counts = [alias(call("SUM", column(SIGN)), SIGNED_COUNT)]
    differs = exp.NEQ(this=call("SUM", column(SIGN)), expression=literal(0))
    net = grouped_rows(mine.subquery(), shown, counts).having(differs)
    copies = explode_sequence(literal(1), call("ABS", column(SIGNED_COUNT)), COPY_NUMBER)
    is_deletion = exp.LT(this=column(SIGNED_COUNT), expression=literal(0))
    kind = exp.If(this=is_deletion, true=literal(DELETED), false=literal(INSERTED))
    result = [*(column(c.name) for c in shown), alias(kind, USERS_CHANGE)]
    return select_from(net.subquery(), result).lateral(copies, append=True).subquery()
