"""The change of a view of the first rows of an order.

As long as none of the rows that the view shows went away, the first rows are among those and what came. If one did, and
the view was full, the query is evaluated again: some row that was never shown takes its place.
"""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.nodes import Derived, Project, TopRows, output_names
from viewkeeper.algebra.to_sql import as_relation, top_rows
from viewkeeper.generated_names import COPY_NUMBER, HIDDEN_PREFIX, SIGN, SIGNED_COUNT, query_relation
from viewkeeper.maintenance.bag_changes import difference
from viewkeeper.maintenance.differential.derivation import Derivation, titles, union
from viewkeeper.maintenance.differential.rows_view import old_rows
from viewkeeper.maintenance.plan import Derive, State, Step, WriteChangeSet
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.rendering import (
    alias,
    all_of,
    as_type,
    call,
    column,
    explode_sequence,
    literal,
    relation_named,
    render,
    select_from,
    union_all,
)


def is_kept(view: ViewDefinition, query: Project) -> bool:
    """Whether the view's table holds all that the order needs."""
    source = query.source
    if not (isinstance(source, Derived) and isinstance(source.query, TopRows)):
        return False
    top = source.query
    stored = {each.name for each in view.stored}
    plain = all(item.expression == column(item.name, source.alias) for item in query.items)
    return plain and top.limit is not None and not top.offset and set(output_names(top)) <= stored


def top_steps(view: ViewDefinition, query: Project, derivation: Derivation) -> tuple[Step, ...]:
    assert isinstance(query.source, Derived) and isinstance(query.source.query, TopRows)
    top = query.source.query
    parts = derivation.signed(top.query)
    if not parts:
        return ()
    old = old_rows(view)
    derivation.known(old)
    names = [column(each.name) for each in view.stored]
    typed = [alias(as_type(column(each.name), each.data_type), each.name) for each in view.stored]
    found = as_relation(union([part.select for part in parts]), f"{HIDDEN_PREFIX}changed")
    changed = as_relation(select_from(found, [*typed, column(SIGN)]), f"{HIDDEN_PREFIX}typed")
    total = call("SUM", column(SIGN))
    net = derivation.derive(
        f"find the changes: {titles(parts)}",
        "net",
        select_from(changed, [*names, alias(total, SIGNED_COUNT)])
        .group_by(*names)
        .having(exp.NEQ(this=total.copy(), expression=literal(0))),
        ends=True,
    )
    lost = derivation.derive(
        "see whether a row that the view shows went away", "lost", _lost(view, top, net, old.relation)
    )
    whole = as_relation(
        derivation.query_rows(top.query, State.NEW, only_if=lost), f"{HIDDEN_PREFIX}evaluated"
    )
    again = select_from(whole, typed).join(relation_named(lost), on=exp.true(), join_type="left semi")
    rows = union_all(_candidates(view, net, old.relation, lost), again)
    first = top_rows(top, rows)
    first.set("expressions", list(names))
    new = query_relation(view.stem)
    return (
        *derivation.steps,
        Derive("take the first rows", new, render(first), derivation.reads_of(first)),
        WriteChangeSet(difference(new, old.relation, view.stored), (old,)),
    )


def _lost(view: ViewDefinition, top: TopRows, net: str, old: str) -> exp.Select:
    same = all_of(
        exp.NullSafeEQ(this=column(each.name, net), expression=column(each.name, old)) for each in view.stored
    )
    counted = select_from(relation_named(old), [alias(call("COUNT", exp.Star()), SIGNED_COUNT)])
    size = f"{HIDDEN_PREFIX}size"
    assert top.limit is not None
    return (
        select_from(relation_named(net), [alias(literal(1), f"{HIDDEN_PREFIX}one")])
        .join(as_relation(counted, size), join_type="cross")
        .join(relation_named(old), on=same, join_type="left semi")
        .where(
            exp.LT(this=column(SIGNED_COUNT, net), expression=literal(0)),
            exp.GTE(this=column(SIGNED_COUNT, size), expression=literal(top.limit)),
        )
        .limit(1)
    )


def _candidates(view: ViewDefinition, net: str, old: str, lost: str) -> exp.Select:
    """The rows that the view shows and the changes, added up; none if the query is evaluated again."""
    names = [column(each.name) for each in view.stored]
    both = union_all(
        select_from(relation_named(old), [*names, alias(literal(1), SIGNED_COUNT)]),
        select_from(relation_named(net), [*names, column(SIGNED_COUNT)]),
    )
    total = call("SUM", column(SIGNED_COUNT))
    added_up = (
        select_from(as_relation(both, f"{HIDDEN_PREFIX}both"), [*names, alias(total, SIGNED_COUNT)])
        .group_by(*names)
        .having(exp.GT(this=total.copy(), expression=literal(0)))
    )
    copies = explode_sequence(literal(1), column(SIGNED_COUNT), COPY_NUMBER)
    repeated = select_from(as_relation(added_up, f"{HIDDEN_PREFIX}counted"), names).lateral(
        copies, append=True
    )
    kept = as_relation(repeated, f"{HIDDEN_PREFIX}candidates")
    return select_from(kept, names).join(relation_named(lost), on=exp.true(), join_type="left anti")
