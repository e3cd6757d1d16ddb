"""What the steps of a plan read, as frames of the session.

Few rows that some values point to are brought to the driver by one job and become a local relation: a table is then
scanned once for all states that a plan reads of it, and the rows of the view are known by their places in its files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from sqlglot import exp

from viewkeeper.execution.apply import OwnTable, stored_schema
from viewkeeper.execution.input_changes import (
    MOST_DRIVER_ROWS,
    InputChanges,
    can_limit,
    limited_to,
    schema_text,
)
from viewkeeper.execution.workspace import Workspace
from viewkeeper.generated_names import FILE, POSITION
from viewkeeper.maintenance.plan import Limit, MaintenancePlan, Read, State
from viewkeeper.sources.arrow_types import arrow_schema, has_arrow_types, in_arrow_types
from viewkeeper.sources.data_files import DataFiles
from viewkeeper.sources.row_groups import no_rows_with_places, rows_with
from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import quote
from viewkeeper.sql.rendering import column, delta_table, render, select_all, select_from
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import ViewRecord

_WORD = re.compile(r"`((?:[^`]|``)+)`|(\w+)")


@dataclass(frozen=True)
class Wanted:
    """The values that matter in a column, NULL among them if rows with NULL do."""

    column: str
    values: frozenset[Any]

    @property
    def condition(self) -> exp.Expr | None:
        found = limited_to(column(self.column), list(self.values))
        if found is None or None not in self.values:
            return found
        return exp.or_(found, exp.Is(this=column(self.column), expression=exp.Null()))


@dataclass
class PlanReads:
    """The reads of one plan for one epoch. `computed` is what steps have brought to the driver."""

    workspace: Workspace
    catalogue: Catalogue
    view: ViewRecord
    plan: MaintenancePlan
    versions: Mapping[State, Mapping[str, int]]
    changes: Mapping[str, InputChanges]
    own_table: OwnTable | None
    computed: dict[str, pa.Table] = field(default_factory=dict)
    in_view: list[pa.Table] = field(default_factory=list)
    """Rows that were found in the view, with all stored columns, their file and position."""
    _found: dict[tuple[str, str], _Found] = field(default_factory=dict)
    _known_files: dict[tuple[str, int], DataFiles | None] = field(default_factory=dict)

    def frame(self, session: Any, read: Read) -> Any:
        if read.state.is_change:
            return self.changes[read.object_id].frame(session, read.state)
        if read.object_id == self.view.id:
            return self._own_rows(session, read)
        return self._input_rows(session, read)

    # -- the view itself

    def _own_rows(self, session: Any, read: Read) -> Any:
        """The view before the changes, hidden columns included; a small one comes through the driver."""
        columns = (*self.view.columns, *self.view.hidden)
        table = self.own_table
        if table is not None and table.is_small:
            return _local(session, table.rows(), columns)
        address = self.workspace.layout.rows(self.view.location)
        version = self.versions[State.OLD][self.view.id] if table is None else table.files.version
        files = None if table is None else self.workspace.log.data_files(address, version, columns)
        wanted = _most_telling(self._limiting(read.limit, columns), files)
        if files is not None and wanted is not None:
            found = _few_rows(session, {State.OLD: files}, stored_schema(columns), wanted)
            if found is not None:
                self.in_view.append(found[State.OLD])
                return _local(session, found[State.OLD], columns)
        select = select_from(delta_table(address, version), [column(each.name) for each in columns])
        return session.sql(render(_where(select, wanted)))

    # -- tables and other views

    def _input_rows(self, session: Any, read: Read) -> Any:
        """A table or view in one state, as far as a limit lets it through."""
        if read.state is State.BETWEEN:
            return self._rows_between(session, read)
        record = self.catalogue.object(read.object_id)
        asked = None if read.only_if is None else self.computed.get(read.only_if)
        if asked is not None and not asked.num_rows:
            return _no_rows(session, record.columns)
        files = self._files(read.object_id, read.state)
        wanted = _most_telling(self._limiting(read.limit, record.columns), files)
        if wanted is not None and not wanted.values:
            return _no_rows(session, record.columns)
        if wanted is not None and files is not None:
            rows = self._found_rows(session, read, wanted)
            if rows is not None:
                return _local(session, rows, self._mentioned(record.columns))
        if files is not None:
            names = list(files.addresses) if wanted is None else files.holding(wanted.column, wanted.values)
            if not names:
                return _no_rows(session, record.columns)
            if files.are_whole(names):
                addresses = [files.addresses[name] for name in names]
                frame = session.read.schema(schema_text(record.columns)).parquet(*addresses)
                condition = None if wanted is None else wanted.condition
                return frame if condition is None else frame.where(condition.sql(dialect="spark"))
        version = self.versions[read.state][read.object_id]
        return session.sql(render(_where(select_all(self.workspace.relation(record, version)), wanted)))

    def _rows_between(self, session: Any, read: Read) -> Any:
        """A table before the changes without the rows that were deleted or updated: the new rows without the new."""
        changes = self.changes[read.object_id]
        rows = self._input_rows(session, replace(read, state=State.NEW))
        return rows.join(changes.frame(session, State.ADDED), list(changes.key), "left_anti")

    def _found_rows(self, session: Any, read: Read, wanted: Wanted) -> pa.Table | None:
        """The rows with one of the values, if they are few. What other reads of the table will ask for, as far as that
        is known, is found with them."""
        asked = (read.object_id, wanted.column)
        known = self._found.get(asked)
        if known is None or not wanted.values <= known.values:
            known = self._found[asked] = self._find(session, read.object_id, wanted)
        return None if known.rows is None else known.rows[read.state]

    def _find(self, session: Any, object_id: str, wanted: Wanted) -> _Found:
        record = self.catalogue.object(object_id)
        reads = [read for step in self.plan.steps for read in step.reads]
        mine = [read for read in reads if read.object_id == object_id and not read.state.is_change]
        values = frozenset(
            value
            for each in (
                wanted,
                *(one for read in mine for one in self._limiting(read.limit, record.columns)),
            )
            if each.column == wanted.column
            for value in each.values
        )
        files: dict[State, DataFiles] = {}
        for state in {State.NEW if read.state is State.BETWEEN else read.state for read in mine}:
            found = self._files(object_id, state)
            if found is None:
                return _Found(values, None)
            files[state] = found
        columns = self._mentioned(record.columns)
        return _Found(values, _few_rows(session, files, columns, Wanted(wanted.column, values)))

    def _files(self, object_id: str, state: State) -> DataFiles | None:
        asked = (object_id, self.versions[state][object_id])
        if asked not in self._known_files:
            record = self.catalogue.object(object_id)
            address = self.workspace.data_address(record)
            self._known_files[asked] = self.workspace.log.data_files(address, asked[1], record.columns)
        return self._known_files[asked]

    def _mentioned(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """The columns whose names stand in the SQL of some step, or by which rows are found or told apart."""
        return tuple(each for each in columns if each.name.lower() in self._words)

    @cached_property
    def _words(self) -> frozenset[str]:
        words = [
            quoted.replace("``", "`") or word
            for step in self.plan.steps
            for quoted, word in _WORD.findall(step.sql)
        ]
        words += [name for found in self.changes.values() for name in found.key]
        for step in self.plan.steps:
            words += [name for read in step.reads if read.limit is not None for name in read.limit.columns]
        return frozenset(word.lower() for word in words)

    # -- limits

    def _limiting(self, limit: Limit | None, columns: Sequence[Column]) -> list[Wanted]:
        """The values that a limit lets through, for each of its columns where they are at hand."""
        if limit is None:
            return []
        return [
            Wanted(name, values)
            for name, of_name in zip(limit.columns, limit.of_columns, strict=True)
            if (values := self._values(limit, name, of_name, columns)) is not None
        ]

    def _values(
        self, limit: Limit, name: str, of_name: str, columns: Sequence[Column]
    ) -> frozenset[Any] | None:
        part = self._parts.get(limit.relation)
        if part is not None:
            found = self.changes[part.object_id].values(part.state, of_name)
        else:
            table = self.computed.get(limit.relation)
            found = None if table is None else table.column(of_name).unique().to_pylist()
        wanted = next(each.data_type for each in columns if each.name == name)
        if found is None or not can_limit(wanted, found):
            return None
        return frozenset(value for value in found if value is not None or limit.keeps_nulls)

    @cached_property
    def _parts(self) -> dict[str, Read]:
        """The parts of change sets that the plan reads, by relation."""
        return {
            read.relation: read for step in self.plan.steps for read in step.reads if read.state.is_change
        }


@dataclass(frozen=True)
class _Found:
    """The rows with one of the values, by state; None if they are too many for the driver."""

    values: frozenset[Any]
    rows: Mapping[State, pa.Table] | None


def _most_telling(candidates: Sequence[Wanted], files: DataFiles | None) -> Wanted | None:
    """The column whose values leave the fewest rows, as far as statistics tell."""
    if files is None:
        return candidates[0] if candidates else None
    return min(candidates, key=lambda each: files.estimated_rows(each.column, each.values), default=None)


def _few_rows(
    session: Any, files: Mapping[State, DataFiles], columns: Sequence[Column], wanted: Wanted
) -> dict[State, pa.Table] | None:
    """The rows with one of the values, with file and position, in some states of a table by one scan; None if they are too
    many, or cannot come to the driver."""
    if not has_arrow_types(columns) or not _may_be_few(files, wanted):
        return None
    addresses = {
        each.addresses[name]: None
        for each in files.values()
        for name in each.holding(wanted.column, wanted.values)
    }
    if not addresses:
        return {state: no_rows_with_places(columns) for state in files}
    found = rows_with(wanted.values, wanted.column, columns, addresses, MOST_DRIVER_ROWS)
    if found is None:
        condition = wanted.condition
        if condition is None or isinstance(condition, exp.Between):
            return None
        found = _scanned(session, columns, condition, list(addresses))
    if found.num_rows > MOST_DRIVER_ROWS:
        return None
    return {state: each.live(found) for state, each in files.items()}


def _may_be_few(files: Mapping[State, DataFiles], wanted: Wanted) -> bool:
    """As far as statistics tell; they tell little of texts."""
    is_text = any(isinstance(value, str) for value in wanted.values)
    estimates = [each.estimated_rows(wanted.column, wanted.values) for each in files.values()]
    return is_text or max(estimates) <= MOST_DRIVER_ROWS


def _scanned(
    session: Any, columns: Sequence[Column], condition: exp.Expr, addresses: Sequence[str]
) -> pa.Table:
    """The rows of some files for which a condition holds, with file and position, but few more than may come to the driver."""
    return (
        session.read.schema(schema_text(columns))
        .parquet(*addresses)
        .where(condition.sql(dialect="spark"))
        .selectExpr(
            *(quote(each.name) for each in columns),
            f"_metadata.file_path AS {FILE}",
            f"_metadata.row_index AS {POSITION}",
        )
        .limit(MOST_DRIVER_ROWS + 1)
        .toArrow()
    )


def _where(select: exp.Select, wanted: Wanted | None) -> exp.Select:
    condition = None if wanted is None else wanted.condition
    return select if condition is None else select.where(condition)


def _local(session: Any, rows: pa.Table, columns: Sequence[Column]) -> Any:
    return session.createDataFrame(in_arrow_types(rows, columns), schema=schema_text(columns))


def _no_rows(session: Any, columns: Sequence[Column]) -> Any:
    return session.createDataFrame(arrow_schema(columns).empty_table(), schema_text(columns))
