"""A history: random steps at one warehouse, with everything that must hold looked at after each of them.

A seed makes the same history again; `replayed` runs the steps of one that went wrong, `shrunk` leaves out what it does not take.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.histories.invariants import Reader, broken, stale, wrong_changes
from tests.histories.steps import FEATURES, FIRST_VIEWS, SCHEMA, By, RandomSteps, Step
from viewkeeper import Warehouse, errors
from viewkeeper.execution import apply, epochs
from viewkeeper.execution.progress import Event
from viewkeeper.execution.queries import DifferentVersionsWarning
from viewkeeper.execution.reports import RefreshFailedError, RefreshReport
from viewkeeper.maintenance import cost
from viewkeeper.sql.names import quote


class HistoryFailed(AssertionError):
    """Something does not hold; `steps` are what led there."""

    def __init__(self, what: str, seed: int, steps: Sequence[Step]) -> None:
        script = "\n".join(map(str, steps))
        super().__init__(f"{what}\nseed {seed}, after {len(steps)} steps:\n{script}")
        self.seed = seed
        self.steps = tuple(steps)


class _Killed(BaseException):
    """Stands for a SIGKILL: nobody catches it, and nothing is tidied up."""


@dataclass(frozen=True)
class Templates:
    """Warehouses as histories find them, made once and copied: there is one for each set of first views."""

    folder: Path
    spark: Any

    def copied(self, seed: int, to: Path) -> Warehouse:
        """Every third one keeps groups in hidden views; a table is attached, with a feature of Delta."""
        number, feature = seed % len(FIRST_VIEWS), seed % len(FEATURES)
        made = self.folder / f"warehouse{number}"
        if not made.exists():
            warehouse = Warehouse(made, self.spark)
            warehouse.run_script(SCHEMA)
            with patch.object(cost, "KEPT_SECONDS", -1.0 if number == 2 else cost.KEPT_SECONDS):
                for at, query in enumerate(FIRST_VIEWS[number]):
                    warehouse.sql(f"CREATE MATERIALIZED VIEW v{at} AS {query}")
        attached = self.folder / f"attached{feature}"
        if not attached.exists():
            table = f"delta.{quote(str(attached))}"
            self.spark.sql(f"CREATE TABLE {table} (k INT, a INT, b STRING) USING delta {FEATURES[feature]}")
            self.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
            self.spark.sql(
                f"INSERT INTO {table} VALUES (1, 1, 'x'), (1, 1, 'x'), (NULL, 3, NULL), (2, 7, 'y')"
            )
        shutil.copytree(made, to / "warehouse")
        shutil.copytree(attached, to / "attached")
        warehouse = Warehouse(to / "warehouse", self.spark)
        warehouse.sql(f"ATTACH TABLE x FROM DELTA '{to / 'attached'}'")
        return warehouse


@dataclass
class History:
    warehouse: Warehouse
    spark: Any
    seed: int
    done: list[Step] = field(default_factory=list)
    strategies: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._reader = Reader(self.warehouse, self.spark)

    def run(self, length: int) -> None:
        generator = random.Random(self.seed)
        make = RandomSteps(generator, self.warehouse)
        while len(self.done) < length:
            for step in make.next():
                self.step(step)
        self.end()

    def step(self, step: Step) -> None:
        self.done.append(step)
        try:
            is_whole = self._carried_out(step)
        except errors.ViewkeeperError as error:
            raise self._failed(f"{type(error).__name__}: {error}") from error
        self._look(is_whole)

    def end(self) -> None:
        """Whatever happened, one refresh of all brings everything up to date; VERIFY and CHANGES say so too."""
        for name in self.warehouse.view_names():
            self.step(Step(f"RESTORE MATERIALIZED VIEW {name}"))
        self.step(Step("REFRESH ALL"))
        if self.warehouse.unfinished().rows:
            raise self._failed("a claim is left after a refresh of all views")
        catalogue = self.warehouse._workspace.state.read()
        for view in catalogue.users_views():
            verdict = self.warehouse.verify(str(view.name))
            if not verdict.equal:
                raise self._failed(f"VERIFY: {verdict}")
            for wrong in wrong_changes(self.warehouse, catalogue, view):
                raise self._failed(wrong)

    def _look(self, is_whole: bool) -> None:
        for wrong in broken(self._reader):
            raise self._failed(wrong)
        if is_whole:
            for wrong in stale(self._reader):
                raise self._failed(wrong)

    def _failed(self, what: str) -> HistoryFailed:
        return HistoryFailed(what, self.seed, self.done)

    def _carried_out(self, step: Step) -> bool:
        """Whether all views are up to date after the step."""
        if step.by is By.ANOTHER_WRITER:
            self._written(step.text)
            return False
        with _killing(step) as listener:
            warehouse = self.warehouse
            if step.by is By.ANOTHER_PROCESS or step.killed_at is not None:
                warehouse = Warehouse(self.warehouse.path, self.spark, on_progress=listener)
            try:
                report = warehouse.sql(step.text)
            except RefreshFailedError as failure:
                if not _only_foreign_commits(failure.report):
                    raise
                return False
            except errors.UserError as error:
                if step.text.startswith("REFRESH"):
                    raise
                self.refused[type(error).__name__] += 1
                return False
            except _Killed:
                return False
        if isinstance(report, RefreshReport):
            for view in report.views:
                if view.fallback is not None:
                    raise self._failed(
                        f"the plan for {view.name} failed, and it was recomputed: {view.fallback}"
                    )
            self.strategies.update(each.strategy for each in report.views)
        return step.text.startswith("REFRESH ALL")

    def _written(self, text: str) -> None:
        catalogue = self.warehouse._workspace.state.read()
        address = self.warehouse._workspace.data_address
        tables = {str(each.name): f"delta.{quote(address(each))}" for each in catalogue.objects()}
        try:
            self.spark.sql(text.format_map(tables)).collect()
        except KeyError:
            return  # the step that made the table was left out
        except Exception as error:  # a NULL where none may be, an old version that is not there
            self.refused[type(error).__name__] += 1


def _only_foreign_commits(report: RefreshReport) -> bool:
    causes = [each.error for each in report.views if each.error is not None]
    return all("somebody else changed" in each or "could not be refreshed" in each for each in causes)


@contextmanager
def _killing(step: Step) -> Iterator[Callable[[Event], None]]:
    """A listener that kills at the step's moment. What a living process would do on its way out is not done."""
    seen = 0

    def listener(event: Event) -> None:
        nonlocal seen
        seen += event.moment is step.killed_at
        if event.moment is step.killed_at and seen == step.occurrence:
            raise _Killed

    if step.killed_at is None:
        yield listener
        return
    with patch.object(epochs, "_leave_to_others", lambda *given: None):
        yield listener


@contextmanager
def _sizes(seed: int) -> Iterator[None]:
    """In every other history views count as large, however small they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DifferentVersionsWarning)
        if seed % 2:
            with (
                patch.object(apply, "OVERWRITE_ROWS", 0),
                patch.object(apply, "FOLDED_WHOLE_ROWS", 0),
                patch.object(apply, "MOST_SMALL_FILES", 1),
            ):
                yield
        else:
            yield


def run_history(templates: Templates, seed: int, length: int) -> History:
    """The history of a seed; it raises what went wrong."""
    return _with_copy(templates, seed, lambda history: history.run(length))


def replayed(templates: Templates, seed: int, steps: Sequence[Step]) -> History:
    """The same warehouse again, through these steps."""

    def run(history: History) -> None:
        for step in steps:
            history.step(step)
        history.end()

    return _with_copy(templates, seed, run)


def _with_copy(templates: Templates, seed: int, run: Callable[[History], None]) -> History:
    with tempfile.TemporaryDirectory(dir=templates.folder) as folder, _sizes(seed):
        history = History(templates.copied(seed, Path(folder)), templates.spark, seed)
        run(history)
    return history


def shrunk(templates: Templates, failure: HistoryFailed, attempts: int = 40) -> HistoryFailed:
    """A history that goes wrong without some of the steps."""
    found, at = failure, 0
    steps = list(failure.steps)
    while at < len(steps) and attempts > 0:
        attempts -= 1
        fewer = steps[:at] + steps[at + 1 :]
        try:
            replayed(templates, failure.seed, fewer)
            at += 1
        except HistoryFailed as smaller:
            found, steps = smaller, fewer
    return found
