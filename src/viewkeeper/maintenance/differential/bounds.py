"""Bounds of groups: from the old one and what came, unless something of what the group showed went away.

    new  =  old ⊔ came     if every value that went is one that the bound does not need, or ⊑ came

Changes are netted first, because a row that comes by one term and goes by another was never there. MIN and MAX need only the
value they show; of BIT_OR every bit that went may be missed, of BIT_AND every bit that what went did not have. What came makes
up for them: a newer latest day, the same bits in other rows. Only groups that lost something beyond that are read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp
from typing_extensions import assert_never

from viewkeeper.algebra.nodes import Group, Item, Project
from viewkeeper.generated_names import HIDDEN_PREFIX, SIGN
from viewkeeper.maintenance.differential.delta_rules.affected import affected_rows
from viewkeeper.maintenance.differential.derivation import Derivation
from viewkeeper.maintenance.group_state import Bound, BoundKind, GroupState, state_of
from viewkeeper.maintenance.plan import Read, State
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.rendering import alias, all_of, call, column, literal, relation_named, select_from

_FOUND = f"{HIDDEN_PREFIX}found"


@dataclass(frozen=True)
class BoundRelations:
    """What came, by group, and the groups that were read again."""

    came: str
    again: str

    def new_value(self, bound: Bound, old: exp.Expr, count: exp.Expr | None) -> exp.Expr:
        joined = _joined(bound.kind, old, column(bound.name, self.came))
        if count is not None:
            some = exp.GT(this=exp.Paren(this=count.copy()), expression=literal(0))
            joined = exp.If(this=some, true=joined, false=exp.Null())
        return exp.If(this=column(_FOUND, self.again), true=column(bound.name, self.again), false=joined)

    def joined(self, select: exp.Select, groups: str, group: Group) -> exp.Select:
        for relation in (self.came, self.again):
            select = select.join(
                relation_named(relation), on=_same_keys(group, relation, groups), join_type="left"
            )
        return select


def _joined(kind: BoundKind, one: exp.Expr, other: exp.Expr) -> exp.Expr:
    """The bound of two bounds, either of which may be NULL."""
    match kind:
        case BoundKind.LEAST:
            return call("LEAST", one, other)
        case BoundKind.GREATEST:
            return call("GREATEST", one, other)
        case BoundKind.ALL_BITS:
            return exp.BitwiseAnd(this=_bits(kind, one), expression=_bits(kind, other))
        case BoundKind.ANY_BITS:
            return exp.BitwiseOr(this=_bits(kind, one), expression=_bits(kind, other))
        case _:
            assert_never(kind)


def _bits(kind: BoundKind, bound: exp.Expr) -> exp.Expr:
    """The bits of a bound: of no values all bits, or none."""
    return call("COALESCE", bound, literal(-1 if kind is BoundKind.ALL_BITS else 0))


def _is_missed(kind: BoundKind, went: exp.Expr, old: exp.Expr, came: exp.Expr) -> exp.Expr:
    """Whether a bound may need a value that went, in spite of what came. Not TRUE of NULL, which no bound needs."""
    match kind:
        case BoundKind.LEAST | BoundKind.GREATEST:
            worse = exp.GT if kind is BoundKind.LEAST else exp.LT
            made_up = exp.or_(
                exp.Is(this=came, expression=exp.Null()), worse(this=came.copy(), expression=old.copy())
            )
            return exp.and_(exp.EQ(this=old, expression=went), exp.paren(made_up))
        case BoundKind.ALL_BITS:
            missed = exp.BitwiseAnd(this=exp.BitwiseNot(this=went), expression=_bits(kind, came))
        case BoundKind.ANY_BITS:
            missed = exp.BitwiseAnd(this=went, expression=exp.BitwiseNot(this=_bits(kind, came)))
        case _:
            assert_never(kind)
    return exp.NEQ(this=exp.Paren(this=missed), expression=literal(0))


def bound_relations(
    view: ViewDefinition,
    query: Project,
    derivation: Derivation,
    delta: str,
    old: Read,
    arguments: Mapping[str, exp.Expr],
) -> BoundRelations:
    group = query.source
    assert isinstance(group, Group)
    state = state_of(group)
    assert isinstance(state, GroupState)
    derivation.known(old)
    name_of = {argument: name for name, argument in arguments.items()}
    read = list(dict.fromkeys(name_of[each.argument] for each in state.bounds))
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
        "find the bounds of what came",
        "came",
        select_from(
            relation_named(net), [*keys, *(_came(each, name_of[each.argument]) for each in state.bounds)]
        ).group_by(*keys),
        shared=False,
    )
    lost = derivation.derive(
        "find the groups that lost what they showed",
        "lost",
        _lost(query, state, net, came, old.relation, name_of),
    )
    items = (
        *(Item(key.name, column(key.name)) for key in group.keys),
        *(Item(each.name, each.over(each.argument.copy())) for each in state.bounds),
        Item(_FOUND, exp.true()),
    )
    frame = affected_rows(derivation, group, State.NEW, lost)
    again = derivation.derive(
        "read these groups again",
        "again",
        derivation.writer.project(Project(group, items), frame),
        shared=False,
    )
    return BoundRelations(came, again)


def _lost(
    query: Project, state: GroupState, net: str, came: str, old: str, name_of: Mapping[exp.Expr, str]
) -> exp.Select:
    """The keys of groups that lost a value that one of their bounds may need."""
    group = query.source
    assert isinstance(group, Group)
    same = all_of(
        exp.NullSafeEQ(this=column(stored_key(query, key.name), old), expression=column(key.name, net))
        for key in group.keys
    )
    missed = [
        _is_missed(
            each.kind,
            column(name_of[each.argument], net),
            column(each.name, old),
            column(each.name, came),
        )
        for each in state.bounds
    ]
    return (
        select_from(relation_named(net), [column(key.name, net) for key in group.keys])
        .join(relation_named(old), on=same, join_type="inner")
        .join(relation_named(came), on=_same_keys(group, came, net), join_type="inner")
        .where(exp.LT(this=column(SIGN, net), expression=literal(0)), exp.or_(*missed))
        .distinct()
    )


def _same_keys(group: Group, one: str, other: str) -> exp.Expr:
    return all_of(
        exp.NullSafeEQ(this=column(key.name, one), expression=column(key.name, other)) for key in group.keys
    )


def _came(bound: Bound, argument: str) -> exp.Expr:
    came = exp.GT(this=column(SIGN), expression=literal(0))
    value = exp.If(this=came, true=column(argument), false=exp.Null())
    return alias(bound.over(value), bound.name)


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
