"""SHOW, DESCRIBE, EXPLAIN, status and history: answered from the catalogue, without Spark."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    verified_by,
)
from viewkeeper.execution.create_view import check_policy, planned_definition
from viewkeeper.execution.epochs import users_names
from viewkeeper.execution.reports import ExplainReport, TableReport
from viewkeeper.execution.view_head import view_head
from viewkeeper.execution.workspace import Workspace, bind_new, definition_of, users_definition
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
from viewkeeper.maintenance.kept_groups import about_inner_groups, over_needed_groups
from viewkeeper.maintenance.plan import MaintenancePlan, State
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
    views = [str(view.name) for view in catalogue.users_views()]
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
    for view in catalogue.users_views():
        published = catalogue.published[view.id]
        rows.append(
            (
                str(view.name),
                view.policy.value,
                published.epoch,
                published.published_at,
                _state_of(workspace, catalogue, view),
                ", ".join(str(catalogue.object(i).name) for i in view.named_ids),
            )
        )
    return TableReport(("view", "refresh", "epoch", "published at", "state", "reads"), tuple(rows))


def _state_of(workspace: Workspace, catalogue: Catalogue, view: ViewRecord) -> str:
    for each in (view, *catalogue.kept_by(view.id)):
        if view_head(workspace, each, catalogue.published[each.id].version).foreign is not None:
            return "changed by somebody else"
    return "stale" if _is_stale(workspace, catalogue, catalogue.published[view.id]) else "fresh"


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
            ", ".join(users_names(catalogue, claim)) or "a new view",
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
        rows += [("#", f"{about[0].upper()}{about[1:]}.", "", "") for about in record.about_groups]
        rows += [
            ("#", f"KEEPS {hidden.name}: {_row_count(workspace, hidden):,} rows", "", "")
            for hidden in catalogue.kept_by(record.id)
        ]
        rows.append(("#", record.query, "", ""))
    if record.comment is not None:
        rows.append(("#", "COMMENT", "", record.comment))
    return TableReport(("column", "type", "null", "comment"), tuple(rows), str(record.name))


def _row_count(workspace: Workspace, view: ViewRecord) -> int:
    return workspace.log.row_count(workspace.data_address(view))


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


def users_history(workspace: Workspace, view_id: str | None, last: int | None) -> list[HistoryEntry]:
    """What epochs did to users' views, or to one view, oldest first, and only the last so many if asked."""
    wanted = last
    while True:
        found = workspace.state.history(view_id, wanted)
        shown = [entry for entry in found if entry.owner is None]
        if last is None or wanted is None or len(shown) >= last or len(found) < wanted:
            return shown if last is None else shown[-last:]
        wanted *= 2


def describe_history(workspace: Workspace, name: QualifiedName) -> TableReport:
    view = view_named(workspace.state.read(), name)
    return history_report(workspace.state.history(view.id))


def explain_view(workspace: Workspace, name: QualifiedName) -> ExplainReport:
    """The plans of the view and of the hidden views below it, in the order in which they run."""
    catalogue = workspace.state.read()
    view = view_named(catalogue, name)
    users = users_definition(view, catalogue)
    users = replace(users, declared=reliable_declarations(workspace, catalogue, users))
    kept = [
        KeptPlan(each.query, _row_count(workspace, each), _plan_of(workspace, catalogue, each))
        for each in catalogue.kept_by(view.id)
    ]
    plan = _plan_of(workspace, catalogue, view)
    verified = _verified(catalogue, users)
    return _explain(users, known_keys(catalogue, users), plan, view.about_groups, kept, verified)


def _plan_of(workspace: Workspace, catalogue: Catalogue, view: ViewRecord) -> PlanWhen:
    definition = definition_of(view, catalogue)
    declared = reliable_declarations(workspace, catalogue, definition)
    return _plan_when_anything_changes(
        replace(definition, declared=declared),
        known_keys(catalogue, definition),
        _verified(catalogue, definition),
    )


def explain_create(catalogue: Catalogue, statement: CreateView) -> ExplainReport:
    """What CREATE would do, without Spark: types are not known yet, names are."""
    query = bind_new(statement.query, catalogue)
    if query.problems:
        raise query.problems[0]
    view = planned_definition(statement, query)
    check_policy(view, statement.query)
    declared = known_keys(catalogue, view)
    load = plan_first_load(replace(view, declared=declared))
    view = replace(view, declared=planned_declarations(catalogue, view))
    report = _explain(view, declared, _plan_over_needed_groups(view, declared), about_inner_groups(view))
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
    return verified_by(catalogue, catalogue.published[view.id])


def _plan_over_needed_groups(view: ViewDefinition, declared: Declarations) -> PlanWhen:
    """The plan of a view that does not exist yet: over the hidden views that it will have in any case."""
    planned = over_needed_groups(view)
    changes = dict(_any_changes(view, declared))
    if not isinstance(planned.algebra, OutsideAlgebra):
        for scan in scans(planned.algebra):
            changes.setdefault(scan.input.object_id, ANY_CHANGE)
    changed = " or ".join(str(found.name) for found in view.query.inputs)
    return PlanWhen(f"when {changed} changes", plan_refresh(planned, changes))


@dataclass(frozen=True)
class PlanWhen:
    """The plan of a refresh, and after what."""

    when: str
    plan: MaintenancePlan


@dataclass(frozen=True)
class KeptPlan:
    """A hidden view: its query, its rows, and how it is refreshed."""

    query: str
    rows: int
    plan: PlanWhen


def _plan_when_anything_changes(
    view: ViewDefinition, declared: Declarations, verified: frozenset[Reliance] = frozenset()
) -> PlanWhen:
    """`declared` is what would be known of the tables if every declared key held, `verified` what is known to hold."""
    changed = " or ".join(str(found.name) for found in view.query.inputs)
    plan = plan_refresh(view, _any_changes(view, declared), None, verified)
    return PlanWhen(f"when {changed} changes", plan)


def _explain(
    view: ViewDefinition,
    declared: Declarations,
    plan: PlanWhen,
    about_groups: Sequence[str],
    kept: Sequence[KeptPlan] = (),
    verified: frozenset[Reliance] = frozenset(),
) -> ExplainReport:
    """The user's query and what is known of it; then how the hidden views below the view, and the view, are refreshed."""
    reads = ", ".join(str(found.name) for found in view.query.inputs)
    lines = [f"materialized view {view.name}, REFRESH {view.policy.value}, reads {reads}", ""]
    lines += explain_query(view, declared)
    data: dict[str, Any] = {"view": str(view.name), "policy": view.policy.value}
    found = rules_for(view, declared)
    if found is not None:
        lines += explain_verdicts(found.analysis, found.rules, found.advice)
        runs = rule_runs(view, found.rules, verified)
        data |= analysis_json(found.analysis, found.rules, found.advice, runs)
    if about_groups:
        lines += ["groups inside the query:", *(f"  {each}" for each in about_groups), ""]
        data["about_groups"] = list(about_groups)
    for each in kept:
        name = each.plan.plan.view
        lines += [f"hidden view {name}, {each.rows:,} rows:", textwrap.indent(each.query, "  ")]
        lines += [*explain_plan(each.plan.plan, each.plan.when), ""]
    if kept:
        data["kept"] = [
            {
                "view": str(e.plan.plan.view),
                "query": e.query,
                "rows": e.rows,
                "refresh": e.plan.plan.to_json(),
            }
            for e in kept
        ]
        lines.append(f"{view.name} over {', '.join(str(each.plan.plan.view) for each in kept)}:")
    lines += explain_plan(plan.plan, plan.when)
    return ExplainReport("\n".join(lines), {**data, "refresh": plan.plan.to_json()})


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
    definition = users_definition(view_named(catalogue, name), catalogue)
    found = rules_for(definition, known_keys(catalogue, definition))
    if found is None:
        assert isinstance(definition.algebra, OutsideAlgebra)
        reason = f"there are no rules for {name}: {definition.algebra.reason}."
        return ExplainReport(reason, {"view": str(name), "rules": []})
    relying = replace(definition, declared=reliable_declarations(workspace, catalogue, definition))
    runs = rule_runs(relying, found.rules, _verified(catalogue, definition))
    data = analysis_json(found.analysis, found.rules, found.advice, runs)
    return ExplainReport("\n".join(explain_rules(found.rules, runs)).rstrip(), {"view": str(name), **data})
