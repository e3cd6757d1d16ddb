"""Rows that lie in the driver, as relations of a session; rows of data files with their places there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from viewkeeper.generated_names import FILE, POSITION
from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import quote

FEW_ROWS = 10_000
"""So many rows are not worth a second task. In one partition they are where any group or join wants them, so Spark plans no
exchange: a step with three joins and a group over a thousand rows runs as one job and takes two thirds of the time."""


def local_relation(session: Any, rows: pa.Table, schema: Any) -> Any:
    frame = session.createDataFrame(rows, schema=schema)
    return frame.coalesce(1) if 0 < rows.num_rows <= FEW_ROWS else frame


def with_places(files: Any, columns: Sequence[Column]) -> Any:
    """Rows of data files with these columns, and with their file and position. A column of the table may be called _metadata
    as well: Spark is asked for its own one."""
    metadata = files.metadataColumn("_metadata")
    return files.select(
        *(files[quote(each.name)] for each in columns),
        metadata["file_path"].alias(FILE),
        metadata["row_index"].alias(POSITION),
    )
