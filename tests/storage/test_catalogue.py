"""Looking things up in the catalogue, and the changes it can go through."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage.examples import WHEN, catalogue, claim, entry, one_of_everything, table, view, with_hidden
from viewkeeper.sql.names import QualifiedName
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import Publication


def ids(records: Any) -> list[str]:
    return [record.id for record in records]


# ------------------------------------------------------------------------------------------- looking up


def test_objects_are_found_by_id_and_by_name_in_any_case() -> None:
    found = catalogue([table("t1", "Orders")], [view("v1", ["t1"], "totals")])
    assert found.object("t1").name.name == "Orders"
    assert found.object("v1").name.name == "totals"
    assert found.named(QualifiedName("DEFAULT", "oRDERS")) is found.tables["t1"]
    assert found.named(QualifiedName("default", "Totals")) is found.views["v1"]
    assert found.named(QualifiedName("other", "orders")) is None
    assert found.names() == ["Orders", "totals"]
    assert ids(found.objects()) == ["t1", "v1"]
    with pytest.raises(KeyError):
        found.object("gone")


def test_readers_are_the_views_that_name_the_object_and_not_those_above() -> None:
    found = catalogue([table("t")], [view("a", ["t"]), view("b", ["a"]), view("c", ["t", "b"])])
    assert ids(found.readers_of("t")) == ["a", "c"]
    assert ids(found.readers_of("a")) == ["b"]
    assert ids(found.readers_of("c")) == []


def test_children_have_a_foreign_key_to_the_table_and_a_table_is_no_child_of_itself() -> None:
    found = catalogue([table("p"), table("c", parents=["p"]), table("tree", parents=["tree", "p"])])
    assert ids(found.children_of("p")) == ["c", "tree"]
    assert ids(found.children_of("tree")) == []


# -------------------------------------------------------------------------------------------------- order


def test_views_below_come_before_the_views_that_read_them() -> None:
    found = catalogue([table("t")], [view("top", ["left", "right"]), view("right", ["base"]),
                                     view("left", ["base", "t"]), view("base", ["t"]), view("apart", ["t"])])  # fmt: skip
    assert ids(found.views_below(["top"])) == ["base", "left", "right", "top"]
    assert ids(found.views_below(["base"])) == ["base"]
    assert ids(found.views_below([])) == []


def test_views_asked_for_come_in_the_order_of_their_names_whatever_their_ids() -> None:
    found = catalogue([table("t")], [view("1", ["t"], "c"), view("2", ["t"], "a"), view("3", ["t"], "b")])
    assert ids(found.views_below(["1", "3", "2"])) == ["2", "3", "1"]
    assert ids(found.views_below(["2", "1", "3"])) == ["2", "3", "1"]


def test_a_view_dropped_meanwhile_is_left_out() -> None:
    assert ids(catalogue([table("t")], [view("v", ["t"])]).views_below(["v", "dropped"])) == ["v"]


def test_a_hidden_view_is_refreshed_with_its_owner_and_known_to_nobody_else() -> None:
    """I32"""
    found = catalogue(
        [table("t"), table("u")], [*with_hidden(view("v", ["t", "u"]), ["u"], ["t"]), view("w", ["v"])]
    )
    assert ids(found.views_below(["w"])) == ["hidden_v", "v", "w"]
    assert found.tables_below(["v"]) == {"t", "u"}
    assert ids(found.kept_by("v")) == ["hidden_v"] and found.kept_by("w") == []
    assert ids(found.users_views()) == ["v", "w"]
    assert found.names() == ["t", "u", "v", "w"]
    assert found.named(QualifiedName("default", "hidden_v")) is None
    assert ids(found.readers_of("u")) == ["v"], "who asks is told of the user's view"
    assert ids(found.readers_of("hidden_v")) == []


def test_a_view_is_dropped_with_its_hidden_views() -> None:
    found = catalogue([table("u")], with_hidden(view("v", ["u"]), ["u"], []))
    for view_id in ("v", "hidden_v"):
        found = found.with_publication(view_id, Publication(1, 0, {"u": 1}, {"u": 1}, WHEN))
    after = found.without("v")
    assert not after.views and not after.published and set(after.tables) == {"u"}


@st.composite
def view_graphs(draw: st.DrawFn) -> Catalogue:
    """Two tables and up to twelve views; each reads any tables and any earlier views. Names say nothing of order."""
    count = draw(st.integers(1, 12))
    shuffled = draw(st.permutations(range(count)))
    views = []
    for at in range(count):
        inputs = draw(
            st.lists(st.sampled_from(["t", "u", *(f"v{i}" for i in range(at))]), min_size=1, max_size=4)
        )
        views.append(view(f"v{at}", inputs, f"name{shuffled[at]:02}"))
    return catalogue([table("t"), table("u")], draw(st.permutations(views)))


def reachable(found: Catalogue, wanted: set[str]) -> set[str]:
    """The naive closure: everything that is read, directly or not."""
    everything = set(wanted)
    while True:
        read = {i for v in everything if v in found.views for i in found.views[v].input_ids}
        if read <= everything:
            return everything
        everything |= read


@given(view_graphs(), st.data())
@settings(max_examples=80, deadline=None)
def test_views_below_are_complete_and_in_topological_order(found: Catalogue, data: st.DataObject) -> None:
    wanted = set(data.draw(st.lists(st.sampled_from(sorted(found.views)), max_size=4)))
    below = ids(found.views_below(wanted))
    assert len(below) == len(set(below))
    assert set(below) == reachable(found, wanted) & set(found.views)
    for at, view_id in enumerate(below):
        read = set(found.views[view_id].input_ids) & set(found.views)
        assert read <= set(below[:at]), f"{view_id} comes before what it reads"
    assert below == ids(found.views_below(sorted(wanted, reverse=True)))


@given(view_graphs(), st.data())
@settings(max_examples=60, deadline=None)
def test_tables_below_are_the_tables_reached_through_views(found: Catalogue, data: st.DataObject) -> None:
    wanted = set(data.draw(st.lists(st.sampled_from(["t", "u", *sorted(found.views)]), max_size=4)))
    assert found.tables_below(wanted) == reachable(found, wanted) & set(found.tables)


def test_tables_below_a_ladder_of_views_are_found_at_once() -> None:
    """Each view reads the two before it: the paths grow like Fibonacci's numbers, the work must not."""
    ladder = [view("v0", ["t"]), view("v1", ["t", "v0"])]
    ladder += [view(f"v{i}", [f"v{i - 1}", f"v{i - 2}"]) for i in range(2, 100)]
    found = catalogue([table("t")], ladder)
    assert found.tables_below(["v99"]) == {"t"}
    assert len(found.views_below(["v99"])) == 100


# ------------------------------------------------------------------------------------------------- claims


def test_a_claim_is_found_by_any_of_its_views_and_by_its_token() -> None:
    mine, other = claim(1, ["a", "b"], "mine"), claim(2, ["c"], "other")
    found = catalogue().with_claim(mine).with_claim(other)
    assert found.claim_on(["x", "b"]) == mine
    assert found.claim_on(["c"]) == other
    assert found.claim_on(["x"]) is None
    assert found.claim_on([]) is None
    assert found.claim_with("other") == other
    assert found.claim_with("nobody") is None


def test_a_claim_takes_its_epoch_number_and_replaces_the_claim_of_the_same_epoch() -> None:
    first = claim(7, ["a"], "dead")
    taken = dataclasses.replace(first, holder=dataclasses.replace(first.holder, token="alive"))
    found = catalogue().with_claim(first).with_claim(claim(8, ["b"], "other")).with_claim(taken)
    assert found.last_epoch == 8
    assert found.claim_with("dead") is None
    assert {c.epoch: c.holder.token for c in found.claims} == {7: "alive", 8: "other"}


def test_giving_a_claim_back_keeps_the_epoch_number_used_up() -> None:
    """I11"""
    found = catalogue().with_claim(claim(7, ["a"])).without_claim(7)
    assert found.claims == ()
    assert found.last_epoch == 7
    assert found.without_claim(99) == found


# ---------------------------------------------------------------------------------------- with and without


def test_changes_return_a_new_value_and_leave_the_old_one_alone() -> None:
    before = one_of_everything()
    untouched = dataclasses.replace(before)
    publication = Publication(9, 9, {}, {}, WHEN)
    for after in (
        before.with_table(table("new")),
        before.with_view(view("new", ["t"])),
        before.without("v"),
        before.with_claim(claim(99, ["x"])),
        before.without_claim(3),
        before.with_publication("v", publication),
        before.with_history([entry(3)]),
    ):
        assert after != before
        assert before == untouched


def test_with_replaces_the_record_of_the_same_id() -> None:
    found = catalogue([table("t", "old")], [view("v", ["t"], "old")])
    found = found.with_table(table("t", "new")).with_view(view("v", ["t"], "newer"))
    assert found.names() == ["new", "newer"]
    assert len(found.tables) == len(found.views) == 1


def test_without_removes_the_object_and_its_publication_and_nothing_else() -> None:
    before = one_of_everything()
    after = before.without("v")
    assert set(after.views) == {"w"}
    assert after.published == {}
    assert (after.tables, after.claims, after.recent_history) == (
        before.tables,
        before.claims,
        before.recent_history,
    )
    assert set(before.without("t").tables) == {"u"}
    assert before.without("unknown") == before


def test_history_is_added_at_the_end() -> None:
    found = catalogue().with_history([entry(1)]).with_history([entry(2), entry(3)])
    assert [e.epoch for e in found.recent_history] == [1, 2, 3]
