"""The rules of views as PostgreSQL triggers: one for each operation on each table, for all views together.

PostgreSQL gives a trigger of one event the rows that came and went, as tables. What a table was before is made of what it is
and of these. Deletions run before insertions, so that rows are compared with the view itself, not with what was put into it.

A view over a view is kept by triggers on the table of the view below. Every statement changes one table, by deletion or by
insertion, and a view that reads it reacts at once. So that a reaction meets all other tables as the view has last seen
them, *the views above react first*: a view that reads a table t and a view over t takes the change of t while the view below is
still as it was, then each change of the view below, with t as it is now.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.generated_names import SIGNED_COUNT
from viewkeeper.maintenance.plan import State
from viewkeeper.maintenance.rules.merge_views import Reaction, SharedTrigger, shared_triggers
from viewkeeper.maintenance.rules.rule import Effect, Rule, TransitionTable
from viewkeeper.maintenance.rules.rule_set import RuleSet
from viewkeeper.maintenance.rules.rule_sql import net_copies, statements, with_tables
from viewkeeper.sql.binding import Input
from viewkeeper.sql.dialect import postgres_name, to_postgres
from viewkeeper.sql.names import DEFAULT_SCHEMA, QualifiedName
from viewkeeper.sql.rendering import relation_named, render
from viewkeeper.sql.statements import Operation


@dataclass(frozen=True)
class EmittedView:
    """A view with its rules, and its query in the user's words."""

    rules: RuleSet
    inputs: tuple[Input, ...]
    query: str


_PARTS = {
    Operation.INSERT: {State.INSERTED: "inserted", State.ADDED: "inserted"},
    Operation.DELETE: {State.DELETED: "deleted", State.REMOVED: "deleted"},
    Operation.UPDATE: {
        State.OLD_UPDATED: "old_updated",
        State.REMOVED: "old_updated",
        State.NEW_UPDATED: "new_updated",
        State.ADDED: "new_updated",
    },
}
_REFERENCING = {
    Operation.INSERT: (("NEW", "inserted"),),
    Operation.DELETE: (("OLD", "deleted"),),
    Operation.UPDATE: (("OLD", "old_updated"), ("NEW", "new_updated")),
}


def emit_postgres(views: Sequence[EmittedView]) -> str:
    """A script that creates the tables of the views, fills them, and keeps them by triggers. Each view comes after those
    that it reads."""
    queries = {each.rules.stem: each.query for each in views}
    kept = {each.rules.view.key for each in views}
    parts = [_create_view(each) for each in views]
    above_first = views[::-1]
    for trigger in shared_triggers((each.rules, each.inputs) for each in above_first):
        if trigger.operation is not Operation.UPDATE or trigger.table.name.key not in kept:
            parts.append(_Function(trigger, queries).text())
    tables = {table.object_id: table for each in views for table in each.inputs}
    parts += [_truncation(table, above_first) for table in tables.values() if table.name.key not in kept]
    return "\n\n".join(parts) + "\n"


def _create_view(view: EmittedView) -> str:
    name = _name(view.rules.view)
    return f"CREATE TABLE {name} AS\n{to_postgres(view.query)};"


@dataclass(frozen=True)
class _Function:
    """The function of one trigger."""

    trigger: SharedTrigger
    queries: dict[str, str]

    def text(self) -> str:
        trigger = self.trigger
        name = postgres_name(f"vk_{trigger.operation.value.lower()}_{trigger.table.name.relation_stem}")
        body = "\n".join(self._reaction(each) for each in trigger.reactions)
        tables = " ".join(
            f"{image} TABLE AS {self._transition(word)}" for image, word in _REFERENCING[trigger.operation]
        )
        return "\n".join(
            [
                f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $vk$",
                "BEGIN",
                textwrap.indent(body, "  "),
                "  RETURN NULL;",
                "END",
                "$vk$;",
                f"CREATE TRIGGER {name} AFTER {trigger.operation.value} ON {_name(trigger.table.name)}",
                f"  REFERENCING {tables}",
                f"  FOR EACH STATEMENT EXECUTE FUNCTION {name}();",
            ]
        )

    def _reaction(self, reaction: Reaction) -> str:
        rules = reaction.rules
        if rules.unread is not None:
            reason = f"-- {rules.view}: evaluated anew, because {rules.unread}"
            return "\n".join([reason, *_anew(rules, self.queries[rules.stem])])
        chosen = reaction.triggered
        if chosen and chosen[0].effect is Effect.REMATERIALIZE:
            chosen = chosen[:1]
        lines = [line for rule in chosen for line in self._rule(rules, rule)]
        if self.trigger.operation is not Operation.UPDATE or not reaction.columns:
            return "\n".join(lines)
        columns = ", ".join(map(postgres_name, reaction.columns))
        old, new = (self._transition(word) for word in ("old_updated", "new_updated"))
        changed = f"SELECT {columns} FROM {old} EXCEPT ALL SELECT {columns} FROM {new}"
        return "\n".join([f"IF EXISTS ({changed}) THEN", textwrap.indent("\n".join(lines), "  "), "END IF;"])

    def _rule(self, rules: RuleSet, rule: Rule) -> list[str]:
        found = [f"-- {rules.view}: rule {rule.name}"]
        if rule.effect is Effect.RECOUNT:
            actions = [each for each in rule.actions if not self._is_empty(each.tables.values())]
            net = self._rendered(rules, rule, net_copies(rules, actions))
            return [*found, _recount(rules, net)]
        return [*found, *(f"{self._rendered(rules, rule, each)};" for each in statements(rules, rule))]

    def _rendered(self, rules: RuleSet, rule: Rule, statement: exp.Expr) -> str:
        over = with_tables(statement, rule, lambda table, _: self._relation(rules, table))
        return to_postgres(render(over))

    def _relation(self, rules: RuleSet, table: TransitionTable) -> exp.Expr:
        """A table in a state; one that this statement did not change is the same in every state."""
        if table.table is None:
            return relation_named(rules.view.name)
        plain = _table(table.table.name)
        part = _PARTS[self.trigger.operation].get(table.state)
        if table.table.object_id != self.trigger.table.object_id or table.state is State.NEW:
            return plain
        if part is not None:
            return relation_named(f"{part}_{table.table.name.relation_stem}")
        assert table.state is State.OLD
        return self._before(plain)

    def _before(self, table: exp.Table) -> exp.Expr:
        """The table before the statement: without what came, with what went."""
        rows: exp.Query = exp.select("*").from_(table)
        for image, word in reversed(_REFERENCING[self.trigger.operation]):
            name = f"{word}_{self.trigger.table.name.relation_stem}"
            part = exp.select("*").from_(relation_named(name))
            operator = exp.Except if image == "NEW" else exp.Union
            rows = operator(this=rows, expression=part, distinct=False)
        return exp.Subquery(this=rows)

    def _is_empty(self, tables: Iterable[TransitionTable]) -> bool:
        """Whether an action is about rows that this operation does not have: an insertion removes none."""
        parts = _PARTS[self.trigger.operation]
        return any(each.state in (State.REMOVED, State.ADDED) and each.state not in parts for each in tables)

    def _transition(self, word: str) -> str:
        return postgres_name(f"{word}_{self.trigger.table.name.relation_stem}")


def _recount(rules: RuleSet, net: str) -> str:
    """Copies go by their place in the table, as many as are counted, then copies come: two statements, so that the
    triggers of views above see one after the other."""
    view = _name(rules.view)
    columns = [postgres_name(each) for each in rules.columns]
    kept = ", ".join(f"kept.{each}" for each in columns)
    same = " AND ".join(f"net.{each} IS NOT DISTINCT FROM kept.{each}" for each in columns)
    count = postgres_name(SIGNED_COUNT)
    counted = ["WITH net AS (", textwrap.indent(net, "  ")]
    return "\n".join(
        [
            *counted,
            "), numbered AS (",
            f"  SELECT kept.ctid AS place, net.{count}, row_number() OVER (PARTITION BY {kept}) AS copy",
            f"  FROM {view} AS kept JOIN net ON {same}",
            ")",
            f"DELETE FROM {view} WHERE ctid IN (SELECT place FROM numbered WHERE copy <= -{count});",
            *counted,
            ")",
            f"INSERT INTO {view} ({', '.join(columns)})",
            f"SELECT {', '.join(f'net.{each}' for each in columns)} FROM net, generate_series(1, net.{count});",
        ]
    )


def _anew(rules: RuleSet, query: str) -> list[str]:
    name = _name(rules.view)
    return [f"DELETE FROM {name};", f"INSERT INTO {name}\n{to_postgres(query)};"]


def _truncation(table: Input, views: Sequence[EmittedView]) -> str:
    """TRUNCATE has no transition tables: the views are evaluated anew."""
    name = postgres_name(f"vk_truncate_{table.name.relation_stem}")
    readers = [each for each in views if table.object_id in {found.object_id for found in each.inputs}]
    body = "\n".join(line for each in readers for line in _anew(each.rules, each.query))
    return "\n".join(
        [
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $vk$",
            "BEGIN",
            textwrap.indent(body, "  "),
            "  RETURN NULL;",
            "END",
            "$vk$;",
            f"CREATE TRIGGER {name} AFTER TRUNCATE ON {_name(table.name)}",
            f"  FOR EACH STATEMENT EXECUTE FUNCTION {name}();",
        ]
    )


def _table(name: QualifiedName) -> exp.Table:
    table = relation_named(name.name)
    if name.schema != DEFAULT_SCHEMA:
        table.set("db", exp.to_identifier(name.schema, quoted=True))
    return table


def _name(name: QualifiedName) -> str:
    return (
        postgres_name(name.name) if name.schema == DEFAULT_SCHEMA else postgres_name(name.schema, name.name)
    )
