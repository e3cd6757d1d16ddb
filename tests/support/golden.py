"""Golden files: the text a test expects, in a file at a path equal to the test's name.

`tests/sql/test_binding.py::test_rendering[star]` is compared with `tests/golden/sql/test_binding/test_rendering/star.sql`.
UPDATE_GOLDEN=1 in the environment writes the files instead of comparing them; read the diff before you commit it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent.parent / "golden"


def golden_path(node_id: str, suffix: str) -> Path:
    """
    >>> golden_path("tests/sql/test_binding.py::test_rendering[star]", ".sql").relative_to(GOLDEN).as_posix()
    'sql/test_binding/test_rendering/star.sql'
    """
    module, _, test = node_id.partition("::")
    name, _, case = test.partition("[")
    parts = [*Path(module).with_suffix("").parts[1:], *name.split("::")]
    if case:
        parts.append(re.sub(r"[^\w.-]+", "_", case.removesuffix("]")))
    return GOLDEN.joinpath(*parts).with_name(parts[-1] + suffix)


def check_golden(request: pytest.FixtureRequest, text: str, suffix: str = ".sql") -> None:
    """Compare a text with the golden file of the running test, or write the file."""
    path = golden_path(request.node.nodeid, suffix)
    shown = path.relative_to(GOLDEN.parent.parent)
    actual = text.rstrip("\n") + "\n"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(actual, encoding="utf-8", newline="\n")
        return
    if not path.exists():
        pytest.fail(f"there is no golden file {shown}; write it with UPDATE_GOLDEN=1.", pytrace=False)
    expected = path.read_bytes().decode("utf-8")
    assert actual == expected, f"{shown} differs; if the new text is right, write it with UPDATE_GOLDEN=1"
