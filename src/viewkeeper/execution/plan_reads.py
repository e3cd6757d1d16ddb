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
from viewkeeper.execution.input_changes import InputChanges, can_limit, limited_to, schema_text
from viewkeeper.execution.workspace import Workspace
from viewkeeper.generated_names import FILE, POSITION
from viewkeeper.maintenance.plan import Limit, MaintenancePlan, Read, State
from viewkeeper.sources.arrow_types import arrow_schema, has_arrow_types, in_arrow_types
from viewkeeper.sources.data_files import DataFiles
from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import quote
from viewkeeper.sql.rendering import column, delta_table, render, select_all, select_from
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import ViewRecord

MOST_DRIVER_ROWS = 100_000
"""Up to this many rows pass through the driver."""

_WORD = re.compile(r"`((?:[^`]|``)+)`|(\w+)")


@dataclass(frozen=True)
class Values:
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
    _found: dict[tuple[str, str], tuple[frozenset[Any], dict[State, pa.Table]]] = field(default_factory=dict)
    _too_many: set[tuple[str, str]] = field(default_factory=set)

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
            rows = in_arrow_types(table.rows(), columns)
            return session.createDataFrame(rows, schema=schema_text(columns))
        address = self.workspace.layout.rows(self.view.location)
        version = self.versions[State.OLD][self.view.id]
        wanted = self._limiting(read.limit, columns)
        if table is not None and wanted is not None:
            found = self._few_rows(session, address, {State.OLD: version}, stored_schema(columns), wanted)
            if found is not None:
                self.in_view.append(found[State.OLD])
                rows = in_arrow_types(found[State.OLD], columns)
                return session.createDataFrame(rows, schema=schema_text(columns))
        items = [column(each.name) for each in columns]
        select = select_from(delta_table(address, version), items)
        condition = None if wanted is None else wanted.condition
        return session.sql(render(select if condition is None else select.where(condition)))

    # -- tables and other views

    def _input_rows(self, session: Any, read: Read) -> Any:
        """A table or view in one state, as far as a limit lets it through."""
        if read.state is State.BETWEEN:
            return self._rows_between(session, read)
        record = self.catalogue.object(read.object_id)
        asked = None if read.only_if is None else self.computed.get(read.only_if)
        if asked is not None and not asked.num_rows:
            return _no_rows(session, record.columns)
        wanted = self._limiting(read.limit, record.columns)
        if wanted is not None:
            if not wanted.values:
                return _no_rows(session, record.columns)
            rows = self._found_rows(session, read, wanted)
            if rows is not None:
                return session.createDataFrame(rows, schema_text(self._mentioned(record.columns)))
        version, address = self.versions[read.state][read.object_id], self.workspace.data_address(record)
        files = self.workspace.log.data_files(address, version, record.columns)
        condition = None if wanted is None else wanted.condition
        if files is not None:
            names = (
                list(files.addresses) if wanted is None else files.holding(wanted.column, list(wanted.values))
            )
            if not names:
                return _no_rows(session, record.columns)
            if files.are_whole(names):
                addresses = [files.addresses[name] for name in names]
                frame = session.read.schema(schema_text(record.columns)).parquet(*addresses)
                return frame if condition is None else frame.where(condition.sql(dialect="spark"))
        select = select_all(self.workspace.relation(record, version))
        return session.sql(render(select if condition is None else select.where(condition)))

    def _rows_between(self, session: Any, read: Read) -> Any:
        """A table before the changes without the rows that were deleted or updated: the new rows without the new."""
        changes = self.changes[read.object_id]
        rows = self._input_rows(session, replace(read, state=State.NEW))
        return rows.join(changes.frame(session, State.ADDED), list(changes.key), "left_anti")

    def _found_rows(self, session: Any, read: Read, wanted: Values) -> pa.Table | None:
        """The rows with one of the values, if they are few. What other reads of the table will ask for, as far as that
        is known, is found with them."""
        asked = (read.object_id, wanted.column)
        if asked in self._too_many:
            return None
        if asked not in self._found or not wanted.values <= self._found[asked][0]:
            record = self.catalogue.object(read.object_id)
            reads = self._reads_of(read.object_id)
            others = [self._limiting(each.limit, record.columns) for each in reads]
            values = frozenset(
                value
                for each in (wanted, *others)
                if each is not None and each.column == wanted.column
                for value in each.values
            )
            states: set[State] = {State.NEW if each.state is State.BETWEEN else each.state for each in reads}
            versions = {state: self.versions[state][read.object_id] for state in states}
            columns = self._mentioned(record.columns)
            found = self._few_rows(
                session, self.workspace.data_address(record), versions, columns, Values(wanted.column, values)
            )
            if found is None:
                self._too_many.add(asked)
                return None
            self._found[asked] = (
                values,
                {state: in_arrow_types(rows, columns) for state, rows in found.items()},
            )
        return self._found[asked][1][read.state]

    def _reads_of(self, object_id: str) -> list[Read]:
        reads = [read for step in self.plan.steps for read in step.reads]
        return [read for read in reads if read.object_id == object_id and not read.state.is_change]

    def _mentioned(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """The columns whose names stand in the SQL of some step."""
        return tuple(each for each in columns if each.name.lower() in self._words)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(
            (quoted.replace("``", "`") or word).lower()
            for step in self.plan.steps
            for quoted, word in _WORD.findall(step.sql)
        )

    # -- by value

    def _limiting(self, limit: Limit | None, columns: Sequence[Column]) -> Values | None:
        """The values that a limit lets through in the column where that says most; None if they are not at hand."""
        if limit is None:
            return None
        found = [
            Values(name, values)
            for name, of_name in zip(limit.columns, limit.of_columns, strict=True)
            if (values := self._values(limit, name, of_name, columns)) is not None
        ]
        return max(found, key=lambda each: len(each.values), default=None)

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

    def _few_rows(
        self,
        session: Any,
        address: str,
        versions: Mapping[State, int],
        columns: Sequence[Column],
        wanted: Values,
    ) -> dict[State, pa.Table] | None:
        """The rows of a Delta table with one of the values at some versions, by one scan; None if that cannot be done or
        they are too many."""
        condition = wanted.condition
        if condition is None or isinstance(condition, exp.Between) or not has_arrow_types(columns):
            return None
        files: dict[State, DataFiles] = {}
        for state, version in versions.items():
            known = self.workspace.log.data_files(address, version, columns)
            if known is None:
                return None
            files[state] = known
        holding = {
            name: each.addresses[name]
            for each in files.values()
            for name in each.holding(wanted.column, list(wanted.values))
        }
        if not holding:
            none = arrow_schema(columns).empty_table()
            return {state: _placed(none) for state in files}
        rows = session.read.schema(schema_text(columns)).parquet(*holding.values())
        found = (
            rows.where(condition.sql(dialect="spark"))
            .selectExpr(
                *(quote(each.name) for each in columns),
                f"_metadata.file_path AS {FILE}",
                f"_metadata.row_index AS {POSITION}",
            )
            .limit(MOST_DRIVER_ROWS + 1)
            .toArrow()
        )
        if found.num_rows > MOST_DRIVER_ROWS:
            return None
        return {state: each.live(found) for state, each in files.items()}


def _placed(none: pa.Table) -> pa.Table:
    """No rows, with the columns for their places."""
    return none.append_column(FILE, pa.array([], pa.string())).append_column(
        POSITION, pa.array([], pa.int64())
    )


def _no_rows(session: Any, columns: Sequence[Column]) -> Any:
    return session.createDataFrame(arrow_schema(columns).empty_table(), schema_text(columns))
