"""Rules of several views, put together by what triggers them: each change of a table is gone through once for all views."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from viewkeeper.maintenance.rules.rule import Rule
from viewkeeper.maintenance.rules.rule_set import RuleSet
from viewkeeper.sql.binding import Input
from viewkeeper.sql.statements import Operation


@dataclass(frozen=True)
class Reaction:
    """What one view does after an operation: its rules in order (none: it is evaluated anew), and the columns whose
    update matters to it."""

    rules: RuleSet
    triggered: tuple[Rule, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class SharedTrigger:
    """An operation on a table, and what every view does after it."""

    table: Input
    operation: Operation
    reactions: tuple[Reaction, ...]


def shared_triggers(views: Iterable[tuple[RuleSet, tuple[Input, ...]]]) -> list[SharedTrigger]:
    """All operations on the tables that some views read."""
    found: dict[tuple[str, Operation], tuple[Input, list[Reaction]]] = {}
    for rules, inputs in views:
        for table in inputs:
            for operation in Operation:
                reaction = _reaction(rules, table, operation)
                if reaction is not None:
                    _, reactions = found.setdefault((table.object_id, operation), (table, []))
                    reactions.append(reaction)
    return [
        SharedTrigger(table, operation, tuple(reactions))
        for (_, operation), (table, reactions) in found.items()
    ]


def _reaction(rules: RuleSet, table: Input, operation: Operation) -> Reaction | None:
    if rules.unread is not None:
        return Reaction(rules, (), ())
    for trigger in rules.triggers:
        if (trigger.object_id, trigger.operation) == (table.object_id, operation):
            return Reaction(rules, tuple(rules.triggered_by(trigger)), trigger.columns)
    return None
