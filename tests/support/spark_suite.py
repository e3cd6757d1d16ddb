"""Many small views in one warehouse on Spark, kept through random changes and compared with their queries in few jobs.

Spark's answer is the definition of every query, and its failure too: where the query raises over the tables as they are, the
view may keep its last epoch with that error, and must be right again once the data is mended.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.support.published import published
from tests.support.spark_views import FRAGILE, TABLES, RandomChanges, RandomQueries
from viewkeeper import Warehouse, errors
from viewkeeper.execution import apply
from viewkeeper.execution.reports import RefreshFailedError, RefreshReport
from viewkeeper.maintenance import cost
from viewkeeper.sql.names import quote
from viewkeeper.sql.types import Array, DataType, Map, is_floating
from viewkeeper.storage.records import ViewRecord
from viewkeeper.testing.agreement import with_one_answer

_AT_ONCE = 8
"""Views compared by one query."""

_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}


@dataclass
class Tally:
    refreshes: int = 0
    failed_with_spark: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    strategies: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    """Of recomputing."""
    ours: dict[str, str] = field(default_factory=dict)
    """Reasons that are failures of ours, each with a query."""

    def __str__(self) -> str:
        shown = "\n".join(f"  {times:5} {reason}" for reason, times in self.reasons.most_common(12))
        ours = "\n".join(f"  {reason}: {query}" for reason, query in self.ours.items())
        return f"{self.refreshes} refreshes of views, {self.failed_with_spark} failed as Spark did, {dict(self.strategies)}, refused {dict(self.refused)}; recomputed:\n{shown}\nreasons of ours:\n{ours}"  # fmt: skip


@dataclass
class Suite:
    """One warehouse, from a seed. `wrong` holds what went wrong, each with a script that shows it."""

    folder: Path
    spark: Any
    seed: int
    tally: Tally
    wrong: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    queries: dict[str, str] = field(default_factory=dict)

    def run(self, views: int, rounds: int, enough: int) -> None:
        """It ends early when there have been enough refreshes of views."""
        generator = random.Random(self.seed)
        self.warehouse = Warehouse(self.folder / "warehouse", self.spark)
        self.session = self.spark.newSession()
        for setting, value in _SETTINGS.items():
            self.session.conf.set(setting, value)
        changes = RandomChanges(generator)
        self._do([*TABLES.split(";"), *changes.first()])
        texts = RandomQueries(generator)
        while len(self.queries) < views:
            self._create(f"v{len(self.queries)}", texts.query())
        for _ in range(rounds):
            if self.tally.refreshes >= enough:
                break
            self._do(changes.some())
            self._refresh()
        self._do([f"DELETE FROM {table} WHERE {FRAGILE}" for table in "mn"])
        self._refresh()

    def _do(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self.warehouse.sql(statement.strip())
            self.done.append(statement.strip())

    def _create(self, name: str, query: str) -> None:
        """A view that Spark can answer is kept; one whose query fails over the first rows is none yet."""
        try:
            self.warehouse.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
            self.queries[name] = query
        except errors.QueryFailedError:
            self.tally.refused["the query fails"] += 1
        except errors.ViewkeeperError as error:
            self._show_tables()
            why = self._fails(query)
            self.tally.refused[f"{type(error).__name__}{'' if why else ', and Spark answers it'}"] += 1
            if why is None and not any(each in error.message for each in _REFUSED_ON_PURPOSE):
                self.wrong.append(f"CREATE is refused: {error}\n{self._script(query)}")

    def _refresh(self) -> None:
        failed: dict[str, str] = {}
        try:
            report = self.warehouse.refresh()
        except RefreshFailedError as failure:
            report = failure.report
            failed = {each.name: each.error for each in report.views if each.error is not None}
        self._count(report)
        for view in report.views:
            if view.fallback is not None and view.error is None:
                self.wrong.append(f"the plan for {view.name} failed, and it was recomputed: {view.fallback}\n{self._script(self.queries[view.name])}")  # fmt: skip
        self._show_tables()
        for name, error in failed.items():
            why = self._fails(self.queries[name])
            if why is None:
                self.wrong.append(f"{name} fails, and Spark answers its query: {error}\n{self._script(self.queries[name])}")  # fmt: skip
            else:
                self.tally.failed_with_spark += 1
        for name in self._different([each for each in self.queries if each not in failed]):
            verdict = self.warehouse.verify(name)
            if not verdict.equal:
                self.wrong.append(f"{verdict}\n{self._script(self.queries[name])}")

    def _count(self, report: RefreshReport) -> None:
        self.tally.refreshes += sum(each.strategy != "none" for each in report.views)
        self.tally.strategies.update("failed" if each.error else each.strategy for each in report.views)
        recomputed = [each for each in report.views if each.strategy == "recompute" and not each.error]
        for view in recomputed:
            reason = view.reason.partition("changed; ")[2] or view.reason
            self.tally.reasons[reason] += 1
            if reason.startswith(_OURS):
                self.tally.ours.setdefault(reason, self.queries[view.name])

    def _script(self, query: str) -> str:
        first = len(TABLES.split(";")) + 2
        create = f"CREATE MATERIALIZED VIEW v AS {query}"
        lines = [*self.done[:first], create, *self.done[first:], "REFRESH ALL", "VERIFY MATERIALIZED VIEW v"]
        return f"seed {self.seed}:\n" + ";\n".join(lines)

    # ------------------------------------------------------------------------------------------------ Spark

    def _show_tables(self) -> None:
        """The tables as they are now, and the views as they were published, in memory."""
        self.session.catalog.clearCache()
        for record, held in published(self.warehouse):
            if isinstance(record, ViewRecord):
                name, frame = f"held_{record.name.name}", self.session.createDataFrame(held)
            else:  # as Spark reads them, because CHAR is not a string in all respects
                address = quote(self.warehouse._workspace.data_address(record))
                name, frame = record.name.name, self.session.sql(f"SELECT * FROM delta.{address}").cache()
            frame.createOrReplaceTempView(quote(name))

    def _fails(self, query: str) -> str | None:
        """Whether Spark itself fails to answer."""
        try:
            self.session.sql(query).collect()
        except Exception as error:
            return str(error)
        return None

    def _different(self, names: Sequence[str]) -> Iterator[str]:
        """The views whose rows do not add up to those of their queries."""
        catalogue = self.warehouse._workspace.state.read()
        records = [view for view in catalogue.users_views() if str(view.name) in names]
        for at in range(0, len(records), _AT_ONCE):
            yield from self._different_of(records[at : at + _AT_ONCE])

    def _different_of(self, records: Sequence[ViewRecord]) -> Iterator[str]:
        parts = []
        for view in records:
            held = f"SELECT * FROM {quote(f'held_{view.name.name}')}"
            for side, relation in (("held", held), ("query", with_one_answer(view.query))):
                parts.append(
                    f"SELECT '{view.name}' AS v, '{side}' AS side, {_checksum(view)} FROM ({relation})"
                )
        try:
            found = self.session.sql(" UNION ALL ".join(parts)).collect()
        except Exception:
            if len(records) > 1:
                for view in records:
                    yield from self._different_of([view])
            elif self._fails(records[0].query) is None:
                yield str(records[0].name)
            return  # Spark fails where no row that changed did: the view is not asked
        sums = {(row["v"], row["side"]): (row["n"], row["h"]) for row in found}
        yield from (str(view.name) for view in records if sums[str(view.name), "held"] != sums[str(view.name), "query"])  # fmt: skip


_OURS = ("Viewkeeper cannot plan", "Spark does not understand Viewkeeper", "Viewkeeper reads")
"""A query that is recomputed for such a reason is one that we should have read."""

_REFUSED_ON_PURPOSE = ("that Delta cannot store", "cannot store")


def _checksum(view: ViewRecord) -> str:
    """Rows counted and hashed in any order. Floating-point numbers by nine digits, maps in the order of their keys: what
    differs in that alone is looked at again by VERIFY."""
    columns = [_canonical(quote(column.name), column.data_type) for column in view.columns]
    row = f"struct({', '.join(f'{each} AS c{at}' for at, each in enumerate(columns))})"
    return f"count(*) AS n, coalesce(sum(CAST(xxhash64(to_json({row})) AS DECIMAL(38,0))), 0) AS h"


def _canonical(name: str, data_type: DataType) -> str:
    match data_type:
        case Map():
            return f"CAST(array_sort(map_entries({name})) AS STRING)"
        case Array():
            return f"CAST({name} AS STRING)"
    return f"format_string('%.8e', CAST({name} + 0 AS DOUBLE))" if is_floating(data_type) else name


def run_suite(
    spark: Any, folder: Path, seed: int, views: int, rounds: int, tally: Tally, enough: int = 10**9
) -> list[str]:
    """What goes wrong in the warehouse of a seed; in every other one views count as large and keep their groups."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        suite = Suite(Path(place), spark, seed, tally)
        if seed % 2:
            with (
                patch.object(apply, "OVERWRITE_ROWS", 0),
                patch.object(apply, "FOLDED_WHOLE_ROWS", 0),
                patch.object(apply, "MOST_SMALL_FILES", 1),
                patch.object(cost, "KEPT_SECONDS", -1.0),
            ):
                suite.run(views, rounds, enough)
        else:
            suite.run(views, rounds, enough)
        shutil.rmtree(Path(place) / "warehouse", ignore_errors=True)
    return suite.wrong
