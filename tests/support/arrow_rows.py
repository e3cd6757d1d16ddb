"""Rows of Python values as tables of Arrow, which Spark takes as local relations without a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from viewkeeper.execution.input_changes import schema_text
from viewkeeper.execution.local_relations import local_relation
from viewkeeper.sources.arrow_types import arrow_schema
from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import quote


def table_of(rows: Sequence[Sequence[Any]], columns: Sequence[Column]) -> pa.Table:
    schema = arrow_schema(columns)
    return pa.Table.from_arrays(
        [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)], schema=schema
    )


def show_to_spark(spark: Any, name: str, rows: Sequence[Sequence[Any]], columns: Sequence[Column]) -> None:
    """Make the rows a temporary view of this name, as a refresh does with the rows that it holds."""
    local_relation(spark, table_of(rows, columns), schema_text(columns)).createOrReplaceTempView(quote(name))
