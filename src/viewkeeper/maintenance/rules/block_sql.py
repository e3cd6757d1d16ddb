"""Blocks back to SQL as people write it: tables in FROM, conditions and EXISTS in WHERE, every table in a state of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from viewkeeper.algebra.nodes import Item, Scan, SetKind
from viewkeeper.algebra.to_sql import set_operation
from viewkeeper.facts.safety.selects import Block, Combined, Select, Selection, Subquery, Unread
from viewkeeper.generated_names import state_relation
from viewkeeper.maintenance.plan import State
from viewkeeper.maintenance.rules.rule import TransitionTable
from viewkeeper.sql.rendering import alias, aliased, all_of, literal

States: TypeAlias = Callable[[Scan], State]


def all_in(state: State) -> States:
    return lambda scan: state


@dataclass
class BlockWriter:
    """Writes blocks, and remembers which relations it has named."""

    tables: dict[str, TransitionTable] = field(default_factory=dict)

    def relation(self, scan: Scan, state: State) -> exp.Table:
        name = state_relation(scan.input.relation, state.value)
        self.tables[name] = TransitionTable(scan.input, state)
        return aliased(name, scan.alias)

    def select(
        self, items: Sequence[Item], block: Block, states: States, more: Sequence[exp.Expr] = ()
    ) -> exp.Select:
        shown = [alias(item.expression.copy(), item.name) for item in items] or [literal(1)]
        first, *others = (self.relation(scan, states(scan)) for scan in block.tables)
        found = exp.Select(expressions=shown).from_(first)
        for each in others:
            found.append("joins", exp.Join(this=each))
        conditions = [
            *(each.copy() for each in block.conditions),
            *(self.predicate(each, states) for each in block.subqueries),
            *more,
        ]
        if conditions:
            found.set("where", exp.Where(this=all_of(conditions)))
        return found

    def predicate(self, subquery: Subquery, states: States) -> exp.Expr:
        """The subquery as it is asked: EXISTS or NOT EXISTS."""
        found = self.exists(subquery.block, states)
        return exp.Not(this=found) if subquery.is_negative else found

    def exists(self, block: Block, states: States, more: Sequence[exp.Expr] = ()) -> exp.Expr:
        return exp.Exists(this=self.select((), block, states, more))

    def selection(self, selection: Selection, names: Sequence[str], states: States) -> exp.Query:
        """A whole view in some state, its columns under these names."""
        match selection:
            case Select(items, block, is_distinct):
                renamed = [Item(name, item.expression) for name, item in zip(names, items, strict=True)]
                found = self.select(renamed, block, states)
                return found.distinct() if is_distinct else found
            case Combined(kind, keeps_copies, left, right):
                keeps = keeps_copies and kind is SetKind.UNION
                both = (self.selection(each, names, states) for each in (left, right))
                return set_operation(kind, keeps, *both)
            case Unread():
                raise AssertionError("an unread view has no rules")
