"""Reading and changing the state of a warehouse, over any store that can swap it whole."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from viewkeeper.errors import ConcurrencyProblem, ViewkeeperError
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import HistoryEntry

_KEPT_IN_CATALOGUE = 100
"""So many history entries stay in the catalogue; when twice as many are there, the older half is archived."""

_PATIENCE_SECONDS = 60.0


class Store(Protocol):
    """Where catalogue and journal lie. `swap` is the only way a catalogue changes."""

    def exists(self) -> bool: ...
    def create(self, catalogue: Catalogue) -> None: ...
    def read(self) -> tuple[Catalogue, int]: ...
    def swap(self, catalogue: Catalogue, expected_version: int) -> bool: ...
    def append_history(self, entries: Iterable[HistoryEntry]) -> None: ...
    def fold(self) -> None: ...
    def archived_history(self, view_id: str | None = None, last: int | None = None) -> list[HistoryEntry]: ...


class WarehouseState:
    """The one door to the catalogue of a warehouse."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self) -> Catalogue:
        return self._store.read()[0]

    def change(self, step: Callable[[Catalogue], Catalogue]) -> Catalogue:
        """Apply one change to the newest catalogue. `step` may run several times; it may refuse by raising."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            catalogue, version = self._store.read()
            changed = step(catalogue)
            if changed is catalogue:
                return catalogue
            trimmed, archived = _trim_history(changed, len(catalogue.recent_history))
            if archived:
                self._store.append_history(archived)
            if self._store.swap(trimmed, version):
                if archived:
                    self._fold()
                return changed
            if time.monotonic() > deadline:
                raise ConcurrencyProblem(
                    "the catalogue is changed by others all the time; this change found no gap.",
                    "repeat the statement.",
                )
            time.sleep(random.uniform(0.005, 0.05))

    def history(self, view_id: str | None = None, last: int | None = None) -> list[HistoryEntry]:
        """What epochs did, oldest first."""
        recent = [e for e in self.read().recent_history if view_id is None or e.view_id == view_id]
        entries = {} if last is not None and len(recent) >= last else self._archived(view_id, last)
        entries.update({(entry.epoch, entry.view_id): entry for entry in recent})
        ordered = sorted(entries.values(), key=lambda entry: (entry.epoch, entry.finished_at))
        return ordered if last is None else ordered[max(0, len(ordered) - last) :]

    def _fold(self) -> None:
        """The change is made: that tidying up failed must not look as if it were not. The next one tries again."""
        with suppress(ViewkeeperError):
            self._store.fold()

    def _archived(self, view_id: str | None, last: int | None) -> dict[tuple[int, str], HistoryEntry]:
        return {(entry.epoch, entry.view_id): entry for entry in self._store.archived_history(view_id, last)}


def _trim_history(catalogue: Catalogue, stored: int) -> tuple[Catalogue, list[HistoryEntry]]:
    """Leave the newest entries and archive the rest, of the first `stored` ones only.

    The others are not in any catalogue yet: archived now, they would be history even if the swap never succeeds.
    """
    history = catalogue.recent_history
    surplus = min(len(history) - _KEPT_IN_CATALOGUE, stored)
    if surplus < _KEPT_IN_CATALOGUE:
        return catalogue, []
    return replace(catalogue, recent_history=history[surplus:]), list(history[:surplus])
