"""The catalogue and the journal as Delta tables, in one process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from hypothesis import given, settings

from tests.storage.examples import catalogues, entry, one_of_everything
from viewkeeper.errors import CorruptWarehouseError, NotAWarehouseError, StorageError
from viewkeeper.storage import delta_store, warehouse_state
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.delta_store import DeltaStore
from viewkeeper.storage.layout import Layout
from viewkeeper.storage.records import HistoryEntry
from viewkeeper.storage.warehouse_state import WarehouseState


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout.at(tmp_path / "shop")


@pytest.fixture
def store(layout: Layout) -> DeltaStore:
    store = DeltaStore(layout)
    store.create(Catalogue("w"))
    return store


@pytest.fixture
def little_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse_state, "_KEPT_IN_CATALOGUE", 5)
    monkeypatch.setattr(delta_store, "_JOURNAL_FILES", 2)


def publish(state: WarehouseState, *epochs: int, view_id: str = "v") -> None:
    state.change(lambda c: replace(c, last_epoch=epochs[-1]).with_history(entry(e, view_id) for e in epochs))


def epochs(entries: Iterable[HistoryEntry]) -> list[int]:
    return [e.epoch for e in entries]


def files_below(folder: str, pattern: str) -> list[Path]:
    return sorted(Path(folder).glob(pattern))


# -------------------------------------------------------------------------------- create, read and swap


def test_a_created_catalogue_is_read_back(layout: Layout) -> None:
    store = DeltaStore(layout)
    assert not store.exists()
    store.create(one_of_everything())
    assert store.exists()
    assert store.read() == (one_of_everything(), 0)


def test_creating_again_changes_nothing(store: DeltaStore) -> None:
    store.create(Catalogue("other"))
    assert store.read() == (Catalogue("w"), 0)


def test_a_catalogue_comes_with_its_first_rows_in_one_commit(store: DeltaStore, layout: Layout) -> None:
    """Were it two, a reader between them would find a catalogue without a head, and a crash would leave one."""
    assert [path.name for path in files_below(layout.catalogue, "_delta_log/*.json")] == [
        "00000000000000000000.json"
    ]
    assert DeltaTable(layout.catalogue).version() == 0


def test_any_delta_reader_can_look_into_the_catalogue(layout: Layout) -> None:
    DeltaStore(layout).create(one_of_everything())
    rows = pa.table(DeltaTable(layout.catalogue).scan()).to_pylist()
    assert {row["kind"] for row in rows} == {"head", "table", "view", "published", "claim", "history"}
    head = next(json.loads(row["body"]) for row in rows if row["kind"] == "head")
    assert head == {"format": 1, "warehouse_id": "warehouse", "last_epoch": 3, "first_kept_epoch": 0}


@pytest.mark.parametrize("made", [False, True], ids=["no folder", "an empty folder"])
def test_what_is_no_warehouse_is_said_to_be_none_and_left_alone(tmp_path: Path, made: bool) -> None:
    folder = tmp_path / "nothing"
    if made:
        folder.mkdir()
    store = DeltaStore(Layout.at(folder))
    assert not store.exists()
    for attempt in (store.read, lambda: store.swap(Catalogue("w"), 0)):
        with pytest.raises(NotAWarehouseError) as caught:
            attempt()
        assert str(caught.value) == (
            f"{folder} is no Viewkeeper warehouse.\n"
            "To do: check the path, or create a warehouse with viewkeeper init."
        )
    assert folder.exists() == made
    assert not made or not any(folder.iterdir())


def test_a_swap_at_the_expected_version_takes_effect(store: DeltaStore) -> None:
    assert store.swap(replace(one_of_everything(), warehouse_id="new"), 0)
    assert store.read() == (replace(one_of_everything(), warehouse_id="new"), 1)


def test_a_stale_swap_is_refused_and_changes_nothing(store: DeltaStore) -> None:
    """I25"""
    _, version = store.read()
    assert store.swap(Catalogue("winner"), version)
    assert not store.swap(Catalogue("loser"), version)
    assert store.read() == (Catalogue("winner"), version + 1)


def test_a_swap_for_a_version_that_does_not_exist_yet_is_refused(store: DeltaStore) -> None:
    assert not store.swap(Catalogue("early"), 7)
    assert store.read() == (Catalogue("w"), 0)


def test_a_swap_that_is_overtaken_while_it_writes_is_refused(
    store: DeltaStore, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other writer commits after the version was compared: only the commit itself can notice."""
    write = delta_store.write_deltalake
    overtaken = []

    def overtake_first(*args: object, **kwargs: object) -> None:
        if not overtaken:
            overtaken.append(True)
            assert DeltaStore(layout).swap(Catalogue("faster"), 0)
        write(*args, **kwargs)

    monkeypatch.setattr(delta_store, "write_deltalake", overtake_first)
    assert not store.swap(Catalogue("slower"), 0)
    assert store.read() == (Catalogue("faster"), 1)


def test_a_swap_replaces_every_row(store: DeltaStore) -> None:
    assert store.swap(one_of_everything(), 0)
    assert store.swap(Catalogue("empty"), 1)
    assert store.read() == (Catalogue("empty"), 2)


@given(catalogues())
@settings(max_examples=8, deadline=None)
def test_a_random_catalogue_survives_storage(
    tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue
) -> None:
    store = DeltaStore(Layout.at(tmp_path_factory.mktemp("shop")))
    store.create(catalogue)
    assert store.read() == (catalogue, 0)
    assert store.swap(replace(catalogue, last_epoch=1), 0)
    assert store.read() == (replace(catalogue, last_epoch=1), 1)


# ------------------------------------------------------------------------------------------------ history


def test_no_history_at_all(store: DeltaStore) -> None:
    assert store.archived_history() == []
    assert WarehouseState(store).history() == []


def test_after_a_thousand_entries_each_is_there_once_in_order_and_the_catalogue_is_small(
    store: DeltaStore, layout: Layout
) -> None:
    """Twenty-seven epochs of forty views, with the limits that users have."""
    state = WarehouseState(store)
    expected = []
    for epoch in range(1, 28):
        made = [entry(epoch, f"v{n:02}", f"2026-01-01T00:{epoch:02}:{n:02}.000+00:00") for n in range(40)]
        expected += made
        state.change(lambda c, made=made, epoch=epoch: replace(c, last_epoch=epoch).with_history(made))
        assert len(store.read()[0].recent_history) < 200
    assert state.history() == expected
    assert len(expected) == 1080
    assert state.history(last=250) == expected[-250:]
    assert state.history("v07") == [e for e in expected if e.view_id == "v07"]
    assert state.history("v07", last=13) == [e for e in expected if e.view_id == "v07"][-13:]

    catalogue, journal = DeltaTable(layout.catalogue), DeltaTable(layout.journal)
    assert len(catalogue.file_uris()) == 1
    assert len(journal.file_uris()) <= 41
    assert pa.table(journal.scan()).num_rows + len(state.read().recent_history) == 1080


@pytest.mark.usefixtures("little_history")
def test_the_journal_is_folded_into_few_files(store: DeltaStore, layout: Layout) -> None:
    state = WarehouseState(store)
    counts = []
    for epoch in range(1, 34):
        publish(state, epoch)
        if DeltaTable.is_deltatable(layout.journal):
            counts.append(len(DeltaTable(layout.journal).file_uris()))
    assert max(counts) == 2
    assert counts.count(1) > 10, "it was folded again and again, not only begun with one file"
    assert epochs(state.history()) == list(range(1, 34))


@pytest.mark.usefixtures("little_history")
def test_files_that_nobody_reads_any_more_are_removed(
    store: DeltaStore, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the hour that readers are given cut to nothing."""
    monkeypatch.setattr(delta_store, "_KEPT_HOURS", 0)
    state = WarehouseState(store)
    for epoch in range(1, 27):
        publish(state, epoch)
    assert len(files_below(layout.catalogue, "*.parquet")) <= 6, "five changes since the last fold"
    assert len(files_below(layout.journal, "*.parquet")) <= 2
    assert epochs(state.history()) == list(range(1, 27))


@pytest.mark.usefixtures("little_history")
def test_files_are_kept_for_readers_that_have_just_begun(store: DeltaStore, layout: Layout) -> None:
    early = DeltaTable(layout.catalogue)
    state = WarehouseState(store)
    for epoch in range(1, 14):
        publish(state, epoch)
    assert pa.table(early.scan()).num_rows == 1


def test_the_log_of_the_catalogue_is_kept_short(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader opens the last checkpoint and what came after it; what is older than an hour is removed."""
    assert delta_store._PROPERTIES["delta.checkpointInterval"] == "50"
    assert delta_store._PROPERTIES["delta.logRetentionDuration"] == "interval 1 hours"
    monkeypatch.setitem(delta_store._PROPERTIES, "delta.checkpointInterval", "5")
    store = DeltaStore(layout)
    store.create(Catalogue("w"))
    state = WarehouseState(store)

    def touch(times: int) -> None:
        for _ in range(times):
            state.change(lambda c: replace(c, last_epoch=c.last_epoch + 1))

    touch(12)
    assert len(files_below(layout.catalogue, "_delta_log/*.json")) == 13
    two_hours_ago = time.time() - 7200
    for path in files_below(layout.catalogue, "_delta_log/0*"):
        os.utime(path, (two_hours_ago, two_hours_ago))
    touch(8)
    assert len(files_below(layout.catalogue, "_delta_log/*.json")) <= 12
    checkpoints = [
        int(path.name[:20]) for path in files_below(layout.catalogue, "_delta_log/*.checkpoint*.parquet")
    ]
    assert DeltaTable(layout.catalogue).version() - max(checkpoints) < 5
    assert state.read().last_epoch == 20


# ------------------------------------------------------------------------------------------------ crashes


class DyingStore(DeltaStore):
    """Dies between writing to the journal and swapping the catalogue, when told to."""

    dies = False

    def swap(self, catalogue: Catalogue, expected_version: int) -> bool:
        if self.dies:
            raise KeyboardInterrupt
        return super().swap(catalogue, expected_version)


@pytest.mark.usefixtures("little_history")
def test_a_crash_between_journal_and_catalogue_duplicates_nothing(layout: Layout) -> None:
    store = DyingStore(layout)
    store.create(Catalogue("w"))
    state = WarehouseState(store)
    for epoch in range(1, 10):
        publish(state, epoch)
    for _ in range(2):
        store.dies = True
        with pytest.raises(KeyboardInterrupt):
            publish(state, 10)
        store.dies = False
        assert epochs(state.history()) == list(range(1, 10))
    for epoch in range(10, 20):
        publish(state, epoch)
    assert pa.table(DeltaTable(layout.journal).scan()).num_rows > 10, (
        "the crashes left duplicates in the journal"
    )
    for last in (0, 1, 5, 9, 10, 14, 19, 50):
        assert epochs(state.history(last=last)) == list(range(1, 20))[max(0, 19 - last) :]
        assert epochs(state.history("v", last=last)) == list(range(1, 20))[max(0, 19 - last) :]
    assert len(store.archived_history()) == len({e.epoch for e in store.archived_history()})


@pytest.mark.usefixtures("little_history")
def test_a_change_is_made_although_the_journal_cannot_be_folded(
    store: DeltaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device (os error 28)")

    monkeypatch.setattr(delta_store, "_remove_unread_files", full)
    store.append_history([entry(1)])
    with pytest.raises(
        StorageError, match="the disk is full: the journal of the warehouse cannot be written"
    ):
        store.fold()
    state = WarehouseState(store)
    for epoch in range(2, 15):
        publish(state, epoch)
    assert state.read().last_epoch == 14


def test_the_slower_of_two_folds_has_nothing_left_to_do(
    store: DeltaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(*_: object, **__: object) -> None:
        raise CommitFailedError("Failed to commit transaction: 15")

    store.append_history([entry(1)])
    monkeypatch.setattr(delta_store, "_remove_unread_files", too_late)
    store.fold()
    assert epochs(store.archived_history()) == [1]


# ------------------------------------------------------------------------------------------ damaged journal


@pytest.mark.parametrize("body", ["{", "[]", "{}", '{"epoch": 1, "flavour": "sweet"}'])
def test_a_damaged_entry_of_the_journal_is_named_as_such(
    store: DeltaStore, layout: Layout, body: str
) -> None:
    rows = pa.table({"epoch": [1], "view_id": ["v"], "body": [body]}, schema=delta_store._JOURNAL_SCHEMA)
    delta_store.write_deltalake(layout.journal, rows)
    with pytest.raises(CorruptWarehouseError, match="the journal of the warehouse cannot be read: "):
        WarehouseState(store).history()
    assert WarehouseState(store).read() == Catalogue("w"), "the catalogue does not need the journal"
