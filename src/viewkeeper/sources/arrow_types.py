"""Column types in Arrow, as Spark takes them for a local relation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import Array, DataType, Map, Simple, Struct, as_stored

_SIMPLE = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}


def arrow_type(data_type: DataType) -> pa.DataType:
    """
    >>> str(arrow_type(Array(Simple("DECIMAL(10,2)"))))
    'list<element: decimal128(10, 2)>'
    """
    match data_type:
        case Simple(name):
            if name.startswith("DECIMAL"):
                precision, scale = name[8:-1].split(",")
                return pa.decimal128(int(precision), int(scale))
            return _SIMPLE[name]
        case Array(element):
            return pa.list_(pa.field("element", arrow_type(element)))
        case Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct(fields):
            return pa.struct([pa.field(name, arrow_type(each)) for name, each in fields])


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([pa.field(c.name, arrow_type(as_stored(c.data_type))) for c in columns])


def in_arrow_types(table: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """The table with exactly these columns in exactly their types; columns that it lacks are NULL."""
    schema = arrow_schema(columns)
    names = {name.lower(): name for name in table.column_names}
    arrays = []
    for field in schema:
        found = names.get(field.name.lower())
        if found is None:
            arrays.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
        else:
            arrays.append(table.column(found).cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def has_arrow_types(columns: Sequence[Column]) -> bool:
    """Whether Arrow can carry these columns: not so VARIANT."""
    try:
        arrow_schema(columns)
    except KeyError:
        return False
    return True


UNREADABLE = (pa.ArrowException, ValueError, OverflowError, KeyError, TypeError)
"""What Arrow and Python raise for values and types that they do not hold as Spark does: days after the year 9999, texts
that are not UTF-8, types without a counterpart. Whoever meets it leaves the reading to Spark."""


def values_in(column: pa.ChunkedArray) -> list[Any] | None:
    """The different values of a column; None if Python cannot hold one of them.

    >>> values_in(pa.chunked_array([[1, 1, None]]))
    [1, None]
    >>> values_in(pa.chunked_array([pa.array([3_000_000], pa.date32())])) is None
    True
    """
    try:
        return list(column.unique().to_pylist())
    except UNREADABLE:
        return None


def with_one_zero(table: pa.Table) -> pa.Table:
    """The table with 0.0 for −0.0, as Spark stores it when it has grouped rows: a view has one zero.

    >>> with_one_zero(pa.table({"x": [-0.0, 1.5, None]})).column("x").to_pylist()
    [0.0, 1.5, None]
    """
    for at, column in enumerate(table.columns):
        if pa.types.is_floating(column.type):
            zeros = pa.scalar(0, column.type)
            table = table.set_column(at, table.field(at), pc.add(column, zeros))
    return table


def rows_at(table: pa.Table, positions: Sequence[int]) -> pa.Table:
    return table.take(pa.array(positions, pa.int64()))
