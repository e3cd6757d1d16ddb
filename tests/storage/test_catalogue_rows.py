"""The catalogue as rows: nothing is lost on the way, and damage is named instead of read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from tests.storage.examples import catalogues, one_of_everything
from viewkeeper.errors import CorruptWarehouseError, FormatVersionError
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.catalogue_rows import FORMAT_VERSION, Row, from_rows, to_rows

KINDS = ["head", "table", "view", "published", "claim", "history"]


def changed(kind: str, **keys: Any) -> list[Row]:
    """The rows of an example, with these keys in the first row of a kind."""
    rows = to_rows(one_of_everything())
    at = next(i for i, row in enumerate(rows) if row.kind == kind)
    rows[at] = rows[at]._replace(body=json.dumps({**json.loads(rows[at].body), **keys}))
    return rows


def with_body(kind: str, body: Any) -> list[Row]:
    rows = to_rows(one_of_everything())
    at = next(i for i, row in enumerate(rows) if row.kind == kind)
    rows[at] = rows[at]._replace(body=body)
    return rows


def damage(rows: list[Row]) -> str:
    with pytest.raises(CorruptWarehouseError) as caught:
        from_rows(rows)
    assert caught.value.hint == "restore the folder _viewkeeper from a backup."
    assert caught.value.message.startswith("the catalogue of the warehouse is damaged: ")
    assert "\n" not in caught.value.message
    return caught.value.message.removeprefix("the catalogue of the warehouse is damaged: ")


# -------------------------------------------------------------------------------------------- round trips


@given(catalogues())
@settings(max_examples=60, deadline=None)
def test_a_catalogue_survives_its_rows(catalogue: Catalogue) -> None:
    assert from_rows(to_rows(catalogue)) == catalogue


def test_an_example_has_a_row_of_every_kind_and_survives_in_any_order_of_rows() -> None:
    catalogue = one_of_everything()
    rows = to_rows(catalogue)
    assert list(dict.fromkeys(row.kind for row in rows)) == KINDS
    assert from_rows(reversed(rows)) == catalogue


def test_an_empty_catalogue_is_one_row() -> None:
    assert [(row.kind, row.key) for row in to_rows(Catalogue("w"))] == [("head", "")]
    assert from_rows(to_rows(Catalogue("w"))) == Catalogue("w")


def test_bodies_are_plain_ascii_json_that_any_reader_of_delta_understands() -> None:
    for row in to_rows(one_of_everything()):
        assert row.body.isascii()
        assert isinstance(json.loads(row.body), dict)


# ------------------------------------------------------------------------------------------ newer formats


def test_a_newer_format_is_refused_with_the_way_out() -> None:
    with pytest.raises(FormatVersionError) as caught:
        from_rows(changed("head", format=FORMAT_VERSION + 1))
    assert str(caught.value) == (
        "the warehouse has format 2; this Viewkeeper knows formats up to 1.\n"
        "To do: upgrade: pip install --upgrade viewkeeper."
    )


def test_a_newer_format_is_refused_before_its_rows_are_looked_at() -> None:
    head = json.dumps({"format": 9, "something": "new"})
    with pytest.raises(FormatVersionError, match="has format 9"):
        from_rows([Row("head", "", head), Row("table", "t", "{}")])


# ------------------------------------------------------------------------------------------------- damage


def test_no_head() -> None:
    assert damage([]) == "it has 0 head rows instead of one."
    assert damage(to_rows(one_of_everything())[1:]) == "it has 0 head rows instead of one."


def test_two_heads() -> None:
    rows = to_rows(one_of_everything())
    assert damage([rows[0], *rows]) == "it has 2 head rows instead of one."


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", ['{"id": "t", ', "", "null", "[]", "7", '"text"', None], ids=repr)
def test_a_body_that_is_no_json_object(kind: str, body: str | None) -> None:
    assert damage(with_body(kind, body)).startswith(f"the {kind} row ")


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_key_is_refused_for_the_next_swap_would_lose_it(kind: str) -> None:
    """I27"""
    text = damage(changed(kind, flavour="sweet"))
    assert text.startswith(f"the {kind} row ")
    assert "flavour" in text


@pytest.mark.parametrize(
    ("kind", "key"),
    sorted({(row.kind, key) for row in to_rows(one_of_everything()) for key in json.loads(row.body)}),
)
def test_a_missing_key_is_named(kind: str, key: str) -> None:
    rows = changed(kind)
    at = next(i for i, row in enumerate(rows) if row.kind == kind)
    body = json.loads(rows[at].body)
    del body[key]
    rows[at] = rows[at]._replace(body=json.dumps(body))
    if (kind, key) in {
        ("claim", "last_error"),
        ("claim", "loads"),
        ("claim", "restores"),
        ("claim", "tries"),
        ("history", "error"),
        ("history", "fallback"),
        ("history", "owner"),
        ("history", "predicted"),
        ("published", "corrections"),
        ("view", "refusal"),
    }:  # these have a default
        assert from_rows(rows) == one_of_everything()
    else:
        assert key in damage(rows)


def test_an_unknown_kind_of_row() -> None:
    rows = [*to_rows(one_of_everything()), Row("flavour", "x", "{}")]
    assert damage(rows) == "it has rows of an unknown kind, 'flavour'."


@pytest.mark.parametrize("kind", ["table", "view", "published"])
def test_two_rows_for_one_object(kind: str) -> None:
    rows = to_rows(one_of_everything())
    again = next(row for row in rows if row.kind == kind)
    assert damage([*rows, again]) == f"it has several {kind} rows for one object."


@pytest.mark.parametrize("text", ["INTT", "", "ARRAY<", "DECIMAL(99,1)"])
def test_a_column_type_that_is_none(text: str) -> None:
    column = {"name": "id", "type": text, "nullable": False, "comment": None}
    assert damage(changed("table", columns=[column])).startswith("the table row 't' cannot be read (")


@pytest.mark.parametrize(
    "epochs", [{"last_epoch": "7"}, {"first_kept_epoch": 1.5}, {"format": "1"}], ids=repr
)
def test_an_epoch_or_format_that_is_no_number(epochs: dict[str, Any]) -> None:
    assert damage(changed("head", **epochs)).startswith("the head row '' cannot be read (")


def test_a_policy_that_is_none() -> None:
    assert "SOMETIMES" in damage(changed("view", policy="SOMETIMES"))
