"""Is every view of a warehouse right? Its rows as delta-rs reads them against what DuckDB makes of its query."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from deltalake import DeltaTable, QueryBuilder

from viewkeeper import Warehouse
from viewkeeper.storage.records import ViewRecord
from viewkeeper.testing.bags import compare_bags

TOLERANCE = 1e-6
"""Averages and quotients of decimals are floating-point numbers in DuckDB; Spark rounds them to a few digits.
All else is compared exactly."""


def wrong_views(warehouse: Warehouse) -> dict[str, str]:
    """What is missing and unexpected in the views, as they were published, over the tables as they are now."""
    workspace = warehouse._workspace
    catalogue = workspace.state.read()
    wrong = {}
    with duckdb.connect() as database:
        for record in [*catalogue.tables.values(), *catalogue.views_below(catalogue.views)]:
            published = catalogue.published.get(record.id)
            columns = [column.name for column in record.columns]
            held = _rows_of(workspace.data_address(record), columns, published and published.version)
            if isinstance(record, ViewRecord):
                (query,) = sqlglot.transpile(record.query, read="spark", write="duckdb")
                expected = database.sql(query).to_arrow_table()
                floats = {at for at, kind in enumerate(expected.schema.types) if pa.types.is_floating(kind)}
                difference = compare_bags(_rows(expected, floats), _rows(held, floats), TOLERANCE)
                if not difference.is_empty:
                    wrong[str(record.name)] = str(difference)
            database.register(record.name.name, held)
    return wrong


def _rows_of(address: str, columns: list[str], version: int | None) -> pa.Table:
    query = QueryBuilder().register("t", DeltaTable(address, version=version))
    return pa.table(query.execute(f"SELECT {', '.join(columns)} FROM t"))


def _rows(table: pa.Table, floats: set[int]) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    for at in floats:
        columns[at] = [None if value is None else float(value) for value in columns[at]]
    return list(zip(*columns, strict=True))
