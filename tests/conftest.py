"""Fixtures that all tests share. One embedded Spark session serves all tests of a process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import FilesTogether
from viewkeeper import Warehouse
from viewkeeper.execution import spark_session
from viewkeeper.execution.choice import CHOOSE_BY

# Every JVM of the tests lives for minutes: compiling less, and collecting garbage in one thread, takes a fifth of the
# processor time off (367 to 297 s for the change feeds and the examples).
os.environ.setdefault(
    "JDK_JAVA_OPTIONS",
    "-XX:+UseSerialGC -XX:Tier4InvocationThreshold=20000 -XX:Tier4MinInvocationThreshold=2400"
    " -XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=160000",
)

# AUTO chooses by sizes alone, here and in processes that tests start: no test depends on how fast the machine is just now.
os.environ.setdefault(CHOOSE_BY, "sizes")


# Most queries of the tests run once, over a few rows: compiling them takes longer than interpreting them. Sessions of
# other processes (command line, Connect, cluster, killed clients) compile as users' sessions do.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        for setting, value in INTERPRETED.items():
            patch.setitem(spark_session.SMALL_WORK_SETTINGS, setting, value)
        session = spark_session.embedded_session("local[2]")
    yield session
    session.stop()


@pytest.fixture
def warehouse(tmp_path: Path, spark: Any) -> Warehouse:
    """An empty warehouse on the shared session."""
    return Warehouse(tmp_path / "warehouse", spark)


@pytest.fixture
def rows() -> Callable[[Any], list[tuple[Any, ...]]]:
    """The rows of a query, in any order."""

    def sorted_rows(frame: Any) -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in frame.collect()), key=repr)

    return sorted_rows


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesTogether:
    return FilesTogether(config, log)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run that executed no test has failed, also when all were skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:  # a process among several: the one that reports decides
        return
    executed = sum(len(reporter.stats.get(outcome, [])) for outcome in ("passed", "failed", "error"))
    if exitstatus == 0 and not executed and not session.config.option.collectonly:
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
