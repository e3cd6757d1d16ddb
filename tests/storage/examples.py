"""Records for tests: small ones with defaults, and random ones with every field set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hypothesis import strategies as st

from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.statements import Key, RefreshPolicy
from viewkeeper.sql.types import Array, DataType, Map, Simple, Struct
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import (
    Claim,
    ForeignKeyRecord,
    HistoryEntry,
    Holder,
    OverKept,
    Publication,
    TableRecord,
    ViewRecord,
)

# ----------------------------------------------------------------------------------------- small examples

ID = Column("id", Simple("INT"), nullable=False)
WHEN = "2026-01-01T00:00:00.000+00:00"


def table(table_id: str, name: str | None = None, parents: Iterable[str] = ()) -> TableRecord:
    keys = tuple(ForeignKeyRecord(("id",), parent, ("id",), f"to_{parent}") for parent in parents)
    return TableRecord(
        table_id, QualifiedName("default", name or table_id), (ID,), f"tables/{table_id}", foreign_keys=keys
    )


def view(view_id: str, inputs: Iterable[str], name: str | None = None) -> ViewRecord:
    references = {f"`default`.`{input_id}`": input_id for input_id in inputs}
    return ViewRecord(
        view_id,
        QualifiedName("default", name or view_id),
        (ID,),
        f"views/{view_id}",
        "SELECT 1",
        references,
        RefreshPolicy.AUTO,
        rematerialized_on=(("DELETE", "t"),),
    )


def with_hidden(owner: ViewRecord, inputs: Iterable[str], over: Iterable[str]) -> list[ViewRecord]:
    """A view that reads `over` and a hidden view over `inputs`, and that hidden view."""
    hidden = replace(
        view(f"hidden_{owner.id}", inputs), owner=owner.id, location=f"{owner.location}/groups_1"
    )
    references = {f"`default`.`{input_id}`": input_id for input_id in (*over, hidden.id)}
    about = ("the groups are kept",)
    return [replace(owner, over_kept=OverKept("SELECT 2", references), about_groups=about), hidden]


def holder(token: str = "token", pid: int = 1, started: str = "1", machine: str = "machine") -> Holder:
    return Holder("host", machine, pid, started, token, "user")


def claim(epoch: int, views: Iterable[str], token: str = "token", renewed_at: str = WHEN) -> Claim:
    return Claim(epoch, tuple(views), {"t": 1}, {}, holder(token), WHEN, renewed_at)


def entry(epoch: int, view_id: str = "v", finished_at: str | None = None) -> HistoryEntry:
    finished = (
        finished_at or f"2026-01-01T{epoch // 3600 % 24:02}:{epoch // 60 % 60:02}:{epoch % 60:02}.000+00:00"
    )
    return HistoryEntry(
        epoch, view_id, view_id.upper(), "published", "recompute", "the table t changed", 2, 1, 0.25,
        (("load", 0.125),), {"t": epoch}, epoch, f"views/{view_id}", finished,
    )  # fmt: skip


def catalogue(tables: Iterable[TableRecord] = (), views: Iterable[ViewRecord] = ()) -> Catalogue:
    return Catalogue("warehouse", tables={t.id: t for t in tables}, views={v.id: v for v in views})


def one_of_everything() -> Catalogue:
    """A catalogue that has every kind of record."""
    return (
        catalogue(
            [table("t"), table("u", parents=["t"])],
            [*with_hidden(view("v", ["t", "u"]), ["u"], ["t"]), view("w", ["v"])],
        )
        .with_claim(claim(3, ["v", "w"]))
        .with_publication("v", Publication(2, 5, {"t": 1, "u": 4}, {"t": 1, "u": 4}, WHEN))
        .with_history([entry(1), entry(2)])
    )


# ------------------------------------------------------------------------------------------ random records

# No lone surrogates: neither Parquet nor a terminal takes them.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
numbers = st.integers(0, 2**62)
versions: st.SearchStrategy[Mapping[str, int]] = st.dictionaries(words, numbers, max_size=3)
columns_lists = st.lists(words, min_size=1, max_size=3).map(tuple)

_simple_types = st.one_of(
    st.sampled_from(
        [
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INT",
            "BIGINT",
            "FLOAT",
            "DOUBLE",
            "STRING",
            "BINARY",
            "DATE",
            "TIMESTAMP",
            "TIMESTAMP_NTZ",
            "VARIANT",
        ]
    ),
    st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: f"DECIMAL({p},{s})")),
    st.integers(1, 9999).map(lambda length: f"CHAR({length})"),
    st.integers(1, 9999).map(lambda length: f"VARCHAR({length})"),
).map(Simple)


def _nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = st.lists(st.tuples(words, inner), min_size=1, max_size=3, unique_by=lambda field: field[0])
    return st.one_of(inner.map(Array), st.builds(Map, inner, inner), fields.map(tuple).map(Struct))


data_types = st.recursive(_simple_types, _nested, max_leaves=5)
columns = st.builds(Column, words, data_types, st.booleans(), st.none() | texts)
names = st.builds(QualifiedName, words, words)

table_records = st.builds(
    TableRecord,
    words,
    names,
    st.lists(columns, max_size=4).map(tuple),
    words,
    st.lists(st.builds(Key, columns_lists, st.booleans(), st.none() | words, st.booleans()), max_size=2).map(
        tuple
    ),
    st.lists(
        st.builds(ForeignKeyRecord, columns_lists, words, columns_lists, words, st.booleans()), max_size=2
    ).map(tuple),
    st.none() | st.lists(words, max_size=3).map(tuple),
    st.booleans(),
    st.booleans(),
    st.none() | words,
    st.none() | texts,
    st.none() | words,
)
view_records = st.builds(
    ViewRecord,
    words,
    names,
    st.lists(columns, max_size=4).map(tuple),
    words,
    texts,
    st.dictionaries(words, words, max_size=3),
    st.sampled_from(RefreshPolicy),
    st.dictionaries(words, texts, max_size=3),
    st.integers(1, 9),
    st.none() | texts,
    st.just(()),
    st.booleans(),
    st.lists(st.tuples(words, words), max_size=2).map(tuple),
    st.none() | words,
    st.none() | st.builds(OverKept, texts, st.dictionaries(words, words, max_size=3)),
    st.lists(texts, max_size=2).map(tuple),
    st.none() | texts,
)
seconds = st.floats(0, 1e9)
verified = st.lists(st.tuples(words, words), max_size=2).map(tuple)
corrections = st.dictionaries(words, seconds, max_size=2)
publications = st.builds(Publication, numbers, numbers, versions, versions, words, verified, corrections)
holders = st.builds(Holder, words, words, numbers, words, words, words)
claims = st.builds(
    Claim, numbers, columns_lists, versions, versions, holders, words, words, st.none() | words
)
history_entries = st.builds(
    HistoryEntry,
    numbers,
    words,
    words,
    st.sampled_from(["published", "failed"]),
    words,
    texts,
    numbers,
    numbers,
    seconds,
    st.lists(st.tuples(words, seconds), max_size=3).map(tuple),
    versions,
    st.none() | numbers,
    words,
    words,
    st.none() | texts,
    st.none() | seconds,
    st.none() | words,
)


@st.composite
def catalogues(draw: st.DrawFn) -> Catalogue:
    entries = draw(st.lists(history_entries, max_size=3))
    return Catalogue(
        draw(words),
        draw(numbers),
        draw(numbers),
        {record.id: record for record in draw(st.lists(table_records, max_size=2))},
        {record.id: record for record in draw(st.lists(view_records, max_size=2))},
        draw(st.dictionaries(words, publications, max_size=2)),
        tuple(draw(st.lists(claims, max_size=2))),
        tuple(sorted(entries, key=lambda item: (item.epoch, item.finished_at))),
    )
