"""What views of an epoch share of their reads: real Delta tables, no Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from viewkeeper.execution import epoch_reads, searching
from viewkeeper.execution.epoch_reads import EpochReads, Found, Lookup
from viewkeeper.execution.searching import Wanted, few_rows
from viewkeeper.execution.workspace import Workspace
from viewkeeper.sources.data_files import data_files
from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.statements import Key, RefreshPolicy
from viewkeeper.sql.types import Simple
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import TableRecord, ViewRecord

COLUMNS = tuple(
    Column(name, Simple(kind))
    for name, kind in (("k", "INT"), ("g", "INT"), ("word", "STRING"), ("x", "BIGINT"))
)
K, G, WORD, X = COLUMNS
FIRST, UPDATED, GROWN = 1, 2, 3
"""Versions: two files of 100 rows; the first file rewritten, its x negative; a third file."""


def rows(first: int, factor: int = 1) -> pa.Table:
    numbers = range(first, first + 100)
    return pa.table(
        {
            "k": pa.array(numbers, pa.int32()),
            "g": pa.array([n % 7 for n in numbers], pa.int32()),
            "word": [f"w{n}" for n in numbers],
            "x": pa.array([factor * n for n in numbers], pa.int64()),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for first in (0, 100):
        write_deltalake(tmp_path / "t", rows(first), mode="append")
    write_deltalake(tmp_path / "t", rows(0, -1), mode="overwrite", predicate="k < 100")
    write_deltalake(tmp_path / "t", rows(200), mode="append")
    write_deltalake(tmp_path / "u", rows(0))
    assert DeltaTable(tmp_path / "t").version() == GROWN
    return tmp_path


def table(name: str) -> TableRecord:
    return TableRecord(
        name, QualifiedName("default", name), COLUMNS, name, keys=(Key(("k",), True, f"{name}_pk"),)
    )


def view(name: str, inputs: Iterable[str], query: str = "SELECT k FROM t") -> ViewRecord:
    references = {QualifiedName("default", each).key: each for each in inputs}
    return ViewRecord(
        name, QualifiedName("default", name), COLUMNS, name, query, references, RefreshPolicy.AUTO
    )


V1, V2, V3 = (
    view("v1", ["t", "u"]),
    view("v2", ["t", "u"], "SELECT t.word FROM t JOIN u ON t.g = u.g"),
    view("v3", ["u"]),
)


class Store:
    """A store, and the searches that were made for it: which columns, how many files."""

    def __init__(self, folder: Path, views: Sequence[ViewRecord]) -> None:
        log = SimpleNamespace(
            data_files=lambda address, version, columns: data_files(address, version, columns, None)
        )
        workspace = SimpleNamespace(log=log, data_address=lambda record: str(folder / record.location))
        catalogue = Catalogue("warehouse").with_table(table("t")).with_table(table("u"))
        for each in views:
            catalogue = catalogue.with_view(each)
        self.reads = EpochReads(cast(Workspace, workspace), catalogue, views)
        self.searches: list[tuple[str, int]] = []

    def few_rows(
        self, session: Any, wanted: Wanted, columns: Sequence[Column], addresses: Collection[str]
    ) -> pa.Table | None:
        self.searches.append((" ".join(each.name for each in columns), len(addresses)))
        return few_rows(session, wanted, columns, addresses)

    def ask(self, asked: Lookup, version: int, wider: Lookup | None = None) -> Found | None:
        """As a plan does that reads one version."""
        if self.reads.known(asked, version) is None:
            self.reads.search(None, asked, wider or asked, [version])
        return self.reads.known(asked, version)

    def found(self, asked: Lookup, version: int, wider: Lookup | None = None) -> list[tuple[Any, ...]]:
        """The rows with the values, in the columns, that were asked for."""
        found = self.ask(asked, version, wider)
        assert found is not None
        live = self.reads.rows(found, version)
        chosen = [each for each in live.to_pylist() if each[asked.wanted.column] in asked.wanted.values]
        return sorted(tuple(each[column.name] for column in asked.columns) for each in chosen)


@pytest.fixture
def store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    made = Store(folder, [V1, V2, V3])
    monkeypatch.setattr(epoch_reads, "few_rows", made.few_rows)
    made.reads.begin(V1)
    return made


def lookup(values: Iterable[int], *columns: Column, of: str = "t", by: Column = K) -> Lookup:
    return Lookup(of, Wanted(by.name, frozenset(values)), columns)


def test_what_one_view_found_serves_the_next(store: Store) -> None:
    assert store.found(lookup([5, 150], K, X), FIRST) == [(5, 5), (150, 150)]
    store.reads.begin(V2)
    assert store.found(lookup([5], K), FIRST) == [(5,)]
    assert store.found(lookup([150, 5], X, K), FIRST) == [(5, 5), (150, 150)]
    assert store.searches == [("k x", 2)]
    found = store.ask(lookup([5], K), FIRST)
    assert found is not None and found.found_for is V1


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (lookup([5, 6], K), [(5,), (6,)]),
        (lookup([5, None], K), [(5,)]),  # type: ignore[list-item]
        (lookup([5], K, WORD), [(5, "w5")]),
        (lookup([5], G, by=G), [(5,)] * 28),
        (lookup([5], K, of="u"), [(5,)]),
    ],
    ids=["another value", "NULL too", "another column", "by another column", "another table"],
)
def test_other_questions_are_searched_for(
    store: Store, asked: Lookup, expected: list[tuple[Any, ...]]
) -> None:
    store.found(lookup([5], K, G, X), FIRST)
    store.reads.begin(V2)
    assert store.found(asked, FIRST if asked.object_id == "t" else 0) == expected
    assert len(store.searches) == 2


def test_a_version_shows_its_own_rows_and_only_its_new_files_are_searched(store: Store) -> None:
    asked = lookup([5, 150, 250], K, X)
    assert store.found(asked, FIRST) == [(5, 5), (150, 150)]
    store.reads.begin(V2)
    assert store.found(asked, UPDATED) == [(5, -5), (150, 150)]
    assert store.found(asked, GROWN) == [(5, -5), (150, 150), (250, 250)]
    assert store.found(asked, FIRST) == [(5, 5), (150, 150)]
    assert store.searches == [("k x", 2), ("k x", 1), ("k x", 1)]
    assert len(store.reads._found) == 1, "it is put together, and kept once"


def test_files_that_two_searches_had_in_common_count_once(store: Store) -> None:
    values = [5, 150, 250]
    store.found(lookup(values, K, X), FIRST)
    store.found(lookup(values, K, WORD), GROWN)
    store.reads.begin(V2)
    assert store.found(lookup(values, K), FIRST) == [(5,), (150,)]
    assert store.searches == [("k x", 2), ("k word", 3)]


def test_local_relations_are_made_once_for_each_version(store: Store) -> None:
    made: list[list[Any]] = []

    def create(rows: pa.Table, schema: str) -> Any:
        assert schema == "`k` INT, `x` BIGINT"
        made.append(rows.column("x").to_pylist())
        return SimpleNamespace(coalesce=lambda partitions: rows)

    session = SimpleNamespace(createDataFrame=create)
    asked = lookup([5], K, X)
    store.reads.search(session, asked, asked, [FIRST, UPDATED])
    for view, narrower in ((V1, asked), (V2, lookup([5], K))):
        store.reads.begin(view)
        for version in (FIRST, UPDATED):
            found = store.reads.known(narrower, version)
            assert found is not None
            assert store.reads.frame(session, found, version).column("k").to_pylist() == [5]
    assert made == [[5], [-5]]


def test_one_search_covers_several_versions(store: Store) -> None:
    asked = lookup([5, 250], K, X)
    store.reads.search(None, asked, asked, [FIRST, GROWN])
    assert store.found(asked, FIRST) == [(5, 5)]
    assert store.found(asked, GROWN) == [(5, -5), (250, 250)]
    assert store.searches == [("k x", 3)]


def test_something_wider_is_looked_for_where_it_costs_no_more(store: Store) -> None:
    wider = lookup([5, 6], K, WORD, X)
    assert store.found(lookup([5], K), FIRST, wider) == [(5,)]
    store.reads.begin(V2)
    assert store.found(lookup([6], WORD), FIRST) == [("w6",)]
    assert store.searches == [("k word x", 1)]


def test_not_where_more_files_were_to_be_searched_or_a_type_does_not_come_to_the_driver(store: Store) -> None:
    assert store.found(lookup([5], K), FIRST, lookup([5, 150], K, X)) == [(5,)]
    strange = replace(WORD, data_type=Simple("VARIANT"))
    assert store.found(lookup([7], K), FIRST, lookup([7], K, strange)) == [(7,)]
    assert store.searches == [("k x", 1), ("k", 1)]


def test_too_many_rows_are_not_searched_for_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_DRIVER_ROWS", 3)
    words = [f"w{n}" for n in range(10)]
    asked, wider = (lookup(each, WORD, by=WORD) for each in (words[:2], words))  # type: ignore[arg-type]
    assert len(store.found(asked, FIRST, wider)) == 2, "the narrow question is asked after the wide one"
    assert len(store.searches) == 2
    assert store.ask(wider, FIRST) is None
    store.reads.begin(V2)
    assert store.ask(wider, FIRST) is None
    assert len(store.searches) == 2


def test_far_more_rows_than_asked_for_are_not_taken(store: Store) -> None:
    store.found(lookup(range(2_000), K), FIRST)
    assert store.found(lookup([5], K), FIRST) == [(5,)]
    assert len(store.searches) == 1, "a plan takes what was found for another of its reads"
    store.reads.begin(V2)
    assert store.found(lookup([5], K), FIRST) == [(5,)]
    assert len(store.searches) == 2


def test_views_with_other_settings_read_for_themselves(store: Store) -> None:
    store.found(lookup([5], K), FIRST)
    store.reads.begin(replace(V2, settings={"spark.sql.caseSensitive": "true"}))
    assert store.found(lookup([5], K), FIRST) == [(5,)]
    assert len(store.searches) == 2


def test_what_no_later_view_reads_is_forgotten_and_so_is_the_oldest_of_too_much(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.reads.begin(view("unchanged", ["w"]))
    store.reads.begin(V1)
    for each in ("t", "u"):
        store.found(lookup([5], K, of=each), 0)
    store.reads.begin(view("unchanged", ["w"]))
    store.found(lookup([5], WORD, K, of="u"), 0)
    store.reads.begin(V2)
    assert [each.lookup.object_id for each in store.reads._found] == ["t", "u"], "words serve who wants keys"
    store.reads.begin(V3)
    assert [each.lookup.object_id for each in store.reads._found] == ["u"]
    assert {object_id for object_id, _ in store.reads._files} == {"u"}
    monkeypatch.setattr(epoch_reads, "MOST_KEPT_BYTES", 0)
    store.reads.begin(V3)
    assert store.reads._found == []
    assert store.found(lookup([5], K, of="u"), 0) == [(5,)]


def test_a_search_that_fails_leaves_nothing_behind(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object) -> pa.Table:
        raise OSError("the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(epoch_reads, "few_rows", fails)
        with pytest.raises(OSError, match="the disk"):
            store.ask(lookup([5], K), FIRST)
    assert store.reads._found == []
    store.reads.begin(V2)
    assert store.found(lookup([5], K), FIRST) == [(5,)]


def test_which_columns_later_views_will_ask_for(folder: Path) -> None:
    star = view("star", ["t", "u"], "SELECT u.*, t.k AS mine FROM u JOIN t ON t.k = u.k")
    broken = view("broken", ["t", "u"], "SELECT")
    for later, changed, expected in (
        ([V2], ["u"], {"k", "g", "word"}),
        ([V2], ["w"], None),
        ([V3], ["u"], None),
        ([star], ["t"], {"k", "g", "word", "x"}),
        ([broken, V2], ["t"], {"k", "g", "word"}),
        ([], ["t"], None),
    ):
        store = Store(folder, [V1, *later])
        store.reads.begin(V1)
        found = store.reads.asked_later("t", changed)
        assert (None if found is None else found & {each.name for each in COLUMNS}) == expected
    store.reads.begin(V2)
    assert store.reads.asked_later("t", ["t"]) is None, "a view that is not of the epoch"
