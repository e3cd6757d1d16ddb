"""Processes of their own that work on a warehouse, for tests to run at once, to watch and to kill.

They are forked from a server that has everything imported and has used none of it, so that one starts in
milliseconds.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from viewkeeper.storage import delta_store, warehouse_state
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.delta_store import DeltaStore
from viewkeeper.storage.holder import new_holder
from viewkeeper.storage.layout import Layout
from viewkeeper.storage.records import HistoryEntry, now
from viewkeeper.storage.warehouse_state import WarehouseState

PATIENCE = 60.0


def keep_little_history() -> None:
    """Archive after ten entries instead of two hundred, and fold four journal files instead of forty."""
    warehouse_state._KEPT_IN_CATALOGUE = 5
    delta_store._JOURNAL_FILES = 4


def next_epoch(catalogue: Catalogue) -> Catalogue:
    """Take the next epoch number and leave one entry in the history; `view_id` says which process did it."""
    epoch = catalogue.last_epoch + 1
    entry = HistoryEntry(
        epoch, f"by{os.getpid()}", "v", "published", "recompute", "", 0, 0, 0.0, (), {}, epoch, "views/v", now()
    )  # fmt: skip
    return replace(catalogue, last_epoch=epoch).with_history([entry])


# ------------------------------------------------------------------------------------- what they can do


def increment(to_test: Connection, folder: str, times: int, little_history: bool) -> None:
    """Take so many epochs."""
    if little_history:
        keep_little_history()
    state = WarehouseState(DeltaStore(Layout.at(folder)))
    for _ in range(times):
        state.change(next_epoch)


def create(to_test: Connection, folder: str, times: int, me: str, start: float) -> None:
    """Create so many warehouses, each at a moment that all creators agree on, and tell whose they became."""
    owners = []
    for at in range(times):
        store = DeltaStore(Layout.at(f"{folder}/{at}"))
        time.sleep(max(0.0, start + at * 0.08 - time.time()))
        store.create(Catalogue(me))
        owners.append(store.read()[0].warehouse_id)
    to_test.send(owners)


def append_first(to_test: Connection, folder: str, times: int, start: float) -> None:
    """Write the first entry of so many journals, each at a moment that all writers agree on."""
    for at in range(times):
        store = DeltaStore(Layout.at(f"{folder}/{at}"))
        (entry,) = next_epoch(Catalogue("w")).recent_history
        time.sleep(max(0.0, start + at * 0.08 - time.time()))
        store.append_history([entry])


def change_forever(to_test: Connection, folder: str) -> None:
    """Take epochs until killed."""
    keep_little_history()
    state = WarehouseState(DeltaStore(Layout.at(folder)))
    while True:
        state.change(next_epoch)


def hold(to_test: Connection) -> None:
    """Tell a holder of this process, and stay."""
    with new_holder() as holder:
        to_test.send(holder)
        time.sleep(PATIENCE)


# ------------------------------------------------------------------------------------- how tests run them


class Worker:
    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        server = multiprocessing.get_context("forkserver")
        # pandas, because pyarrow imports it (for half a second) when it first sees a list.
        server.set_forkserver_preload(["pytest", "pandas", __name__])
        self._from_worker, to_test = server.Pipe(duplex=False)
        self.process: BaseProcess = server.Process(target=work, args=(to_test, *arguments), daemon=True)
        self.process.start()
        to_test.close()

    def told(self) -> Any:
        """What it tells next."""
        assert self._from_worker.poll(PATIENCE), "the worker says nothing"
        return self._from_worker.recv()

    def finish(self) -> None:
        self.process.join(PATIENCE)
        assert self.process.exitcode == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self._from_worker.close()


@contextmanager
def working(work: Callable[..., None], *argument_lists: tuple[Any, ...]) -> Iterator[list[Worker]]:
    """One worker for each list of arguments; whatever still runs when the block ends is killed."""
    workers = [Worker(work, *arguments) for arguments in argument_lists]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
