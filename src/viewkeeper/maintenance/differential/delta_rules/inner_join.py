"""The change of a join, as a sum of terms that each read one change and otherwise whole sources.

With n sources R1 … Rn, any walk from all old states to all new states that moves one source at a time gives

    R1new ⋈ … ⋈ Rnnew − R1old ⋈ … ⋈ Rnold  =  Σ over the moves of  change ⋈ all other sources as they are then

The walk is: first deletions, children before their parents; then insertions, parents before their children;
an update is a deletion and an insertion; sources whose rows have no key make both moves at once, at the end.
A join along a foreign key then needs no term for true deletions of its parent, nor for true insertions into it:
no child that is left, or was there before, has such a parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.nodes import InnerJoin, Relation, Scan, aliases_in, aliases_of
from viewkeeper.facts.foreign_keys import ParentJoin, names_key, parent_joins
from viewkeeper.maintenance.differential.delta_rules.scan import part_change
from viewkeeper.maintenance.differential.derivation import Change, Derivation
from viewkeeper.maintenance.differential.dropped import Dropped
from viewkeeper.maintenance.differential.kinds import GAINS, IN_ORDER, LOSSES
from viewkeeper.maintenance.differential.limits import across, along_scans
from viewkeeper.maintenance.plan import State


def changes(derivation: Derivation, join: InnerJoin) -> list[Change]:
    walk = _Walk(derivation, join)
    walk.go()
    return walk.terms


@dataclass
class _Walk:
    """Where every source stands, by its place in the join, and the terms so far."""

    derivation: Derivation
    join: InnerJoin

    def __post_init__(self) -> None:
        self.terms: list[Change] = []
        self.parents = parent_joins(self.join, self.derivation.declared)
        self.stand = {
            at: State.OLD if self.derivation.is_changed(source) else State.NEW
            for at, source in enumerate(self.join.sources)
        }

    def go(self) -> None:
        for at in self._seen_already():
            self._move(at, GAINS, State.NEW)
        keyed = [at for at in self._children_first() if self._has_key(at) and self.stand[at] is not State.NEW]
        for at in keyed:
            parts = self._parts(at)
            self._move(at, LOSSES, State.BETWEEN if parts & GAINS else State.NEW)
            if not parts & LOSSES:
                self.stand[at] = State.OLD
        for at in reversed(keyed):
            if self._parts(at) & GAINS:
                self._move(at, GAINS, State.NEW)
        for at, source in enumerate(self.join.sources):
            if self.stand[at] is State.NEW or at in keyed:
                continue
            for change in self.derivation.changes(source):
                self.terms.append(self._term(at, change))
            self.stand[at] = State.NEW

    def _seen_already(self) -> list[int]:
        """Sources whose losses are done: with their gains done first, nobody has to know how they were in between."""
        return [
            at
            for at, source in enumerate(self.join.sources)
            if isinstance(source, Scan)
            and self._parts(at)
            and source.input.object_id in self.derivation.without_losses
        ]

    def _parts(self, at: int) -> frozenset[State]:
        source = self.join.sources[at]
        return (
            self.derivation.kinds.get(source.input.object_id, frozenset())
            if isinstance(source, Scan)
            else frozenset()
        )

    def _has_key(self, at: int) -> bool:
        parts = self._parts(at)
        return bool(parts) and not parts & {State.REMOVED, State.ADDED}

    def _children_first(self) -> list[int]:
        """An order in which every child comes before its parents; sources on a cycle keep their place."""
        order: list[int] = []
        waiting = list(range(len(self.join.sources)))
        alias_of = {at: _alias(source) for at, source in enumerate(self.join.sources)}
        while waiting:
            left = {alias_of[at] for at in waiting}
            free = [
                at
                for at in waiting
                if not any(fact.parent == alias_of[at] and fact.child in left for fact in self.parents)
            ]
            taken = free or waiting[:1]
            order += taken
            waiting = [at for at in waiting if at not in taken]
        return order

    def _move(self, at: int, wanted: frozenset[State], after: State) -> None:
        scan = self.join.sources[at]
        assert isinstance(scan, Scan)
        for part in IN_ORDER:
            if part not in wanted or part not in self._parts(at):
                continue
            fact = self._makes_empty(scan, part)
            if fact is None:
                self.terms.append(self._term(at, part_change(self.derivation, scan, part)))
            else:
                self.derivation.dropped.append(_dropped(scan, part, fact))
        self.stand[at] = after

    def _makes_empty(self, scan: Scan, part: State) -> ParentJoin | None:
        """The foreign key by which no row of this part has a child where its children stand now."""
        place = {_alias(source): at for at, source in enumerate(self.join.sources)}
        for fact in self.parents:
            if fact.parent != scan.alias or not self._is_told_apart_by(fact):
                continue
            child = place[fact.child]
            stands = self.stand[child]
            if part is State.DELETED and (stands is not State.OLD or not self._parts(child) & LOSSES):
                return fact
            if part is State.INSERTED and (stands is not State.NEW or not self._parts(child) & GAINS):
                return fact
        return None

    def _is_told_apart_by(self, fact: ParentJoin) -> bool:
        """Whether what was deleted and inserted are values that the foreign key names: a row with another primary key may
        have taken the place of one for its children."""
        key = self.derivation.change_keys.get(fact.foreign_key.parent_id)
        return key is not None and names_key(fact.foreign_key, key)

    def _term(self, at: int, change: Change) -> Change:
        """Start at the change, then join source by source along the conditions."""
        order = _join_order(self.join, at)
        others = [self.join.sources[each] for each in order[1:]]
        stands = {_alias(self.join.sources[each]): self.stand[each] for each in order[1:]}
        reading = self.derivation.reading(lambda scan: stands[scan.alias])
        conditions = self.join.conditions
        limits = along_scans(others, conditions, across(conditions, change.limits), reading)
        frames = []
        for each in order[1:]:
            source = self.join.sources[each]
            mine = {key: values for key, values in limits.items() if key[0] in aliases_of(source)}
            frames.append((source, self.derivation.rows(source, self.stand[each], mine)))
        start: Relation = self.join.sources[at]
        frame = self.derivation.writer.inner([(start, change.frame), *frames], self.join.conditions)
        return Change(frame, change.sign, change.title, change.limits)


def _alias(source: Relation) -> str:
    return source.alias if isinstance(source, Scan) else ""


def _dropped(scan: Scan, part: State, fact: ParentJoin) -> Dropped:
    happening = "inserted into" if part is State.INSERTED else "deleted from"
    left = "was there before" if part is State.INSERTED else "is left"
    return Dropped(
        f"rows {happening} {scan.alias}",
        f"no row of {fact.child} that {left} has such a {scan.alias}: foreign key {fact.foreign_key.name}",
        fact.reliance,
        scan.input.object_id,
    )


def _join_order(join: InnerJoin, first: int) -> list[int]:
    """The sources from the changed one on, each joined by an equality to those before it where that is possible."""
    order = [first]
    waiting = [at for at in range(len(join.sources)) if at != first]
    aliases = [aliases_of(source) for source in join.sources]
    while waiting:
        reached = frozenset().union(*(aliases[at] for at in order))
        connected = [at for at in waiting if _is_connected(aliases[at], reached, join.conditions)]
        chosen = (connected or waiting)[0]
        order.append(chosen)
        waiting.remove(chosen)
    return order


def _is_connected(own: frozenset[str], reached: frozenset[str], conditions: Sequence[exp.Expr]) -> bool:
    return any(
        isinstance(condition, exp.EQ)
        and aliases_in(condition) & own
        and aliases_in(condition) & reached
        and aliases_in(condition) <= own | reached
        for condition in conditions
    )
