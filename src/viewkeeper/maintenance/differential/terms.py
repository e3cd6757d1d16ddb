"""The change of a join, as a sum of terms that each read one change and otherwise whole tables.

With n scans R1 … Rn, any walk from all old states to all new states that moves one scan at a time gives

    R1new ⋈ … ⋈ Rnnew − R1old ⋈ … ⋈ Rnold  =  Σ over the moves of  change ⋈ all other scans as they are then

The walk is: first deletions, children before their parents; then insertions, parents before their children;
an update is a deletion and an insertion; scans whose rows have no key make both moves at once, at the end.
A join along a foreign key then needs no term for true deletions of its parent, nor for true insertions into it:
no child that is left, or was there before, has such a parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.nodes import InnerJoin, Scan, aliases_in
from viewkeeper.facts.declared import Declarations, Reliance
from viewkeeper.facts.foreign_keys import ParentJoin, parent_joins
from viewkeeper.generated_names import SIGN, state_relation
from viewkeeper.maintenance.plan import Limit, Read, State
from viewkeeper.sql.rendering import alias, aliased, literal, select_from

Kinds = Mapping[str, frozenset[State]]
"""For each input that changed, the parts of its change set that have rows: of a table with a key DELETED,
INSERTED and both halves of updates, of others REMOVED and ADDED."""


@dataclass(frozen=True)
class Move:
    """One scan takes in one part of its change set; `then` says where every other scan stands."""

    scan: Scan
    part: State
    then: Mapping[str, State]

    @property
    def sign(self) -> int:
        return -1 if self.part in (State.REMOVED, State.DELETED, State.OLD_UPDATED) else 1


@dataclass(frozen=True)
class Dropped:
    """A move that cannot reach the view, and why."""

    what: str
    reason: str
    relies_on: Reliance
    parent_id: str


@dataclass(frozen=True)
class Walk:
    moves: tuple[Move, ...]
    dropped: tuple[Dropped, ...]

    def relies_on(self, declared: Declarations) -> frozenset[Reliance]:
        """What must hold for the dropped moves: their foreign keys, and the keys of the parents, by which a new row
        is told from a changed one."""
        keys = {
            Reliance(move.parent_id, key.name)
            for move in self.dropped
            for key in declared[move.parent_id].keys[:1]
        }
        return frozenset(keys | {move.relies_on for move in self.dropped})


def plan_walk(join: InnerJoin, kinds: Kinds, declared: Declarations) -> Walk:
    """The moves for these changes, without those that a foreign key makes empty."""
    parents = parent_joins(join, declared)
    keyed: list[Scan] = []
    bags: list[Scan] = []
    for scan in _children_first(join.scans, parents):
        parts = kinds.get(scan.input.object_id, frozenset())
        if parts:
            (bags if State.REMOVED in parts or State.ADDED in parts else keyed).append(scan)
    stand = {scan.alias: State.OLD if scan in keyed + bags else State.NEW for scan in join.scans}
    moves: list[Move] = []
    dropped: list[Dropped] = []

    def move(scan: Scan, parts: Sequence[State], after: State) -> None:
        for part in parts:
            if part not in kinds[scan.input.object_id]:
                continue
            fact = _makes_empty(scan, part, stand, kinds, join, parents)
            if fact is None:
                moves.append(Move(scan, part, {a: s for a, s in stand.items() if a != scan.alias}))
            else:
                dropped.append(_dropped(scan, part, fact, join))
        stand[scan.alias] = after

    for scan in keyed:
        parts = kinds[scan.input.object_id]
        gains = bool({State.INSERTED, State.NEW_UPDATED} & parts)
        move(scan, (State.DELETED, State.OLD_UPDATED), State.BETWEEN if gains else State.NEW)
        if not {State.DELETED, State.OLD_UPDATED} & parts:
            stand[scan.alias] = State.OLD
    for scan in reversed(keyed):
        if {State.INSERTED, State.NEW_UPDATED} & kinds[scan.input.object_id]:
            move(scan, (State.INSERTED, State.NEW_UPDATED), State.NEW)
    for scan in bags:
        move(scan, (State.REMOVED, State.ADDED), State.NEW)
    return Walk(tuple(moves), tuple(dropped))


def _children_first(scans: Sequence[Scan], parents: Sequence[ParentJoin]) -> list[Scan]:
    """An order in which every child comes before its parents; scans on a cycle keep their place."""
    order: list[Scan] = []
    waiting = list(scans)
    while waiting:
        free = [
            scan
            for scan in waiting
            if not any(
                fact.parent == scan.alias and fact.child in {w.alias for w in waiting} for fact in parents
            )
        ]
        taken = free or waiting[:1]
        order += taken
        waiting = [scan for scan in waiting if scan not in taken]
    return order


def _makes_empty(
    scan: Scan,
    part: State,
    stand: Mapping[str, State],
    kinds: Kinds,
    join: InnerJoin,
    parents: Sequence[ParentJoin],
) -> ParentJoin | None:
    """The foreign key by which no row of this part has a child where its children stand now."""
    changes_of = {each.alias: kinds.get(each.input.object_id, frozenset()) for each in join.scans}
    for fact in parents:
        if fact.parent != scan.alias:
            continue
        lost = changes_of[fact.child] & {State.DELETED, State.OLD_UPDATED, State.REMOVED}
        gained = changes_of[fact.child] & {State.INSERTED, State.NEW_UPDATED, State.ADDED}
        if part is State.DELETED and (stand[fact.child] is not State.OLD or not lost):
            return fact
        if part is State.INSERTED and (stand[fact.child] is not State.NEW or not gained):
            return fact
    return None


def _dropped(scan: Scan, part: State, fact: ParentJoin, join: InnerJoin) -> Dropped:
    child = next(each for each in join.scans if each.alias == fact.child)
    happening = "inserted into" if part is State.INSERTED else "deleted from"
    left = "was there before" if part is State.INSERTED else "is left"
    return Dropped(
        f"rows {happening} {scan.alias}",
        f"no row of {child.alias} that {left} has such a {scan.alias}: foreign key {fact.foreign_key.name}",
        fact.reliance,
        scan.input.object_id,
    )


@dataclass(frozen=True)
class Term:
    """One move as SQL: the rows that it adds to the join or takes from it."""

    select: exp.Select
    reads: tuple[Read, ...]
    title: str


def term_of(join: InnerJoin, move: Move, items: Sequence[exp.Expr]) -> Term:
    """Start at the change, then join scan by scan along the conditions."""
    order = _join_order(join, move.scan)
    change = _change_read(move)
    reads = [change]
    pending = list(join.conditions)
    joined = {move.scan.alias}
    select = select_from(aliased(change.relation, move.scan.alias), [*items, alias(literal(move.sign), SIGN)])
    for scan in order[1:]:
        read = _state_read(scan, move, join, change)
        reads.append(read)
        joined.add(scan.alias)
        conditions = [
            each for each in pending if scan.alias in aliases_in(each) and aliases_in(each) <= joined
        ]
        pending = [each for each in pending if each not in conditions]
        target = aliased(read.relation, scan.alias)
        if conditions:
            select = select.join(
                target, on=exp.and_(*(each.copy() for each in conditions)), join_type="inner"
            )
        else:
            select = select.join(target, join_type="cross")
    if pending:
        select = select.where(*(each.copy() for each in pending))
    return Term(select, tuple(reads), f"{_words(move)}")


def _words(move: Move) -> str:
    verb = {
        State.DELETED: "rows deleted from",
        State.INSERTED: "rows inserted into",
        State.OLD_UPDATED: "old images of updates of",
        State.NEW_UPDATED: "new images of updates of",
        State.REMOVED: "rows taken from",
        State.ADDED: "rows added to",
    }[move.part]
    return f"{verb} {move.scan.alias}"


def _change_read(move: Move) -> Read:
    found = move.scan.input
    return Read(state_relation(found.relation, move.part.value), found.object_id, found.name, move.part)


def _state_read(scan: Scan, move: Move, join: InnerJoin, change: Read) -> Read:
    state = move.then[scan.alias]
    plain = state_relation(scan.input.relation, state.value)
    limit = next(_limits(scan, move, join, change), None)
    if limit is None:
        return Read(plain, scan.input.object_id, scan.input.name, state)
    return Read(limit.name(plain), scan.input.object_id, scan.input.name, state, limit)


def _limits(scan: Scan, move: Move, join: InnerJoin, change: Read) -> Iterator[Limit]:
    for condition in join.conditions:
        if not isinstance(condition, exp.EQ):
            continue
        for own, other in (
            (condition.this, condition.expression),
            (condition.expression, condition.this),
        ):
            if (
                isinstance(own, exp.Column)
                and isinstance(other, exp.Column)
                and own.table == scan.alias
                and other.table == move.scan.alias
                and _same_type(scan, own, move.scan, other)
            ):
                yield Limit(own.name, change.object_id, change.state, other.name, change.relation)


def _same_type(one: Scan, own: exp.Column, two: Scan, other: exp.Column) -> bool:
    return _type_of(one, own) == _type_of(two, other)


def _type_of(scan: Scan, reference: exp.Column) -> str:
    found = next(c for c in scan.input.columns if c.name.lower() == reference.name.lower())
    return str(found.data_type)


def _join_order(join: InnerJoin, first: Scan) -> list[Scan]:
    """The scans from the changed one on, each joined by a condition to those before it where that is possible."""
    order = [first]
    waiting = [scan for scan in join.scans if scan is not first]
    while waiting:
        reached = {scan.alias for scan in order}
        connected = [
            scan
            for scan in waiting
            if any(
                isinstance(condition, exp.EQ)
                and scan.alias in aliases_in(condition)
                and aliases_in(condition) - {scan.alias} <= reached
                and len(aliases_in(condition)) > 1
                for condition in join.conditions
            )
        ]
        chosen = (connected or waiting)[0]
        order.append(chosen)
        waiting.remove(chosen)
    return order
