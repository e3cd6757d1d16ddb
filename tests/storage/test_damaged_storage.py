"""What users are told when the files of a warehouse are damaged, forbidden or cannot be written any more."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.storage.examples import entry, one_of_everything
from tests.support.small_disk import small_disk
from viewkeeper.errors import CorruptWarehouseError, NotAWarehouseError, StorageError
from viewkeeper.storage import warehouse_state
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.delta_store import DeltaStore
from viewkeeper.storage.layout import Layout
from viewkeeper.storage.warehouse_state import WarehouseState

NOBODY = 65534


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A warehouse after three changes."""
    layout = Layout.at(tmp_path / "shop")
    store = DeltaStore(layout)
    store.create(one_of_everything())
    for _ in range(3):
        WarehouseState(store).change(take_epoch)
    return layout


def take_epoch(catalogue: Catalogue) -> Catalogue:
    return replace(catalogue, last_epoch=catalogue.last_epoch + 1)


def data_file(table: str) -> Path:
    (uri,) = DeltaTable(table).file_uris()
    return Path(uri.removeprefix("file://"))


def commit_file(layout: Layout, version: int) -> Path:
    return Path(layout.catalogue, "_delta_log", f"{version:020}.json")


# ------------------------------------------------------------------------------------------------ damage


def delete_data(layout: Layout) -> None:
    data_file(layout.catalogue).unlink()


def truncate_data(layout: Layout) -> None:
    file = data_file(layout.catalogue)
    file.write_bytes(file.read_bytes()[:-30])


def empty_data(layout: Layout) -> None:
    data_file(layout.catalogue).write_bytes(b"")


def scribble_over_data(layout: Layout) -> None:
    file = data_file(layout.catalogue)
    content = bytearray(file.read_bytes())
    content[len(content) // 4 : -8] = b"\x5a" * (len(content) - 8 - len(content) // 4)
    file.write_bytes(content)


def other_data(layout: Layout) -> None:
    """A Parquet file of something else in place of ours."""
    other = Path(layout.root, "other")
    DeltaStore(Layout(str(other))).append_history([entry(1)])
    shutil.copy(data_file(f"{other}/_viewkeeper/journal"), data_file(layout.catalogue))


def garbage_in_last_commit(layout: Layout) -> None:
    commit_file(layout, 3).write_text("garbage\n")


def half_a_commit(layout: Layout) -> None:
    file = commit_file(layout, 3)
    file.write_text(file.read_text()[: file.stat().st_size // 2])


def garbage_as_newest_commit(layout: Layout) -> None:
    commit_file(layout, 4).write_bytes(b"\x00\xff\x00garbage")


def a_commit_missing_in_the_middle(layout: Layout) -> None:
    commit_file(layout, 2).unlink()


def no_first_commit(layout: Layout) -> None:
    commit_file(layout, 0).unlink()


@pytest.mark.parametrize(
    "harm",
    [
        delete_data,
        truncate_data,
        empty_data,
        scribble_over_data,
        other_data,
        garbage_in_last_commit,
        half_a_commit,
        garbage_as_newest_commit,
        a_commit_missing_in_the_middle,
        no_first_commit,
    ],
)
def test_damage_is_called_damage(layout: Layout, harm: Callable[[Layout], None]) -> None:
    harm(layout)
    store = DeltaStore(layout)
    assert store.exists(), "it is still a warehouse, so nothing offers to create one there"
    calls: list[Callable[[], object]] = [store.read, lambda: WarehouseState(store).change(take_epoch)]
    for call in [*calls, WarehouseState(store).history]:
        with pytest.raises(CorruptWarehouseError) as caught:
            call()
        assert caught.value.message.startswith("the catalogue of the warehouse cannot be read: ")
        assert caught.value.hint == "restore the warehouse's files from a backup."
        assert "\n" not in caught.value.message
        assert "\x1b" not in caught.value.message
        assert len(caught.value.message) < 400


def test_damage_is_healed_by_putting_the_files_back(layout: Layout, tmp_path: Path) -> None:
    shutil.copytree(layout.root, tmp_path / "backup")
    delete_data(layout)
    garbage_as_newest_commit(layout)
    shutil.rmtree(layout.root)
    shutil.copytree(tmp_path / "backup", layout.root)
    assert DeltaStore(layout).read()[0].last_epoch == one_of_everything().last_epoch + 3


def test_a_catalogue_without_any_log_is_no_warehouse(layout: Layout) -> None:
    shutil.rmtree(Path(layout.catalogue, "_delta_log"))
    assert not DeltaStore(layout).exists()
    with pytest.raises(NotAWarehouseError):
        DeltaStore(layout).read()


def test_what_killed_writers_leave_in_the_log_does_no_harm(layout: Layout) -> None:
    before = DeltaStore(layout).read()
    Path(layout.catalogue, "_delta_log", "00000000000000000004.json#1").write_text('{"half')
    Path(layout.catalogue, "_delta_log", "_commit_1234.json.tmp").write_text('{"half')
    Path(layout.catalogue, "part-00000-orphan.snappy.parquet").write_bytes(b"half")
    assert DeltaStore(layout).read() == before
    assert WarehouseState(DeltaStore(layout)).change(take_epoch).last_epoch == before[0].last_epoch + 1


def test_a_damaged_journal_is_called_damage_and_the_catalogue_stays_readable(layout: Layout) -> None:
    store = DeltaStore(layout)
    store.append_history([entry(1)])
    data_file(layout.journal).unlink()
    with pytest.raises(
        CorruptWarehouseError, match=r"^the journal of the warehouse cannot be read: .* not found"
    ):
        WarehouseState(store).history()
    assert store.read()[0].last_epoch == one_of_everything().last_epoch + 3


def test_a_warehouse_cannot_be_made_where_a_file_lies(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CorruptWarehouseError, match="Not a directory"):
        DeltaStore(Layout.at(tmp_path / "file")).create(Catalogue("w"))
    assert (tmp_path / "file").read_text() == "mine"


# ------------------------------------------------------------------------------------------- permission


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach; those that pytest makes are for one user only."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may do everything, so it becomes nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def rights(mode: int, *paths: Path) -> Iterator[None]:
    before = [path.stat().st_mode for path in paths]
    for path in paths:
        path.chmod(mode)
    try:
        with without_privileges():
            yield
    finally:
        for path, old in zip(paths, before, strict=True):
            path.chmod(old)


def made_in(folder: Path) -> DeltaStore:
    store = DeltaStore(Layout.at(folder))
    store.create(Catalogue("w"))
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)
    return store


def test_no_permission_to_create(open_folder: Path) -> None:
    with rights(0o555, open_folder), pytest.raises(StorageError) as caught:
        DeltaStore(Layout.at(open_folder / "new")).create(Catalogue("w"))
    assert str(caught.value) == (
        "no permission to use the catalogue of the warehouse.\nTo do: check the rights on the warehouse's folder."
    )
    assert not any(open_folder.iterdir())


@pytest.mark.parametrize("forbidden", ["_viewkeeper", "_viewkeeper/catalogue/_delta_log"])
def test_no_permission_to_read(open_folder: Path, forbidden: str) -> None:
    """Not a word of a missing or damaged warehouse: it is there and whole."""
    store = made_in(open_folder)
    with rights(0o000, open_folder / forbidden):
        for call in (store.read, lambda: WarehouseState(store).change(take_epoch)):
            with pytest.raises(StorageError, match=r"^no permission to use the catalogue of the warehouse"):
                call()
    assert store.read() == (Catalogue("w"), 0)


def test_no_permission_to_read_the_rows(open_folder: Path) -> None:
    store = made_in(open_folder)
    with (
        rights(0o000, data_file(Layout.at(open_folder).catalogue)),
        pytest.raises(StorageError, match="permission"),
    ):
        store.read()


@pytest.mark.parametrize("forbidden", ["_viewkeeper/catalogue", "_viewkeeper/catalogue/_delta_log"])
def test_no_permission_to_write_leaves_the_catalogue_readable_and_unchanged(
    open_folder: Path, forbidden: str
) -> None:
    store = made_in(open_folder)
    with rights(0o555, open_folder / forbidden):
        with pytest.raises(StorageError, match=r"^no permission to use the catalogue of the warehouse"):
            WarehouseState(store).change(take_epoch)
        assert store.read() == (Catalogue("w"), 0)
    assert WarehouseState(store).change(take_epoch).last_epoch == 1


def test_no_permission_to_archive(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse_state, "_KEPT_IN_CATALOGUE", 1)
    store = made_in(open_folder)
    WarehouseState(store).change(lambda c: c.with_history([entry(1), entry(2)]))
    with (
        rights(0o555, open_folder / "_viewkeeper"),
        pytest.raises(StorageError, match=r"^no permission to use the journal of the warehouse"),
    ):
        WarehouseState(store).change(lambda c: c.with_history([entry(3)]))
    assert [e.epoch for e in WarehouseState(store).history()] == [1, 2]


# -------------------------------------------------------------------------------- full and read-only disks


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "512k") as folder:
        yield folder


def fill(disk: Path, but: int) -> None:
    """Leave so many blocks of 4 KiB."""
    state = os.statvfs(disk)
    (disk / "filler").write_bytes(b"x" * (state.f_bavail * state.f_frsize - but * 4096))


def test_a_full_disk_is_named_and_leaves_the_catalogue_unchanged(disk: Path) -> None:
    """However much is left: not enough for the rows, enough for them but not for the commit, enough for both."""
    store = DeltaStore(Layout.at(disk / "shop"))
    store.create(one_of_everything())
    state = WarehouseState(store)
    before = store.read()
    refused = 0
    while True:
        assert refused < 10, "it never fits"
        fill(disk, but=refused)
        try:
            state.change(take_epoch)
        except StorageError as error:
            refused += 1
            assert str(error) == (
                "the disk is full: the catalogue of the warehouse cannot be written.\n"
                "To do: free some space and repeat the statement."
            )
            assert store.read() == before
            assert state.history() == list(before[0].recent_history)
            (disk / "filler").unlink()
        else:
            break
    assert refused >= 2, "the rows need a block, and the commit another"
    assert store.read() == (take_epoch(before[0]), before[1] + 1)


def test_a_full_disk_while_archiving_loses_no_history(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse_state, "_KEPT_IN_CATALOGUE", 2)
    store = DeltaStore(Layout.at(disk / "shop"))
    store.create(Catalogue("w"))
    state = WarehouseState(store)
    state.change(lambda c: c.with_history(entry(epoch) for epoch in range(1, 4)))
    fill(disk, but=0)
    with pytest.raises(
        StorageError, match=r"^the disk is full: the journal of the warehouse cannot be written"
    ):
        state.change(lambda c: c.with_history([entry(4)]))
    assert [e.epoch for e in state.history()] == [1, 2, 3]
    (disk / "filler").unlink()
    state.change(lambda c: c.with_history([entry(4)]))
    assert [e.epoch for e in state.history()] == [1, 2, 3, 4]


def test_a_full_disk_when_a_warehouse_is_created_leaves_none(disk: Path) -> None:
    fill(disk, but=0)
    store = DeltaStore(Layout.at(disk / "shop"))
    with pytest.raises(
        StorageError, match=r"^the disk is full: the catalogue of the warehouse cannot be written"
    ):
        store.create(Catalogue("w"))
    assert not store.exists()
    (disk / "filler").unlink()
    store.create(Catalogue("w"))
    assert store.read() == (Catalogue("w"), 0)


def test_a_read_only_disk_can_be_read(disk: Path) -> None:
    store = DeltaStore(Layout.at(disk / "shop"))
    store.create(Catalogue("w"))
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert store.read() == (Catalogue("w"), 0)
    with pytest.raises(StorageError, match=r"^no permission to use the catalogue of the warehouse"):
        WarehouseState(store).change(take_epoch)
    with pytest.raises(StorageError, match=r"^no permission to use the catalogue of the warehouse"):
        DeltaStore(Layout.at(disk / "new")).create(Catalogue("w"))
