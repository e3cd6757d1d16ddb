"""Every field of every record survives its JSON form."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage import examples
from viewkeeper.sql.types import read_type_text
from viewkeeper.storage.records import (
    Claim,
    HistoryEntry,
    Publication,
    TableRecord,
    ViewRecord,
    now,
)

RANDOM_RECORDS: dict[type[Any], st.SearchStrategy[Any]] = {
    TableRecord: examples.table_records,
    ViewRecord: examples.view_records,
    Publication: examples.publications,
    Claim: examples.claims,
    HistoryEntry: examples.history_entries,
}


def there_and_back(record: Any) -> Any:
    return type(record).from_json(json.loads(json.dumps(record.to_json())))


@given(st.one_of(*RANDOM_RECORDS.values()))
@settings(max_examples=150, deadline=None)
def test_a_record_survives_its_json_form(record: Any) -> None:
    again = there_and_back(record)
    assert again == record
    assert there_and_back(again).to_json() == record.to_json()


@pytest.mark.parametrize("kind", RANDOM_RECORDS, ids=lambda kind: kind.__name__)
def test_the_json_form_has_every_field(kind: type[Any]) -> None:
    """A field that somebody adds and forgets to store fails here, whatever its default is."""

    @given(RANDOM_RECORDS[kind])
    @settings(max_examples=5, deadline=None)
    def check(record: Any) -> None:
        assert set(record.to_json()) == {field.name for field in dataclasses.fields(kind)}

    check()


@pytest.mark.parametrize("kind", RANDOM_RECORDS, ids=lambda kind: kind.__name__)
def test_what_is_read_is_as_immutable_and_comparable_as_what_was_written(kind: type[Any]) -> None:
    """A list where a tuple was would compare unequal only later, far from here."""

    @given(RANDOM_RECORDS[kind])
    @settings(max_examples=30, deadline=None)
    def check(record: Any) -> None:
        again = there_and_back(record)
        for field in dataclasses.fields(kind):
            written, read = getattr(record, field.name), getattr(again, field.name)
            assert type(read) is type(written), field.name

    check()


@given(examples.data_types)
@settings(max_examples=100, deadline=None)
def test_a_type_survives_its_text(data_type: Any) -> None:
    assert read_type_text(str(data_type)) == data_type


def test_the_defaults_are_stored_too() -> None:
    for record in (
        examples.table("t"),
        examples.view("v", ["t"]),
        examples.claim(1, ["v"]),
        examples.entry(1),
    ):
        assert there_and_back(record) == record


def test_input_ids_name_each_object_once_in_the_order_of_the_query() -> None:
    view = examples.view("v", ["b", "a"])
    view = dataclasses.replace(view, references={**view.references, "`other`.`b`": "b"})
    assert view.input_ids == ("b", "a")


def test_a_holder_introduces_itself() -> None:
    assert str(examples.holder(pid=12)) == "process 12 of user on host"
    assert str(examples.holder(pid=-1)) == "a process that stopped of user on host"


def test_now_is_utc_with_milliseconds_and_sorts_as_text() -> None:
    first, second = now(), now()
    assert first <= second
    moment = datetime.fromisoformat(first)
    assert moment.tzinfo == timezone.utc
    assert abs(datetime.now(timezone.utc) - moment) < timedelta(minutes=1)
    assert len(first) == len("2026-01-01T00:00:00.000+00:00")
