"""What must hold of a warehouse after every step, read without Spark: by delta-rs, and DuckDB evaluates the queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from deltalake import DeltaTable, QueryBuilder

from tests.support.published import _without_views, rows
from viewkeeper import Warehouse
from viewkeeper.generated_names import COPY_NUMBER
from viewkeeper.sql.names import quote
from viewkeeper.storage.catalogue import Catalogue, ObjectRecord
from viewkeeper.storage.records import ViewRecord
from viewkeeper.testing.bags import compare_bags


@dataclass
class Reader:
    """The rows of tables and views at versions, which never change and are read once."""

    warehouse: Warehouse
    spark: Any
    _read: dict[tuple[str, int], pa.Table] = field(default_factory=dict)

    def rows(self, record: ObjectRecord, version: int) -> pa.Table:
        address = self.warehouse._workspace.data_address(record)
        if (address, version) not in self._read:
            hidden = [COPY_NUMBER] if isinstance(record, ViewRecord) else []
            columns = [*(column.name for column in record.columns), *hidden]
            self._read[address, version] = self._rows(address, version, columns)
        return self._read[address, version]

    def _rows(self, address: str, version: int, columns: list[str]) -> pa.Table:
        table = DeltaTable(address, version=version)
        if "columnMapping" in (table.protocol().reader_features or ()):
            names = ", ".join(map(quote, columns))
            found = self.spark.sql(f"SELECT {names} FROM delta.{quote(address)} VERSION AS OF {version}")
            return found.toArrow()
        names = ", ".join(f'"{name}"' for name in columns)
        return _without_views(pa.table(QueryBuilder().register("t", table).execute(f"SELECT {names} FROM t")))

    def newest(self, record: ObjectRecord) -> int:
        return DeltaTable(self.warehouse._workspace.data_address(record)).version()


def broken(reader: Reader) -> Iterator[str]:
    """What does not hold of what is published."""
    catalogue = reader.warehouse._workspace.state.read()
    with duckdb.connect() as database:
        for view in catalogue.views.values():
            published = catalogue.published[view.id]
            held = reader.rows(view, published.version)
            yield from _wrong_copies(view, held)
            named = set(view.references.values())
            if any(published.inputs[each] < 0 for each in named):
                continue  # a table below was replaced, and the view not refreshed since: nobody can tell
            inputs = {
                each: reader.rows(catalogue.object(each), published.inputs[each]) for each in sorted(named)
            }
            difference = compare_bags(
                rows(_answer(database, view, inputs)), rows(held.select(_visible(view)))
            )
            if not difference.is_empty:
                yield f"I2 {view.name} is not its query at its pinned versions\n{view.query}\n{difference}"


def stale(reader: Reader) -> Iterator[str]:
    """Views that are not what their queries give over the tables as they are now, views below evaluated too."""
    catalogue = reader.warehouse._workspace.state.read()
    answers: dict[str, pa.Table] = {
        table.id: reader.rows(table, reader.newest(table)) for table in catalogue.tables.values()
    }
    with duckdb.connect() as database:
        for view in catalogue.views_below(catalogue.views):
            inputs = {each: answers[each] for each in view.references.values()}
            answers[view.id] = _answer(database, view, inputs)
            held = reader.rows(view, catalogue.published[view.id].version).select(_visible(view))
            difference = compare_bags(rows(answers[view.id]), rows(held))
            if not difference.is_empty:
                yield f"I2 {view.name} is not its query over the newest rows\n{view.query}\n{difference}"


def _visible(view: ViewRecord) -> list[str]:
    return [column.name for column in view.columns]


def _answer(
    database: duckdb.DuckDBPyConnection, view: ViewRecord, inputs: Mapping[str, pa.Table]
) -> pa.Table:
    """What the user's text gives over inputs by their ids, whatever these are called by now."""
    for key, object_id in view.references.items():
        name = key.rsplit(".", 1)[-1].strip("`")
        found = inputs[object_id]
        database.register(name, found.select([each for each in found.column_names if each != COPY_NUMBER]))
    (query,) = sqlglot.transpile(view.query, read="spark", write="duckdb")
    return database.sql(query).to_arrow_table()


def _wrong_copies(view: ViewRecord, held: pa.Table) -> Iterator[str]:
    copies: dict[tuple[Any, ...], list[int]] = {}
    for *row, copy in rows(held):
        copies.setdefault(tuple(row), []).append(copy)
    for row, numbers in copies.items():
        if sorted(numbers) != list(range(1, len(numbers) + 1)):
            yield f"I3 {view.name}: the row {row} has the copy numbers {sorted(numbers)}"


def wrong_changes(warehouse: Warehouse, catalogue: Catalogue, view: ViewRecord) -> Iterator[str]:
    """By the public SQL: a kept epoch, and what CHANGES says, give every later one."""
    entries = [
        each
        for each in warehouse.history(str(view.name))
        if each.location == view.location and each.outcome == "published"
    ]
    last = catalogue.published[view.id].epoch
    first = max(entries[0].epoch, catalogue.first_kept_epoch)
    if first > last:
        return
    old, new = (
        Counter(tuple(each) for each in warehouse.sql(f"SELECT * FROM {view.name} AS OF EPOCH {epoch}").collect())
        for epoch in (first, last)
    )  # fmt: skip
    if first < last:
        for *row, _, kind in warehouse.sql(
            f"SELECT * FROM CHANGES({view.name}, {first + 1}, {last})"
        ).collect():
            old[tuple(row)] += 1 if kind == "insert" else -1
    if any(count < 0 for count in old.values()) or +old != +new:
        yield f"I6 the changes of {view.name} from epoch {first} to {last} do not lead there: {old} is not {new}"
