"""The error tree: whose fault, which exit code, the same facts as text and as JSON."""

from __future__ import annotations

import inspect
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper import errors
from viewkeeper.errors import Location, SqlSyntaxError, UserError, ViewkeeperError

TREE = {
    "ViewkeeperError": ("Exception", 1),
    "UserError": ("ViewkeeperError", 1),
    "SqlSyntaxError": ("UserError", 1),
    "UnknownNameError": ("UserError", 1),
    "NameExistsError": ("UserError", 1),
    "InvalidStatementError": ("UserError", 1),
    "UnsupportedError": ("UserError", 1),
    "InUseError": ("UserError", 1),
    "RefreshPolicyError": ("UserError", 1),
    "QueryFailedError": ("UserError", 1),
    "WarehouseProblem": ("ViewkeeperError", 3),
    "NotAWarehouseError": ("WarehouseProblem", 3),
    "FormatVersionError": ("WarehouseProblem", 3),
    "CorruptWarehouseError": ("WarehouseProblem", 3),
    "ChangeSetMismatchError": ("WarehouseProblem", 3),
    "ForeignCommitError": ("WarehouseProblem", 3),
    "VersionGoneError": ("WarehouseProblem", 3),
    "ConstraintViolatedError": ("WarehouseProblem", 3),
    "SchemaChangedError": ("WarehouseProblem", 3),
    "FeedGoneError": ("WarehouseProblem", 3),
    "ConcurrencyProblem": ("ViewkeeperError", 4),
    "RefreshConflictError": ("ConcurrencyProblem", 4),
    "TakenOverError": ("ConcurrencyProblem", 4),
    "EnvironmentProblem": ("ViewkeeperError", 5),
    "StorageError": ("EnvironmentProblem", 5),
    "SparkUnavailableError": ("EnvironmentProblem", 5),
}
"""Each class with its parent and its exit code: scripts rely on both."""

CLASSES = [cls for cls in vars(errors).values() if inspect.isclass(cls) and issubclass(cls, Exception)]


def test_the_tree_is_as_published() -> None:
    assert {cls.__name__: (cls.__base__.__name__, cls.exit_code) for cls in CLASSES} == TREE


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_class_says_what_it_means(cls: type[ViewkeeperError]) -> None:
    assert cls.__doc__ and cls.__doc__.strip()


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_class_is_caught_as_the_root_and_names_itself(cls: type[ViewkeeperError]) -> None:
    with pytest.raises(ViewkeeperError) as caught:
        raise cls("what")
    assert caught.value.as_json() == {"error": cls.__name__, "message": "what", "hint": "", "position": None}
    assert caught.value.args == ("what",)


PLACE = Location.of_span("SELECT a\nFROM t\n", 14, 15)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(UserError("what."), "what.", id="message"),
        pytest.param(UserError("what.", "this."), "what.\nTo do: this.", id="message-hint"),
        pytest.param(
            UserError("what.", location=PLACE), "what.\nline 2: FROM t\n             ^", id="message-place"
        ),
        pytest.param(
            UserError("what.", "this.", PLACE),
            "what.\nline 2: FROM t\n             ^\nTo do: this.",
            id="message-place-hint",
        ),
    ],
)
def test_text_tells_what_where_and_the_way_out(error: UserError, text: str) -> None:
    assert str(error) == text


def test_json_has_the_same_facts() -> None:
    error = SqlSyntaxError("what.", "this.", Location(2, 6, 3, "FROM abc"))
    facts = error.as_json()
    assert facts == {
        "error": "SqlSyntaxError",
        "message": "what.",
        "hint": "this.",
        "position": {"line": 2, "column": 6, "length": 3},
    }
    assert json.loads(json.dumps(facts)) == facts


@pytest.mark.parametrize(
    ("text", "start", "end", "line", "column", "length"),
    [
        pytest.param("abc", 0, 3, 1, 1, 3, id="whole-line"),
        pytest.param("a\nbcd\ne", 2, 5, 2, 1, 3, id="second-line"),
        pytest.param("a\nbcd\ne", 6, 7, 3, 1, 1, id="last-line"),
        pytest.param("a\nbcd\ne", 3, 7, 2, 2, 2, id="cut-at-the-end-of-the-line"),
        pytest.param("a\n\nb", 2, 2, 2, 1, 1, id="empty-line"),
        pytest.param("abc", 1, 1, 1, 2, 1, id="empty-span"),
        pytest.param("abc", 3, 9, 1, 4, 1, id="after-the-end"),
        pytest.param("abc", 7, 9, 1, 4, 1, id="far-after-the-end"),
        pytest.param("abc", -3, 1, 1, 1, 1, id="before-the-start"),
        pytest.param("", 0, 0, 1, 1, 1, id="no-text"),
        pytest.param("'ü😀' x", 5, 6, 1, 6, 1, id="characters-not-bytes"),
        pytest.param("a\r\nbc\r\n", 3, 5, 2, 1, 2, id="windows-lines"),
    ],
)
def test_location_of_span(text: str, start: int, end: int, line: int, column: int, length: int) -> None:
    found = Location.of_span(text, start, end)
    assert (found.line, found.column, found.length) == (line, column, length)


def test_underlining_keeps_the_columns_of_a_line_with_tabs() -> None:
    where = Location.of_span("x\n\tSELECT\ta, bb", 13, 15)
    assert where.underlined() == "line 2:  SELECT a, bb\n                   ^^"


def test_a_span_over_two_lines_underlines_the_first() -> None:
    where = Location.of_span("SELECT 1 +\n  2", 7, 14)
    assert where.underlined() == "line 1: SELECT 1 +\n               ^^^"


def test_two_digit_lines_move_the_underline() -> None:
    text = "\n" * 9 + "abc"
    assert Location.of_span(text, 10, 11).underlined() == "line 10: abc\n          ^"


@given(st.text(alphabet="ab \t\n'ü😀", max_size=40), st.data())
def test_the_underlined_characters_are_the_spans_own(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    where = Location.of_span(text, start, end)
    assert where.line_text == text.split("\n")[where.line - 1]
    first_line_of_span = text[start:end].split("\n")[0]
    assert where.line_text[where.column - 1 :].startswith(first_line_of_span)
    assert where.length == max(1, len(first_line_of_span))
    shown, marks = where.underlined().split("\n")
    assert marks.index("^") == len(f"line {where.line}: ") + where.column - 1
    assert len(shown) == len(f"line {where.line}: ") + len(where.line_text)
