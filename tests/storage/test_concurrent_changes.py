"""Several processes at one warehouse: nothing is lost, nothing happens twice, a killed one leaves no damage."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.storage.worker import append_first, change_forever, create, increment, working
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.delta_store import DeltaStore
from viewkeeper.storage.layout import Layout
from viewkeeper.storage.warehouse_state import WarehouseState


@pytest.fixture
def state(tmp_path: Path) -> WarehouseState:
    store = DeltaStore(Layout.at(tmp_path))
    store.create(Catalogue("w"))
    return WarehouseState(store)


@pytest.mark.parametrize(
    ("times", "little_history"), [(25, False), (10, True)], ids=["usual", "little history"]
)
def test_four_processes_lose_no_update(
    state: WarehouseState, tmp_path: Path, times: int, little_history: bool
) -> None:
    """With little history they archive and fold at the same time, too."""
    with working(increment, *[(tmp_path, times, little_history)] * 4) as workers:
        for worker in workers:
            worker.finish()
    total = 4 * times
    assert state.read().last_epoch == total
    entries = state.history()
    assert [entry.epoch for entry in entries] == list(range(1, total + 1))
    assert list(Counter(entry.view_id for entry in entries).values()) == [times] * 4
    assert [entry.epoch for entry in state.history(last=30)] == list(range(total - 29, total + 1))
    if little_history:
        assert len(state.read().recent_history) < 10
        assert DeltaTable(Layout.at(tmp_path).journal).version() > 4


def test_of_several_creators_one_wins_and_all_read_its_catalogue(tmp_path: Path) -> None:
    times = 12
    start = time.time() + 1.0
    with working(create, *[(tmp_path, times, me, start) for me in "abc"]) as workers:
        owners = [worker.told() for worker in workers]
    assert [len(seen) for seen in owners] == [times] * 3
    for at, seen in enumerate(zip(*owners, strict=True)):
        assert len(set(seen)) == 1
        table = DeltaTable(Layout.at(tmp_path / str(at)).catalogue)
        assert (table.version(), pa.table(table.scan()).num_rows) == (0, 1)


def test_a_journal_that_several_processes_begin_at_once_has_the_entries_of_all(tmp_path: Path) -> None:
    times = 12
    with working(append_first, *[(tmp_path, times, time.time() + 1.0)] * 3) as workers:
        for worker in workers:
            worker.finish()
    for at in range(times):
        layout = Layout.at(tmp_path / str(at))
        assert len(DeltaStore(layout).archived_history()) == 3
        commits = sorted(Path(layout.journal, "_delta_log").glob("*.json"))
        assert ["metaData" in commit.read_text() for commit in commits] == [True, False, False]


def newest_version(log: Path) -> int:
    return max(int(commit.stem) for commit in log.glob("*.json"))


def test_a_process_killed_at_any_moment_leaves_a_whole_catalogue(
    state: WarehouseState, tmp_path: Path
) -> None:
    seed = random.randrange(2**32)
    moments = random.Random(seed)
    log = Path(Layout.at(tmp_path).catalogue, "_delta_log")
    before = 0
    for _ in range(10):
        wanted = newest_version(log) + moments.randint(1, 6)
        with working(change_forever, (tmp_path,)) as (worker,):
            while newest_version(log) < wanted:
                time.sleep(moments.uniform(0.001, 0.02))
            worker.kill()
        last = state.read().last_epoch
        assert last > before
        assert [entry.epoch for entry in state.history()] == list(range(1, last + 1)), f"seed {seed}"
        before = last
    assert len({entry.view_id for entry in state.history()}) == 10
    assert DeltaTable.is_deltatable(Layout.at(tmp_path).journal), "the killed ones got as far as archiving"
