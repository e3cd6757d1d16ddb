"""Building blocks of generated SQL: names are quoted, literals escaped, nothing is pasted together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from tests.sql.helpers import HOSTILE_NAMES, squeeze
from tests.support.golden import check_golden
from viewkeeper.sql.rendering import (
    alias,
    at_time,
    call,
    column,
    create_delta_table,
    delta_table,
    explode_sequence,
    lambda_of,
    literal,
    relation_named,
    render,
    select_all,
    select_from,
    union_all,
    visible_rows,
)
from viewkeeper.sql.script import Fragment, parse_sql
from viewkeeper.sql.statements import ColumnDefinition
from viewkeeper.sql.token_reader import TokenReader
from viewkeeper.sql.types import read_type_text


def spark(tree: exp.Expr) -> str:
    return squeeze(render(tree))


@pytest.mark.parametrize(
    ("tree", "sql"),
    [
        pytest.param(column("a"), "`a`", id="column"),
        pytest.param(column("a b", "t`u"), "`t``u`.`a b`", id="column-of-a-table"),
        pytest.param(literal(3), "3", id="number"),
        pytest.param(literal(-3), "-3", id="negative"),
        pytest.param(literal("it's"), "'it\\'s'", id="text"),
        pytest.param(literal("a\\b\nc"), "'a\\\\b\\nc'", id="text-with-escapes"),
        pytest.param(alias(literal(1), "a b"), "1 AS `a b`", id="alias"),
        pytest.param(call("SOME_FUNCTION", column("a"), literal(1)), "SOME_FUNCTION(`a`, 1)", id="call"),
        pytest.param(lambda_of("e", call("F", exp.to_identifier("e"))), "e -> F(e)", id="lambda"),
        pytest.param(relation_named("my t"), "`my t`", id="relation"),
        pytest.param(select_all(relation_named("t")), "SELECT * FROM `t`", id="select-all"),
        pytest.param(
            select_from(relation_named("t"), [column("a"), column("b")]),
            "SELECT `a`, `b` FROM `t`",
            id="select",
        ),
        pytest.param(
            union_all(select_all(relation_named("t")), select_all(relation_named("t"))),
            "SELECT * FROM `t` UNION ALL SELECT * FROM `t`",
            id="union-all",
        ),
        pytest.param(
            explode_sequence(literal(1), column("n"), "i"),
            "LATERAL VIEW EXPLODE(SEQUENCE(1, CAST(`n` AS INT))) AS `i`",
            id="explode",
        ),
        pytest.param(delta_table("/data/t"), "delta.`/data/t`", id="delta"),
        pytest.param(
            delta_table("/it`s/a;b", 0), "delta.`/it``s/a;b` VERSION AS OF 0", id="delta-version-zero"
        ),
        pytest.param(delta_table("s3://b/ü", 12), "delta.`s3://b/ü` VERSION AS OF 12", id="delta-version"),
        pytest.param(
            visible_rows(relation_named("t"), ["a", "b c"]), "( SELECT `a`, `b c` FROM `t` )", id="visible"
        ),
    ],
)
def test_building_blocks(tree: exp.Expr, sql: str) -> None:
    assert spark(tree) == sql


@pytest.mark.parametrize(
    ("clause", "sql"),
    [
        ("VERSION AS OF 3", "`t` VERSION AS OF 3"),
        ("FOR VERSION AS OF 3", "`t` VERSION AS OF 3"),
        ("VERSION AS OF '3'", "`t` VERSION AS OF '3'"),
        ("TIMESTAMP AS OF '2024-01-31'", "`t` TIMESTAMP AS OF '2024-01-31'"),
        ("FOR SYSTEM_TIME AS OF '2024-01-31'", "`t` TIMESTAMP AS OF '2024-01-31'"),
    ],
)
def test_time_travel_is_kept(clause: str, sql: str) -> None:
    assert spark(at_time(relation_named("t"), clause)) == sql


@given(st.text().filter(lambda text: "\x00" not in text))
def test_any_text_survives_as_a_literal(text: str) -> None:
    written = literal(text).sql(dialect="spark")
    assert TokenReader(Fragment.whole(written)).string("the text") == text
    parsed = parse_sql(f"SELECT {written}").expressions[0]
    assert isinstance(parsed, exp.Literal)
    assert parsed.this == text


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_stay_names(name: str) -> None:
    """I31"""
    tree = parse_sql(render(select_from(delta_table(name, 3), [column(name, name)])))
    (found,) = tree.find_all(exp.Column)
    (table,) = tree.find_all(exp.Table)
    assert (found.name, found.table, table.name, table.db) == (name, name, name, "delta")


COLUMNS = [
    ColumnDefinition("id", read_type_text("BIGINT"), nullable=False, comment="the order's number"),
    ColumnDefinition("it`s; --", read_type_text("STRING"), default="'it''s'"),
    ColumnDefinition("placed", read_type_text("TIMESTAMP"), default="current_timestamp()"),
    ColumnDefinition(
        "amount", read_type_text("DECIMAL(10,2)"), nullable=False, default="1 + 2 * 3", comment="a\nb"
    ),
    ColumnDefinition("nothing", read_type_text("INT"), default="NULL"),
    ColumnDefinition("nested", read_type_text("MAP<STRING, STRUCT<`a b`: ARRAY<INT>, `c``d`: VARIANT>>")),
]


def test_create_delta_table(request: pytest.FixtureRequest) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "it's": 'a "b" \\ c'}
    check_golden(request, create_delta_table("/data/it`s", COLUMNS, properties, "Orders, it's said; -- all"))


def test_create_the_smallest_delta_table() -> None:
    columns = [ColumnDefinition("a", read_type_text("INT"))]
    assert (
        squeeze(create_delta_table("/t", columns, {}, None))
        == "CREATE TABLE delta.`/t` ( `a` INT ) USING DELTA"
    )


def test_an_empty_comment_is_a_comment() -> None:
    columns = [ColumnDefinition("a", read_type_text("INT"), comment="")]
    assert squeeze(create_delta_table("/t", columns, {}, "")) == (
        "CREATE TABLE delta.`/t` ( `a` INT COMMENT '' ) USING DELTA COMMENT ''"
    )
