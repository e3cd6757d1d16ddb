"""Random histories over the public SQL: `make histories CASES=500` runs more, VIEWKEEPER_HISTORY_SEED=n one of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.histories.history import HistoryFailed, Templates, run_history, shrunk

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(0)]

HISTORIES = int(os.environ.get("VIEWKEEPER_HISTORIES", "20"))
LENGTH = int(os.environ.get("VIEWKEEPER_HISTORY_LENGTH", "9"))
SEED = os.environ.get("VIEWKEEPER_HISTORY_SEED")


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Iterator[Templates]:
    yield Templates(Path(tmp_path_factory.mktemp("histories")), spark)


def test_every_history_keeps_the_invariants(templates: Templates) -> None:
    """I1 to I4, I6, I8 to I16, I26: as tests/histories/invariants.py looks at them after every step."""
    strategies: Counter[str] = Counter()
    seeds = [int(SEED)] if SEED else range(HISTORIES)
    for seed in seeds:
        try:
            history = run_history(templates, seed, LENGTH)
        except HistoryFailed as failure:
            pytest.fail(str(shrunk(templates, failure)))
        strategies += history.strategies
    assert SEED or (strategies["differential"] and strategies["recompute"]), strategies
