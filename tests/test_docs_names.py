"""The documentation names no function, module, class or file that does not exist, and links lead somewhere."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "viewkeeper"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CODE_PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "docs" / "invariants.md"]
"""Here every name in code is one of ours."""

_CODE = re.compile(r"`([^`\n]+)`")
_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_SINGLE = re.compile(r"_?[a-z]+(?:_[a-z0-9]+)+|(?:[A-Z][a-z]+){2,}|[A-Z]+(?:_[A-Z]+)+")
_FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)+/?|[\w-]+\.(?:py|md|toml|lock|json|properties)")
_FOLDERS = ("src", "tests", "docs", "examples", "benchmarks", "tools")


def members_by_owner() -> dict[str, set[str]]:
    """What can stand behind a dot: modules by package, definitions by module, members by class."""
    found: dict[str, set[str]] = {"viewkeeper": set()}
    for path in PACKAGE.rglob("*.py"):
        relative = path.relative_to(PACKAGE)
        owner = relative.parent.name or "viewkeeper"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = owner if path.stem == "__init__" else path.stem
        found.setdefault(owner, set()).add(path.stem)
        if path.stem == "__init__" and relative.parent.parts:
            found.setdefault(relative.parent.parent.name or "viewkeeper", set()).add(owner)
        found.setdefault(name, set()).update(_defined(tree.body))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, set()).update(_defined(node.body))
    return found


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=targets):
                yield from (each.id for each in targets if isinstance(each, ast.Name))
            case ast.ImportFrom(names=names):
                yield from (each.asname or each.name for each in names)


OURS = members_by_owner()
DEFINED = set(OURS).union(*OURS.values())


def code_in(page: Path) -> list[str]:
    return _CODE.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))


def of_spark() -> set[str]:
    """Functions of SQL look like ours."""
    return set(json.loads((PACKAGE / "sql" / "spark_functions.json").read_text(encoding="utf-8")))


def is_there(dotted: str) -> bool:
    *owners, last = dotted.split(".")
    return owners[-1] in OURS and last in OURS[owners[-1]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_dotted_names_lead_to_something(page: Path) -> None:
    """Those that begin with a module, package or class of ours; on the pages about code, all of them."""
    missing = []
    for code in code_in(page):
        name = code.removesuffix("()")
        first = name.partition(".")[0]
        is_about_us = (first in OURS and first != "spark") or (
            page in CODE_PAGES and not _FILE.fullmatch(name)
        )
        if _DOTTED.fullmatch(name) and is_about_us and not is_there(name) and not _is_file(name, page):
            missing.append(name)
    assert not missing


@pytest.mark.parametrize("page", CODE_PAGES, ids=lambda page: page.name)
def test_names_in_code_are_defined(page: Path) -> None:
    names = [code.partition("(")[0] for code in code_in(page)]
    missing = {each for each in names if _SINGLE.fullmatch(each)} - DEFINED - of_spark()
    assert not missing


def _is_file(name: str, page: Path) -> bool:
    places = (ROOT, PACKAGE, page.parent, PACKAGE / "execution", ROOT / "examples" / "shop")
    return any((place / name).exists() for place in places)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    missing = []
    for code in code_in(page):
        if _FILE.fullmatch(code) and code.partition("/")[0] in _FOLDERS and not (ROOT / code).exists():
            missing.append(code)
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    missing = []
    for target in re.findall(r"\]\(([^)\s]+)\)", _BLOCK.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = target.partition("#")
        if path.startswith(("http://", "https://", "mailto:")):
            continue
        file = page if not path else (page.parent / path)
        if not file.exists() or (anchor and anchor not in anchors(file)):
            missing.append(target)
    assert not missing


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


def test_a_missing_module_is_noticed() -> None:
    assert is_there("epochs._publish") and is_there("Catalogue.with_claim") and is_there("storage.records")
    assert not is_there("storage.failures") and not is_there("epochs._published")
