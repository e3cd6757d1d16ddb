"""Minima and maxima of groups: from the old value and what came, unless what the group showed went away.

Changes are netted first, because a row that comes by one term and goes by another was never there. A group that lost a
row with the value it shows is read again; every other takes the lesser (greater) of its old value and what came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.nodes import Group, Item, Project
from viewkeeper.generated_names import HIDDEN_PREFIX, SIGN
from viewkeeper.maintenance.differential.delta_rules.affected import affected_rows
from viewkeeper.maintenance.differential.derivation import Derivation
from viewkeeper.maintenance.group_state import Extreme, GroupState, aggregate_of, state_of
from viewkeeper.maintenance.plan import Read, State
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.rendering import alias, all_of, call, column, literal, relation_named, select_from

_FOUND = f"{HIDDEN_PREFIX}found"


@dataclass(frozen=True)
class ExtremeRelations:
    """What came, by group, and the groups that were read again."""

    came: str
    again: str

    def new_value(self, extreme: Extreme, old: exp.Expr) -> exp.Expr:
        nearer = call("LEAST" if extreme.is_least else "GREATEST", old, column(extreme.name, self.came))
        return exp.If(this=column(_FOUND, self.again), true=column(extreme.name, self.again), false=nearer)

    def joined(self, select: exp.Select, groups: str, group: Group) -> exp.Select:
        for relation in (self.came, self.again):
            same = all_of(
                exp.NullSafeEQ(this=column(key.name, relation), expression=column(key.name, groups))
                for key in group.keys
            )
            select = select.join(relation_named(relation), on=same, join_type="left")
        return select


def extreme_relations(
    view: ViewDefinition,
    query: Project,
    derivation: Derivation,
    delta: str,
    old: Read,
    arguments: Mapping[str, exp.Expr],
) -> ExtremeRelations:
    group = query.source
    assert isinstance(group, Group)
    state = state_of(group)
    assert isinstance(state, GroupState)
    derivation.known(old)
    name_of = {argument: name for name, argument in arguments.items()}
    read = list(dict.fromkeys(name_of[each.argument] for each in state.extremes))
    keys = [column(key.name) for key in group.keys]
    total = call("SUM", column(SIGN))
    net = derivation.derive(
        "net the changes",
        "net",
        select_from(relation_named(delta), [*keys, *map(column, read), alias(total, SIGN)])
        .group_by(*keys, *map(column, read))
        .having(exp.NEQ(this=total.copy(), expression=literal(0))),
        shared=False,
    )
    came = derivation.derive(
        "find the least and the greatest that came",
        "came",
        select_from(
            relation_named(net), [*keys, *(_came(each, name_of[each.argument]) for each in state.extremes)]
        ).group_by(*keys),
        shared=False,
    )
    same = [
        exp.NullSafeEQ(
            this=column(stored_key(query, key.name), old.relation), expression=column(key.name, net)
        )
        for key in group.keys
    ]
    shown = [
        exp.EQ(this=column(each.name, old.relation), expression=column(name_of[each.argument], net))
        for each in state.extremes
    ]
    lost = derivation.derive(
        "find the groups that lost what they showed",
        "lost",
        select_from(relation_named(net), [column(key.name, net) for key in group.keys])
        .join(relation_named(old.relation), on=exp.and_(*same), join_type="inner")
        .where(exp.LT(this=column(SIGN, net), expression=literal(0)), exp.or_(*shown))
        .distinct(),
    )
    items = (
        *(Item(key.name, column(key.name)) for key in group.keys),
        *(Item(each.name, aggregate_of(each)) for each in state.extremes),
        Item(_FOUND, exp.true()),
    )
    frame = affected_rows(derivation, group, State.NEW, lost)
    again = derivation.derive(
        "read these groups again",
        "again",
        derivation.writer.project(Project(group, items), frame),
        shared=False,
    )
    return ExtremeRelations(came, again)


def _came(extreme: Extreme, argument: str) -> exp.Expr:
    came = exp.GT(this=column(SIGN), expression=literal(0))
    value = exp.If(this=came, true=column(argument), false=exp.Null())
    function = exp.Min if extreme.is_least else exp.Max
    return alias(function(this=value), extreme.name)


def stored_key(query: Project, key: str) -> str:
    """The stored column that holds a key of the group."""
    for item in query.items:
        if (
            isinstance(item.expression, exp.Column)
            and not item.expression.table
            and item.expression.name == key
        ):
            return item.name
    return key
