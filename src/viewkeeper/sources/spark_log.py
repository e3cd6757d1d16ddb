"""The logs of Delta tables through Spark, for storage that only Spark can reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from viewkeeper.generated_names import CHANGE_EPOCH, CHANGE_KIND, INSERTED
from viewkeeper.sources.table_log import Commit, TableShape, columns_of_schema
from viewkeeper.sql.rendering import column, delta_table, literal, render, select_all


class SparkLog:
    """`session` gives a Spark session when one is needed."""

    def __init__(self, session: Callable[[], Any]) -> None:
        self._session = session

    def exists(self, address: str) -> bool:
        try:
            self._history(address, 1)
        except Exception as error:
            if "NOT_FOUND" in str(error) or "MISSING_DELTA" in str(error) or "is not a Delta" in str(error):
                return False
            raise
        return True

    def row_count(self, address: str) -> int:
        return int(self._session().sql(render(select_all(delta_table(address)))).count())

    def version(self, address: str) -> int:
        return int(self._history(address, 1)[0]["version"])

    def shape(self, address: str) -> TableShape:
        table = delta_table(address)
        schema = self._session().sql(render(select_all(table))).schema.json()
        detail = self._session().sql(f"DESCRIBE DETAIL {table.sql(dialect='spark')}").collect()[0]
        feed = (detail["properties"] or {}).get("delta.enableChangeDataFeed", "false")
        return TableShape(columns_of_schema(schema), feed == "true")

    def commits_after(self, address: str, version: int) -> Sequence[Commit]:
        missing = self.version(address) - version
        if missing <= 0:
            return []
        commits = [
            Commit.of(row["version"], row["operation"], row["userMetadata"])
            for row in self._history(address, missing)
        ]
        return sorted((c for c in commits if c.version > version), key=lambda commit: commit.version)

    def change_set_size(self, address: str, epoch: int) -> tuple[int, int] | None:
        if not self.exists(address):
            return None
        written = [
            Commit.of(r["version"], r["operation"], r["userMetadata"]) for r in self._history(address, 20)
        ]
        if not any(commit.epoch == epoch for commit in written):
            return None
        mine = select_all(delta_table(address)).where(column(CHANGE_EPOCH).eq(literal(epoch)))
        counts = self._session().sql(render(mine)).groupBy(CHANGE_KIND).count().collect()
        by_kind = {row[CHANGE_KIND]: int(row["count"]) for row in counts}
        inserted = by_kind.pop(INSERTED, 0)
        return inserted, sum(by_kind.values())

    def _history(self, address: str, limit: int) -> list[Any]:
        table = delta_table(address).sql(dialect="spark")
        return list(self._session().sql(f"DESCRIBE HISTORY {table} LIMIT {limit:d}").collect())
