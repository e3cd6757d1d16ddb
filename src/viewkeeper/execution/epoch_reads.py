"""What the views of one epoch have read of tables, each file once for all of them.

Views that react to the same changes look up the same rows of the other tables. Whoever is first looks for what the others
will ask for too. What was found is a fact of data files, which never change: whether a version has a row is decided when
somebody asks for that version. So it stays right whatever becomes of the view it was found for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.errors import ViewkeeperError
from viewkeeper.execution.input_changes import MOST_DRIVER_ROWS, schema_text
from viewkeeper.execution.local_relations import local_relation
from viewkeeper.execution.searching import Wanted, few_rows, holding, may_be_few
from viewkeeper.execution.workspace import Workspace, bind_stored
from viewkeeper.generated_names import FILE, POSITION
from viewkeeper.sources.arrow_types import in_arrow_types
from viewkeeper.sources.data_files import DataFiles, file_name
from viewkeeper.sources.row_groups import no_rows_with_places
from viewkeeper.sql.binding import Column
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import TableRecord, ViewRecord

MOST_KEPT_BYTES = 256 * 1024 * 1024
"""Of rows that views before have found. What the view at work finds comes on top, as long as it is at work."""

MANY_TIMES = 10
"""Rows that were found by this many times the values of a view are more than it wants to join: it looks for its own."""

_WORD = re.compile(r"`((?:[^`]|``)+)`|(\w+)")


def words_in(sql: str) -> set[str]:
    """What may be names of columns in a text, in lower case.

    >>> sorted(words_in("SELECT `a b`.`C` + max(d) FROM t"))
    ['a b', 'c', 'd', 'from', 'max', 'select', 't']
    """
    return {(quoted.replace("``", "`") or word).lower() for quoted, word in _WORD.findall(sql)}


@dataclass(frozen=True)
class Lookup:
    """The rows of a table or view that have one of some values in a column, with some of its columns."""

    object_id: str
    wanted: Wanted
    columns: tuple[Column, ...]


@dataclass
class Found:
    """All rows with such values that some files have, with file and position. None: they are too many."""

    lookup: Lookup
    files: frozenset[str]
    rows: pa.Table | None
    found_for: ViewRecord
    settings: Mapping[str, str]
    live: dict[int, pa.Table] = field(default_factory=dict)
    frames: dict[int, Any] = field(default_factory=dict)
    """The rows that a version has, as tables and as local relations."""

    @property
    def size(self) -> int:
        """In bytes, roughly."""
        return 0 if self.rows is None else self.rows.nbytes * (1 + len(self.live) + len(self.frames))

    def serves(self, asked: Lookup) -> bool:
        mine = self.lookup
        return (
            self.rows is not None
            and (mine.object_id, mine.wanted.column) == (asked.object_id, asked.wanted.column)
            and asked.wanted.values <= mine.wanted.values
            and set(asked.columns) <= set(mine.columns)
        )

    def is_worth_it(self, asked: Lookup) -> bool:
        return len(self.lookup.wanted.values) <= MANY_TIMES * max(len(asked.wanted.values), 100)

    def tells_too_many(self, asked: Lookup, files: Collection[str]) -> bool:
        mine = self.lookup
        return (
            self.rows is None
            and (mine.object_id, mine.wanted.column) == (asked.object_id, asked.wanted.column)
            and mine.wanted.values <= asked.wanted.values
            and self.files <= set(files)
        )

    def rows_of(self, files: Collection[str], columns: Sequence[Column]) -> pa.Table:
        assert self.rows is not None
        addresses = self.rows.column(FILE)
        within = [each for each in addresses.unique().to_pylist() if file_name(each) in files]
        rows = self.rows.filter(pc.is_in(addresses, pa.array(within, addresses.type)))
        return _with_places(rows, columns)


@dataclass
class EpochReads:
    """`views` are those that the epoch is going to refresh, in this order."""

    workspace: Workspace
    catalogue: Catalogue
    views: Sequence[ViewRecord] = ()
    _view: ViewRecord | None = None
    _later: Sequence[ViewRecord] = field(init=False)
    _found: list[Found] = field(default_factory=list)
    _files: dict[tuple[str, int], DataFiles | None] = field(default_factory=dict)
    _words: dict[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._later = self.views

    def begin(self, view: ViewRecord) -> None:
        """A view's turn. What neither it nor a later one can use is forgotten."""
        self._view = view
        places = [at for at, each in enumerate(self.views) if each.id == view.id]
        if places:
            self._later = self.views[places[0] + 1 :]
        read = {each for reader in (view, *self._later) for each in reader.input_ids}
        self._files = {asked: files for asked, files in self._files.items() if asked[0] in read}
        kept = [each for each in self._found if each.lookup.object_id in read]
        while sum(each.size for each in kept) > MOST_KEPT_BYTES:
            del kept[0]
        self._found = kept

    def files(self, object_id: str, version: int) -> DataFiles | None:
        """The data files of a version; None: let Delta read it."""
        asked = (object_id, version)
        if asked not in self._files:
            record = self.catalogue.object(object_id)
            address = self.workspace.data_address(record)
            self._files[asked] = self.workspace.log.data_files(address, version, record.columns)
        return self._files[asked]

    # -- what later views will ask for

    def asked_later(self, object_id: str, changed: Collection[str]) -> frozenset[str] | None:
        """The columns, in lower case, that later views mention which read an object and react to one of these changes.
        None: there are no such views."""
        later = [
            view
            for view in self._later
            if object_id in view.input_ids and not set(changed).isdisjoint(view.input_ids)
        ]
        if not later:
            return None
        record = self.catalogue.object(object_id)
        words = [word for view in later for word in self._words_of(view)]
        if isinstance(record, TableRecord):
            words += [name for key in record.keys for name in key.columns]
        return frozenset(word.lower() for word in words)

    def _words_of(self, view: ViewRecord) -> frozenset[str]:
        if view.id not in self._words:
            try:
                bound = bind_stored(view.over_kept or view, self.catalogue)
            except ViewkeeperError:  # it will say so itself
                words: set[str] = set()
            else:
                words = words_in(bound.rendered)
                if not bound.rendered or view.refusal is not None:
                    words = {column.name for each in bound.inputs for column in each.columns}
            self._words[view.id] = frozenset(words)
        return self._words[view.id]

    # -- rows

    def known(self, asked: Lookup, version: int) -> Found | None:
        """Rows that answer the question in a version, if the files that can hold them were searched."""
        files = self.files(asked.object_id, version)
        assert files is not None and self._view is not None
        missing = set(holding([files], asked.wanted))
        parts: list[tuple[Found, set[str]]] = []
        for each in self._serving(asked):
            mine = missing & each.files
            if mine or not missing:
                parts.append((each, mine))
                missing -= mine
                if not missing:
                    break
        if missing:
            return None
        return parts[0][0] if len(parts) == 1 else self._together(asked, [each for each, _ in parts])

    def _together(self, asked: Lookup, parts: Sequence[Found]) -> Found | None:
        """What several searches have in common, as if it had been one; None if that is too much."""
        assert self._view is not None
        lookups = [each.lookup for each in parts] or [asked]
        columns = tuple(
            column for column in lookups[0].columns if all(column in each.columns for each in lookups)
        )
        values = frozenset.intersection(*(each.wanted.values for each in lookups))
        files: set[str] = set()
        rows = [no_rows_with_places(columns)]
        for each in parts:
            rows.append(each.rows_of(each.files - files, columns))
            files |= each.files
        together = pa.concat_tables(rows)
        if together.num_rows > MOST_DRIVER_ROWS:
            return None
        is_mine = not parts or any(each.found_for.id == self._view.id for each in parts)
        found_for = self._view if is_mine else parts[0].found_for
        lookup = Lookup(asked.object_id, Wanted(asked.wanted.column, values), columns)
        return self._keep(lookup, frozenset(files), together, found_for)

    def search(self, session: Any, asked: Lookup, wider: Lookup, versions: Iterable[int]) -> None:
        """Search the files of these versions that were not searched for it yet, by one scan; for something wider if that
        costs no more."""
        found = (self.files(asked.object_id, version) for version in versions)
        files = [each for each in found if each is not None]
        missing = self._missing(asked, files)
        if not missing:
            return
        for lookup in (wider, replace(asked, columns=wider.columns), asked):
            if not may_be_few(files, lookup.wanted, lookup.columns):
                continue
            if lookup != asked and not self._costs_no_more(lookup, missing, files):
                continue
            if any(each.tells_too_many(lookup, missing) for each in self._mine()):
                continue
            rows = few_rows(session, lookup.wanted, lookup.columns, missing.values())
            assert self._view is not None
            self._keep(lookup, frozenset(missing), rows, self._view)
            if rows is not None:
                return

    def rows(self, found: Found, version: int) -> pa.Table:
        """Of rows that were found, those that a version has."""
        if version not in found.live:
            files = self.files(found.lookup.object_id, version)
            assert files is not None and found.rows is not None
            found.live[version] = files.live(found.rows)
        return found.live[version]

    def frame(self, session: Any, found: Found, version: int) -> Any:
        """The same as a local relation."""
        if version not in found.frames:
            columns = found.lookup.columns
            rows = in_arrow_types(self.rows(found, version), columns)
            found.frames[version] = local_relation(session, rows, schema_text(columns))
        return found.frames[version]

    def _costs_no_more(self, wider: Lookup, missing: Mapping[str, str], files: Sequence[DataFiles]) -> bool:
        """Whether these very files are to be searched, and Spark can do it if Arrow cannot."""
        return wider.wanted.is_listed and self._missing(wider, files).keys() == missing.keys()

    def _missing(self, asked: Lookup, files: Sequence[DataFiles]) -> dict[str, str]:
        """The files to search, by name; in the others it is known what there is."""
        known = {name for each in self._serving(asked) for name in each.files}
        return {name: address for name, address in holding(files, asked.wanted).items() if name not in known}

    def _serving(self, asked: Lookup) -> list[Found]:
        """Newest first: it has been put together from others, if these were not enough."""
        assert self._view is not None
        return [
            each
            for each in reversed(self._mine())
            if each.serves(asked) and (each.found_for.id == self._view.id or each.is_worth_it(asked))
        ]

    def _mine(self) -> list[Found]:
        """What was read under the same settings: they can change what Spark makes of a file."""
        assert self._view is not None
        return [each for each in self._found if each.settings == self._view.settings]

    def _keep(
        self, lookup: Lookup, files: frozenset[str], rows: pa.Table | None, found_for: ViewRecord
    ) -> Found:
        assert self._view is not None
        found = Found(lookup, files, rows, found_for, self._view.settings)
        self._found = [
            each
            for each in self._found
            if not (found.serves(each.lookup) and each.files <= files and each.settings == found.settings)
        ]
        self._found.append(found)
        return found


def _with_places(rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
    typed = in_arrow_types(rows, columns)
    files, positions = (rows.column(FILE).cast(pa.string()), rows.column(POSITION).cast(pa.int64()))
    return typed.append_column(FILE, files).append_column(POSITION, positions)
