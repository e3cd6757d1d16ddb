"""The change of a view of groups whose counts and exact sums are updated: old value plus what came minus what went.

Bounds such as minima and maxima are updated too; only groups that lost what they showed are read again (`bounds`). So are groups
that the view does not show because of HAVING: what they were is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from viewkeeper.algebra.nodes import Group, Project
from viewkeeper.algebra.to_sql import as_relation
from viewkeeper.facts.number_kinds import Number, kinds_in, number_kind
from viewkeeper.generated_names import (
    CHANGE_KIND,
    COPY_NUMBER,
    DELETED,
    HIDDEN_PREFIX,
    INSERTED,
    SIGN,
    state_relation,
)
from viewkeeper.maintenance.differential.bounds import BoundRelations, bound_relations, stored_key
from viewkeeper.maintenance.differential.delta_rules.affected import affected_rows
from viewkeeper.maintenance.differential.derivation import Derivation, Signed, titles, union
from viewkeeper.maintenance.differential.rows_view import old_rows
from viewkeeper.maintenance.group_state import ROWS, GroupState, OddBits, state_of
from viewkeeper.maintenance.plan import Derive, Limit, Read, State, Step, WriteChangeSet
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.maintenance.whole_query import stored_project
from viewkeeper.sql.rendering import (
    alias,
    all_of,
    as_type,
    call,
    column,
    literal,
    relation_named,
    render,
    select_from,
    union_all,
    values_relation,
)
from viewkeeper.sql.types import UNKNOWN, DataType, Simple

_ARGUMENT = "_vk_argument_"
_OLD, _NEW = "_vk_old_", "_vk_new_"
_PLUS, _MINUS = "_vk_plus_", "_vk_minus_"
_BIGINT, _WIDE = Simple("BIGINT"), Simple("DECIMAL(38,0)")
_HAVING = f"{HIDDEN_PREFIX}having"


def update_steps(
    view: ViewDefinition, query: Project, derivation: Derivation, leaving: Sequence[Signed] = ()
) -> tuple[Step, ...]:
    """`leaving` are groups without aggregates that are known to leave the view, with minus the number of their rows."""
    group = query.source
    assert isinstance(group, Group)
    state = state_of(group)
    assert isinstance(state, GroupState)
    changes = derivation.changes(group.source)
    if not changes and not leaving:
        return ()
    arguments = {f"{_ARGUMENT}{at}": each for at, each in enumerate(_arguments(state), start=1)}
    values = {**{key.name: key.expression for key in group.keys}, **arguments}
    selects: list[exp.Query] = [each.select for each in leaving]
    selects += [
        change.frame.selecting(
            [
                *(alias(change.frame.over(value), name) for name, value in values.items()),
                alias(change.frame.over(change.sign), SIGN),
            ]
        )
        for change in changes
    ]
    has_bounds = bool(state.bounds)
    delta = derivation.derive(
        f"find the changes: {titles([*leaving, *changes])}",
        "delta",
        union(selects),
        shared=has_bounds,
        ends=has_bounds,
    )
    by_group = "add the changes up by group", "groups", _added_up(view, delta, group, state, arguments)
    bounds = None
    if has_bounds:
        old = old_rows(view, _limit(query, group, delta))
        bounds = bound_relations(view, query, derivation, delta, old, arguments)
        groups = derivation.derive(*by_group, shared=query.having is not None)
    else:
        groups = derivation.derive(*by_group, ends=True)
        old = old_rows(view, _limit(query, group, groups))
    again = None if query.having is None else _left_out(view, query, derivation, groups, old)
    updated = Derive(
        "update the groups",
        state_relation(view.stem, "updated"),
        _updated(view, query, group, state, groups, old.relation, bounds),
        (old,),
    )
    return (
        *derivation.steps,
        updated,
        WriteChangeSet(_update_changes(view, group, updated.relation, again), ()),
    )


def _left_out(view: ViewDefinition, query: Project, derivation: Derivation, groups: str, old: Read) -> str:
    """The relation of the affected groups that HAVING left out of the view and lets in now."""
    group = query.source
    assert isinstance(group, Group)
    derivation.known(old)
    left_out = derivation.derive(
        "find the groups that the view does not show",
        "left_out",
        select_from(relation_named(groups), [column(key.name, groups) for key in group.keys]).join(
            relation_named(old.relation),
            on=_same_group(query, group, groups, old.relation),
            join_type="left anti",
        ),
    )
    frame = affected_rows(derivation, group, State.NEW, left_out)
    return derivation.derive(
        "read these groups again",
        "again",
        derivation.writer.project(stored_project(view, query), frame),
        shared=False,
    )


def _same_group(query: Project, group: Group, groups: str, old: str) -> exp.Expr:
    return all_of(
        exp.NullSafeEQ(this=column(stored_key(query, key.name), old), expression=column(key.name, groups))
        for key in group.keys
    )


def _limit(query: Project, group: Group, relation: str) -> Limit | None:
    """Only groups whose keys a relation of the plan has; without keys there is one group."""
    keys = tuple(key.name for key in group.keys)
    stored = tuple(stored_key(query, key) for key in keys)
    return Limit(stored, relation, keys, keeps_nulls=True) if keys else None


def _arguments(state: GroupState) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for argument in [
        *(counted.argument for counted in state.counts),
        *(summed.argument for summed in state.sums),
        *(odd.argument for odd in state.odd_bits),
        *(bound.argument for bound in state.bounds),
    ]:
        if argument is not None and argument not in found:
            found.append(argument)
    return found


def _added_up(
    view: ViewDefinition, delta: str, group: Group, state: GroupState, arguments: dict[str, exp.Expr]
) -> exp.Select:
    types = {each.name: each.data_type for each in view.stored}
    name_of = {argument: name for name, argument in arguments.items()}
    keys: list[exp.Expr] = [column(key.name) for key in group.keys]
    items = list(keys)
    for counted in state.counts:
        counted_sign: exp.Expr = column(SIGN)
        if counted.argument is not None:
            absent = exp.Is(this=column(name_of[counted.argument]), expression=exp.Null())
            counted_sign = exp.If(this=absent, true=literal(0), false=column(SIGN))
        total = (
            call("COALESCE", call("SUM", counted_sign), literal(0)) if not keys else call("SUM", counted_sign)
        )
        items.append(alias(total, counted.name))
    kinds = kinds_in(group.source)
    for summed in state.sums:
        for name, side in ((_PLUS, exp.GT), (_MINUS, exp.LT)):
            chosen = side(this=column(SIGN), expression=literal(0))
            argument: exp.Expr = column(name_of[summed.argument])
            if number_kind(summed.argument, kinds) is not Number.SMALL and types[summed.name] == _BIGINT:
                # What came may be too much for a BIGINT, and what went as well: the new sum need not be.
                argument = as_type(argument, _WIDE)
            value = exp.If(this=chosen, true=argument, false=exp.Null())
            items.append(alias(call("SUM", value), f"{name}{summed.name}"))
    for odd in state.odd_bits:
        is_odd = exp.NEQ(this=exp.Mod(this=column(SIGN), expression=literal(2)), expression=literal(0))
        value = exp.If(this=is_odd, true=column(name_of[odd.argument]), false=exp.Null())
        items.append(alias(call("BIT_XOR", value), odd.name))
    select = select_from(relation_named(delta), items)
    return select.group_by(*(key.copy() for key in keys)) if keys else select


def _updated(
    view: ViewDefinition,
    query: Project,
    group: Group,
    state: GroupState,
    groups: str,
    old: str,
    bounds: BoundRelations | None,
) -> str:
    """One row per affected group: its old stored columns, and what they become. Counts, sums and the like are columns of
    an inner query, so that what is made of them is not written out again and again."""
    types = {each.name: each.data_type for each in view.stored}
    kept: dict[str, exp.Expr] = {key.name: column(key.name, groups) for key in group.keys}
    for counted in state.counts:
        before = call("COALESCE", column(counted.name, old), literal(0))
        kept[counted.name] = exp.Add(this=before, expression=column(counted.name, groups))
    for summed in state.sums:
        kept[summed.name] = _new_sum(summed.name, kept[summed.count], types[summed.name], groups, old)
    for odd in state.odd_bits:
        kept[odd.name] = as_type(_new_odd_bits(odd, kept[odd.count], groups, old), types[odd.name])
    for bound in state.bounds:
        assert bounds is not None
        count = None if bound.count is None else kept[bound.count]
        value = bounds.new_value(bound, column(bound.name, old), count)
        kept[bound.name] = value if count is None else as_type(value, types[bound.name])
    before_and_after = [
        *(alias(value, f"{_NEW}{name}") for name, value in kept.items()),
        *(alias(column(each.name, old), f"{_OLD}{each.name}") for each in view.stored),
    ]
    inner = select_from(relation_named(groups), before_and_after).join(
        relation_named(old),
        on=_same_group(query, group, groups, old),
        join_type="left" if query.having is None else "inner",
    )
    if bounds is not None:
        inner = bounds.joined(inner, groups, group)
    new: dict[str, exp.Expr] = {name: column(f"{_NEW}{name}") for name in kept}
    for average in state.averages:
        is_whole = average.is_of_whole_numbers or types[average.sum] == _BIGINT
        value = _average(new[average.sum], new[average.count], is_whole)
        new[average.name] = as_type(value, types.get(average.name, UNKNOWN))

    def over_new(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and node.name in new:
            return new[node.name].copy()
        return node

    shown = {item.name: item.expression.transform(over_new) for item in query.items}
    stays = _stays(query, group, new[ROWS], over_new)
    computed = {item.name for item in query.items if not isinstance(item.expression, exp.Column)}
    items = []
    for each in view.stored:
        value = shown[each.name] if each.name in shown else new[each.name].copy()
        if stays is not None and each.name in computed:
            # Of a group that is gone, or that HAVING leaves out, the query shows nothing; what it shows may fail there: 1 / COUNT(*)
            value = exp.If(this=stays.copy(), true=value, false=exp.Null())
        items.append(alias(as_type(value, each.data_type), each.name))
    items += [column(f"{_OLD}{each.name}") for each in view.stored]
    if query.having is not None:
        assert stays is not None
        items.append(alias(stays, _HAVING))
    return render(select_from(as_relation(inner, f"{HIDDEN_PREFIX}groups"), items))


def _stays(
    query: Project, group: Group, rows: exp.Expr, over_new: Callable[[exp.Expr], exp.Expr]
) -> exp.Expr | None:
    """Whether the view shows a group from now on; None if it does in any case. HAVING is asked only of groups that have rows."""
    some = exp.GT(this=rows.copy(), expression=literal(0)) if group.keys else None
    if query.having is None:
        return some
    fulfilled = call("COALESCE", query.having.transform(over_new), exp.false())
    return fulfilled if some is None else exp.If(this=some, true=fulfilled, false=exp.false())


def _new_sum(name: str, count: exp.Expr, data_type: DataType, groups: str, old: str) -> exp.Expr:
    """Old sum plus what came minus what went; NULL if no value is left."""
    is_integer = data_type == _BIGINT

    def part(value: exp.Expr) -> exp.Expr:
        known = call("COALESCE", value, literal(0))
        return as_type(known, _WIDE) if is_integer else known

    came = exp.Add(this=part(column(name, old)), expression=part(column(f"{_PLUS}{name}", groups)))
    total = exp.Sub(this=came, expression=part(column(f"{_MINUS}{name}", groups)))
    some = exp.GT(this=exp.Paren(this=count.copy()), expression=literal(0))
    return exp.If(this=some, true=as_type(total, data_type), false=exp.Null())


def _new_odd_bits(odd: OddBits, count: exp.Expr, groups: str, old: str) -> exp.Expr:
    """What came and what went turn bits alike; NULL if no value is left."""
    before, change = (call("COALESCE", column(odd.name, each), literal(0)) for each in (old, groups))
    some = exp.GT(this=exp.Paren(this=count.copy()), expression=literal(0))
    return exp.If(this=some, true=exp.BitwiseXor(this=before, expression=change), false=exp.Null())


def _average(total: exp.Expr, count: exp.Expr, is_whole: bool) -> exp.Expr:
    dividend = as_type(total.copy(), Simple("DOUBLE")) if is_whole else total.copy()
    divisor = as_type(exp.Paren(this=count.copy()), Simple("DOUBLE" if is_whole else "DECIMAL(20,0)"))
    some = exp.GT(this=exp.Paren(this=count.copy()), expression=literal(0))
    return exp.If(this=some, true=exp.Div(this=dividend, expression=divisor), false=exp.Null())


def _update_changes(view: ViewDefinition, group: Group, updated: str, again: str | None) -> str:
    """The old row of a group goes and the new one comes, unless they are the same; `again` are rows that only come."""
    is_deletion = exp.EQ(this=column(CHANGE_KIND), expression=literal(DELETED))
    items: list[exp.Expr] = [
        alias(exp.If(this=is_deletion.copy(), true=column(f"{_OLD}{c.name}"), false=column(c.name)), c.name)
        for c in view.stored
    ]
    items += [alias(literal(1), COPY_NUMBER), column(CHANGE_KIND)]
    same = [exp.NullSafeEQ(this=column(f"{_OLD}{c.name}"), expression=column(c.name)) for c in view.stored]
    was_there = exp.Not(this=exp.Is(this=column(f"{_OLD}{ROWS}"), expression=exp.Null()))
    stays: exp.Expr = exp.GT(this=column(ROWS), expression=literal(0)) if group.keys else exp.true()
    if again is not None:
        stays = column(_HAVING)
    kinds = values_relation("kinds", CHANGE_KIND, [DELETED, INSERTED])
    changes = (
        select_from(relation_named(updated), items)
        .join(kinds, join_type="cross")
        .where(
            exp.If(this=is_deletion.copy(), true=was_there, false=stays), exp.not_(exp.paren(exp.and_(*same)))
        )
    )
    if again is None:
        return render(changes)
    coming = [column(each.name) for each in view.stored]
    kind = [alias(literal(1), COPY_NUMBER), alias(literal(INSERTED), CHANGE_KIND)]
    return render(union_all(changes, select_from(relation_named(again), [*coming, *kind])))
