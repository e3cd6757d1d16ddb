"""The logs of Delta tables through Spark, for storage that only Spark can reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from viewkeeper.errors import UnknownNameError
from viewkeeper.generated_names import CHANGE_EPOCH, CHANGE_KIND, INSERTED
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sources.table_log import Commit, TableShape, columns_of_schema
from viewkeeper.sql.binding import Column
from viewkeeper.sql.rendering import column, delta_table, literal, render, select_all


class SparkLog:
    """`session` gives a Spark session when one is needed."""

    def __init__(self, session: Callable[[], Any]) -> None:
        self._session = session

    def exists(self, address: str) -> bool:
        return table_exists(self._session(), address)

    def row_count(self, address: str) -> int:
        with spark_failures(f"the Delta table at {address} was counted"):
            return int(self._session().sql(render(select_all(delta_table(address)))).count())

    def version(self, address: str) -> int:
        return int(self._history(address, 1)[0]["version"])

    def shape(self, address: str, version: int | None = None) -> TableShape:
        """Spark shows no physical names, so a column that took the name of another one is known by the commits."""
        table = delta_table(address)
        with spark_failures(f"the Delta table at {address} was looked at"):
            schema = self._session().sql(render(select_all(delta_table(address, version)))).schema.json()
            detail = self._session().sql(f"DESCRIBE DETAIL {table.sql(dialect='spark')}").collect()[0]
        feed = (detail["properties"] or {}).get("delta.enableChangeDataFeed", "false")
        newest = self.version(address) if version is None else version
        return TableShape(columns_of_schema(schema), feed == "true", str(detail["id"]), newest)

    def commits_after(self, address: str, version: int) -> Sequence[Commit]:
        missing = self.version(address) - version
        if missing <= 0:
            return []
        commits = [
            Commit.of(row["version"], row["operation"], row["userMetadata"])
            for row in self._history(address, missing)
        ]
        return sorted((c for c in commits if c.version > version), key=lambda commit: commit.version)

    def data_files(self, address: str, version: int, columns: Sequence[Column]) -> None:
        return None

    def estimated_feed_rows(self, address: str, consumed: int, version: int) -> None:
        return None

    def read_feed(self, address: str, consumed: int, version: int, columns: Sequence[Column]) -> None:
        return None

    def read_change_sets(self, address: str, epochs: Sequence[int]) -> None:
        return None

    def change_set_size(self, address: str, epoch: int) -> tuple[int, int] | None:
        if not self.exists(address):
            return None
        written = [
            Commit.of(r["version"], r["operation"], r["userMetadata"]) for r in self._history(address, 20)
        ]
        if not any(commit.epoch == epoch for commit in written):
            return None
        mine = select_all(delta_table(address)).where(column(CHANGE_EPOCH).eq(literal(epoch)))
        with spark_failures(f"the change sets at {address} were read"):
            counts = self._session().sql(render(mine)).groupBy(CHANGE_KIND).count().collect()
        by_kind = {row[CHANGE_KIND]: int(row["count"]) for row in counts}
        inserted = by_kind.pop(INSERTED, 0)
        return inserted, sum(by_kind.values())

    def _history(self, address: str, limit: int) -> list[Any]:
        table = delta_table(address).sql(dialect="spark")
        with spark_failures(f"the log of {address} was read"):
            return list(self._session().sql(f"DESCRIBE HISTORY {table} LIMIT {limit:d}").collect())


def table_exists(session: Any, address: str) -> bool:
    """Whether there is a Delta table; anything but its absence is an error."""
    try:
        with spark_failures(f"the Delta table at {address} was looked for"):
            session.sql(render(select_all(delta_table(address)))).schema  # noqa: B018  analysing is the question
    except UnknownNameError:
        return False
    return True
