"""Names: equal as Spark compares them, quoted when needed, and guessed when misspelled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sql.helpers import HOSTILE_NAMES
from viewkeeper.generated_names import is_hidden, query_relation, state_relation
from viewkeeper.sql.names import QualifiedName, closest, did_you_mean, quote, quote_if_needed


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (QualifiedName("default", "t"), "t"),
        (QualifiedName("sales", "orders"), "sales.orders"),
        (QualifiedName("sales", "my orders"), "sales.`my orders`"),
        (QualifiedName("my sales", "orders"), "`my sales`.orders"),
        (QualifiedName("default", "a.b"), "`a.b`"),
        (QualifiedName("default", "it`s"), "`it``s`"),
        (QualifiedName("default", "größe"), "`größe`"),
        (QualifiedName("default", "1st"), "`1st`"),
        (QualifiedName("default", "_x1"), "_x1"),
        (QualifiedName("default", ""), "``"),
    ],
)
def test_names_are_quoted_only_when_needed(name: QualifiedName, shown: str) -> None:
    assert str(name) == shown


def test_the_key_forgets_upper_and_lower_case() -> None:
    assert QualifiedName("Sales", "ORDERS").key == QualifiedName("sales", "orders").key == "`sales`.`orders`"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (QualifiedName("a", "b.c"), QualifiedName("a.b", "c")),
        (QualifiedName("a", "b`.`c"), QualifiedName("a`.`b", "c")),
        (QualifiedName("default", "a_b"), QualifiedName("a", "b")),
    ],
)
def test_different_names_have_different_keys(one: QualifiedName, other: QualifiedName) -> None:
    assert one.key != other.key


parts = st.text(alphabet="aAb`.Üü", max_size=4)


@given(parts, parts, parts, parts)
def test_keys_tell_names_apart(schema: str, name: str, other_schema: str, other_name: str) -> None:
    one, other = QualifiedName(schema, name), QualifiedName(other_schema, other_name)
    assert (one.key == other.key) == (
        (schema.lower(), name.lower()) == (other_schema.lower(), other_name.lower())
    )


def test_relation_stems() -> None:
    assert QualifiedName("default", "orders").relation_stem == "orders"
    assert QualifiedName("sales", "orders").relation_stem == "sales_orders"


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_never_left_bare(name: str) -> None:
    inside = quote(name)[1:-1]
    assert quote(name) == f"`{inside}`"
    assert inside.replace("``", "`") == name
    if name != "SELECT":
        assert quote_if_needed(name) == quote(name)


@pytest.mark.parametrize(
    ("name", "candidates", "found"),
    [
        ("amuont", ["id", "amount"], "amount"),
        ("AMUONT", ["id", "Amount"], "Amount"),
        ("zzz", ["id", "amount"], None),
        ("orders", [], None),
        ("ordres", ["orders", "order"], "orders"),
    ],
)
def test_closest(name: str, candidates: list[str], found: str | None) -> None:
    assert closest(name, candidates) == found


def test_did_you_mean() -> None:
    assert did_you_mean("ordres", ["orders"], "create it.") == "did you mean orders?"
    assert did_you_mean("zzz", ["orders"], "create it.") == "create it."
    assert did_you_mean("zzz", ["orders"]) == ""


@pytest.mark.parametrize(
    ("name", "hidden"), [("_vk_copy", True), ("_VK_x", True), ("_vk", False), ("vk_copy", False), ("", False)]
)
def test_hidden_names(name: str, hidden: bool) -> None:
    assert is_hidden(name) is hidden


def test_names_of_relations() -> None:
    assert query_relation("v") == "v_query"
    assert state_relation("orders", "old") == "orders_old"
