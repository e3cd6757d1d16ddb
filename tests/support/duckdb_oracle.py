"""Is every view of a warehouse right? Its rows against what DuckDB makes of its query."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import sqlglot

from tests.support.published import published, rows
from viewkeeper import Warehouse
from viewkeeper.storage.records import ViewRecord
from viewkeeper.testing.bags import compare_bags

TOLERANCE = 1e-6
"""Averages and quotients of decimals are floating-point numbers in DuckDB; Spark rounds them to a few digits.
All else is compared exactly."""


def wrong_views(warehouse: Warehouse) -> dict[str, str]:
    """What is missing and unexpected in the views, as they were published, over the tables as they are now."""
    wrong = {}
    with duckdb.connect() as database:
        for record, held in published(warehouse):
            if isinstance(record, ViewRecord):
                (query,) = sqlglot.transpile(record.query, read="spark", write="duckdb")
                expected = database.sql(query).to_arrow_table()
                difference = compare_bags(rows(expected), rows(_with_floats_of(expected, held)), TOLERANCE)
                if not difference.is_empty:
                    wrong[str(record.name)] = str(difference)
            database.register(record.name.name, held)
    return wrong


def _with_floats_of(expected: pa.Table, held: pa.Table) -> pa.Table:
    """The rows that are held, floating-point numbers where they are expected."""
    for at, kind in enumerate(expected.schema.types):
        if pa.types.is_floating(kind):
            held = held.set_column(at, held.schema.names[at], held.column(at).cast(kind))
    return held
