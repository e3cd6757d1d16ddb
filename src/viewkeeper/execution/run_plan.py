"""Walks the steps of a plan on Spark, in our own session, and measures each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from typing_extensions import assert_never

from viewkeeper.errors import ConcurrencyProblem, ConstraintViolatedError, CorruptWarehouseError
from viewkeeper.execution.apply import (
    OwnTable,
    Way,
    apply_ourselves,
    chosen_way,
    fold,
    own_table,
    stored_schema,
)
from viewkeeper.execution.counted_changes import CountedChanges, can_be_counted
from viewkeeper.execution.epoch_reads import EpochReads
from viewkeeper.execution.input_changes import MOST_DRIVER_ROWS, InputChanges
from viewkeeper.execution.local_relations import local_relation
from viewkeeper.execution.plan_reads import PlanReads
from viewkeeper.execution.progress import Event, Moment
from viewkeeper.execution.workspace import Workspace
from viewkeeper.generated_names import (
    CHANGE_EPOCH,
    CHANGE_KIND,
    DELETED,
    INSERTED,
    SIGNED_COUNT,
    change_set_application,
    view_application,
)
from viewkeeper.maintenance.plan import (
    ApplyChangeSet,
    CheckConstraint,
    Derive,
    LoadRows,
    MaintenancePlan,
    State,
    Step,
    WriteChangeSet,
)
from viewkeeper.sources.arrow_types import has_arrow_types, in_arrow_types
from viewkeeper.sources.data_files import names_one_file
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sources.table_log import epoch_marker
from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import quote
from viewkeeper.sql.references import Substitution, parse_query, substitute
from viewkeeper.sql.rendering import (
    column,
    delta_table,
    literal,
    relation_named,
    render,
    select_all,
)
from viewkeeper.sql.script import Fragment
from viewkeeper.sql.types import Simple
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.change_sets import append_change_set
from viewkeeper.storage.own_commit import Mark
from viewkeeper.storage.records import ViewRecord
from viewkeeper.storage.view_tables import changes_properties, column_mapping, rows_properties

_TRIES = 10
_EXAMPLES = 5


@dataclass
class PlanRun:
    """One run of one plan for one epoch. `versions` says at which version each object is read."""

    workspace: Workspace
    catalogue: Catalogue
    view: ViewRecord
    epoch: int
    new_versions: Mapping[str, int]
    old_version: int | None
    changes: Mapping[str, InputChanges] = field(default_factory=dict)
    consumed: Mapping[str, int] = field(default_factory=dict)
    on_change_set_stored: Callable[[], None] = lambda: None
    query_text: Substitution | None = None
    predicted: float | None = None
    epoch_reads: EpochReads | None = None
    likely_key: Callable[[], Sequence[str]] = tuple
    """Columns that tell the view's rows apart if all that is declared holds; nothing relies on it."""
    inserted: int = 0
    deleted: int = 0
    change_set: pa.Table | None = None
    way: Way = Way.NOTHING
    is_empty: bool = False
    kept: list[Any] = field(default_factory=list)
    steps: list[tuple[str, float]] = field(default_factory=list)
    _reads: PlanReads = field(init=False)

    def run(self, plan: MaintenancePlan) -> None:
        registered: list[str] = []
        session = self.workspace.sessions.own_with(self.view.settings)
        self._reads = self._reads_of(plan)
        try:
            for step in plan.steps:
                if self.is_empty:
                    break
                started = time.monotonic()
                with spark_failures(f"{self.view.name} was refreshed ({step.title})", self.query_text):
                    if not self._count_change_set(session, step):
                        self._register_reads(session, step, registered)
                        self._run_step(session, step, registered)
                self.steps.append((self._told(step), round(time.monotonic() - started, 3)))
        finally:
            for frame in self.kept:
                frame.unpersist()
            _drop_relations(session, registered)

    def _register_reads(self, session: Any, step: Step, registered: list[str]) -> None:
        for read in step.reads:
            if read.relation not in registered:
                frame = self._reads.frame(session, read)
                frame.createOrReplaceTempView(quote(read.relation))
                registered.append(read.relation)

    def _told(self, step: Step) -> str:
        """What the report calls a step: with the way it went, or which rows had been found for another view."""
        notes = (
            [self.way.value] if isinstance(step, ApplyChangeSet) else list(dict.fromkeys(self._reads.shared))
        )
        self._reads.shared.clear()
        return f"{step.title} ({'; '.join(notes)})" if notes else step.title

    def _reads_of(self, plan: MaintenancePlan) -> PlanReads:
        versions = {State.OLD: dict(self.consumed), State.NEW: self.new_versions}
        if self.old_version is not None:
            versions[State.OLD] = {**self.consumed, self.view.id: self.old_version}
        table = None if self.old_version is None or self._is_applied() else self._own_table()
        reads = self.epoch_reads
        if reads is None:
            reads = EpochReads(self.workspace, self.catalogue)
            reads.begin(self.view)
        return PlanReads(
            self.workspace, self.catalogue, self.view, plan, versions, self.changes, table, reads
        )

    def _own_table(self) -> OwnTable | None:
        if not self._writes_itself or self.old_version is None:
            return None
        return own_table(
            self.workspace.layout.rows(self.view.location), self.workspace.storage_options, self._stored
        )

    def _run_step(self, session: Any, step: Step, registered: list[str]) -> None:
        match step:
            case Derive():
                frame = session.sql(step.sql)
                if step.is_shared and self._stored_size() is None:
                    frame = self._computed_once(session, frame, step)
                frame.createOrReplaceTempView(quote(step.relation))
                registered.append(step.relation)
            case CheckConstraint():
                self._check(session, step)
            case LoadRows():
                self._load(session, step)
            case WriteChangeSet():
                self._write_change_set(session, step)
            case ApplyChangeSet():
                self._apply(session, step, registered)
            case _:
                assert_never(step)

    def _check(self, session: Any, step: CheckConstraint) -> None:
        found = session.sql(step.sql).limit(_EXAMPLES).collect()
        if found:
            rows = "; ".join(
                ", ".join(f"{k} = {v}" for k, v in row.asDict().items() if k != SIGNED_COUNT) for row in found
            )
            raise ConstraintViolatedError(
                f"{step.table} violates {step.constraint} ({step.what}), on which {self.view.name} relies: {rows}.",
                f"repair the rows, or ALTER TABLE {step.table} DROP CONSTRAINT {step.constraint}; "
                f"VERIFY TABLE {step.table} shows what is wrong.",
                str(step.table),
                step.constraint,
            )

    def _computed_once(self, session: Any, frame: Any, step: Derive) -> Any:
        """What several steps read: in the driver if it is small, else kept by Spark."""
        if self._writes_itself:
            collected = frame.limit(MOST_DRIVER_ROWS + 1).toArrow()
            if collected.num_rows <= MOST_DRIVER_ROWS:
                self.is_empty = step.ends_if_empty and not collected.num_rows
                self._reads.computed[step.relation] = collected
                return local_relation(session, collected, frame.schema)
        kept = frame.persist()
        self.kept.append(kept)
        self.is_empty = step.ends_if_empty and kept.isEmpty()
        return kept

    def _load(self, session: Any, step: LoadRows) -> None:
        writer = session.sql(step.sql).write.format("delta").mode("error")
        for key, value in rows_properties(self.view).items():
            writer = writer.option(key, value)
        writer.option("userMetadata", epoch_marker(self.epoch)).save(
            self.workspace.layout.rows(self.view.location)
        )

    def _write_change_set(self, session: Any, step: WriteChangeSet) -> None:
        """Store the change set once: a repeated epoch finds it and uses it."""
        size = self._stored_size()
        self._is_stored(self._compute_change_set(session, step) if size is None else size)

    def _is_stored(self, size: tuple[int, int]) -> None:
        self.inserted, self.deleted = size
        self.on_change_set_stored()

    def _count_change_set(self, session: Any, step: Step) -> bool:
        """Store the change set of few signed rows without running the step's SQL, if that can be done."""
        if not isinstance(step, WriteChangeSet) or step.signed is None or not self._writes_itself:
            return False
        signed = self._reads.computed.get(step.signed.relation)
        if signed is None or not can_be_counted(self._stored) or self._stored_size() is not None:
            return False
        changes = CountedChanges.of(signed, self._stored)
        if step.signed.are_all_copies:
            copies: Sequence[int] | None = [-count for count in changes.counts]
        else:
            copies = self._reads.copies_in_view(session, changes, self.likely_key())
        if copies is None:
            return False
        self._is_stored(self._store_collected(changes.change_set(copies)))
        return True

    def _stored_size(self) -> tuple[int, int] | None:
        """The size of this epoch's change set, if a dead process has stored it already."""
        address = self.workspace.layout.changes(self.view.location)
        return self.workspace.log.change_set_size(address, self.epoch)

    def _compute_change_set(self, session: Any, step: WriteChangeSet) -> tuple[int, int]:
        found = session.sql(step.sql)
        if self._writes_itself:
            collected = found.limit(MOST_DRIVER_ROWS + 1).toArrow()
            if collected.num_rows <= MOST_DRIVER_ROWS:
                return self._store_collected(collected)
        self._append_by_spark(found, self.workspace.layout.changes(self.view.location))
        size = self._stored_size()
        if size is None:
            raise CorruptWarehouseError(
                f"the change set of {self.view.name} in epoch {self.epoch} was written and is not there.",
                "repeat the refresh.",
            )
        return size

    def _store_collected(self, changes: pa.Table) -> tuple[int, int]:
        columns = (*stored_schema(self._stored), Column(CHANGE_KIND, Simple("STRING")))
        self.change_set = in_arrow_types(changes, columns)
        kinds = self.change_set.column(CHANGE_KIND).to_pylist()
        if kinds:
            address = self.workspace.layout.changes(self.view.location)
            self._commit_once(
                partial(self._append_change_set, address), lambda: self._stored_size() is not None
            )
        return kinds.count(INSERTED), kinds.count(DELETED)

    def _append_change_set(self, address: str) -> None:
        mark = Mark(change_set_application(self.view.id), self.epoch, epoch_marker(self.epoch))
        assert self.change_set is not None
        append_change_set(
            address,
            self.workspace.storage_options,
            self.change_set,
            self.epoch,
            mark,
            changes_properties(self.view),
        )

    def _append_by_spark(self, found: Any, address: str) -> None:
        changes = found.selectExpr("*", f"CAST({self.epoch} AS BIGINT) AS {CHANGE_EPOCH}")
        writer = changes.write.format("delta").mode("append").partitionBy(CHANGE_EPOCH, CHANGE_KIND)
        for key, value in changes_properties(self.view).items():
            writer = writer.option(key, value)
        writer = (
            writer.option("txnAppId", change_set_application(self.view.id))
            .option("txnVersion", str(self.epoch))
            .option("userMetadata", epoch_marker(self.epoch))
        )
        self._commit_once(lambda: writer.save(address), lambda: self._stored_size() is not None)

    def _apply(self, session: Any, step: ApplyChangeSet, registered: list[str]) -> None:
        if (not self.inserted and not self.deleted) or self._is_applied():
            return
        table = self._own_table()
        changes = self.change_set
        if changes is None and table is not None:
            changes = self.workspace.log.read_change_sets(
                self.workspace.layout.changes(self.view.location), [self.epoch]
            )
        self.way = chosen_way(table, changes)
        written = Event(Moment.ROWS_WRITTEN, self.epoch, str(self.view.name))
        mark = Mark(
            view_application(self.view.id),
            self.epoch,
            epoch_marker(self.epoch),
            lambda: self.workspace.listener(written),
        )
        if changes is None or self.way is Way.MERGE:
            self._merge(session, step, registered)
        else:
            self._commit_once(partial(self._apply_ourselves, session, changes, mark), self._is_applied)
            self._fold(session)

    def _apply_ourselves(self, session: Any, changes: pa.Table, mark: Mark) -> None:
        """One try, on the table as it is now."""
        table = self._own_table()
        assert table is not None
        apply_ourselves(session, table, changes, mark, str(self.view.name), self.way, self._reads.in_view)

    def _fold(self, session: Any) -> None:
        """Every own commit leaves a small file behind, and every read opens all of them. The next change set folds those of
        a view that can be written whole."""
        table = self._own_table()
        if table is None or not table.wants_folding or table.is_folded_whole:
            return
        started = time.monotonic()
        self.workspace.listener(Event(Moment.FOLDING, self.epoch, str(self.view.name)))
        title = f"fold {table.small_files} small files of the view into one"
        try:
            fold(session, table, str(self.view.name), epoch_marker(self.epoch))
        except ConcurrencyProblem:  # the rows are committed; the next refresh will fold
            title += " (given up: somebody else committed)"
        self.steps.append((title, round(time.monotonic() - started, 3)))

    def _merge(self, session: Any, step: ApplyChangeSet, registered: list[str]) -> None:
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

    @property
    def _stored(self) -> tuple[Column, ...]:
        return (*self.view.columns, *self.view.hidden)

    @property
    def _writes_itself(self) -> bool:
        """Whether the view's tables can be written without Spark: storage, column names and types allow it."""
        return (
            names_one_file(self.workspace.layout.root)
            and not column_mapping(self.view.columns)
            and has_arrow_types(self._stored)
        )

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
