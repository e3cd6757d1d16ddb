"""Changes and history over any store: what is retried, what is archived, what a crash leaves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.storage.examples import entry
from viewkeeper.errors import ConcurrencyProblem, InUseError, StorageError
from viewkeeper.storage import warehouse_state
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import HistoryEntry
from viewkeeper.storage.warehouse_state import WarehouseState


class MemoryStore:
    """A store in memory. `lose` swaps are lost to another writer, `die` makes the next one fail."""

    def __init__(self) -> None:
        self.catalogue, self.version = Catalogue("w"), 0
        self.journal: list[HistoryEntry] = []
        self.swaps = self.folds = self.lose = 0
        self.die = False

    def exists(self) -> bool:
        return True

    def create(self, catalogue: Catalogue) -> None:
        raise NotImplementedError

    def read(self) -> tuple[Catalogue, int]:
        return self.catalogue, self.version

    def swap(self, catalogue: Catalogue, expected_version: int) -> bool:
        self.swaps += 1
        if self.die:
            raise StorageError("the disk is full")
        if self.lose:
            self.lose -= 1
            self.catalogue, self.version = (
                replace(self.catalogue, first_kept_epoch=self.swaps),
                self.version + 1,
            )
        if expected_version != self.version:
            return False
        self.catalogue, self.version = catalogue, self.version + 1
        return True

    def append_history(self, entries: Iterable[HistoryEntry]) -> None:
        self.journal += entries

    def fold(self) -> None:
        self.folds += 1

    def archived_history(self, view_id: str | None = None, last: int | None = None) -> list[HistoryEntry]:
        return [e for e in self.journal if view_id in (None, e.view_id)]


def publish(state: WarehouseState, *epochs: int, view_id: str = "v") -> None:
    state.change(lambda catalogue: catalogue.with_history(entry(epoch, view_id) for epoch in epochs))


def epochs(entries: Iterable[HistoryEntry]) -> list[int]:
    return [e.epoch for e in entries]


# ------------------------------------------------------------------------------------------------- change


def test_a_change_returns_and_stores_the_new_catalogue() -> None:
    store = MemoryStore()
    changed = WarehouseState(store).change(lambda catalogue: replace(catalogue, last_epoch=5))
    assert changed.last_epoch == store.catalogue.last_epoch == 5
    assert WarehouseState(store).read() == changed


def test_a_step_that_changes_nothing_writes_nothing() -> None:
    store = MemoryStore()
    assert WarehouseState(store).change(lambda catalogue: catalogue) is store.catalogue
    assert store.swaps == 0


def test_a_step_that_refuses_writes_nothing() -> None:
    store = MemoryStore()

    def refuse(catalogue: Catalogue) -> Catalogue:
        raise InUseError("no")

    with pytest.raises(InUseError):
        WarehouseState(store).change(refuse)
    assert store.swaps == 0


def test_a_lost_swap_is_repeated_on_what_the_winner_wrote() -> None:
    store = MemoryStore()
    store.lose = 3
    seen: list[int] = []

    def step(catalogue: Catalogue) -> Catalogue:
        seen.append(catalogue.first_kept_epoch)
        return replace(catalogue, last_epoch=catalogue.last_epoch + 1)

    changed = WarehouseState(store).change(step)
    assert seen == [0, 1, 2, 3]
    assert (changed.last_epoch, changed.first_kept_epoch) == (1, 3)


def test_a_change_that_never_finds_a_gap_gives_up_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse_state, "_PATIENCE_SECONDS", 0.05)
    store = MemoryStore()
    store.lose = 10**6
    with pytest.raises(ConcurrencyProblem) as caught:
        WarehouseState(store).change(lambda catalogue: replace(catalogue, last_epoch=1))
    assert str(caught.value) == (
        "the catalogue is changed by others all the time; this change found no gap.\nTo do: repeat the statement."
    )
    assert store.catalogue.last_epoch == 0


def test_a_change_is_made_although_tidying_up_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse_state, "_KEPT_IN_CATALOGUE", 2)

    class Untidy(MemoryStore):
        def fold(self) -> None:
            super().fold()
            raise StorageError("the disk is full")

    store = Untidy()
    state = WarehouseState(store)
    for epoch in range(1, 9):
        publish(state, epoch)
    assert store.folds > 0
    assert epochs(state.history()) == list(range(1, 9))


# ------------------------------------------------------------------------------------------------ history


def test_older_entries_move_to_the_journal_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse_state, "_KEPT_IN_CATALOGUE", 10)
    store = MemoryStore()
    state = WarehouseState(store)
    sizes = []
    for epoch in range(1, 101):
        publish(state, epoch)
        sizes.append(len(store.catalogue.recent_history))
    assert max(sizes) == 19
    assert sorted(epochs(store.journal)) == list(range(1, len(store.journal) + 1))
    assert store.folds == 9
    assert epochs(state.history()) == list(range(1, 101))


@pytest.mark.parametrize("last", [0, 1, 5, 12, 19, 20, 99, 100, 1000])
def test_the_last_entries(monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    monkeypatch.setattr(warehouse_state, "_KEPT_IN_CATALOGUE", 10)
    state = WarehouseState(MemoryStore())
    for epoch in range(1, 101):
        publish(state, epoch)
    assert epochs(state.history(last=last)) == list(range(1, 101))[max(0, 100 - last) :]


def test_the_history_of_one_view_reaches_behind_the_entries_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warehouse_state, "_KEPT_IN_CATALOGUE", 10)
    state = WarehouseState(MemoryStore())
    for epoch in range(1, 101):
        publish(state, epoch, view_id="rare" if epoch % 25 == 0 else "often")
    assert epochs(state.history("rare")) == [25, 50, 75, 100]
    assert epochs(state.history("rare", last=3)) == [50, 75, 100]
    assert len(state.history("often")) == 96
    assert state.history("unknown") == []


def test_entries_of_one_epoch_come_in_the_order_in_which_they_finished() -> None:
    state = WarehouseState(MemoryStore())
    later, sooner = entry(1, "a", "2026-01-01T00:00:02"), entry(1, "b", "2026-01-01T00:00:01")
    state.change(lambda catalogue: catalogue.with_history([later, sooner]))
    assert state.history() == [sooner, later]


def test_a_crash_between_journal_and_catalogue_duplicates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse_state, "_KEPT_IN_CATALOGUE", 10)
    store = MemoryStore()
    state = WarehouseState(store)
    for epoch in range(1, 20):
        publish(state, epoch)
    for _ in range(3):
        store.die = True
        with pytest.raises(StorageError):
            publish(state, 20)
        assert epochs(state.history()) == list(range(1, 20))
    store.die = False
    publish(state, 20)
    assert len(store.journal) == 40, "the crashes did leave duplicates in the journal"
    assert epochs(state.history()) == list(range(1, 21))
    assert epochs(state.history("v", last=15)) == list(range(6, 21))


def test_a_big_epoch_that_is_never_published_leaves_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own entries may not be archived before the swap: nobody would take them out again."""
    monkeypatch.setattr(warehouse_state, "_KEPT_IN_CATALOGUE", 10)
    store = MemoryStore()
    state = WarehouseState(store)
    publish(state, 1)
    store.die = True
    with pytest.raises(StorageError):
        publish(state, *range(2, 50))
    store.die = False
    assert epochs(state.history()) == [1]
    publish(state, *range(2, 50))
    publish(state, 50)
    assert epochs(state.history()) == list(range(1, 51))
    assert len(store.catalogue.recent_history) < 20
