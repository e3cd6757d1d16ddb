"""Attached tables of every odd kind: whatever another process writes into them, the views are what Spark answers.

A third of the tables lies in one warehouse each, and every round of changes is one refresh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from viewkeeper import Warehouse

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Odd:
    """A table with a column id, what is odd about it, and one value of each odd column for each of its rows."""

    columns: str
    rows: tuple[str, ...]
    clause: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    shown: str = "id, v"
    grouped: str = "v"
    inserted: str = "id, v"
    merges: bool = True
    settings: dict[str, str] = field(default_factory=dict)

    def statements(self, table: str) -> list[list[str]]:
        """Rounds of changes: rows come, are updated, deleted, merged."""
        again = (
            f"INSERT INTO {table} ({self.inserted}) SELECT id + 10, {self._rest} FROM {table} WHERE id < 5"
        )
        merge = (
            f"MERGE INTO {table} AS t USING (SELECT * FROM {table} WHERE id IN (1, 2, 11)) AS s ON t.id = s.id "
            f"WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET id = s.id + 100"
        )
        changed = merge if self.merges else f"UPDATE {table} SET id = id + 100 WHERE id = 11"
        return [
            [again, f"UPDATE {table} SET id = id + 20 WHERE id IN (2, 12)"],
            [changed, f"DELETE FROM {table} WHERE id IN (3, 13, 4, 22, 32)"],
        ]

    @property
    def _rest(self) -> str:
        return self.inserted.removeprefix("id, ")


TEXTS = ("''", "NULL", "'a/b:c%d e'", "'größe 日本'", "'x=y#?\\\"'")
MOMENTS = (
    "TIMESTAMP '9999-12-31 23:59:59.999999'", "NULL", "TIMESTAMP '0001-01-01 00:00:00'",
    "TIMESTAMP '1582-10-04 12:00:00'", "TIMESTAMP '1900-01-01 00:00:00.000001'",
)  # fmt: skip
DAYS = (
    "date_add(DATE '9999-12-31', 400)", "NULL", "DATE '0001-01-01'", "DATE '1582-10-04'",
    "date_add(DATE '0001-01-01', -400)",
)  # fmt: skip
NUMBERS = ("1", "NULL", "2", "2", "3")
FLOATS = ("double('NaN'), 0", "NULL, NULL", "-0.0D, -0.0F", "double('-Infinity'), 1", "1e308, float('NaN')")
NARROW = ("'0." + "1" * 38 + "'", "NULL", "'0'", "'-0." + "9" * 38 + "'", "'0'")
WIDE = ("9" * 38, "NULL", "0", "-" + "9" * 38, "0")
LONG = ("repeat('x', 100000)", "NULL", "repeat('ü', 50000)", "'a'", "''")


def together(*columns: Sequence[str]) -> tuple[str, ...]:
    """The values of several columns, row by row."""
    return tuple(", ".join(row) for row in zip(*columns, strict=True))


def odd_columns(definition: str, *columns: Sequence[str], **others: Any) -> Odd:
    names = ", ".join(each.split()[0] for each in definition.split(", "))
    first = names.split(", ")[0]
    return Odd(
        definition,
        together(*columns),
        **{"shown": f"id, {names}", "inserted": f"id, {names}", "grouped": first, **others},
    )


ODD = {
    "moments": odd_columns(
        "v TIMESTAMP, n TIMESTAMP_NTZ, far TIMESTAMP",
        MOMENTS,
        [each.replace("TIMESTAMP", "TIMESTAMP_NTZ") for each in MOMENTS],
        ["timestamp_micros(253402300800000000)", *MOMENTS[1:]],
    ),
    "days": odd_columns("v DATE, t STRING", DAYS, LONG),
    "numbers": odd_columns(
        "v DOUBLE, w FLOAT, narrow DECIMAL(38,38), wide DECIMAL(38,0)",
        FLOATS, [f"CAST({each} AS DECIMAL(38,38))" for each in NARROW], WIDE,
    ),
    "int96": Odd("v TIMESTAMP", MOMENTS, settings={"spark.sql.parquet.outputTimestampType": "INT96"}),
    "not_utf8": Odd("v STRING", ("CAST(X'FF61' AS STRING)", "NULL", "CAST(X'C328' AS STRING)", "'a'", "''")),
    "names": Odd(
        "_commit_hash INT, `_file` STRING, _metadata STRING, `a b` INT, _change_kind INT, file_path STRING",
        tuple(f"{number}, 'f', 'm', 1, {number}, 'p'" for number in NUMBERS),
        shown="id, _commit_hash, _file, _metadata, `a b`, _change_kind, file_path", grouped="_commit_hash, _file",
        inserted="id, _commit_hash, _file, _metadata, `a b`, _change_kind, file_path",
        properties={"delta.columnMapping.mode": "name"},
    ),
    "plain_names": odd_columns("_commit_hash INT, _metadata STRING, _row_index INT", NUMBERS, TEXTS, NUMBERS),
    "by_text": Odd(
        "v STRING", TEXTS, clause="PARTITIONED BY (v)", properties={"delta.enableDeletionVectors": "true"}
    ),
    "by_moment": odd_columns("v TIMESTAMP, d DATE", MOMENTS, DAYS[:4] + DAYS[:1], clause="PARTITIONED BY (v, d)"),
    "by_two": odd_columns(
        "v DOUBLE, w BOOLEAN", ("1.5", "NULL", "-2.5", "1.5", "1e10"), ("true", "NULL", "false", "NULL", "true"),
        grouped="w", clause="PARTITIONED BY (v, w)",
    ),
    "mapped_by_id": odd_columns(
        "v INT, p STRING", NUMBERS, TEXTS, clause="PARTITIONED BY (p)", properties={"delta.columnMapping.mode": "id"}
    ),
    "modern": Odd(
        "v INT", NUMBERS,
        properties={
            "delta.enableRowTracking": "true", "delta.enableTypeWidening": "true", "delta.checkpointPolicy": "v2",
            "delta.enableInCommitTimestamps": "true", "delta.enableDeletionVectors": "true",
        },
    ),
    "clustered": Odd("v INT", NUMBERS, clause="CLUSTER BY (v)"),
    "generated": Odd(
        "v INT, g INT GENERATED ALWAYS AS (v + 1), d STRING DEFAULT 'x'", NUMBERS, shown="id, v, g, d", grouped="g",
        properties={"delta.feature.allowColumnDefaults": "supported", "delta.constraints.c": "id > 0"},
    ),
    "padded": odd_columns(
        "v CHAR(5), w VARCHAR(9)", ("'a'", "NULL", "''", "'abc  '", "'a'"), ("'b '", "NULL", "''", "'x'", "'b'"), merges=False
    ),
    "variants": Odd(
        "v VARIANT",
        ("parse_json('{\"a\": [1, null]}')", "NULL", "parse_json('1')", "parse_json('null')", "parse_json('1')"),
        grouped="to_json(v)",
    ),
    "nested": Odd(
        "v STRUCT<a: ARRAY<DATE>, m: MAP<STRING, TIMESTAMP>, d: DOUBLE>",
        tuple(
            f"named_struct('a', array({day}), 'm', map('k', {moment}), 'd', -0.0D)"
            for day, moment in zip(DAYS, MOMENTS, strict=True)
        ),
        grouped="id % 2",
    ),
}  # fmt: skip


def make(spark: Any, address: Path, odd: Odd) -> None:
    properties = {"delta.enableChangeDataFeed": "true", **odd.properties}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql(
        f"CREATE TABLE delta.`{address}` (id INT, {odd.columns}) USING delta {odd.clause} TBLPROPERTIES ({listed})"
    )
    rows = " UNION ALL ".join(f"SELECT {at} AS id, {row}" for at, row in enumerate(odd.rows, 1))
    spark.sql(f"INSERT INTO delta.`{address}` ({odd.inserted}) {rows}")


def views(odd: Odd, table: str) -> dict[str, str]:
    return {
        "joined": f"SELECT {odd.shown}, label FROM {table} JOIN label ON label.number = {table}.id % 3",
        "grouped": f"SELECT {odd.grouped} AS g, count(*) AS n, sum(id) AS total FROM {table} GROUP BY {odd.grouped}"
        if "," not in odd.grouped
        else f"SELECT {odd.grouped}, count(*) AS n FROM {table} GROUP BY {odd.grouped}",
    }


def differences(spark: Any, warehouse: Warehouse, view: str, query: str) -> list[str]:
    """Rows that only one of the two has, as texts that tell NaN from numbers and 0.0 from −0.0 where Spark does."""
    truth = spark.sql(query).selectExpr("to_json(struct(*)) AS row")
    held = warehouse.sql(f"SELECT * FROM {view}").selectExpr("to_json(struct(*)) AS row")
    normal = "regexp_replace(row, '-0[.]0\\\\b', '0.0') AS row"
    truth, held = truth.selectExpr(normal), held.selectExpr(normal)
    wrong = (
        truth.exceptAll(held)
        .selectExpr("'missing' AS what", "row")
        .unionAll(held.exceptAll(truth).selectExpr("'unexpected' AS what", "row"))
    )
    return [f"{row['what']} {row['row'][:300]}" for row in wrong.limit(5).collect()]


@pytest.mark.parametrize("third", range(3))
def test_views_over_odd_tables_are_what_spark_answers(spark: Any, tmp_path: Path, third: int) -> None:
    chosen = {name: odd for at, (name, odd) in enumerate(ODD.items()) if at % 3 == third}
    warehouse = Warehouse(tmp_path / "warehouse", spark)
    warehouse.run_script(
        "CREATE TABLE label (number INT, label STRING); INSERT INTO label VALUES (0, 'zero'), (1, 'one'), (2, 'two')"
    )
    writer = spark.newSession()
    problems: dict[str, Any] = {}
    queries: dict[str, str] = {}
    for name, odd in chosen.items():
        address = tmp_path / name
        for key, value in odd.settings.items():
            writer.conf.set(key, value)
        make(writer, address, odd)
        for key in odd.settings:
            writer.conf.unset(key)
        warehouse.sql(f"ATTACH TABLE {name} FROM DELTA '{address}'")
        for kind, query in views(odd, name).items():
            warehouse.sql(f"CREATE MATERIALIZED VIEW {name}_{kind} REFRESH INCREMENTAL AS {query}")
            label = warehouse._workspace.data_address(
                next(t for t in warehouse._workspace.state.read().tables.values() if t.name.name == "label")
            )
            queries[f"{name}_{kind}"] = query.replace(
                f"FROM {name}", f"FROM delta.`{address}` AS {name}"
            ).replace("JOIN label", f"JOIN delta.`{label}` AS label")
    for number in range(2):
        for name, odd in chosen.items():
            for statement in odd.statements(f"delta.`{tmp_path / name}`")[number]:
                writer.sql(statement).collect()
        warehouse.refresh()
        for view, query in queries.items():
            found = differences(writer, warehouse, view, query)
            if found:
                problems[f"{view}, round {number}"] = found
    assert problems == {}
