"""How tests are shared among processes: a file is run by one of them, unless its tests are marked as `alone`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def alone(group: str, values: Iterable[Any]) -> list[Any]:
    """Parameters of a long test, one of a group, each of which any process may run."""
    return [pytest.param(value, marks=pytest.mark.xdist_group(f"{group} {value}")) for value in values]


def keep_files_together(items: Iterable[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.location[0]))
