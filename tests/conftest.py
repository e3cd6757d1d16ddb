"""Fixtures that all tests share. One embedded Spark session serves the whole run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.execution.spark_session import embedded_session


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    session = embedded_session("local[2]")
    yield session
    session.stop()


@pytest.fixture
def warehouse(tmp_path: Path, spark: Any) -> Warehouse:
    """An empty warehouse on the shared session."""
    return Warehouse(tmp_path / "warehouse", spark)


@pytest.fixture
def offline(tmp_path: Path) -> Warehouse:
    """An empty warehouse for statements that need no Spark; one that starts Spark fails."""
    return Warehouse(tmp_path / "warehouse", _NoSpark())


class _NoSpark:
    """Stands where a session would; touching it fails the test."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"this statement must not need Spark (asked for {name})")


@pytest.fixture
def rows() -> Callable[[Any], list[tuple[Any, ...]]]:
    """The rows of a query, in any order."""

    def sorted_rows(frame: Any) -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in frame.collect()), key=repr)

    return sorted_rows
