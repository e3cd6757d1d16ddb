"""What a warehouse shows, without Spark: the rows of its tables and published views as delta-rs reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from viewkeeper import Warehouse
from viewkeeper.storage.records import TableRecord, ViewRecord


def published(warehouse: Warehouse) -> Iterator[tuple[TableRecord | ViewRecord, pa.Table]]:
    """Tables as they are now, then views as they were published, each after what it reads."""
    workspace = warehouse._workspace
    catalogue = workspace.state.read()
    for record in [*catalogue.tables.values(), *catalogue.views_below(catalogue.views)]:
        shown = catalogue.published.get(record.id)
        query = QueryBuilder().register(
            "t", DeltaTable(workspace.data_address(record), version=shown and shown.version)
        )
        columns = ", ".join(f'"{column.name}"' for column in record.columns)
        yield record, _without_views(pa.table(query.execute(f"SELECT {columns} FROM t")))


def _without_views(table: pa.Table) -> pa.Table:
    """Strings of the kind that every reader takes."""
    plain = pa.schema([field.with_type(_plain(field.type)) for field in table.schema])
    return table.cast(plain) if table.num_rows else plain.empty_table()


def _plain(data_type: pa.DataType) -> pa.DataType:
    match data_type:
        case pa.MapType():
            return pa.map_(_plain(data_type.key_type), _plain(data_type.item_type))
        case pa.ListType():
            return pa.list_(_plain(data_type.value_type))
        case pa.StructType():
            return pa.struct([field.with_type(_plain(field.type)) for field in data_type])
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(data_type, data_type)


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
