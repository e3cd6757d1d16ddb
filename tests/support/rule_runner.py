"""Runs the rules of a view on DuckDB as a rule system would: triggered rules in the order of precedence, each action a
statement over transition tables. Nothing of the plans that a refresh runs is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import duckdb
from sqlglot import exp

from viewkeeper.facts.declared import Declarations
from viewkeeper.maintenance.plan import State
from viewkeeper.maintenance.rules.derive import derive_rules
from viewkeeper.maintenance.rules.rule import Effect, Rule
from viewkeeper.maintenance.rules.rule_set import RuleSet
from viewkeeper.maintenance.rules.rule_sql import checked_rows, net_copies, statements
from viewkeeper.maintenance.rules.view_analysis import analysis_of
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.rendering import render
from viewkeeper.sql.statements import Operation
from viewkeeper.testing.agreement import with_one_answer
from viewkeeper.testing.bags import Row, compare_bags
from viewkeeper.testing.cases import Case
from viewkeeper.testing.changes import Rows
from viewkeeper.testing.duckdb_runner import TableState, fill, quoted, to_duckdb
from viewkeeper.testing.tables import Schema

_PARTS = {
    Operation.INSERT: (State.INSERTED, State.ADDED),
    Operation.DELETE: (State.DELETED, State.REMOVED),
    Operation.UPDATE: (State.OLD_UPDATED, State.NEW_UPDATED),
}


def rules_of(
    view: ViewDefinition,
    declared: Declarations,
    rematerialized: frozenset[tuple[str, Operation]] = frozenset(),
) -> RuleSet:
    names = tuple(column.name for column in view.columns)
    analysis = analysis_of(view, declared)
    return derive_rules(view.name, view.stem, names, analysis, declared, rematerialized)


class RuleRun:
    """A view in a table of DuckDB, kept by its rules; it can be loaded again for another stream of changes."""

    def __init__(self, database: duckdb.DuckDBPyConnection, view: ViewDefinition, rules: RuleSet) -> None:
        self._database, self.view, self.rules = database, view, rules
        self.triggered: list[str] = []
        self._written: dict[str, list[str]] = {}
        assert len({rule.name for rule in rules.rules}) == len(rules.rules), "two rules of one name"

    def load(self, rows: Sequence[Row]) -> None:
        self.triggered = []
        self._fill_view(rows)

    def _fill_view(self, rows: Sequence[Row]) -> None:
        fill(self._database, self.rules.stem, self.view.columns, rows)

    def rows(self) -> list[Row]:
        return self._database.execute(f"SELECT * FROM {quoted(self.rules.stem)}").fetchall()

    def differs_from(self, rows: Sequence[Row]) -> bool:
        return not compare_bags(rows, self.rows()).is_empty

    def react(self, tables: Mapping[str, TableState]) -> None:
        """Let the rules see one transition of the tables."""
        triggered = [rule for rule in self.rules.rules if _is_triggered(rule, tables)]
        self.triggered += [rule.name for rule in triggered]
        named = {
            name: each
            for rule in triggered
            for action in rule.actions
            for name, each in action.tables.items()
        }
        for name, each in named.items():
            if each.table is not None:
                rows = _rows(tables[each.table.object_id], each.state)
                fill(self._database, name, each.table.columns, rows)
        fill(self._database, f"{self.rules.stem}_{State.INSERTED.value}", self.view.columns, ())
        for rule in triggered:
            match rule.effect:
                case Effect.REMATERIALIZE:
                    self._run(rule)
                    return
                case Effect.DELETE:
                    self._run(rule)
                case Effect.INSERT:
                    self._insert(rule)
                case Effect.RECOUNT:
                    pass
        self._recount([rule for rule in triggered if rule.effect is Effect.RECOUNT])

    def _sql(self, rule: Rule) -> list[str]:
        """What a rule does, as DuckDB takes it; written once for all streams."""
        if rule.name not in self._written:
            match rule.effect:
                case Effect.REMATERIALIZE | Effect.DELETE:
                    trees: Sequence[exp.Expr] = statements(self.rules, rule)
                case Effect.INSERT:
                    trees = [checked_rows(self.rules, action, action.checks) for action in rule.actions]
                case Effect.RECOUNT:
                    trees = [net_copies(self.rules, rule.actions)]
            self._written[rule.name] = [to_duckdb(render(each)) for each in trees]
        return self._written[rule.name]

    def _run(self, rule: Rule) -> None:
        for sql in self._sql(rule):
            self._database.execute(sql)

    def _insert(self, rule: Rule) -> None:
        for sql in self._sql(rule):
            rows = self._database.execute(sql).fetchall()
            for name in (self.rules.stem, f"{self.rules.stem}_{State.INSERTED.value}"):
                self._append(name, rows)

    def _append(self, name: str, rows: Sequence[Row]) -> None:
        if not rows:
            return
        known = self._database.execute(f"SELECT * FROM {quoted(name)}").fetchall()
        fill(self._database, name, self.view.columns, [*known, *rows])

    def _recount(self, rules: Sequence[Rule]) -> None:
        """Copies of all rules are added up before any is taken."""
        total: Counter[Row] = Counter(self.rows())
        for rule in rules:
            for sql in self._sql(rule):
                for *row, copies in self._database.execute(sql).fetchall():
                    total[tuple(row)] += copies
        if rules:
            assert all(copies >= 0 for copies in total.values()), total
            self._fill_view(list(total.elements()))


def _is_triggered(rule: Rule, tables: Mapping[str, TableState]) -> bool:
    return any(
        tables[trigger.object_id].parts.get(part)
        for trigger in rule.triggers
        for part in _PARTS[trigger.operation]
    )


def _rows(table: TableState, state: State) -> Sequence[Row]:
    """Without a key, an update is a deletion and an insertion."""
    if table.key:
        return table.rows(state)
    parts = {State.DELETED: State.REMOVED, State.INSERTED: State.ADDED}
    if state in (State.OLD_UPDATED, State.NEW_UPDATED):
        return ()
    return table.rows(parts.get(state, state))


def transition(schema: Schema, before: Rows, after: Rows) -> dict[str, TableState]:
    """The change of every table, told apart by its key if it has one."""
    found = {}
    for table in schema.tables:
        keys = table.declared.keys
        key = keys[0].columns if keys else ()
        found[table.id] = TableState(table.columns, before[table.id], after[table.id], key)
    return found


def answers(database: duckdb.DuckDBPyConnection, case: Case) -> list[list[Row]]:
    """What the query itself gives at every moment of the stream."""
    found, filled = [], dict[str, Sequence[Row]]()
    for rows in case.stream:
        for table in case.schema.tables:
            if filled.get(table.id) != rows[table.id]:
                fill(database, table.name.name, table.columns, rows[table.id])
                filled[table.id] = rows[table.id]
        found.append(database.execute(to_duckdb(with_one_answer(case.text))).fetchall())
    return found
