"""SHOW, DESCRIBE, EXPLAIN, status and history: answered from the catalogue, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.algebra.nodes import scans
from viewkeeper.algebra.to_sql import below
from viewkeeper.errors import UnknownNameError, UnsupportedError
from viewkeeper.execution.constraints import (
    known_keys,
    planned_declarations,
    reliable_declarations,
)
from viewkeeper.execution.create_view import check_policy, planned_definition
from viewkeeper.execution.epochs import foreign_commit
from viewkeeper.execution.reports import ExplainReport, TableReport
from viewkeeper.execution.workspace import Workspace, bind_new, definition_of
from viewkeeper.facts.declared import Declarations, Declared, Reliance
from viewkeeper.maintenance.build_plan import (
    ANY_CHANGE,
    ANY_KEYED_CHANGE,
    keyed_inputs,
    plan_first_load,
    plan_refresh,
)
from viewkeeper.maintenance.differential.kinds import Kinds
from viewkeeper.maintenance.explain import explain_plan, explain_query
from viewkeeper.maintenance.plan import State
from viewkeeper.maintenance.rule_runs import rule_runs
from viewkeeper.maintenance.rules.explain_rules import analysis_json, explain_rules, explain_verdicts
from viewkeeper.maintenance.rules.postgres import EmittedView, emit_postgres
from viewkeeper.maintenance.rules.view_rules import rules_for, without_rules
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import DEFAULT_SCHEMA, QualifiedName, did_you_mean
from viewkeeper.sql.statements import CreateView
from viewkeeper.storage.catalogue import Catalogue, ObjectRecord
from viewkeeper.storage.holder import is_alive
from viewkeeper.storage.records import HistoryEntry, Publication, TableRecord, ViewRecord


def view_named(catalogue: Catalogue, name: QualifiedName) -> ViewRecord:
    record = catalogue.named(name)
    if isinstance(record, ViewRecord):
        return record
    views = sorted(str(view.name) for view in catalogue.views.values())
    what = "is a table, not a materialized view" if record is not None else "does not exist"
    hint = did_you_mean(str(name), views, "SHOW MATERIALIZED VIEWS lists the views.")
    raise UnknownNameError(f"the materialized view {name} {what}.", hint)


def show_tables(workspace: Workspace) -> TableReport:
    catalogue = workspace.state.read()
    rows = [
        (
            str(table.name),
            len(table.columns),
            "; ".join(_key_text(table)),
            "attached" if table.attached else "",
            ", ".join(sorted(str(view.name) for view in catalogue.readers_of(table.id))),
        )
        for table in sorted(catalogue.tables.values(), key=lambda table: table.name)
    ]
    return TableReport(("table", "columns", "constraints", "kind", "read by"), tuple(rows))


def show_views(workspace: Workspace) -> TableReport:
    """Every view: its policy, what it shows, and whether its tables have moved on."""
    catalogue = workspace.state.read()
    rows = []
    for view in sorted(catalogue.views.values(), key=lambda view: view.name):
        published = catalogue.published[view.id]
        rows.append(
            (
                str(view.name),
                view.policy.value,
                published.epoch,
                published.published_at,
                _state_of(workspace, catalogue, view),
                ", ".join(str(catalogue.object(i).name) for i in view.input_ids),
            )
        )
    return TableReport(("view", "refresh", "epoch", "published at", "state", "reads"), tuple(rows))


def _state_of(workspace: Workspace, catalogue: Catalogue, view: ViewRecord) -> str:
    published = catalogue.published[view.id]
    if foreign_commit(workspace, view, published.version) is not None:
        return "changed by somebody else"
    return "stale" if _is_stale(workspace, catalogue, published) else "fresh"


def _is_stale(workspace: Workspace, catalogue: Catalogue, published: Publication) -> bool:
    """Whether a table below has other rows than those the view was made from."""
    if any(version < 0 for version in published.inputs.values()):
        return True
    for table_id, version in published.sources.items():
        commits = workspace.log.commits_after(workspace.data_address(catalogue.tables[table_id]), version)
        if any(commit.changes_rows for commit in commits):
            return True
    return False


def unfinished(workspace: Workspace) -> TableReport:
    """Epochs under way, and epochs that a dead process left."""
    catalogue = workspace.state.read()
    rows = [
        (
            claim.epoch,
            ", ".join(str(catalogue.views[v].name) for v in claim.views if v in catalogue.views)
            or "a new view",
            str(claim.holder),
            claim.claimed_at,
            "running" if is_alive(claim) else "left behind; the next refresh repeats it",
        )
        for claim in catalogue.claims
    ]
    return TableReport(("epoch", "views", "held by", "since", "state"), tuple(rows), "unfinished epochs")


def describe(workspace: Workspace, name: QualifiedName) -> TableReport:
    catalogue = workspace.state.read()
    record = object_named(catalogue, name)
    rows: list[tuple[Any, ...]] = [
        (c.name, str(c.data_type), "" if c.nullable else "NOT NULL", c.comment or "") for c in record.columns
    ]
    if isinstance(record, TableRecord):
        rows += [("#", text, "", "") for text in _key_text(record) + _foreign_key_text(catalogue, record)]
        if record.updatable is not None:
            rows.append(("#", f"UPDATABLE ({', '.join(record.updatable)})", "", ""))
        if record.append_only:
            rows.append(("#", "APPEND ONLY", "", ""))
    else:
        rows.append(("#", f"REFRESH {record.policy.value}", "", ""))
        rows += [
            ("#", f"REMATERIALIZE ON {operation} of {catalogue.object(table).name}", "", "")
            for operation, table in record.rematerialized_on
        ]
        rows.append(("#", record.query, "", ""))
    if record.comment is not None:
        rows.append(("#", "COMMENT", "", record.comment))
    return TableReport(("column", "type", "null", "comment"), tuple(rows), str(record.name))


def object_named(catalogue: Catalogue, name: QualifiedName) -> ObjectRecord:
    record = catalogue.named(name)
    if record is None:
        raise UnknownNameError(
            f"there is no table or view {name}.",
            did_you_mean(str(name), catalogue.names(), "SHOW TABLES and SHOW MATERIALIZED VIEWS list them."),
        )
    return record


def _key_text(table: TableRecord) -> list[str]:
    return [
        f"CONSTRAINT {key.name} {'PRIMARY KEY' if key.primary else 'UNIQUE'} ({', '.join(key.columns)})"
        f"{' RELY' if key.rely else ''}"
        for key in table.keys
    ]


def _foreign_key_text(catalogue: Catalogue, table: TableRecord) -> list[str]:
    return [
        f"CONSTRAINT {key.name} FOREIGN KEY ({', '.join(key.columns)}) REFERENCES "
        f"{catalogue.tables[key.parent_id].name} ({', '.join(key.parent_columns)}){' RELY' if key.rely else ''}"
        for key in table.foreign_keys
    ]


def history_report(entries: list[HistoryEntry]) -> TableReport:
    rows = [
        (
            e.epoch,
            e.view,
            e.outcome,
            e.strategy,
            e.inserted,
            e.deleted,
            e.seconds,
            e.finished_at,
            e.error or e.reason,
        )
        for e in entries
    ]
    columns = (
        "epoch",
        "view",
        "outcome",
        "strategy",
        "inserted",
        "deleted",
        "seconds",
        "finished at",
        "reason",
    )
    return TableReport(columns, tuple(rows))


def describe_history(workspace: Workspace, name: QualifiedName) -> TableReport:
    view = view_named(workspace.state.read(), name)
    return history_report(workspace.state.history(view.id))


def explain_view(workspace: Workspace, name: QualifiedName) -> ExplainReport:
    catalogue = workspace.state.read()
    definition = definition_of(view_named(catalogue, name), catalogue)
    declared = reliable_declarations(workspace, catalogue, definition)
    known = known_keys(catalogue, definition)
    return _explain(replace(definition, declared=declared), known, _verified(catalogue, definition))


def explain_create(catalogue: Catalogue, statement: CreateView) -> ExplainReport:
    """What CREATE would do, without Spark: types are not known yet, names are."""
    query = bind_new(statement.query, catalogue)
    if query.problems:
        raise query.problems[0]
    view = planned_definition(statement, query)
    check_policy(view, statement.query)
    declared = known_keys(catalogue, view)
    load = plan_first_load(replace(view, declared=declared))
    report = _explain(replace(view, declared=planned_declarations(catalogue, view)), declared)
    text = "\n".join([*explain_plan(load, "at CREATE"), "", report.text])
    return ExplainReport(text, {"create": load.to_json(), **report.plan})


def emit_triggers(catalogue: Catalogue, statements: Sequence[CreateView]) -> str:
    """Views as PostgreSQL tables that triggers keep."""
    views: list[EmittedView] = []
    for statement in statements:
        query = bind_new(statement.query, catalogue)
        if query.problems:
            raise query.problems[0]
        view = planned_definition(statement, query)
        _refuse_for_triggers(catalogue, view, statement, {each.rules.view.key for each in views})
        found = rules_for(view, known_keys(catalogue, view))
        if found is None:
            assert isinstance(view.algebra, OutsideAlgebra)
            rules = without_rules(view, view.algebra.reason)
        else:
            rules = found.rules
        views.append(EmittedView(rules, query.inputs, statement.query.text))
        catalogue = as_if_created(catalogue, statement)
    return emit_postgres(views)


def _refuse_for_triggers(
    catalogue: Catalogue, view: ViewDefinition, statement: CreateView, kept: set[str]
) -> None:
    where = statement.query.locate(0, len(statement.query.text))
    for found in view.query.inputs:
        if found.object_id in catalogue.views and found.name.key not in kept:
            raise UnsupportedError(
                f"{view.name} reads the view {found.name}, for which no triggers are written here.",
                f"name the file with {found.name} too.",
                where,
            )
    if view.name.schema != DEFAULT_SCHEMA or view.stem != view.name.name:
        raise UnsupportedError(
            f"the table of {view.name} would get another name in PostgreSQL.",
            "give the view a name without a schema, other than those of its tables.",
            where,
        )


def as_if_created(catalogue: Catalogue, statement: CreateView) -> Catalogue:
    """The catalogue with a view that is only planned, so that views above it can be planned too."""
    query = bind_new(statement.query, catalogue)
    columns = _with_known_types(planned_definition(statement, query))
    references = {r.name.key: query.input_of(r).object_id for r in query.parsed.references}
    view = ViewRecord(
        statement.name.key, statement.name, columns, "", statement.query.text, references, statement.policy
    )
    return catalogue.with_view(view)


def _with_known_types(view: ViewDefinition) -> tuple[Column, ...]:
    """The columns of a planned view; those that are columns of its inputs have their type."""
    query = view.algebra
    if isinstance(query, OutsideAlgebra):
        return view.columns
    types = {
        (scan.alias, each.name.lower()): each.data_type
        for scan in scans(query)
        for each in scan.input.columns
    }
    found = []
    for column, item in zip(view.columns, query.items, strict=True):
        made = below(item.expression, query.source)
        known = types.get((made.table, made.name.lower())) if isinstance(made, exp.Column) else None
        found.append(column if known is None else replace(column, data_type=known))
    return tuple(found)


def _verified(catalogue: Catalogue, view: ViewDefinition) -> frozenset[Reliance]:
    return frozenset(Reliance(*each) for each in catalogue.published[view.id].verified)


def _explain(
    view: ViewDefinition, declared: Declarations, verified: frozenset[Reliance] = frozenset()
) -> ExplainReport:
    """The plan of a refresh; `declared` is what would be known of the tables if every declared key held, `verified` what is
    known to hold."""
    reads = ", ".join(str(found.name) for found in view.query.inputs)
    changed = " or ".join(str(found.name) for found in view.query.inputs)
    plan = plan_refresh(view, _any_changes(view, declared), None, verified)
    lines = [f"materialized view {view.name}, REFRESH {view.policy.value}, reads {reads}", ""]
    lines += explain_query(view, declared)
    data: dict[str, Any] = {"view": str(view.name), "policy": view.policy.value}
    found = rules_for(view, declared)
    if found is not None:
        lines += explain_verdicts(found.analysis, found.rules, found.advice)
        runs = rule_runs(view, found.rules, verified)
        data |= analysis_json(found.analysis, found.rules, found.advice, runs)
    lines += explain_plan(plan, f"when {changed} changes")
    return ExplainReport("\n".join(lines), {**data, "refresh": plan.to_json()})


def _any_changes(view: ViewDefinition, declared: Declarations) -> Kinds:
    """All that can happen to what the view reads."""
    found = {}
    for each in view.query.inputs:
        kinds = ANY_KEYED_CHANGE if each.object_id in keyed_inputs(view) else ANY_CHANGE
        only_grows = declared.get(each.object_id, Declared()).is_append_only
        found[each.object_id] = kinds & {State.ADDED, State.INSERTED} if only_grows else kinds
    return found


def explain_rules_for(workspace: Workspace, name: QualifiedName) -> ExplainReport:
    """The rules that keep a view, if everything that is declared of its tables holds."""
    catalogue = workspace.state.read()
    definition = definition_of(view_named(catalogue, name), catalogue)
    found = rules_for(definition, known_keys(catalogue, definition))
    if found is None:
        assert isinstance(definition.algebra, OutsideAlgebra)
        reason = f"there are no rules for {name}: {definition.algebra.reason}."
        return ExplainReport(reason, {"view": str(name), "rules": []})
    relying = replace(definition, declared=reliable_declarations(workspace, catalogue, definition))
    runs = rule_runs(relying, found.rules, _verified(catalogue, definition))
    data = analysis_json(found.analysis, found.rules, found.advice, runs)
    return ExplainReport("\n".join(explain_rules(found.rules, runs)).rstrip(), {"view": str(name), **data})
