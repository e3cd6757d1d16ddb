"""The ways to apply a change set to a view's table without Spark's MERGE.

A small view is written whole. In a large one the rows that go are looked up and marked in deletion vectors, and those that
come are one new file.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from viewkeeper.errors import ChangeSetMismatchError, ConcurrencyProblem
from viewkeeper.execution.input_changes import (
    MOST_DRIVER_ROWS,
    between,
    bounds_of,
    can_limit,
    schema_text,
)
from viewkeeper.execution.local_relations import local_relation, with_places
from viewkeeper.generated_names import (
    CHANGE_KIND,
    COPY_NUMBER,
    DELETED,
    FILE,
    HIDDEN_PREFIX,
    IDENTITY,
    POSITION,
)
from viewkeeper.maintenance.bag_changes import positions
from viewkeeper.maintenance.comparable import is_comparable_in_merge
from viewkeeper.sources.arrow_types import arrow_schema, in_arrow_types, rows_at, values_in
from viewkeeper.sources.data_files import file_name
from viewkeeper.sources.delta_failures import storage_failures
from viewkeeper.sources.net_effect import frozen_rows
from viewkeeper.sources.row_groups import rows_with
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sql.binding import Column
from viewkeeper.sql.rendering import column, delta_table
from viewkeeper.sql.types import Simple
from viewkeeper.storage.own_commit import Mark, change, deleted_positions, open_store, overwrite, read_rows
from viewkeeper.storage.table_files import ForeignLogError, TableFiles, live_files

OVERWRITE_ROWS = 5_000
"""Views of up to this many rows are written whole; measured by benchmarks/apply.py."""

FOLDED_WHOLE_ROWS = 100_000
"""Views of up to this many rows are folded by writing them whole with the next change set; larger ones by Spark."""

CHECKPOINT_INTERVAL = 20

SMALL_FILE = 8 * 1024 * 1024
MOST_SMALL_FILES = 16
"""More files of less than `SMALL_FILE` bytes are folded into one; why so many: docs/decisions/0007-own-commit.md."""


Place: TypeAlias = tuple[str, int]
"""The file of a stored row, and its position there."""


class Way(Enum):
    """How a change set was applied; the word that reports use."""

    NOTHING = "nothing to apply"
    OVERWRITE = "overwrite"
    OVERWRITE_TO_FOLD = "overwrite, for it had many small files"
    OWN_COMMIT = "own commit"
    MERGE = "merge"


def stored_schema(columns: Sequence[Column]) -> tuple[Column, ...]:
    """All columns of a view's table, in order."""
    odd = not all(is_comparable_in_merge(each.data_type) for each in columns)
    identity = (Column(IDENTITY, Simple("STRING")),) if odd else ()
    return (*columns, Column(COPY_NUMBER, Simple("INT")), *identity)


@dataclass(frozen=True)
class OwnTable:
    """A view's table as far as we can write it ourselves."""

    address: str
    options: dict[str, str] | None
    store: Any
    files: TableFiles
    columns: tuple[Column, ...]

    def has_seen(self, mark: Mark) -> bool:
        """Whether another process, which took this one for dead, has made the commit already."""
        return self.files.transactions.get(mark.application, -1) >= mark.number

    def keep_log_short(self) -> None:
        """Checkpoint now and then, as Spark does after its own commits."""
        if (self.files.version + 1) % CHECKPOINT_INTERVAL == 0:
            DeltaTable(self.address, storage_options=self.options).create_checkpoint()

    def live(self, found: pa.Table) -> pa.Table:
        """Of rows with their file and position, those that no deletion vector has marked."""
        paths = {file_name(path): path for path in self.files.adds}
        gone = {
            file: deleted_positions(self.store, self.files.adds[paths[file_name(file)]])
            for file in found.column(FILE).unique().to_pylist()
        }
        places = zip(found.column(FILE).to_pylist(), found.column(POSITION).to_pylist(), strict=True)
        return rows_at(
            found, [at for at, (file, position) in enumerate(places) if position not in gone[file]]
        )

    def still_there(self, path: str, places: Sequence[int]) -> list[int]:
        """The positions of a file that no deletion vector has marked yet."""
        gone = deleted_positions(self.store, self.files.adds[path])
        return [place for place in places if place not in gone]

    @property
    def is_small(self) -> bool:
        return self.files.rows <= OVERWRITE_ROWS

    @property
    def small_files(self) -> int:
        return sum(add["size"] < SMALL_FILE for add in self.files.adds.values())

    @property
    def wants_folding(self) -> bool:
        return self.small_files > MOST_SMALL_FILES

    @property
    def is_folded_whole(self) -> bool:
        return self.files.rows <= FOLDED_WHOLE_ROWS

    def rows(self) -> pa.Table:
        return read_rows(self.store, self.files, arrow_schema(self.columns))


def own_table(address: str, options: dict[str, str] | None, columns: Sequence[Column]) -> OwnTable | None:
    """The table, if its types, names and log let us write it; None leaves it to Spark."""
    try:
        with storage_failures(f"the Delta table at {address}"):
            store = open_store(address, options)
            return OwnTable(address, options, store, live_files(store), stored_schema(columns))
    except ForeignLogError:
        return None


def chosen_way(table: OwnTable | None, changes: pa.Table | None) -> Way:
    if table is None or changes is None:
        return Way.MERGE
    if table.is_small:
        return Way.OVERWRITE
    if table.wants_folding and table.is_folded_whole:
        return Way.OVERWRITE_TO_FOLD
    return Way.OWN_COMMIT


def apply_ourselves(
    session: Any,
    table: OwnTable,
    changes: pa.Table,
    mark: Mark,
    view: str,
    way: Way,
    known: Sequence[pa.Table] = (),
) -> None:
    """Apply a change set in one commit; not again if that was done by another process. `known` are stored rows whose
    places have been found already."""
    if table.has_seen(mark):
        return
    with storage_failures(f"the table of {view}"):
        if way is Way.OWN_COMMIT:
            apply_by_own_commit(
                table,
                changes,
                mark,
                view,
                lambda going: known_places(table, known, going) or find_positions(session, table, going),
            )
        else:
            apply_by_overwriting(table, changes, mark, view)
        table.keep_log_short()


def apply_by_overwriting(table: OwnTable, changes: pa.Table, mark: Mark, view: str) -> None:
    """Write the whole view anew, in the driver."""
    rows = table.rows()
    going, coming = _split(changes, table.columns)
    leaving = set(_found_in(rows, going, table.columns))
    require_matches(len(leaving), going.num_rows, view)
    there_already = set(_found_in(rows, coming, table.columns)) - leaving
    require_matches(coming.num_rows - len(there_already), coming.num_rows, view)
    keep = pa.array([at not in leaving for at in range(rows.num_rows)], pa.bool_())
    whole = pa.concat_tables([rows.filter(keep), coming])
    _committed(overwrite(table.store, table.files, whole, mark), view)


def _found_in(rows: pa.Table, going: pa.Table, columns: Sequence[Column]) -> list[int]:
    """Where the rows that go are among these. Comparing whole rows takes long, so first one column leaves most out."""
    name = _telling_column(going, columns)
    candidates = (
        list(range(rows.num_rows))
        if name is None
        else pc.indices_nonzero(
            pc.is_in(rows.column(name), value_set=going.column(name).combine_chunks())
        ).to_pylist()
    )
    wanted = set(frozen_rows(going))
    compared = zip(candidates, frozen_rows(rows_at(rows, candidates)), strict=True)
    return [at for at, row in compared if row in wanted]


def _telling_column(rows: pa.Table, columns: Sequence[Column]) -> str | None:
    """The column with the most values in these rows, of those whose values can be looked up."""
    numbers = {
        each.name: pc.count_distinct(rows.column(each.name), mode="all").as_py()
        for each in columns
        if can_limit(each.data_type, [])
    }
    return max(numbers, key=lambda each: numbers[each]) if numbers else None


def apply_by_own_commit(
    table: OwnTable, changes: pa.Table, mark: Mark, view: str, find: Callable[[pa.Table], Sequence[Place]]
) -> None:
    """Mark the rows that go, which `find` looks up by file and position, and add a file with those that come."""
    going, coming = _split(changes, table.columns)
    removed: dict[str, list[int]] = {}
    if going.num_rows:
        paths = {file_name(path): path for path in table.files.adds}
        for file, position in find(going):
            removed.setdefault(paths[file_name(file)], []).append(position)
        removed = {path: table.still_there(path, places) for path, places in removed.items()}
        require_matches(sum(map(len, removed.values())), going.num_rows, view)
    _committed(change(table.store, table.files, removed, coming, mark), view)


def known_places(table: OwnTable, known: Sequence[pa.Table], going: pa.Table) -> list[Place] | None:
    """Where these rows are, if all of them are among those whose places are known and files have not been rewritten."""
    names = {file_name(path) for path in table.files.adds}
    place_of: dict[Hashable, Place] = {}
    for rows in known:
        stored = frozen_rows(rows.select(going.column_names))
        where = zip(rows.column(FILE).to_pylist(), rows.column(POSITION).to_pylist(), strict=True)
        place_of.update(zip(stored, where, strict=True))
    found = [place_of.get(row) for row in frozen_rows(going)]
    places = [place for place in found if place is not None and file_name(place[0]) in names]
    return places if len(places) == going.num_rows else None


def fold(session: Any, table: OwnTable, view: str, metadata: str) -> None:
    """Rewrite the small files as one: a commit that changes no row."""
    settings = {
        "spark.databricks.delta.optimize.minFileSize": str(SMALL_FILE),
        "spark.databricks.delta.commitInfo.userMetadata": metadata,
    }
    with spark_failures(f"the files of {view} were folded"):
        for key, value in settings.items():
            session.conf.set(key, value)
        try:
            session.sql(f"OPTIMIZE {delta_table(table.address).sql(dialect='spark')}").collect()
        finally:
            for key in settings:
                session.conf.unset(key)


def find_positions(session: Any, table: OwnTable, going: pa.Table) -> Sequence[Place]:
    """File and position of these rows: looked up here where few row groups can hold them, else by one Spark job."""
    return _searched_places(table, going) or _joined_places(session, table, going)


def _searched_places(table: OwnTable, going: pa.Table) -> list[Place] | None:
    """The places of the rows that one column lets through; None leaves it to Spark."""
    name = _telling_column(going, table.columns)
    if name is None or "://" in table.address:
        return None
    values = values_in(going.column(name))
    if values is None:
        return None
    bounds = bounds_of(going, name)
    paths = table.files.overlapping({} if bounds is None else {name: bounds})
    files = [f"{table.address}/{unquote(path)}" for path in paths]
    found = rows_with(values, name, table.columns, files, MOST_DRIVER_ROWS)
    return None if found is None else known_places(table, [table.live(found)], going)


def _joined_places(session: Any, table: OwnTable, going: pa.Table) -> list[Place]:
    """One Spark job over the files that can hold these rows, as plain Parquet."""
    ranges = {
        each.name: bounds for each in table.columns if (bounds := bounds_of(going, each.name)) is not None
    }
    files = [f"{table.address}/{unquote(path)}" for path in table.files.overlapping(ranges)]
    number = uuid.uuid4().hex
    stored, wanted = f"{HIDDEN_PREFIX}rows_{number}", f"{HIDDEN_PREFIX}going_{number}"
    with spark_failures("the rows to delete were looked up"):
        try:
            rows = session.read.schema(schema_text(table.columns)).parquet(*files)
            for name, (low, high) in ranges.items():
                rows = rows.where(between(column(name), low, high).sql(dialect="spark"))
            with_places(rows, table.columns).createOrReplaceTempView(stored)
            local_relation(session, going, schema_text(table.columns)).createOrReplaceTempView(wanted)
            found = session.sql(positions(stored, wanted, table.columns)).toArrow()
            return list(zip(*(each.to_pylist() for each in found.columns), strict=True))
        finally:
            session.catalog.dropTempView(stored)
            session.catalog.dropTempView(wanted)


def _split(changes: pa.Table, columns: Sequence[Column]) -> tuple[pa.Table, pa.Table]:
    kinds = changes.column(CHANGE_KIND).to_pylist()
    rows = in_arrow_types(changes, columns)
    going = [at for at, kind in enumerate(kinds) if kind == DELETED]
    coming = [at for at, kind in enumerate(kinds) if kind != DELETED]
    return rows_at(rows, going), rows_at(rows, coming)


def require_matches(found: int, wanted: int, view: str) -> None:
    """Every row that a change set deletes must be in the view, and none that it inserts."""
    if found != wanted:
        raise ChangeSetMismatchError(
            f"the table of {view} is not what its change set was made for: {found} of {wanted} rows fit.",
            f"REFRESH MATERIALIZED VIEW {view} FULL recomputes it.",
        )


def _committed(is_ours: bool, view: str) -> None:
    if not is_ours:
        raise ConcurrencyProblem(
            f"another process committed to the table of {view} meanwhile.", "repeat the statement."
        )
