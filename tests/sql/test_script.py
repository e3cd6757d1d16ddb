"""Scripts are split where statements end, and every part still knows its place in the script."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sql.helpers import refuse
from viewkeeper.errors import SqlSyntaxError
from viewkeeper.sql.script import Fragment, single_statement, split_script


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        pytest.param("SELECT 1", ["SELECT 1"], id="one"),
        pytest.param("SELECT 1;", ["SELECT 1"], id="one-with-semicolon"),
        pytest.param("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"], id="two"),
        pytest.param("a;b;c", ["a", "b", "c"], id="no-spaces"),
        pytest.param(";; a ;;; b ;", ["a", "b"], id="empty-statements"),
        pytest.param("", [], id="nothing"),
        pytest.param(" \n\t ", [], id="blanks"),
        pytest.param(";;;", [], id="semicolons"),
        pytest.param("-- a; b", [], id="line-comment-only"),
        pytest.param("/* a; b */", [], id="block-comment-only"),
        pytest.param("-- it's; x\nSELECT 1", ["SELECT 1"], id="comment-before"),
        pytest.param("SELECT 1 -- a; b\n; c", ["SELECT 1", "c"], id="line-comment-before-the-semicolon"),
        pytest.param("SELECT 1--;\n;x", ["SELECT 1", "x"], id="line-comment-glued"),
        pytest.param("SELECT 1 -- the end", ["SELECT 1"], id="comment-at-the-end"),
        pytest.param("SELECT /* ; */ 1; b", ["SELECT /* ; */ 1", "b"], id="block-comment-inside"),
        pytest.param("SELECT /* ' */ 1; b", ["SELECT /* ' */ 1", "b"], id="quote-in-comment"),
        pytest.param(
            "SELECT /* a /* ; */ b; */ 1; c", ["SELECT /* a /* ; */ b; */ 1", "c"], id="nested-comments"
        ),
        pytest.param("SELECT /**/ 1;x", ["SELECT /**/ 1", "x"], id="empty-comment"),
        pytest.param("SELECT /*/ ; */ 1;x", ["SELECT /*/ ; */ 1", "x"], id="comment-of-a-slash"),
        pytest.param("SELECT /*+ BROADCAST(t) */ 1; x", ["SELECT /*+ BROADCAST(t) */ 1", "x"], id="hint"),
        pytest.param("SELECT ';'; b", ["SELECT ';'", "b"], id="string"),
        pytest.param('SELECT ";"; b', ['SELECT ";"', "b"], id="double-quoted-string"),
        pytest.param("SELECT `;`; b", ["SELECT `;`", "b"], id="quoted-name"),
        pytest.param("SELECT 'it''s;'; b", ["SELECT 'it''s;'", "b"], id="doubled-quote"),
        pytest.param('SELECT "a"";b"; c', ['SELECT "a"";b"', "c"], id="doubled-double-quote"),
        pytest.param("SELECT `a``;b`; c", ["SELECT `a``;b`", "c"], id="doubled-backtick"),
        pytest.param("SELECT '\\';'; b", ["SELECT '\\';'", "b"], id="escaped-quote"),
        pytest.param("SELECT '\\\\'; b", ["SELECT '\\\\'", "b"], id="escaped-backslash"),
        pytest.param("SELECT `\\`; b", ["SELECT `\\`", "b"], id="no-escapes-in-names"),
        pytest.param("SELECT r'\\'; b", ["SELECT r'\\'", "b"], id="raw-string"),
        pytest.param("SELECT '--'; b", ["SELECT '--'", "b"], id="dashes-in-string"),
        pytest.param("SELECT '/*'; b", ["SELECT '/*'", "b"], id="comment-start-in-string"),
        pytest.param("SELECT `--`; b", ["SELECT `--`", "b"], id="dashes-in-name"),
        pytest.param("SELECT 'a\n;\nb';\nc", ["SELECT 'a\n;\nb'", "c"], id="string-over-lines"),
        pytest.param("SELECT 'ü;😀数'; größe", ["SELECT 'ü;😀数'", "größe"], id="unicode"),
        pytest.param("a;\r\nb\r\n;\r\nc\r\n", ["a", "b", "c"], id="windows-lines"),
        pytest.param("a -- x;\r\n; b", ["a", "b"], id="windows-comment"),
        pytest.param("\ufeffSELECT 1; b", ["SELECT 1", "b"], id="byte-order-mark"),
        pytest.param("SELECT 'x' 'y;'; b", ["SELECT 'x' 'y;'", "b"], id="two-strings"),
        pytest.param("SELECT X'1F'; b", ["SELECT X'1F'", "b"], id="hexadecimal"),
    ],
)
def test_split(script: str, statements: list[str]) -> None:
    parts = list(split_script(script))
    assert [part.text for part in parts] == statements
    for part in parts:
        assert part.script == script
        assert script[part.start : part.start + len(part.text)] == part.text


PIECES = {
    "SELECT 1": "SELECT 1",
    "x = ';'": "x = ';'",
    "`a;b`": "`a;b`",
    '"c;"': '"c;"',
    "'it''s; -- no'": "'it''s; -- no'",
    "'\\';'": "'\\';'",
    "a /* ; ' */ 2": "a /* ; ' */ 2",
    "größe": "größe",
    "-- ; it's\n3": "3",
    "/* /* ; */ */ 4": "4",
    "f(a, b) -- ;\n": "f(a, b)",
}
"""Statements, each with what is left of it: comments around a statement are no part of it."""

separators = st.sampled_from([";", " ;\n", ";;", "\r\n;\t"])


@given(st.lists(st.tuples(st.sampled_from(sorted(PIECES)), separators), max_size=8))
def test_split_finds_what_was_joined(pieces: list[tuple[str, str]]) -> None:
    script = "".join(text + separator for text, separator in pieces)
    found = list(split_script(script))
    assert [part.text for part in found] == [PIECES[text] for text, _ in pieces]
    for part in found:
        assert script[part.start :].startswith(part.text)


NEVER_CLOSED = "a string, quoted name or comment is opened here and never closed."


@pytest.mark.parametrize(
    "marked",
    [
        pytest.param("SELECT «'»a", id="string"),
        pytest.param('SELECT «"»a', id="double-quoted"),
        pytest.param("SELECT «`»a", id="name"),
        pytest.param("SELECT 1 «/»* a", id="comment"),
        pytest.param("SELECT 1 «/»*", id="comment-at-the-end"),
        pytest.param("SELECT «/»*+ BROADCAST(t)", id="hint"),
        pytest.param("SELECT «/»* a /* b */ 1", id="nested-comment"),
        pytest.param("SELECT /* /* a */ */ «'»x", id="after-nested-comment"),
        pytest.param("SELECT «'»it''s", id="doubled-quote"),
        pytest.param("SELECT «'»''", id="three-quotes"),
        pytest.param("SELECT «`»a``", id="doubled-backtick"),
        pytest.param("SELECT «'»a\\'", id="escaped-quote"),
        pytest.param("SELECT '\\\\', «'»b", id="after-escaped-backslash"),
        pytest.param("SELECT `a\\` «`»b", id="backslash-in-name"),
        pytest.param("SELECT r'\\', «'»x", id="after-raw-string"),
        pytest.param("-- it's\nSELECT «'»x", id="quote-in-line-comment"),
        pytest.param("/* it's */ SELECT «`»x", id="quote-in-comment"),
        pytest.param("SELECT \"it's\", «'»x", id="quote-in-double-quotes"),
        pytest.param("SELECT 'x' /* ' */ , «`»y", id="mixed"),
        pytest.param("SELECT 1;\nSELECT 2,\n  «'»three\n;\nSELECT 4", id="third-line"),
        pytest.param("SELECT 'ü😀', «'»x", id="after-unicode"),
        pytest.param("a\r\nb «'»c\r\n", id="windows-lines"),
    ],
)
def test_unclosed_literals_are_located(marked: str) -> None:
    refuse(
        lambda text: list(split_script(text)),
        marked,
        SqlSyntaxError,
        NEVER_CLOSED,
        "close it with the same quote.",
    )


def test_a_bad_hexadecimal_literal_is_not_taken_for_an_open_quote() -> None:
    refuse(
        lambda text: list(split_script(text)),
        "«SELECT X'1G'»",
        SqlSyntaxError,
        "a hexadecimal literal holds something else than the digits 0 to 9 and A to F.",
        "write it like X'1F2C'.",
    )


@settings(max_examples=200)
@given(st.text(alphabet="a1 ;'\"`\\-/*\nrR", max_size=14))
def test_any_text_splits_or_is_refused_where_a_literal_opens(text: str) -> None:
    try:
        parts = list(split_script(text))
    except SqlSyntaxError as error:
        assert error.message == NEVER_CLOSED
        assert error.location is not None
        assert error.location.line_text[error.location.column - 1] in "'\"`/"
    else:
        ends = [part.start + len(part.text) for part in parts]
        assert all(text[part.start :].startswith(part.text) and part.text.strip() for part in parts)
        assert all(";" in text[end : after.start] for end, after in zip(ends, parts[1:], strict=False))


def test_a_slice_of_a_slice_points_into_the_script() -> None:
    script = "SELECT 1;\n  SELECT a,\n\tbb FROM t;"
    second = list(split_script(script))[1]
    part = second.slice(7, 21)
    assert part.text == "a,\n\tbb FROM t"
    inner = part.slice(4, 6)
    assert (inner.text, inner.start) == ("bb", script.index("bb"))
    place = inner.locate(0, 2)
    assert (place.line, place.column, place.length, place.line_text) == (3, 2, 2, "\tbb FROM t;")
    assert place.underlined() == "line 3:  bb FROM t;\n         ^^"
    assert part.locate(0, len(part.text)).underlined() == "line 2:   SELECT a,\n                 ^^"


def test_tokens_of_a_slice_are_located_in_the_script() -> None:
    script = "x;\r\n  DROP TABLE `ü ü`"
    fragment = list(split_script(script))[1]
    places = [fragment.locate_token(token) for token in fragment.tokens()]
    assert [(place.line, place.column, place.length) for place in places] == [
        (2, 3, 4),
        (2, 8, 5),
        (2, 14, 5),
    ]


@pytest.mark.parametrize(
    ("text", "column"),
    [("abc", 3), ("abc  \n ", 3), ("", 1), ("  ", 1)],
    ids=["word", "blanks", "empty", "only-blanks"],
)
def test_locate_end_is_the_last_character(text: str, column: int) -> None:
    place = Fragment.whole(text).locate_end()
    assert (place.line, place.column, place.length) == (1, column, 1)


@given(st.text(alphabet="ab\n ;", max_size=30), st.data())
def test_locating_through_slices_is_locating_in_the_script(text: str, data: st.DataObject) -> None:
    whole = fragment = Fragment.whole(text)
    for _ in range(3):
        start = data.draw(st.integers(0, len(fragment.text)))
        end = data.draw(st.integers(start, len(fragment.text)))
        fragment = fragment.slice(start, end)
    assert whole.script[fragment.start : fragment.start + len(fragment.text)] == fragment.text
    assert fragment.locate(0, len(fragment.text)) == whole.locate(
        fragment.start, fragment.start + len(fragment.text)
    )


def test_a_single_statement_is_found_between_comments() -> None:
    found = single_statement("-- first\n ; SELECT 1 ; /* last */")
    assert (found.text, found.start) == ("SELECT 1", 12)


def test_two_statements_are_refused_at_the_second() -> None:
    refuse(
        single_statement,
        "SELECT 1;\n«DROP TABLE t»; SELECT 3",
        SqlSyntaxError,
        "one statement is expected here, not 3.",
        "use run_script (on the command line: -f FILE) for several statements.",
    )


@pytest.mark.parametrize("text", ["", "  \n", ";", "-- nothing", "/* nothing */ ;"])
def test_no_statement_is_refused(text: str) -> None:
    refuse(single_statement, text, SqlSyntaxError, "there is no statement here.", "write one SQL statement.")
