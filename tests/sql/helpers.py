"""What the tests of the SQL layer share: refusals with the marked place, and tables to bind against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from viewkeeper.errors import Location, ViewkeeperError
from viewkeeper.sql.binding import BoundQuery, Column, Input, bind_query
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.script import Fragment
from viewkeeper.sql.types import read_type_text

HOSTILE_NAMES = (
    "it`s",
    "``",
    "it's",
    'say "hi"',
    "a;b",
    "-- comment",
    "/* open",
    "close */",
    "two\nlines",
    "tab\there",
    "back\\slash",
    "dot.ted",
    "größe",
    "数量",
    "🎉",
    "SELECT",
    "1st",
    "$x",
    "{{ x }}",
    " spaced ",
    "'quoted'",
    '"dquoted"',
    "`backticked`",
    "%s",
    ":x",
    "?",
)


def unmark(marked: str) -> tuple[str, Location | None]:
    """Take the marks out of `SELECT «x» FROM t` and say what they marked; no marks, no place."""
    start, end = marked.find("«"), marked.find("»")
    text = marked.replace("«", "").replace("»", "")
    if start == -1:
        return text, None
    return text, Location.of_span(text, start, end - 1)


def refuse(
    run: Callable[[str], Any], marked: str, kind: type[ViewkeeperError], message: str, hint: str
) -> None:
    """Running the text must raise exactly this kind of error, with this text, at the marked place."""
    text, place = unmark(marked)
    with pytest.raises(ViewkeeperError) as caught:
        run(text)
    check_error(caught.value, kind, message, hint, place)


def check_error(
    error: ViewkeeperError, kind: type[ViewkeeperError], message: str, hint: str, place: Location | None
) -> None:
    assert (type(error).__name__, error.message, error.hint) == (kind.__name__, message, hint)
    assert error.location == place


def table(name: str, /, **columns: str) -> Input:
    """A table to bind against; `sales__orders` lies in the schema sales."""
    schema, _, short = name.rpartition("__")
    return named_table(QualifiedName(schema or "default", short), columns)


def named_table(name: QualifiedName, columns: dict[str, str]) -> Input:
    return Input(
        f"id of {name}",
        name,
        tuple(Column(column, read_type_text(data_type)) for column, data_type in columns.items()),
    )


SHOP = (
    table("orders", id="INT", customer_id="INT", amount="DECIMAL(10,2)", placed="DATE"),
    table(
        "customers",
        id="INT",
        name="STRING",
        address="STRUCT<street: STRING, geo: STRUCT<lat: DOUBLE, lon: DOUBLE>>",
        tags="ARRAY<STRING>",
        props="MAP<STRING, INT>",
    ),
    table("items", order_id="INT", product="STRING", quantity="INT", prices="ARRAY<INT>"),
    table("sales__orders", id="INT", region="STRING", place="STRUCT<city: STRING, geo: STRUCT<lat: DOUBLE>>"),
)


def bind(text: str, *tables: Input) -> BoundQuery:
    """Bind a query over the shop, or over other tables."""
    known = {found.name.key: found for found in tables or SHOP}
    return bind_query(
        Fragment.whole(text), lambda name: known.get(name.key), lambda: [str(t.name) for t in known.values()]
    )


def squeeze(sql: str) -> str:
    return " ".join(sql.split())
