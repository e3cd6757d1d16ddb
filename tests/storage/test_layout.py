"""Where things lie in a warehouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewkeeper.errors import InvalidStatementError
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.delta_store import DeltaStore
from viewkeeper.storage.layout import Layout, new_id, table_location, view_location


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ("/data/shop", "/data/shop"),
        ("/data/shop/", "/data/shop"),
        (Path("/data/shop"), "/data/shop"),
        ("/", "/"),
        ("file:///data/shop", "/data/shop"),
        ("file:///data/shop/", "/data/shop"),
        ("file:/data/shop", "/data/shop"),
        ("file://localhost/data/shop", "/data/shop"),
        ("file:///data/my%20shop", "/data/my shop"),
        ("s3://bucket/shop/", "s3://bucket/shop"),
        ("dbfs:/shop", "dbfs:/shop"),
        ("/data/a://b", "/data/a:/b"),
        (
            "abfss://container@account.dfs.core.windows.net/shop",
            "abfss://container@account.dfs.core.windows.net/shop",
        ),
    ],
)
def test_the_root(given: str | Path, root: str) -> None:
    assert Layout.at(given).root == root


def test_a_relative_path_is_made_absolute_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    layout = Layout.at("shop")
    monkeypatch.chdir("/")
    assert layout.root == str(tmp_path / "shop")


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Layout.at("~/shop").root == str(tmp_path / "shop")


@pytest.mark.parametrize(
    ("given", "local"), [("/shop", True), ("file:///shop", True), ("s3://b/shop", False)]
)
def test_what_is_local(given: str, local: bool) -> None:
    assert Layout.at(given).is_local is local


@pytest.mark.parametrize(
    ("root", "needs_spark"),
    [("/data/shop", False), ("file:///shop", False), ("S3://b/shop", False), ("abfss://c@a/shop", False),
     ("viewfs://cluster/shop", True), ("dbfs://shop", True)],
)  # fmt: skip
def test_what_only_spark_can_reach(root: str, needs_spark: bool) -> None:
    assert Layout.at(root).needs_spark is needs_spark


@pytest.mark.parametrize("root", ["/data/shop", "s3://bucket/shop"])
def test_addresses(root: str) -> None:
    layout = Layout.at(root)
    assert layout.catalogue == f"{root}/_viewkeeper/catalogue"
    assert layout.journal == f"{root}/_viewkeeper/journal"
    assert layout.address(table_location("1f")) == f"{root}/tables/1f"
    assert layout.rows(view_location("2e")) == f"{root}/views/2e/rows"
    assert layout.changes(view_location("2e")) == f"{root}/views/2e/changes"


@pytest.mark.parametrize("attached", ["/elsewhere/orders", "s3://other/orders", "file:///elsewhere/orders"])
def test_an_attached_table_keeps_its_own_address(attached: str) -> None:
    assert Layout.at("/data/shop").address(attached) == attached


def test_ids_are_new_each_time_and_fit_a_folder_name() -> None:
    made = {new_id() for _ in range(1000)}
    assert len(made) == 1000
    assert all(len(one) == 16 and one.isalnum() for one in made)


@pytest.mark.parametrize(
    "name", ["my shop", "größe", "a#b", "a?b", "a:b", "it's", "100%", "a+b&c", "x/../shop", "{a}"]
)
def test_a_warehouse_can_lie_in_such_a_folder(tmp_path: Path, name: str) -> None:
    layout = Layout.at(f"{tmp_path}/{name}")
    store = DeltaStore(layout)
    store.create(Catalogue("w"))
    assert store.exists()
    assert store.read() == (Catalogue("w"), 0)
    assert Path(tmp_path, name, "_viewkeeper", "catalogue", "_delta_log").is_dir()


@pytest.mark.parametrize("name", ["[1]", "a]", "a^b", "a|b", "a\\b", "a%20b", "tab\there", "line\nbreak"])
def test_a_folder_that_delta_rs_cannot_read_back_is_refused_before_anything_is_made(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(InvalidStatementError) as caught:
        Layout.at(tmp_path / name)
    assert caught.value.message.endswith(" in it; Delta tables cannot lie there.")
    assert caught.value.hint == "choose another folder."
    assert not any(tmp_path.iterdir())
