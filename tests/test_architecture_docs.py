"""ARCHITECTURE.md lists every file of the package, once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "viewkeeper"


def listed() -> list[str]:
    """What the first column of the table names: files, and folders with a slash at their end."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.split("\n") if re.match(r"\| \**`", line)]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def present() -> set[str]:
    files = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    folders = {f"{Path(name).parent.as_posix()}/" for name in files if "/" in name}
    return {name for name in files if not name.endswith("/__init__.py")} | folders


def test_the_table_and_the_tree_agree() -> None:
    found = Counter(listed())
    assert sorted(set(found) - present()) == [], "listed, but not there"
    assert sorted(present() - set(found)) == [], "there, but not listed"
    assert [name for name, times in found.items() if times > 1] == [], "listed more than once"
