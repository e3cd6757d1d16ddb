"""The airline of examples/airline: its tables and its views."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import duckdb

from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.parse_statement import parse_statement
from viewkeeper.sql.script import split_script
from viewkeeper.sql.statements import CreateView
from viewkeeper.testing import Case
from viewkeeper.testing.agreement import definition
from viewkeeper.testing.tables import Schema, read_schema

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "airline"


def _tables() -> Schema:
    fragments = split_script((EXAMPLE / "schema.sql").read_text(encoding="utf-8"))
    return read_schema(";\n".join(each.text for each in fragments if "CREATE TABLE" in each.text))


def _view(path: Path) -> str:
    (fragment,) = split_script(path.read_text(encoding="utf-8"))
    statement = parse_statement(fragment)
    assert isinstance(statement, CreateView)
    return statement.query.text


TRUSTED_AIRLINE = _tables()
AIRLINE = read_schema(TRUSTED_AIRLINE.to_sql().replace(" RELY", ""))
"""The same tables, with keys that are checked."""

EXAMPLE_VIEWS = {path.stem: _view(path) for path in sorted((EXAMPLE / "views").glob("*.sql"))}

WITH_MORE_TABLES = read_schema(
    AIRLINE.to_sql()
    + """;
CREATE TABLE member (id INT PRIMARY KEY, card INT UNIQUE, level INT, club INT, UNIQUE (club, level));
CREATE TABLE visit (ffn INT, lounge INT)
"""
)
"""With keys that may be NULL, and a table without a key."""


def with_trust(schema: Schema) -> Schema:
    """The same tables, every key declared RELY."""
    return read_schema(re.sub(r"((?:PRIMARY KEY|UNIQUE) \([^)]*\))", r"\1 RELY", schema.to_sql()))


def view_of(
    database: duckdb.DuckDBPyConnection, name: str, text: str, schema: Schema = WITH_MORE_TABLES
) -> ViewDefinition:
    """A view over these tables, under its name."""
    found = definition(database, Case(schema, text, ()))
    return replace(found, name=QualifiedName("default", name), id=name)
