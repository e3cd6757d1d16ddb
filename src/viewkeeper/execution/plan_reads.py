"""What the steps of a plan read, as frames of the session.

Few rows that some values point to are brought to the driver by one job and become a local relation: a table is then
scanned once for all states that a plan reads of it, and the rows of the view are known by their places in its files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from sqlglot import exp

from viewkeeper.execution.apply import OwnTable, stored_schema
from viewkeeper.execution.counted_changes import CountedChanges
from viewkeeper.execution.epoch_reads import EpochReads, Found, Lookup, words_in
from viewkeeper.execution.input_changes import InputChanges, can_limit, schema_text
from viewkeeper.execution.local_relations import local_relation
from viewkeeper.execution.searching import Wanted, few_rows, holding, may_be_few
from viewkeeper.execution.workspace import Workspace
from viewkeeper.maintenance.plan import Limit, MaintenancePlan, Read, State
from viewkeeper.sources.arrow_types import arrow_schema, in_arrow_types, values_in
from viewkeeper.sources.data_files import DataFiles
from viewkeeper.sql.binding import Column
from viewkeeper.sql.rendering import column, delta_table, render, select_all, select_from
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import ViewRecord


@dataclass
class PlanReads:
    """The reads of one plan for one epoch."""

    workspace: Workspace
    catalogue: Catalogue
    view: ViewRecord
    plan: MaintenancePlan
    versions: Mapping[State, Mapping[str, int]]
    changes: Mapping[str, InputChanges]
    own_table: OwnTable | None
    epoch_reads: EpochReads
    computed: dict[str, pa.Table] = field(default_factory=dict)
    """By relation: what steps have computed, and few rows that were found in tables."""
    in_view: list[pa.Table] = field(default_factory=list)
    """Rows that were found in the view, with all stored columns, their file and position."""
    shared: list[str] = field(default_factory=list)
    """Which rows had been found for another view, in words."""

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
            found = self._found_in_view(session, files, wanted, stored_schema(columns))
            if found is not None:
                self.in_view.append(found)
                return _local(session, found, columns)
        select = select_from(delta_table(address, version), [column(each.name) for each in columns])
        return session.sql(render(_where(select, wanted)))

    def _found_in_view(
        self, session: Any, files: DataFiles, wanted: Wanted, columns: Sequence[Column]
    ) -> pa.Table | None:
        if not may_be_few([files], wanted, columns):
            return None
        found = few_rows(session, wanted, columns, holding([files], wanted).values())
        return None if found is None else files.live(found)

    def copies_in_view(
        self, session: Any, changes: CountedChanges, key: Sequence[str]
    ) -> Sequence[int] | None:
        """How many copies the view has of each row; None if that is not to be had without a job. Columns that tell rows
        apart are read first, the others only of rows that these do not decide."""
        table = self.own_table
        if table is None:
            return None
        if table.is_small:
            return changes.copies_in(table.rows())
        columns = (*self.view.columns, *self.view.hidden)
        files = self.workspace.log.data_files(
            self.workspace.layout.rows(self.view.location), table.files.version, columns
        )
        if files is None:
            return None
        copies = [max(0, -count) for count in changes.counts]
        open_rows = self._not_decided(session, changes, [c for c in columns if c.name in key], files)
        if open_rows:
            rest = changes.at(open_rows)
            wanted = _most_telling(_values_of(rest.rows, columns), files)
            found = (
                None
                if wanted is None
                else self._found_in_view(session, files, wanted, stored_schema(columns))
            )
            if found is None:
                return None
            self.in_view.append(found)
            for row, number in zip(open_rows, rest.copies_in(found), strict=True):
                copies[row] = number
        return copies

    def _not_decided(
        self, session: Any, changes: CountedChanges, key: Sequence[Column], files: DataFiles
    ) -> list[int]:
        """Of which rows it must be asked whether the view has them. Of the others the places are known then."""
        every = list(range(len(changes.counts)))
        names = [each.name for each in key]
        wanted = _most_telling(_values_of(changes.rows, key), files)
        found = None if wanted is None else self._found_in_view(session, files, wanted, key)
        if found is None:
            return every
        is_decided = changes.decided_by(names, found)
        self.in_view.append(
            changes.at([row for row in every if is_decided[row]]).going_with_places(names, found)
        )
        return [row for row in every if not is_decided[row]]

    # -- tables and other views

    def _input_rows(self, session: Any, read: Read) -> Any:
        """A table or view in one state, as far as a limit lets it through. Few rows are at hand for further limits."""
        if read.state is State.BETWEEN:
            return self._rows_between(session, read)
        record = self.catalogue.object(read.object_id)
        asked = None if read.only_if is None else self.computed.get(read.only_if)
        if asked is not None and not asked.num_rows:
            return self._no_rows(session, read, record.columns)
        version = self.versions[read.state][read.object_id]
        files = self.epoch_reads.files(read.object_id, version)
        wanted = _most_telling(self._limiting(read.limit, record.columns), files)
        if wanted is not None and not wanted.values:
            return self._no_rows(session, read, record.columns)
        if wanted is not None and files is not None:
            found = self._found(session, read, wanted)
            if found is not None:
                self.computed[read.relation] = self.epoch_reads.rows(found, version)
                return self.epoch_reads.frame(session, found, version)
        if files is not None:
            names = list(files.addresses) if wanted is None else files.holding(wanted.column, wanted.values)
            if not names:
                return self._no_rows(session, read, record.columns)
            if files.are_whole(names):
                addresses = [files.addresses[name] for name in names]
                frame = session.read.schema(schema_text(record.columns)).parquet(*addresses)
                condition = None if wanted is None else wanted.condition
                return frame if condition is None else frame.where(condition.sql(dialect="spark"))
        return session.sql(render(_where(select_all(self.workspace.relation(record, version)), wanted)))

    def _no_rows(self, session: Any, read: Read, columns: Sequence[Column]) -> Any:
        self.computed[read.relation] = arrow_schema(columns).empty_table()
        return local_relation(session, self.computed[read.relation], schema_text(columns))

    def _rows_between(self, session: Any, read: Read) -> Any:
        """A table before the changes without the rows that were deleted or updated: the new rows without the new."""
        changes = self.changes[read.object_id]
        rows = self._input_rows(session, replace(read, state=State.NEW))
        return rows.join(changes.frame(session, State.ADDED), list(changes.key), "left_anti")

    def _found(self, session: Any, read: Read, wanted: Wanted) -> Found | None:
        """The rows with one of the values, if they are few. What other reads of the table will ask for, in this plan and in
        those of later views, is found with them, as far as it is known."""
        version = self.versions[read.state][read.object_id]
        record = self.catalogue.object(read.object_id)
        asked = Lookup(read.object_id, wanted, self._mentioned(record.columns))
        found = self.epoch_reads.known(asked, version)
        if found is None:
            mine = [
                each
                for step in self.plan.steps
                for each in step.reads
                if each.object_id == read.object_id and not each.state.is_change
            ]
            versions = {
                self.versions[State.NEW if each.state is State.BETWEEN else each.state][read.object_id]
                for each in mine
            }
            for_plan = replace(asked, wanted=self._wanted_by(mine, wanted, record.columns))
            self.epoch_reads.search(session, for_plan, self._wider(for_plan, mine), versions)
            found = self.epoch_reads.known(asked, version)
        if found is not None and found.found_for.id != self.view.id:
            self.shared.append(f"rows of {record.name} as found for {found.found_for.name}")
        return found

    def _wanted_by(
        self, reads: Sequence[Read], wanted: Wanted, columns: Sequence[Column], everything: bool = False
    ) -> Wanted:
        """These values, and those by which the reads are limited in the same column; or could be, if they took in all
        parts of the change sets."""
        limited = [one for read in reads for one in self._limiting(read.limit, columns, everything)]
        values = (each.values for each in limited if each.column == wanted.column)
        return Wanted(wanted.column, wanted.values.union(*values))

    def _wider(self, lookup: Lookup, reads: Sequence[Read]) -> Lookup:
        """What this plan and those of later views ask for."""
        later = self.epoch_reads.asked_later(lookup.object_id, self.changes)
        if later is None:
            return lookup
        columns = self.catalogue.object(lookup.object_id).columns
        names = {each.name.lower() for each in lookup.columns} | later
        return Lookup(
            lookup.object_id,
            self._wanted_by(reads, lookup.wanted, columns, everything=True),
            tuple(each for each in columns if each.name.lower() in names),
        )

    def _mentioned(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """The columns whose names stand in the SQL of some step, or by which rows are found or told apart."""
        return tuple(each for each in columns if each.name.lower() in self._words)

    @cached_property
    def _words(self) -> frozenset[str]:
        words = [word for step in self.plan.steps for word in words_in(step.sql)]
        words += [name for found in self.changes.values() for name in found.key]
        for step in self.plan.steps:
            words += [name for read in step.reads if read.limit is not None for name in read.limit.columns]
        return frozenset(word.lower() for word in words)

    # -- limits

    def _limiting(
        self, limit: Limit | None, columns: Sequence[Column], everything: bool = False
    ) -> list[Wanted]:
        """The values that a limit lets through, for each of its columns where they are at hand; of a part of a change set
        with `everything` those of all parts."""
        if limit is None:
            return []
        return [
            Wanted(name, values)
            for name, of_name in zip(limit.columns, limit.of_columns, strict=True)
            if (values := self._values(limit, name, of_name, columns, everything)) is not None
        ]

    def _values(
        self, limit: Limit, name: str, of_name: str, columns: Sequence[Column], everything: bool
    ) -> frozenset[Any] | None:
        part = self._parts.get(limit.relation)
        if part is not None:
            found = self.changes[part.object_id].values(None if everything else part.state, of_name)
        else:
            table = self.computed.get(limit.relation)
            found = None if table is None else values_in(table.column(of_name))
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


def _most_telling(candidates: Sequence[Wanted], files: DataFiles | None) -> Wanted | None:
    """The column whose values leave the fewest rows, as far as statistics tell."""
    if files is None:
        return candidates[0] if candidates else None
    return min(candidates, key=lambda each: files.estimated_rows(each.column, each.values), default=None)


def _values_of(rows: pa.Table, columns: Sequence[Column]) -> list[Wanted]:
    """For each column by whose values rows can be found, those of these rows."""
    limitable = {each: values_in(rows.column(each.name)) for each in columns if can_limit(each.data_type, [])}
    return [
        Wanted(each.name, frozenset(found))
        for each, found in limitable.items()
        if found is not None and can_limit(each.data_type, found)
    ]


def _where(select: exp.Select, wanted: Wanted | None) -> exp.Select:
    condition = None if wanted is None else wanted.condition
    return select if condition is None else select.where(condition)


def _local(session: Any, rows: pa.Table, columns: Sequence[Column]) -> Any:
    return local_relation(session, in_arrow_types(rows, columns), schema_text(columns))
