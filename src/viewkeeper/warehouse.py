"""The public door: a warehouse takes SQL, one statement or a script, and answers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from typing_extensions import assert_never

from viewkeeper.errors import (
    InUseError,
    NameExistsError,
    NotAWarehouseError,
    RefreshConflictError,
    SparkUnavailableError,
    StorageError,
)
from viewkeeper.execution import base_tables, describe
from viewkeeper.execution.constraints import trust_again
from viewkeeper.execution.create_view import check_policy, create_view
from viewkeeper.execution.epochs import give_up_left_epochs, refresh, restore_views
from viewkeeper.execution.kept_views import renamed
from viewkeeper.execution.planning import Planner, planned_views
from viewkeeper.execution.progress import Listener, nobody_listens
from viewkeeper.execution.queries import change_data, register, run_query
from viewkeeper.execution.reports import (
    ExplainReport,
    RefreshReport,
    StatementReport,
    TableReport,
    TableVerifyReport,
    VerifyReport,
)
from viewkeeper.execution.spark_session import Sessions
from viewkeeper.execution.vacuum import remove_folder, vacuum_warehouse
from viewkeeper.execution.verify import verify_view
from viewkeeper.execution.verify_table import verify_table
from viewkeeper.execution.workspace import Workspace, definition_of
from viewkeeper.sources.delta_rs_log import DeltaRsLog
from viewkeeper.sources.spark_log import SparkLog
from viewkeeper.sources.table_log import TableLog
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.parse_statement import parse_statement, parse_text
from viewkeeper.sql.script import Fragment, split_script
from viewkeeper.sql.statements import (
    AlterTable,
    AlterView,
    AttachTable,
    ChangeData,
    CreateTable,
    CreateView,
    Describe,
    Drop,
    ExplainCreate,
    ExplainRules,
    ExplainView,
    Operation,
    Query,
    Refresh,
    RenameTo,
    RestoreView,
    SetPolicy,
    Show,
    Statement,
    VacuumWarehouse,
    VerifyTable,
    VerifyView,
)
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.delta_store import DeltaStore
from viewkeeper.storage.layout import Layout
from viewkeeper.storage.records import HistoryEntry
from viewkeeper.storage.spark_store import SparkStore
from viewkeeper.storage.warehouse_state import Store, WarehouseState


class Warehouse:
    """A folder or URI with tables, materialized views, and their history.

    Opening it starts no JVM; Spark starts when a statement first needs it. `spark` is a session, or the address
    of one (`spark://…`, `sc://…`); without it an embedded local Spark is used. `on_progress` hears what happens
    while long statements run.
    """

    def __init__(
        self,
        path: str | Path,
        spark: Any = None,
        storage_options: Mapping[str, str] | None = None,
        *,
        create: bool = True,
        on_progress: Listener = nobody_listens,
    ) -> None:
        layout = Layout.at(path)
        options = dict(storage_options) if storage_options else None
        sessions = Sessions(spark)
        store: Store = DeltaStore(layout, options)
        log: TableLog = DeltaRsLog(options)
        if layout.needs_spark:
            store = SparkStore(layout, lambda: sessions.own)
            log = SparkLog(lambda: sessions.own)
        self._workspace = Workspace(layout, WarehouseState(store), log, sessions, on_progress, options)
        self.is_new = not store.exists()
        if self.is_new:
            if not create:
                raise NotAWarehouseError(
                    f"{layout.root} is no Viewkeeper warehouse.",
                    "check the path, or create a warehouse with viewkeeper init.",
                )
            _refuse_other_contents(layout)
            store.create(Catalogue(uuid.uuid4().hex))
        self._workspace.state.read()

    @property
    def path(self) -> str:
        return self._workspace.layout.root

    @property
    def spark(self) -> Any:
        """The Spark session in which queries run."""
        return self._workspace.sessions.user

    def sql(self, text: str) -> Any:
        """Run one statement: a DataFrame for queries, a report for the rest."""
        return self._guarded(parse_text(text))

    def run_script(self, text: str, on_result: Callable[[Fragment, Any], None] | None = None) -> list[Any]:
        """Run many statements in order; the first error ends it, what ran before stays."""
        results = []
        for fragment in split_script(text):
            result = self._guarded(parse_statement(fragment))
            if on_result is not None:
                on_result(fragment, result)
            results.append(result)
        return results

    def refresh(self, *names: str) -> RefreshReport:
        """Refresh these views, or all."""
        report = self.sql("REFRESH ALL" if not names else f"REFRESH MATERIALIZED VIEW {', '.join(names)}")
        assert isinstance(report, RefreshReport)
        return report

    def verify(self, name: str) -> VerifyReport:
        report = self.sql(f"VERIFY MATERIALIZED VIEW {name}")
        assert isinstance(report, VerifyReport)
        return report

    def views(self) -> TableReport:
        return describe.show_views(self._workspace)

    def tables(self) -> TableReport:
        return describe.show_tables(self._workspace)

    def unfinished(self) -> TableReport:
        return describe.unfinished(self._workspace)

    def history(self, view: str | None = None, last: int | None = None) -> list[HistoryEntry]:
        """What epochs did, oldest first; of one view, and only the last so many, if asked."""
        view_id = None
        if view is not None:
            parsed = parse_text(f"DESCRIBE {view}")
            assert isinstance(parsed, Describe)
            view_id = describe.view_named(self._workspace.state.read(), parsed.name).id
        return describe.users_history(self._workspace, view_id, last)

    def explain_script(self, text: str) -> list[ExplainReport]:
        """How the views of a script would be maintained, without creating them and without Spark."""
        return self.planner().explain(planned_views(text))

    def emit_postgres(self, text: str) -> str:
        """The views of a script as PostgreSQL tables that triggers keep, by the same rules; without Spark."""
        return self.planner().emit_postgres(planned_views(text))

    def planner(self) -> Planner:
        """Plans views over the tables and views of the warehouse."""
        return Planner(self._workspace.state.read())

    def view_names(self) -> list[str]:
        return [str(view.name) for view in self._workspace.state.read().users_views()]

    def names(self) -> list[str]:
        """The names of all tables and views."""
        return self._workspace.state.read().names()

    def register(self, spark: Any = None) -> Mapping[str, str]:
        """Make tables and views visible to plain Spark SQL as temporary views; returns their names there."""
        return register(self._workspace, spark if spark is not None else self.spark)

    def close(self) -> None:
        """Stop the Spark that this warehouse started."""
        self._workspace.sessions.stop()

    def __enter__(self) -> Warehouse:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _guarded(self, statement: Statement) -> Any:
        try:
            return self._run(statement)
        except SparkUnavailableError:
            self._workspace.sessions.forget()
            raise

    def _run(self, statement: Statement) -> Any:
        workspace = self._workspace
        match statement:
            case CreateTable():
                return base_tables.create_table(workspace, statement)
            case AttachTable():
                return base_tables.attach_table(workspace, statement)
            case AlterTable():
                return base_tables.alter_table(workspace, statement)
            case CreateView():
                report = create_view(workspace, statement)
                return report or StatementReport(f"{statement.name} exists already.")
            case AlterView():
                return self._alter_view(statement)
            case Refresh(names, full):
                return self._refresh(names, full)
            case ExplainView(name):
                return describe.explain_view(workspace, name)
            case ExplainCreate(create):
                return describe.explain_create(workspace.state.read(), create)
            case ExplainRules(name):
                return describe.explain_rules_for(workspace, name)
            case VerifyView(name):
                return verify_view(workspace, describe.view_named(workspace.state.read(), name))
            case VerifyTable(name):
                return self._verify_table(name)
            case RestoreView(name):
                return self._restore(name)
            case Show("tables"):
                return self.tables()
            case Show():
                return self.views()
            case Describe(name, history=True):
                return describe.describe_history(workspace, name)
            case Describe(name):
                return describe.describe(workspace, name)
            case Drop("table", name, if_exists):
                return base_tables.drop_table(workspace, name, if_exists)
            case Drop(_, name, if_exists):
                return self._drop_view(name, if_exists)
            case VacuumWarehouse(epochs):
                return vacuum_warehouse(workspace, epochs)
            case Query():
                return run_query(workspace, statement)
            case ChangeData():
                return change_data(workspace, statement)
            case _:
                assert_never(statement)

    def _verify_table(self, name: QualifiedName) -> TableVerifyReport:
        catalogue = self._workspace.state.read()
        table = base_tables.table_named(catalogue, name)
        report = verify_table(self._workspace, catalogue, table)
        if report.valid and table.distrusted:
            trust_again(self._workspace, table)
        return report

    def _refresh(self, names: tuple[QualifiedName, ...], full: bool) -> RefreshReport:
        catalogue = self._workspace.state.read()
        chosen = [describe.view_named(catalogue, name).id for name in names] or list(catalogue.views)
        return refresh(self._workspace, chosen, full)

    def _alter_view(self, statement: AlterView) -> Any:
        catalogue = self._workspace.state.read()
        view = describe.view_named(catalogue, statement.name)
        action = statement.action
        if isinstance(action, Fragment):
            return create_view(
                self._workspace,
                CreateView(
                    view.name,
                    action,
                    view.policy,
                    view.comment,
                    or_replace=True,
                    goes_on_after_violation=view.goes_on_after_violation,
                    rematerialized_on=tuple(
                        (Operation(operation), catalogue.object(table).name)
                        for operation, table in view.rematerialized_on
                    ),
                ),
            )

        if isinstance(action, SetPolicy):
            check_policy(replace(definition_of(view, catalogue), policy=action.policy))

        def step(newest: Catalogue) -> Catalogue:
            current = describe.view_named(newest, statement.name)
            match action:
                case RenameTo(name):
                    if newest.named(name) is not None:
                        raise NameExistsError(f"{name} exists already.", "choose another name.")
                    return renamed(newest, current, name)
                case SetPolicy(policy):
                    for view in (current, *newest.kept_by(current.id)):
                        newest = newest.with_view(replace(view, policy=policy))
                    return newest

        self._workspace.state.change(step)
        return StatementReport(f"materialized view {statement.name} altered.")

    def _restore(self, name: QualifiedName) -> StatementReport:
        view = describe.view_named(self._workspace.state.read(), name)
        epoch, restored = restore_views(self._workspace, view.id)
        if not restored:
            return StatementReport(f"nobody else has changed {name}; it is at epoch {epoch}.")
        return StatementReport(f"{name} is back at epoch {epoch}.")

    def _drop_view(self, name: QualifiedName, if_exists: bool) -> StatementReport:
        workspace = self._workspace
        if if_exists and workspace.state.read().named(name) is None:
            return StatementReport(f"there is no materialized view {name}.")
        view = describe.view_named(workspace.state.read(), name)

        def step(newest: Catalogue) -> Catalogue:
            readers = newest.readers_of(view.id)
            if readers:
                names = ", ".join(sorted(str(reader.name) for reader in readers))
                raise InUseError(f"{name} is read by {names}.", f"drop {names} first.")
            claim = newest.claim_on([view.id])
            if claim is not None:
                raise RefreshConflictError(
                    f"{name} is being refreshed by {claim.holder}.", "repeat the statement."
                )
            return newest.without(view.id)

        give_up_left_epochs(workspace, [view.id])
        workspace.state.change(step)
        remove_folder(workspace, view.location)
        return StatementReport(f"materialized view {name} dropped.")


def _refuse_other_contents(layout: Layout) -> None:
    """A warehouse is created only where nothing else lies."""
    if not layout.is_local:
        return
    folder = Path(layout.root)
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise NotAWarehouseError(
                f"{layout.root} exists and is no Viewkeeper warehouse.", "choose an empty or a new folder."
            )
    except PermissionError:
        raise StorageError(f"no permission to read {layout.root}.", "check the folder's rights.") from None
