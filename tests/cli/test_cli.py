"""The command line without Spark: answers, JSON, error texts and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.seeded import seeded_warehouse
from tests.support.counted_calls import counting_calls
from viewkeeper.cli.app import main


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop"
    seeded_warehouse(path)
    return str(path)


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["viewkeeper", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


def test_init_creates_a_warehouse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, "init", str(tmp_path / "new"), "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"warehouse": str(tmp_path / "new")}
    assert (tmp_path / "new" / "_viewkeeper" / "catalogue" / "_delta_log").is_dir()


def test_sql_runs_a_statement_and_answers_in_json(
    shop: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, "sql", "-w", shop, "--json", "-e", "SHOW TABLES") == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["table"] for row in rows] == ["item", "line"]


def test_an_error_is_underlined_on_stderr_with_exit_code_one(
    shop: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statement = "EXPLAIN CREATE MATERIALIZED VIEW v AS\nSELECT prise FROM line"
    assert _run(monkeypatch, "sql", "-w", shop, "-e", statement) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        "Error: there is no column prise here.",
        "line 2: SELECT prise FROM line",
        "               ^^^^^",
        "To do: did you mean price?",
    ]


def test_an_error_as_json(
    shop: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, "sql", "-w", shop, "--json", "-e", "DROP TABLE item") == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer == {
        "error": "InUseError",
        "message": "item is read by sold.",
        "hint": "drop sold first.",
        "position": None,
    }


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["status", "-w", "{missing}"], 3),
        (["refresh", "-w", "{missing}"], 3),
        (["verify", "-w", "{missing}"], 3),
        (["history", "-w", "{missing}"], 3),
        (["sql", "-w", "{shop}", "-e", "SELECT 1", "-f", "x.sql"], 1),
        (["sql", "-w", "{shop}", "-f", "no-such-file.sql"], 1),
        (["plan", "-w", "{shop}", "no-such-file.sql"], 1),
        (["history", "-w", "{shop}", "nothing"], 1),
        (["nonsense"], 2),
    ],
)
def test_exit_codes_say_whose_turn_it_is(
    shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int
) -> None:
    filled = [each.format(missing=tmp_path / "missing", shop=shop) for each in arguments]
    assert _run(monkeypatch, *filled) == code
    assert not (tmp_path / "missing").exists()


def test_a_script_file_and_standard_input(
    shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import io

    script = tmp_path / "script.sql"
    script.write_text("DESCRIBE line; -- the lines\nSHOW TABLES;")
    assert _run(monkeypatch, "sql", "-w", shop, "-f", str(script)) == 0
    assert "line_item_fk" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.StringIO("SHOW TABLES"))
    assert _run(monkeypatch, "sql", "-w", shop, "-f", "-") == 0
    assert "PRIMARY KEY (id)" in capsys.readouterr().out


def test_plan_shows_the_sql_that_would_run(
    shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cheap.sql"
    file.write_text(
        "CREATE MATERIALIZED VIEW cheap AS SELECT name FROM item, line WHERE price < 1 AND item.id = item;"
    )
    assert _run(monkeypatch, "plan", "-w", shop, str(file), "--json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["view"] == "cheap" and plan["refresh"]["strategy"] == "differential"
    assert plan["create"]["steps"][0]["sql"] == (
        "SELECT name FROM `item_new` AS `item`, `line_new` AS `line` WHERE price < 1 AND item.id = item"
    )
    steps = plan["refresh"]["steps"]
    assert [step["step"] for step in steps] == ["Derive", "WriteChangeSet", "ApplyChangeSet"]
    assert "FROM `item_removed` AS `item`" in steps[0]["sql"]


def test_what_needs_no_data_answers_at_once(
    shop: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statement = "EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT id FROM line"
    code, calls = counting_calls(lambda: _run(monkeypatch, "sql", "-w", shop, "-e", statement))
    assert code == 0 and calls < 150_000
    assert "when line changes: differential" in capsys.readouterr().out


def test_what_needs_no_data_starts_no_jvm(shop: str) -> None:
    """I29: A process of its own, with no Java to be found."""
    environment = {"PATH": "/nonexistent", "HOME": str(Path(shop).parent)}
    command = [sys.executable, "-m", "viewkeeper.cli.app"]
    for arguments in (
        ["sql", "-w", shop, "-e", "EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT id FROM line"],
    ):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        assert "when line changes: differential" in done.stdout
        assert "scan line as line" in done.stdout
        assert "its rows may occur more than once" in done.stdout
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, viewkeeper.cli.app, viewkeeper.warehouse; print('pyspark' in sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded.stdout.strip() == "False", "opening a warehouse must not even import pyspark"
