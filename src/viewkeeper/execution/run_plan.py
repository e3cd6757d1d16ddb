"""Walks the steps of a plan on Spark, in our own session, and measures each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from sqlglot import exp
from typing_extensions import assert_never

from viewkeeper.errors import (
    ConcurrencyProblem,
    ConstraintViolatedError,
    CorruptWarehouseError,
    TakenOverError,
    ViewkeeperError,
)
from viewkeeper.execution.apply import (
    OwnTable,
    Way,
    apply_ourselves,
    chosen_way,
    fold,
    own_table,
    require_matches,
    stored_schema,
)
from viewkeeper.execution.counted_changes import CountedChanges, can_be_counted
from viewkeeper.execution.epoch_reads import EpochReads
from viewkeeper.execution.input_changes import MOST_DRIVER_ROWS, InputChanges
from viewkeeper.execution.local_relations import local_relation
from viewkeeper.execution.plan_reads import PlanReads
from viewkeeper.execution.progress import Event, Moment
from viewkeeper.execution.view_head import clear_head, view_head
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

DRIVER_CANNOT_HOLD = (pa.ArrowException, ArithmeticError, ValueError)
"""What Arrow and Python raise at values that Spark can hold and they cannot: dates past 9999, bytes that are no text."""


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
    before_commit: Callable[[], None] = lambda: None
    """Raises if the epoch is no longer this process's to write."""
    replaces_change_set: bool = False
    """Whether the change set takes the place of one that was stored for this epoch and could not be applied."""
    inserted: int = 0
    deleted: int = 0
    change_set: pa.Table | None = None
    way: Way = Way.NOTHING
    is_empty: bool = False
    fallback: str | None = None
    """What the plan failed with in whose place this one ran."""
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
        """The view's table as it is now, with nothing in it that this epoch's change set is not made for."""
        if not self._writes_itself or self.old_version is None:
            return None
        address = self.workspace.layout.rows(self.view.location)
        for _ in range(_TRIES):
            table = own_table(address, self.workspace.storage_options, self._stored)
            if table is None or self._clear_head(table.files.version):
                return table
        raise ConcurrencyProblem(
            f"other processes keep committing to the table of {self.view.name}.", "repeat the statement."
        )

    def _clear_head(self, until: int | None = None) -> bool:
        assert self.old_version is not None
        return clear_head(self.workspace, self.catalogue, self.view, self.old_version, self.epoch, until)

    def _run_step(self, session: Any, step: Step, registered: list[str]) -> None:
        match step:
            case Derive():
                frame = session.sql(step.sql)
                if step.is_shared and self._stored_before() is None:
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
        size = self._stored_before()
        self._is_stored(self._compute_change_set(session, step) if size is None else size)

    def _is_stored(self, size: tuple[int, int]) -> None:
        self.inserted, self.deleted = size
        self.on_change_set_stored()

    def _count_change_set(self, session: Any, step: Step) -> bool:
        """Store the change set of few signed rows without running the step's SQL, if that can be done."""
        if not isinstance(step, WriteChangeSet) or step.signed is None or not self._writes_itself:
            return False
        signed = self._reads.computed.get(step.signed.relation)
        if signed is None or not can_be_counted(self._stored) or self._stored_before() is not None:
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

    def _stored_before(self) -> tuple[int, int] | None:
        """The size of the change set that another process has stored for this epoch, if it is to be used."""
        return None if self.replaces_change_set else self._stored_size()

    def _stored_size(self) -> tuple[int, int] | None:
        """The size of this epoch's change set, if one is stored."""
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
        if kinds or self.replaces_change_set:
            self._commit_once(self._append_change_set, lambda: self._stored_before() is not None)
            stored = self._stored_before()
            if self.change_set is None and stored is not None:
                return stored
        return kinds.count(INSERTED), kinds.count(DELETED)

    def _append_change_set(self) -> None:
        """Store the change set. If another process has stored one for this epoch, that one is applied: the query may give
        each of them another answer."""
        assert self.change_set is not None
        self.before_commit()
        is_ours = append_change_set(
            self.workspace.layout.changes(self.view.location),
            self.workspace.storage_options,
            self.change_set,
            self.epoch,
            Mark(change_set_application(self.view.id), self.epoch, epoch_marker(self.epoch)),
            changes_properties(self.view),
            replaces=self.replaces_change_set,
        )
        if not is_ours:
            self.change_set = None

    def _append_by_spark(self, found: Any, address: str) -> None:
        changes = found.selectExpr("*", f"CAST({self.epoch} AS BIGINT) AS {CHANGE_EPOCH}")
        writer = changes.write.format("delta").partitionBy(CHANGE_EPOCH, CHANGE_KIND)
        for key, value in changes_properties(self.view).items():
            writer = writer.option(key, value)
        writer = writer.option("userMetadata", epoch_marker(self.epoch))
        if self.replaces_change_set:
            writer = writer.mode("overwrite").option("replaceWhere", f"{CHANGE_EPOCH} = {self.epoch}")
        else:
            application = change_set_application(self.view.id)
            writer = (
                writer.mode("append").option("txnAppId", application).option("txnVersion", str(self.epoch))
            )
        self.before_commit()
        self._commit_once(lambda: writer.save(address), lambda: self._stored_before() is not None)

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

        def last_look() -> None:
            self.workspace.listener(written)
            self.before_commit()

        mark = Mark(view_application(self.view.id), self.epoch, epoch_marker(self.epoch), last_look)
        if changes is None or self.way is Way.MERGE:
            self._merge(session, step, registered)
            return
        try:
            self._commit_once(partial(self._apply_ourselves, session, changes, mark), self._is_applied)
        except DRIVER_CANNOT_HOLD:
            self.way = Way.MERGE
            self._merge(session, step, registered)
        else:
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
        except ViewkeeperError as error:  # the rows are committed; the next refresh will fold
            title += f" (given up: {error.message})"
        self.steps.append((title, round(time.monotonic() - started, 3)))

    def _merge(self, session: Any, step: ApplyChangeSet, registered: list[str]) -> None:
        changes = delta_table(self.workspace.layout.changes(self.view.location))
        only_mine = select_all(changes).where(column(CHANGE_EPOCH).eq(literal(self.epoch)))
        session.sql(render(only_mine)).createOrReplaceTempView(quote(step.changes))
        registered.append(step.changes)
        rows = delta_table(self.workspace.layout.rows(self.view.location))
        self._clear_head()
        self._require_matches(session, step, rows)
        parsed = parse_query(Fragment.whole(step.sql))
        bound = substitute(parsed, lambda ref: rows if ref.is_target else relation_named(ref.name.name))
        self.before_commit()
        with self.workspace.sessions.commit_settings(
            view_application(self.view.id), self.epoch, epoch_marker(self.epoch)
        ) as own:
            self._commit_once(lambda: own.sql(bound.text).collect(), self._is_applied)
        # Delta lets a MERGE go on top of an INSERT that came meanwhile.
        self._clear_head()

    def _require_matches(self, session: Any, step: ApplyChangeSet, rows: exp.Expr) -> None:
        """MERGE passes over rows that it does not find: they are counted before it commits anything."""
        session.sql(render(select_all(rows.copy()))).createOrReplaceTempView(quote(step.target))
        try:
            found = {row[0]: row[1] for row in session.sql(step.matches).collect()}
        finally:
            session.catalog.dropTempView(step.target)
        require_matches(found.get(DELETED, 0), self.deleted, str(self.view.name))
        require_matches(self.inserted - found.get(INSERTED, 0), self.inserted, str(self.view.name))

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
            except TakenOverError:
                raise
            except ConcurrencyProblem:
                if is_done():
                    return
                if patience == 1:
                    raise
                time.sleep(1)

    def _is_applied(self) -> bool:
        """Whether a dead process has already applied this epoch's change set."""
        assert self.old_version is not None
        return view_head(self.workspace, self.view, self.old_version, self.epoch).is_applied


def _drop_relations(session: Any, relations: list[str]) -> None:
    for relation in reversed(relations):
        try:
            session.catalog.dropTempView(relation)
        except Exception:
            return
