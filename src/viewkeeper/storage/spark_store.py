"""The catalogue and the journal through Spark, for storage that only Spark can reach.

The same tables as `delta_store` writes, at the price of Spark jobs. A swap is serialised by a Delta transaction:
the number of the swap is its version, so of two writers with the same number only one takes effect; a token in
its commit tells the writer whether it was the one.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from viewkeeper.errors import NotAWarehouseError, UserError
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sources.spark_log import table_exists
from viewkeeper.sql.rendering import column, delta_table, literal, render, select_all
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.catalogue_rows import Row, from_rows, to_rows
from viewkeeper.storage.layout import Layout
from viewkeeper.storage.records import HistoryEntry

_APPLICATION = "viewkeeper/catalogue"
_SWAP = "swap"
"""The kind of the row that carries the number of the last swap."""


class SparkStore:
    """`session` gives a Spark session when one is needed."""

    def __init__(self, layout: Layout, session: Callable[[], Any]) -> None:
        self._layout = layout
        self._session = session

    def exists(self) -> bool:
        return table_exists(self._session(), self._layout.catalogue)

    def create(self, catalogue: Catalogue) -> None:
        self._write(catalogue, 0)

    def read(self) -> tuple[Catalogue, int]:
        if not self.exists():
            raise NotAWarehouseError(
                f"{self._layout.root} is no Viewkeeper warehouse.",
                "check the path, or create a warehouse with viewkeeper init.",
            )
        rows = [Row(*row) for row in self._rows()]
        swaps = [row for row in rows if row.kind == _SWAP]
        return from_rows(row for row in rows if row.kind != _SWAP), int(swaps[0].key) if swaps else 0

    def swap(self, catalogue: Catalogue, expected_version: int) -> bool:
        return self._write(catalogue, expected_version + 1)

    def _write(self, catalogue: Catalogue, number: int) -> bool:
        """Write under the number of the swap; whether ours took effect, the log tells by our token."""
        token = uuid.uuid4().hex
        rows = [*to_rows(catalogue), Row(_SWAP, str(number), "")]
        session = self._session()
        try:
            with spark_failures("the catalogue of the warehouse was written"):
                (
                    _frame(session, rows, "kind STRING, key STRING, body STRING")
                    .write.format("delta")
                    .mode("overwrite")
                    .option("txnAppId", _APPLICATION)
                    .option("txnVersion", str(number))
                    .option("userMetadata", token)
                    .save(self._layout.catalogue)
                )
        except UserError as error:
            if "oncurrent" not in str(error.__cause__):
                raise
        table = delta_table(self._layout.catalogue).sql(dialect="spark")
        with spark_failures("the catalogue of the warehouse was written"):
            log = session.sql(f"DESCRIBE HISTORY {table} LIMIT 100").collect()
        return any(commit["userMetadata"] == token for commit in log)

    def _rows(self) -> list[Any]:
        with spark_failures("the catalogue of the warehouse was read"):
            found = self._session().sql(render(select_all(delta_table(self._layout.catalogue))))
            return list(found.select("kind", "key", "body").collect())

    def append_history(self, entries: Iterable[HistoryEntry]) -> None:
        rows = [(entry.epoch, entry.view_id, json.dumps(entry.to_json())) for entry in entries]
        with spark_failures("the journal of the warehouse was written"):
            frame = _frame(self._session(), rows, "epoch BIGINT, view_id STRING, body STRING")
            frame.write.format("delta").mode("append").save(self._layout.journal)

    def fold(self) -> None:
        journal = delta_table(self._layout.journal).sql(dialect="spark")
        with spark_failures("the journal of the warehouse was folded"):
            self._session().sql(f"OPTIMIZE {journal}").collect()

    def archived_history(self, view_id: str | None = None, last: int | None = None) -> list[HistoryEntry]:
        session = self._session()
        if not table_exists(session, self._layout.journal):
            return []
        query = select_all(delta_table(self._layout.journal))
        if view_id is not None:
            query = query.where(column("view_id").eq(literal(view_id)))
        with spark_failures("the journal of the warehouse was read"):
            found = session.sql(render(query)).select("epoch", "body").collect()
        bodies = [row["body"] for row in sorted(found, key=lambda row: row["epoch"])]
        return [
            HistoryEntry.from_json(json.loads(body)) for body in (bodies if last is None else bodies[-last:])
        ]


def _frame(session: Any, rows: list[Any], schema: str) -> Any:
    return session.createDataFrame([tuple(row) for row in rows], schema).coalesce(1)
