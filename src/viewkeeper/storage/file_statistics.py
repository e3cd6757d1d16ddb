"""The statistics of a data file as the Delta log keeps them, so that readers can skip it."""

from __future__ import annotations

import json
import math
import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_INDEXED_COLUMNS = 32
_LONGEST_TEXT = 32
_TIGHT = re.compile(r'("tightBounds"\s*:\s*)true')


def statistics(table: pa.Table) -> str:
    """
    >>> statistics(pa.table({"a": [1, None, 3]}))
    '{"numRecords": 3, "minValues": {"a": 1}, "maxValues": {"a": 3}, "nullCount": {"a": 1}, "tightBounds": true}'
    """
    lowest: dict[str, str] = {}
    highest: dict[str, str] = {}
    nulls: dict[str, str] = {}
    for name in table.column_names[:_INDEXED_COLUMNS]:
        values = table.column(name)
        if pa.types.is_nested(values.type):
            continue
        nulls[name] = str(values.null_count)
        bounds = _bounds(values)
        if bounds is not None:
            lowest[name], highest[name] = bounds
    return (
        f'{{"numRecords": {table.num_rows}, "minValues": {_object(lowest)}, "maxValues": {_object(highest)}, '
        f'"nullCount": {_object(nulls)}, "tightBounds": true}}'
    )


def no_longer_tight(stats: str) -> str:
    """The statistics of a file of which rows are gone: the bounds still hold, but need not be reached.

    >>> no_longer_tight('{"numRecords":1,"tightBounds":true}')
    '{"numRecords":1,"tightBounds":false}'
    >>> no_longer_tight('{"numRecords":1}')
    '{"numRecords":1,"tightBounds":false}'
    """
    if '"tightBounds"' not in stats:
        return f'{stats.rstrip()[:-1]},"tightBounds":false}}'
    return _TIGHT.sub(r"\1false", stats)


def _object(parts: dict[str, str]) -> str:
    """JSON of values that are JSON already: decimals keep all their digits."""
    return "{" + ", ".join(f"{json.dumps(name)}: {text}" for name, text in parts.items()) + "}"


def _bounds(values: pa.ChunkedArray) -> tuple[str, str] | None:
    kind = values.type
    if values.null_count == len(values) or pa.types.is_boolean(kind) or pa.types.is_binary(kind):
        return None
    try:
        found = pc.min_max(values).as_py()
    except (ValueError, OverflowError):  # days that Python does not have, texts that are not UTF-8: no bounds
        return None
    low, high = found["min"], found["max"]
    if isinstance(low, float) and (not math.isfinite(low) or not math.isfinite(high) or _has_nan(values)):
        return None
    if isinstance(low, str) and max(len(low), len(high)) > _LONGEST_TEXT:
        return None
    try:
        return _in_log(low, up=False), _in_log(high, up=True)
    except OverflowError:  # the last moment of the year 9999 is not rounded up
        return None


def _has_nan(values: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.is_nan(values)).as_py())


def _in_log(value: Any, up: bool) -> str:
    """A bound as JSON; timestamps have milliseconds there, so the upper one is rounded up."""
    match value:
        case datetime():
            surplus = value.microsecond % 1000
            rounded = value - timedelta(microseconds=surplus)
            if up and surplus:
                rounded += timedelta(milliseconds=1)
            text = rounded.isoformat(timespec="milliseconds")
            return json.dumps(text.replace("+00:00", "Z"))
        case date():
            return json.dumps(value.isoformat())
        case Decimal():
            return f"{value:f}"
        case _:
            return json.dumps(value)
