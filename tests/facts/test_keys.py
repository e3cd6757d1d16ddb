"""Keys of queries, and joins that always find their parent."""

from __future__ import annotations

import pytest

from viewkeeper.algebra.from_query import read_algebra
from viewkeeper.algebra.nodes import InnerJoin, Project
from viewkeeper.facts.declared import Declared, TotalForeignKey, UniqueKey
from viewkeeper.facts.foreign_keys import parent_joins
from viewkeeper.facts.keys import key_of
from viewkeeper.sql.binding import Column, Input, bind_query
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.script import Fragment
from viewkeeper.sql.types import read_type_text

SHAPES = {
    "parent": {"id": "INT", "code": "STRING", "size": "DOUBLE"},
    "child": {"id": "INT", "parent_id": "INT", "line": "INT", "big": "BIGINT"},
    "loose": {"a": "INT", "b": "INT"},
}
TABLES = {
    name: Input(
        name, QualifiedName("default", name), tuple(Column(c, read_type_text(t)) for c, t in shape.items())
    )
    for name, shape in SHAPES.items()
}
DECLARED = {
    "parent": Declared((UniqueKey(("id",), "parent_pk"), UniqueKey(("code",), "parent_code"))),
    "child": Declared(
        (UniqueKey(("parent_id", "line"), "child_pk"),),
        (TotalForeignKey(("parent_id",), "parent", ("id",), "child_fk"),),
    ),
}


def tree(text: str) -> Project:
    query = bind_query(Fragment.whole(text), lambda name: TABLES.get(name.name), lambda: list(TABLES))
    found = read_algebra(query, query.output_names)
    assert isinstance(found, Project)
    return found


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("SELECT id, code FROM parent", ("id",)),
        ("SELECT code, size FROM parent", ("code",)),
        ("SELECT size FROM parent", None),
        ("SELECT a, b FROM loose", None),
        ("SELECT parent_id, line, big FROM child", ("parent_id", "line")),
        ("SELECT parent_id FROM child WHERE line = 1", ("parent_id",)),
        ("SELECT big FROM child WHERE line = 1 AND parent_id = 2", ()),
        ("SELECT p.code, c.line FROM parent p JOIN child c ON p.id = c.parent_id", ("code", "line")),
        ("SELECT c.line FROM parent p JOIN child c ON p.id = c.parent_id", None),
        ("SELECT p.code, c.parent_id, c.line FROM parent p, child c", ("code", "parent_id", "line")),
        ("SELECT c.parent_id, c.line FROM parent p JOIN child c ON p.id = c.big", None),
        ("SELECT a.id, b.id AS other FROM parent a JOIN parent b ON a.code = b.code", ("id",)),
        ("SELECT id FROM parent WHERE size = 1.0", ("id",)),
        ("SELECT b, count(*) AS n FROM loose GROUP BY b", ("b",)),
        ("SELECT count(*) AS n FROM loose GROUP BY b", None),
        ("SELECT count(*) AS n FROM loose", ()),
    ],
)
def test_keys(text: str, key: tuple[str, ...] | None) -> None:
    found = key_of(tree(text), DECLARED)
    assert (None if found is None else found.columns) == key


def test_a_key_tells_why_and_what_it_relies_on() -> None:
    found = key_of(tree("SELECT p.code, c.line FROM parent p JOIN child c ON p.id = c.parent_id"), DECLARED)
    assert found is not None
    assert found.reason == (
        "code, line determines every row: (code) is a key of p; (parent_id, line) is a key of c"
    )
    assert {each.constraint for each in found.relies_on} == {"parent_code", "child_pk"}


@pytest.mark.parametrize(
    ("text", "joins"),
    [
        ("SELECT c.line FROM child c JOIN parent p ON p.id = c.parent_id", [("c", "p")]),
        ("SELECT c.line FROM child c, parent p WHERE c.parent_id = p.id AND p.size > 1", [("c", "p")]),
        ("SELECT c.line FROM child c JOIN parent p ON p.id = c.big", []),
        ("SELECT c.line FROM child c JOIN parent p ON p.id < c.parent_id", []),
        ("SELECT 1 AS x FROM child c, child d, parent p WHERE c.parent_id = p.id AND p.id = d.parent_id", [("c", "p"), ("d", "p")]),
    ],
)  # fmt: skip
def test_joins_that_find_their_parent(text: str, joins: list[tuple[str, str]]) -> None:
    source = tree(text).source
    assert isinstance(source, InnerJoin)
    assert [(found.child, found.parent) for found in parent_joins(source, DECLARED)] == joins
