"""The golden files themselves: none is left over from a test that is gone, and the helper can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.golden import GOLDEN, check_golden, golden_path

TESTS = GOLDEN.parent


def golden_files() -> list[Path]:
    return sorted(path for path in GOLDEN.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc"))


@pytest.mark.parametrize(
    ("node_id", "path"),
    [
        ("tests/sql/test_x.py::test_y", "sql/test_x/test_y.sql"),
        ("tests/sql/test_x.py::test_y[some case]", "sql/test_x/test_y/some_case.sql"),
        ("tests/sql/test_x.py::test_y[a/../b.c]", "sql/test_x/test_y/a_.._b.c.sql"),
    ],
)
def test_a_golden_file_lies_at_the_name_of_its_test(node_id: str, path: str) -> None:
    assert golden_path(node_id, ".sql") == GOLDEN / path


def test_every_golden_file_has_its_test() -> None:
    files = golden_files()
    assert files
    for path in files:
        *folders, case = path.relative_to(GOLDEN).with_suffix("").parts
        owner = TESTS.joinpath(*folders).with_suffix(".py")
        if owner.exists():
            wanted = [f"def {case}("]
        else:
            owner = TESTS.joinpath(*folders[:-1]).with_suffix(".py")
            assert owner.exists(), f"{path} belongs to no test module"
            wanted = [f"def {folders[-1]}(", f'"{case}"']
        source = owner.read_text(encoding="utf-8")
        assert all(text in source for text in wanted), f"{path} belongs to no test of {owner.name}"


@pytest.fixture
def own_file(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The golden file of the running test, in a folder of its own."""
    monkeypatch.delenv("UPDATE_GOLDEN", raising=False)
    monkeypatch.setattr("tests.support.golden.GOLDEN", tmp_path / "tests" / "golden")
    return golden_path(request.node.nodeid, ".txt")


def test_a_missing_golden_file_fails(request: pytest.FixtureRequest, own_file: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="there is no golden file"):
        check_golden(request, "text", ".txt")
    assert not own_file.exists()


def test_update_writes_what_is_then_compared(
    request: pytest.FixtureRequest, own_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPDATE_GOLDEN", "1")
    check_golden(request, "größer\nals", ".txt")
    monkeypatch.delenv("UPDATE_GOLDEN")
    assert own_file.read_text(encoding="utf-8") == "größer\nals\n"
    check_golden(request, "größer\nals", ".txt")
    with pytest.raises(AssertionError, match="differs"):
        check_golden(request, "grösser\nals", ".txt")
