"""The page on limitations names every reason for which a view is recomputed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "viewkeeper"
PAGE = (ROOT / "docs" / "limitations.md").read_text(encoding="utf-8")


def reasons() -> Iterator[str]:
    """What `Outside` is raised with, and what `why_recomputed` returns; `…` for what is put in."""
    for path in sorted((SOURCE / "algebra").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(ast.Name("Outside" | "OutsideAlgebra"), [reason]):
                    yield from text_of(reason)
    module = ast.parse((SOURCE / "maintenance" / "build_plan.py").read_text(encoding="utf-8"))
    for function in module.body:
        if isinstance(function, ast.FunctionDef) and function.name == "why_recomputed":
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield from text_of(node.value)


def text_of(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values):
            return ["".join(str(v.value) if isinstance(v, ast.Constant) else "…" for v in values)]
        case _:
            return []


FOUND = sorted(set(reasons()))


def test_reasons_are_found() -> None:
    assert len(FOUND) > 30


@pytest.mark.parametrize("reason", FOUND)
def test_every_reason_is_on_the_page(reason: str) -> None:
    assert f"`{reason}`" in PAGE, f"docs/limitations.md does not say what to do about: {reason}"
