"""The catalogue and the journal through Spark, for storage that only Spark can reach.

The same tables as `delta_store` writes, at the price of Spark jobs. A swap is serialised by a Delta transaction:
the number of the swap is its version, so of two writers with the same number only one takes effect; a token in
the head row tells the writer whether it was the one.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from viewkeeper.errors import NotAWarehouseError
from viewkeeper.sql.rendering import column, delta_table, literal, render, select_all
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.catalogue_rows import Row, from_rows, to_rows
from viewkeeper.storage.layout import Layout
from viewkeeper.storage.records import HistoryEntry

_APPLICATION = "viewkeeper/catalogue"
_SWAP = "swap"
"""The kind of the row that carries the number of the last swap and the token of its writer."""


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
        token = uuid.uuid4().hex
        rows = [*to_rows(catalogue), Row(_SWAP, str(number), token)]
        writer = _frame(self._session(), rows, "kind STRING, key STRING, body STRING").write
        try:
            (
                writer.format("delta")
                .mode("overwrite")
                .option("txnAppId", _APPLICATION)
                .option("txnVersion", str(number))
                .save(self._layout.catalogue)
            )
        except Exception as error:
            if "oncurrent" not in f"{type(error).__name__} {error}":
                raise
        return any(row["kind"] == _SWAP and row["body"] == token for row in self._rows())

    def _rows(self) -> list[Any]:
        found = self._session().sql(render(select_all(delta_table(self._layout.catalogue))))
        return list(found.select("kind", "key", "body").collect())

    def append_history(self, entries: Iterable[HistoryEntry]) -> None:
        rows = [(entry.epoch, entry.view_id, json.dumps(entry.to_json())) for entry in entries]
        frame = _frame(self._session(), rows, "epoch BIGINT, view_id STRING, body STRING")
        frame.write.format("delta").mode("append").save(self._layout.journal)

    def fold(self) -> None:
        journal = delta_table(self._layout.journal).sql(dialect="spark")
        self._session().sql(f"OPTIMIZE {journal}").collect()

    def archived_history(self, view_id: str | None = None, last: int | None = None) -> list[HistoryEntry]:
        session = self._session()
        if not table_exists(session, self._layout.journal):
            return []
        query = select_all(delta_table(self._layout.journal))
        if view_id is not None:
            query = query.where(column("view_id").eq(literal(view_id)))
        found = session.sql(render(query)).select("epoch", "body").collect()
        bodies = [row["body"] for row in sorted(found, key=lambda row: row["epoch"])]
        return [
            HistoryEntry.from_json(json.loads(body)) for body in (bodies if last is None else bodies[-last:])
        ]


def _frame(session: Any, rows: list[Any], schema: str) -> Any:
    return session.createDataFrame([tuple(row) for row in rows], schema).coalesce(1)


def table_exists(session: Any, address: str) -> bool:
    """Whether there is a Delta table; anything but its absence is raised."""
    try:
        session.sql(render(select_all(delta_table(address)))).schema  # noqa: B018  analysing is the question
    except Exception as error:
        text = f"{type(error).__name__} {error}"
        if any(
            sign in text for sign in ("NOT_FOUND", "doesn't exist", "is not a Delta table", "MISSING_DELTA")
        ):
            return False
        raise
    return True
