"""The net effect of a change feed in SQL, for feeds that Spark reads."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from viewkeeper.generated_names import COPY_NUMBER, SIGN, SIGNED_COUNT
from viewkeeper.maintenance.bag_changes import grouped_rows
from viewkeeper.sql.binding import Column
from viewkeeper.sql.rendering import (
    alias,
    call,
    column,
    explode_sequence,
    literal,
    relation_named,
    render,
    select_from,
)


def signed_feed(feed: str, columns: Sequence[Column]) -> str:
    """The rows of a Delta change feed with their signs."""
    kind = column("_change_type")
    is_removal = exp.In(this=kind, expressions=[literal("delete"), literal("update_preimage")])
    sign = exp.If(this=is_removal, true=literal(-1), false=literal(1))
    return render(select_from(relation_named(feed), [*(column(c.name) for c in columns), alias(sign, SIGN)]))


def net_rows(signed: str, columns: Sequence[Column]) -> str:
    """Signed rows added up: each row that remains, with its signed number of copies."""
    counts = [alias(call("SUM", column(SIGN)), SIGNED_COUNT)]
    differs = exp.NEQ(this=call("SUM", column(SIGN)), expression=literal(0))
    return render(grouped_rows(relation_named(signed), columns, counts).having(differs))


def part_of(net: str, columns: Sequence[Column], sign: int) -> str:
    """The rows of net changes with one sign, each as often as it is counted."""
    counted = exp.Mul(this=column(SIGNED_COUNT), expression=literal(sign))
    copies = explode_sequence(literal(1), counted, COPY_NUMBER)
    positive = exp.GT(this=counted.copy(), expression=literal(0))
    select = select_from(relation_named(net), [column(c.name) for c in columns])
    return render(select.lateral(copies, append=True).where(positive))
