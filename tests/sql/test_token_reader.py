"""The cursor over one statement: words, names, literals, and where it stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sql.helpers import HOSTILE_NAMES, refuse
from viewkeeper.errors import SqlSyntaxError
from viewkeeper.sql.names import QualifiedName, quote
from viewkeeper.sql.script import Fragment
from viewkeeper.sql.token_reader import TokenReader


def reader_of(text: str) -> TokenReader:
    return TokenReader(Fragment.whole(text))


def test_words_are_taken_in_any_case_and_all_or_none() -> None:
    reader = reader_of("drop Table IF exists t")
    assert not reader.take("DROP", "VIEW")
    assert reader.sees("DROP", "TABLE")
    assert reader.take("DROP", "TABLE")
    assert reader.take("IF", "EXISTS")
    assert not reader.sees("T", "X")
    assert reader.take("T")
    assert reader.at_end
    assert reader.peek() is None


@pytest.mark.parametrize("quoted", ["`drop`", "'drop'", '"drop"'])
def test_quoted_names_and_strings_are_no_words(quoted: str) -> None:
    assert not reader_of(f"{quoted} table").sees("DROP")


def test_two_words_are_two_tokens() -> None:
    reader = reader_of("PRIMARY KEY NOT NULL")
    assert reader.take("PRIMARY")
    assert reader.take("KEY", "NOT")
    reader.expect("NULL")
    reader.expect_end()


def test_commands_that_sqlglot_swallows_are_read_word_by_word() -> None:
    assert [token.text for token in Fragment.whole("EXPLAIN MATERIALIZED VIEW v").tokens()] == [
        "EXPLAIN",
        "MATERIALIZED",
        "VIEW",
        "v",
    ]
    assert [token.text for token in Fragment.whole("VACUUM WAREHOUSE").tokens()] == ["VACUUM", "WAREHOUSE"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("t", QualifiedName("default", "t")),
        ("s.t", QualifiedName("s", "t")),
        ("s . t", QualifiedName("s", "t")),
        ("`s`.`t`", QualifiedName("s", "t")),
        ("`s.t`", QualifiedName("default", "s.t")),
        ("`a``b`", QualifiedName("default", "a`b")),
        ("table", QualifiedName("default", "table")),
        ("Orders", QualifiedName("default", "Orders")),
        ("größe", QualifiedName("default", "größe")),
        ("_x1", QualifiedName("default", "_x1")),
        ("1st", QualifiedName("default", "1st")),
        ("default.t", QualifiedName("default", "t")),
    ],
)
def test_names(text: str, name: QualifiedName) -> None:
    reader = reader_of(text)
    assert reader.name() == name
    assert reader.at_end


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_read_as_they_are_quoted(name: str) -> None:
    reader = reader_of(f"{quote(name)}.{quote(name)}")
    assert reader.name() == QualifiedName(name, name)


@given(st.text(min_size=1).filter(lambda name: "\x00" not in name))
def test_any_name_survives_quoting(name: str) -> None:
    reader = reader_of(f"  {quote(name)} , x")
    assert reader.identifier() == name
    assert reader.take(",")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a'", "a"),
        ('"a"', "a"),
        ("''", ""),
        ("'it''s'", "it's"),
        ('"say ""hi"""', 'say "hi"'),
        ("'it\\'s'", "it's"),
        ("'a' 'b'", "ab"),
        ("'a'\n'b' \"c\"", "abc"),
        ("'a'\"b\"", "ab"),
        ("'tab\\tnew\\nline'", "tab\tnew\nline"),
        ("'back\\\\slash'", "back\\slash"),
        ("'ü😀; -- no /* comment'", "ü😀; -- no /* comment"),
    ],
)
def test_strings(text: str, value: str) -> None:
    reader = reader_of(f"{text} , x")
    assert reader.string("a text") == value
    assert reader.take(",")


@pytest.mark.parametrize(
    ("text", "expression", "rest"),
    [
        ("1 + 2, b", "1 + 2", ","),
        ("f(1, (2)), b", "f(1, (2))", ","),
        ("'a, b' , c", "'a, b'", ","),
        ("1) x", "1", ")"),
        ("(1) NOT NULL", "(1)", "NOT"),
        ("NULL, b", "NULL", ","),
        ("NULL NOT NULL", "NULL", "NOT"),
        ("x IS NULL, b", "x IS NULL", ","),
        ("x IS NOT NULL NOT NULL", "x IS NOT NULL", "NOT"),
        ("CASE WHEN x THEN NULL ELSE NULL END NULL", "CASE WHEN x THEN NULL ELSE NULL END", "NULL"),
        ("not_null", "not_null", None),
        ("`NOT` NULL", "`NOT`", "NULL"),
        ("1 -- , no\n + 2, b", "1 -- , no\n + 2", ","),
    ],
)
def test_text_until_a_stop(text: str, expression: str, rest: str | None) -> None:
    reader = reader_of("DEFAULT " + text)
    reader.expect("DEFAULT")
    assert reader.text_until(",", "NOT NULL", "NULL").text == expression
    following = reader.peek()
    assert (following.text if following else None) == rest


def test_the_rest_leaves_out_comments_around_it_only() -> None:
    reader = reader_of("AS /* a */ SELECT /* b */ 1 -- c")
    reader.expect("AS")
    rest = reader.rest()
    assert (rest.text, rest.start) == ("SELECT /* b */ 1", 11)
    assert reader.at_end


def test_a_list_of_names() -> None:
    reader = reader_of("(a, `b c`, key) x")
    assert reader.name_list("a column") == ("a", "b c", "key")
    assert reader.take("X")


@pytest.mark.parametrize(
    ("marked", "read", "message"),
    [
        pytest.param(
            "DRO«P»", lambda r: r.expect("DROP", "TABLE"), "TABLE is expected here.", id="expect-at-end"
        ),
        pytest.param(
            "DROP «VIEW» v", lambda r: r.expect("DROP", "TABLE"), "TABLE is expected here.", id="expect"
        ),
        pytest.param("«x»", lambda r: r.expect_end(), "the statement should end here.", id="expect-end"),
        pytest.param(
            "«'x'»", lambda r: r.identifier("a column"), "a column is expected here.", id="string-as-name"
        ),
        pytest.param("«12»", lambda r: r.identifier(), "a name is expected here.", id="number-as-name"),
        pytest.param(
            "«X'1F'»", lambda r: r.identifier(), "a name is expected here.", id="hexadecimal-as-name"
        ),
        pytest.param("«r'x'»", lambda r: r.identifier(), "a name is expected here.", id="raw-string-as-name"),
        pytest.param("«``»", lambda r: r.identifier(), "a name is expected here.", id="empty-name"),
        pytest.param("«-»", lambda r: r.identifier(), "a name is expected here.", id="minus"),
        pytest.param("«[»a]", lambda r: r.identifier(), "a name is expected here.", id="bracket"),
        pytest.param("«?»", lambda r: r.identifier(), "a name is expected here.", id="question-mark"),
        pytest.param("«@»x", lambda r: r.identifier(), "a name is expected here.", id="at"),
        pytest.param("«||»", lambda r: r.identifier(), "a name is expected here.", id="pipes"),
        pytest.param("a.«.»b", lambda r: r.name("the table"), "the table is expected here.", id="two-dots"),
        pytest.param("a«.»", lambda r: r.name("the table"), "the table is expected here.", id="dot-at-end"),
        pytest.param(
            "a.b«.»c", lambda r: r.name(), "a name has at most two parts here: schema.name.", id="three-parts"
        ),
        pytest.param(
            "«x»", lambda r: r.string("the comment"), "the comment in quotes is expected here.", id="string"
        ),
        pytest.param(
            "«x»", lambda r: r.whole_number("n"), "n, a whole number, is expected here.", id="number"
        ),
        pytest.param(
            "«1.5»", lambda r: r.whole_number("n"), "n, a whole number, is expected here.", id="fraction"
        ),
        pytest.param(
            "«-»1", lambda r: r.whole_number("n"), "n, a whole number, is expected here.", id="negative"
        ),
        pytest.param(
            "«'1'»", lambda r: r.whole_number("n"), "n, a whole number, is expected here.", id="text"
        ),
        pytest.param(
            "«²»", lambda r: r.whole_number("n"), "n, a whole number, is expected here.", id="superscript"
        ),
        pytest.param("(a«)»", lambda r: r.expect("(", "A", ","), ", is expected here.", id="comma"),
        pytest.param(
            "(a, «)»", lambda r: r.name_list("a column"), "a column is expected here.", id="list-ends"
        ),
        pytest.param(
            "(a «b»)", lambda r: r.name_list("a column"), ") is expected here.", id="list-not-closed"
        ),
        pytest.param(
            "x «)»",
            lambda r: (r.expect("X"), r.text_until(",")),
            "an expression is expected here.",
            id="no-expression",
        ),
    ],
)
def test_refusals(marked: str, read: Callable[[TokenReader], Any], message: str) -> None:
    refuse(lambda text: read(reader_of(text)), marked, SqlSyntaxError, message, "")


@pytest.mark.parametrize(
    ("read", "message"),
    [
        pytest.param(
            lambda r: r.next_token(), "something is missing at the end of the statement.", id="next"
        ),
        pytest.param(lambda r: r.rest(), "a query is expected here.", id="rest"),
        pytest.param(lambda r: r.text_until(","), "an expression is expected here.", id="text-until"),
    ],
)
def test_refusals_at_the_end(read: Callable[[TokenReader], Any], message: str) -> None:
    def run(text: str) -> None:
        reader = reader_of(text)
        reader.expect("A", "BC")
        read(reader)

    refuse(run, "a\nb«c»  \n", SqlSyntaxError, message, "")
