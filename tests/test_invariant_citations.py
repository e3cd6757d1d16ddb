"""Every invariant is cited by a test that would fail without it, and only invariants that exist are cited.

A test cites one in its docstring or in a comment, as `I8`. What is cited is believed; whoever changes the test looks.
"""

from __future__ import annotations

import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
_CITED = re.compile(r"\bI(\d{1,2})\b(?: to I(\d{1,2})\b)?")


def listed() -> list[int]:
    text = (ROOT / "docs" / "invariants.md").read_text(encoding="utf-8")
    return [int(number) for number in re.findall(r"^\*\*I(\d+) ", text, re.MULTILINE)]


def cited_in(source: str) -> set[int]:
    """The numbers in comments and in strings of several words (docstrings), ranges too."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_docstring = token.type == tokenize.STRING and token.line.lstrip().startswith(('"""', "'''"))
        if token.type == tokenize.COMMENT or is_docstring:
            for first, last in _CITED.findall(token.string):
                found.update(range(int(first), int(last or first) + 1))
    return found


@cache
def citations(folder: str) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        if path.name == Path(__file__).name:
            continue
        for number in cited_in(path.read_text(encoding="utf-8")):
            found.setdefault(number, set()).add(path.relative_to(ROOT).as_posix())
    return found


def test_numbers_are_given_once() -> None:
    assert len(listed()) == len(set(listed())) >= 32


@pytest.mark.parametrize("number", listed())
def test_every_invariant_is_cited_by_a_test(number: int) -> None:
    files = {each for each in citations("tests").get(number, set()) if Path(each).name.startswith("test_")}
    assert files, f"no test cites I{number}"


def test_only_invariants_that_exist_are_cited() -> None:
    known = set(listed())
    for folder in ("tests", "src", "benchmarks"):
        unknown = {f"I{number}": files for number, files in citations(folder).items() if number not in known}
        assert not unknown


def test_citations_are_found_in_comments_and_docstrings_alone() -> None:
    source = 'def f():\n    """I3, and I5 to I7."""\n    g("I9")  # I8\n'
    assert cited_in(source) == {3, 5, 6, 7, 8}
