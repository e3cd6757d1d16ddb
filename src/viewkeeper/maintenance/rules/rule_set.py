"""All rules of one view, and what they need to be written down."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.facts.safety.selects import Selection
from viewkeeper.maintenance.rules.rule import Rule, Trigger
from viewkeeper.sql.names import QualifiedName


@dataclass(frozen=True)
class RuleSet:
    """`stem` is the view's name in actions; `unread` says why there are no rules, if there are none."""

    view: QualifiedName
    stem: str
    columns: tuple[str, ...]
    selection: Selection
    never_null: frozenset[str] = frozenset()
    rules: tuple[Rule, ...] = ()
    unread: str | None = None

    def triggered_by(self, trigger: Trigger) -> list[Rule]:
        """The rules that an operation triggers, in the order in which they run."""
        same = (trigger.operation, trigger.object_id)
        return [
            rule
            for rule in self.rules
            if any((each.operation, each.object_id) == same for each in rule.triggers)
        ]

    @property
    def triggers(self) -> list[Trigger]:
        """Every operation that matters to the view, once, with all columns whose update does."""
        found: dict[tuple[str, str], Trigger] = {}
        for rule in self.rules:
            for each in rule.triggers:
                known = found.get((each.object_id, each.operation.name))
                columns = dict.fromkeys([*(known.columns if known else ()), *each.columns])
                found[each.object_id, each.operation.name] = Trigger(
                    each.operation, each.table, each.object_id, tuple(columns)
                )
        return list(found.values())
