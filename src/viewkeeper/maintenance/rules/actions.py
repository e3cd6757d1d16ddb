"""What one reference to a table contributes when rows come or go there: the rows that enter the view, and those that leave.

A row *touches* the view through a reference if the view's query, with the changed rows in place of the table, can see it;
in a subquery, if the chain of subqueries down to the reference can. What leaves or enters is found among what is touched:

    rows that enter    meet the whole query as it is now
    rows that leave    leave for good if the reference is safe, else only if the query does not give them any more

Rows that come are looked at with the tables as they are now, rows that go with the tables as they were. Several
subqueries may change at once. Then each of them must find what it blocks although another one blocks it too: what else
the query asks is left out, except where a row of a subquery must really block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.nodes import Item, Scan
from viewkeeper.facts.safety.selects import Block, Subquery
from viewkeeper.facts.safety.verdicts import Place, Reference
from viewkeeper.maintenance.plan import State
from viewkeeper.maintenance.rules.block_sql import BlockWriter, States, all_in

LOSSES = (State.DELETED, State.OLD_UPDATED, State.REMOVED)


@dataclass(frozen=True)
class Change:
    """Rows of one kind at one reference."""

    reference: Reference
    part: State

    @property
    def is_loss(self) -> bool:
        return self.part in LOSSES

    @property
    def takes_away(self) -> bool:
        """Whether it can only take rows away from the select of the reference; else it can only add some."""
        return self.is_loss is not (self.reference.place is Place.NEGATIVE)

    @property
    def state(self) -> State:
        return State.OLD if self.is_loss else State.NEW


def leaving_rows(writer: BlockWriter, change: Change, names: Sequence[str]) -> exp.Select:
    """What a change touches and may take away."""
    path, states = change.reference.path, all_in(change.state)
    if all(not each.is_negative for each in path):
        return _touched(writer, change, names, states, _chain(writer, change, path, states, states))
    now = all_in(State.NEW)
    chain = _chain(writer, change, path, now, states, lambda blocks_rows: blocks_rows)
    return _touched(writer, change, names, now, chain, asks_the_rest=False)


def entering_rows(writer: BlockWriter, change: Change, names: Sequence[str]) -> exp.Select:
    """What a change touches and the query gives now."""
    now, path, states = all_in(State.NEW), change.reference.path, all_in(change.state)
    if all(not each.is_negative for each in path):
        return _touched(writer, change, names, now, _chain(writer, change, path, states, states))
    chain = _chain(writer, change, path, states, states, lambda blocks_rows: False)
    return _touched(writer, change, names, now, [writer.predicate(path[0], now), *chain])


def counted_rows(
    writer: BlockWriter, change: Change, names: Sequence[str], earlier: frozenset[Scan]
) -> exp.Select:
    """The copies that one reference adds or takes, when the references before it are as they are now already, and those
    after it as they were: rows that the subqueries let through before and not after, or the other way round."""

    def before(scan: Scan) -> State:
        return State.NEW if scan in earlier else State.OLD

    def after(scan: Scan) -> State:
        return State.NEW if scan == change.reference.scan else before(scan)

    path = change.reference.path
    passes, fails = (before, after) if change.takes_away else (after, before)
    conditions = []
    if any(each.is_negative for each in path):
        conditions.append(writer.predicate(path[0], passes))
    if any(each.is_negative is not (at == 0) for at, each in enumerate(path)):
        opposite = replace(path[0], is_negative=not path[0].is_negative)
        conditions.append(writer.predicate(opposite, fails))
    inside = before if change.is_loss else after
    chain = _chain(writer, change, path, inside, inside)
    return _touched(writer, change, names, before, [*conditions, *chain])


def _touched(
    writer: BlockWriter,
    change: Change,
    names: Sequence[str],
    states: States,
    conditions: Sequence[exp.Expr],
    asks_the_rest: bool = True,
) -> exp.Select:
    """The rows of the select in these states that meet the conditions; the subquery that leads to the reference is among
    these, the other subqueries are asked too unless they are left out."""
    select, path = change.reference.select, change.reference.path
    items = [Item(name, item.expression) for name, item in zip(names, select.items, strict=True)]
    if not path:
        return writer.select(items, select.block, _with_part(change, states))
    block = _without(select.block, path[0] if asks_the_rest else None)
    return writer.select(items, block, states, conditions)


def _chain(
    writer: BlockWriter,
    change: Change,
    path: Sequence[Subquery],
    states: States,
    last: States,
    asks_the_rest: Callable[[bool], bool] = lambda blocks_rows: True,
) -> list[exp.Expr]:
    """EXISTS down to the reference, whether the subqueries must have rows or not: a changed row is seen. The block of the
    reference is in the states `last`. `asks_the_rest` says of a block on the way, given whether its rows block rows of
    the view, if its other subqueries are asked."""
    found: list[exp.Expr] = []
    for at in reversed(range(len(path))):
        if at == len(path) - 1:
            found = [writer.exists(path[at].block, _with_part(change, last))]
            continue
        blocks_rows = sum(each.is_negative for each in path[: at + 1]) % 2 == 1
        following = path[at + 1] if asks_the_rest(blocks_rows) else None
        found = [writer.exists(_without(path[at].block, following), states, found)]
    return found


def _with_part(change: Change, states: States) -> States:
    return lambda scan: change.part if scan == change.reference.scan else states(scan)


def _without(block: Block, subquery: Subquery | None) -> Block:
    """The block without one of its subqueries, or without all."""
    others = () if subquery is None else tuple(each for each in block.subqueries if each is not subquery)
    return Block(block.tables, block.conditions, others)
