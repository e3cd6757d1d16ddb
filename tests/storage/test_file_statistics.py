"""Statistics of our own data files: what has no place in them is left out, and nothing fails."""

from __future__ import annotations

import json

import pyarrow as pa

from viewkeeper.storage.file_statistics import statistics


def test_values_that_python_does_not_have_get_no_bounds() -> None:
    table = pa.table(
        {
            "n": [1, 2],
            "day": pa.array([3_000_000, 0], pa.date32()),
            "early": pa.array([-800_000, 0], pa.date32()),
            "last": pa.array([253_402_300_799_999_999, 0], pa.timestamp("us", tz="UTC")),
            "text": pa.array([b"\xff", b"a"]).cast(pa.string(), safe=False),
        }
    )
    found = json.loads(statistics(table))
    assert found["minValues"] == {"n": 1} and found["maxValues"] == {"n": 2}
    assert set(found["nullCount"]) == set(table.column_names)
