"""Walks the steps of a plan on Spark, in our own session, and measures each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import assert_never

from viewkeeper.errors import ConcurrencyProblem, CorruptWarehouseError
from viewkeeper.execution.workspace import Workspace
from viewkeeper.generated_names import CHANGE_EPOCH, CHANGE_KIND, change_set_application, view_application
from viewkeeper.maintenance.plan import (
    ApplyChangeSet,
    EvaluateQuery,
    LoadRows,
    MaintenancePlan,
    Read,
    State,
    Step,
    WriteChangeSet,
)
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sources.table_log import epoch_marker
from viewkeeper.sql.names import quote
from viewkeeper.sql.references import Substitution, parse_query, substitute
from viewkeeper.sql.rendering import column, delta_table, literal, relation_named, render, select_all
from viewkeeper.sql.script import Fragment
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import ViewRecord
from viewkeeper.storage.view_tables import changes_properties, rows_properties

_TRIES = 10


@dataclass
class PlanRun:
    """One run of one plan for one epoch. `versions` says at which version each object is read."""

    workspace: Workspace
    catalogue: Catalogue
    view: ViewRecord
    epoch: int
    new_versions: Mapping[str, int]
    old_version: int | None
    on_change_set_stored: Callable[[], None] = lambda: None
    query_text: Substitution | None = None
    inserted: int = 0
    deleted: int = 0
    steps: list[tuple[str, float]] = field(default_factory=list)

    def run(self, plan: MaintenancePlan) -> None:
        registered: list[str] = []
        session = self.workspace.sessions.own_with(self.view.settings)
        try:
            for step in plan.steps:
                started = time.monotonic()
                with spark_failures(f"{self.view.name} was refreshed ({step.title})", self.query_text):
                    for read in step.reads:
                        self._register(session, read)
                        registered.append(read.relation)
                    self._run_step(session, step, registered)
                self.steps.append((step.title, round(time.monotonic() - started, 3)))
        finally:
            _drop_relations(session, registered)

    def _register(self, session: Any, read: Read) -> None:
        record = self.catalogue.object(read.object_id) if read.object_id != self.view.id else self.view
        version = self.old_version if read.state is State.OLD else self.new_versions[read.object_id]
        relation = select_all(self.workspace.relation(record, version))
        session.sql(render(relation)).createOrReplaceTempView(quote(read.relation))

    def _run_step(self, session: Any, step: Step, registered: list[str]) -> None:
        match step:
            case EvaluateQuery():
                session.sql(step.sql).createOrReplaceTempView(quote(step.relation))
                registered.append(step.relation)
            case LoadRows():
                self._load(session, step)
            case WriteChangeSet():
                self._write_change_set(session, step)
            case ApplyChangeSet():
                self._apply(session, step, registered)
            case _:
                assert_never(step)

    def _load(self, session: Any, step: LoadRows) -> None:
        writer = session.sql(step.sql).write.format("delta").mode("error")
        for key, value in rows_properties(self.view).items():
            writer = writer.option(key, value)
        writer.option("userMetadata", epoch_marker(self.epoch)).save(
            self.workspace.layout.rows(self.view.location)
        )

    def _write_change_set(self, session: Any, step: WriteChangeSet) -> None:
        """Append the change set once: a repeated epoch finds it and uses it."""
        address = self.workspace.layout.changes(self.view.location)
        size = self.workspace.log.change_set_size(address, self.epoch)
        if size is None:
            changes = session.sql(step.sql).selectExpr("*", f"CAST({self.epoch} AS BIGINT) AS {CHANGE_EPOCH}")
            writer = changes.write.format("delta").mode("append").partitionBy(CHANGE_EPOCH, CHANGE_KIND)
            for key, value in changes_properties(self.view).items():
                writer = writer.option(key, value)
            writer = (
                writer.option("txnAppId", change_set_application(self.view.id))
                .option("txnVersion", str(self.epoch))
                .option("userMetadata", epoch_marker(self.epoch))
            )
            self._commit_once(
                lambda: writer.save(address),
                lambda: self.workspace.log.change_set_size(address, self.epoch) is not None,
            )
            size = self.workspace.log.change_set_size(address, self.epoch)
        if size is None:
            raise CorruptWarehouseError(
                f"the change set of {self.view.name} in epoch {self.epoch} was written and is not there.",
                "repeat the refresh.",
            )
        self.inserted, self.deleted = size
        self.on_change_set_stored()

    def _apply(self, session: Any, step: ApplyChangeSet, registered: list[str]) -> None:
        if (not self.inserted and not self.deleted) or self._is_applied():
            return
        changes = delta_table(self.workspace.layout.changes(self.view.location))
        only_mine = select_all(changes).where(column(CHANGE_EPOCH).eq(literal(self.epoch)))
        session.sql(render(only_mine)).createOrReplaceTempView(quote(step.changes))
        registered.append(step.changes)
        rows = delta_table(self.workspace.layout.rows(self.view.location))
        parsed = parse_query(Fragment.whole(step.sql))
        bound = substitute(parsed, lambda ref: rows if ref.is_target else relation_named(ref.name.name))
        with self.workspace.sessions.commit_settings(
            view_application(self.view.id), self.epoch, epoch_marker(self.epoch)
        ) as own:
            self._commit_once(lambda: own.sql(bound.text).collect(), self._is_applied)

    def _commit_once(self, commit: Callable[[], Any], is_done: Callable[[], bool]) -> None:
        """Commit, unless a server whose client died is just finishing the same commit of the same epoch."""
        for patience in range(_TRIES, 0, -1):
            try:
                with spark_failures(f"epoch {self.epoch} was committed to {self.view.name}"):
                    commit()
                return
            except ConcurrencyProblem:
                if is_done():
                    return
                if patience == 1:
                    raise
                time.sleep(1)

    def _is_applied(self) -> bool:
        """Whether a dead process has already applied this epoch's change set."""
        assert self.old_version is not None
        commits = self.workspace.log.commits_after(
            self.workspace.layout.rows(self.view.location), self.old_version
        )
        return any(commit.epoch == self.epoch and commit.operation != "RESTORE" for commit in commits)


def _drop_relations(session: Any, relations: list[str]) -> None:
    for relation in reversed(relations):
        try:
            session.catalog.dropTempView(relation)
        except Exception:
            return
