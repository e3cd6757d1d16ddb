"""Rows that lie in the driver, as relations of a session."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

FEW_ROWS = 10_000
"""So many rows are not worth a second task. In one partition they are where any group or join wants them, so Spark plans no
exchange: a step with three joins and a group over a thousand rows runs as one job and takes two thirds of the time."""


def local_relation(session: Any, rows: pa.Table, schema: Any) -> Any:
    frame = session.createDataFrame(rows, schema=schema)
    return frame.coalesce(1) if 0 < rows.num_rows <= FEW_ROWS else frame
