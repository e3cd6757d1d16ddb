"""`viewkeeper plan` without a warehouse: the tables are those of a schema file, named or found."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.airline import EXAMPLE
from tests.support.counted_calls import counting_calls
from viewkeeper.cli.app import main
from viewkeeper.errors import InvalidStatementError, NameExistsError, ViewkeeperError
from viewkeeper.execution.planning import Planner, catalogue_of, planned_views

FILES = sorted(str(path) for path in (EXAMPLE / "views").glob("*.sql"))
TABLES = "CREATE TABLE t (id INT PRIMARY KEY, v INT);\n"


@pytest.fixture(autouse=True)
def no_warehouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIEWKEEPER_WAREHOUSE", raising=False)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["viewkeeper", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


def script(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.sql").write_text(text, encoding="utf-8")


def test_the_example_as_it_is_planned_in_a_fresh_clone(tmp_path: Path) -> None:
    """A process of its own, with neither a warehouse nor Spark, fast enough to be asked while a view is written."""
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "airline")
    command = [sys.executable, "-X", "importtime", "-m", "viewkeeper.cli.app", "plan", "--json"]
    files = [f"examples/airline/views/{Path(file).name}" for file in FILES]
    done = subprocess.run(
        [*command, *files],
        cwd=tmp_path,
        env={**os.environ, "JAVA_HOME": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    plans = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["view"] for each in plans] == ["bad_flight", "ff_res", "many_miles", "special_meals"]
    assert {each["schema"] for each in plans} == {"examples/airline/schema.sql"}
    assert not re.search(r"\| +py4j", done.stderr)
    assert [each.name for each in tmp_path.iterdir()] == ["examples"]


def test_a_view_is_planned_well_under_a_second(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    code, calls = counting_calls(lambda: run(monkeypatch, "plan", *FILES))
    assert code == 0 and calls / len(FILES) < 400_000
    shown = capsys.readouterr().out
    assert shown.startswith(f"tables and keys as {EXAMPLE / 'schema.sql'} declares them\n")
    assert "  flight (negative): I-safe, DU-safe; " in shown


def test_the_triggers_say_which_schema_they_are_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    assert run(monkeypatch, "plan", "--emit", "postgres", *FILES) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"-- tables and keys as {EXAMPLE / 'schema.sql'} declares them\n\nCREATE TABLE ")
    assert run(monkeypatch, "plan", "--emit", "postgres", "--json", *FILES) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": str(EXAMPLE / "schema.sql"), "sql": text}


def test_the_keys_of_the_schema_count(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:  # fmt: skip
    script(tmp_path, v="CREATE MATERIALIZED VIEW v AS SELECT id FROM t", schema=TABLES, other="CREATE TABLE t (id INT)")  # fmt: skip
    view = str(tmp_path / "v.sql")
    assert run(monkeypatch, "plan", "--json", view) == 0
    assert json.loads(capsys.readouterr().out)["duplicates"]["possible"] is False
    assert run(monkeypatch, "plan", "--json", "--schema", str(tmp_path / "other.sql"), view) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["duplicates"]["possible"] is True and found["schema"] == str(tmp_path / "other.sql")


def test_views_over_views_whatever_the_files_are_called(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:  # fmt: skip
    script(tmp_path, schema=TABLES)
    script(
        tmp_path / "views",
        a="CREATE MATERIALIZED VIEW a AS SELECT t.id, z.n FROM t, z WHERE t.v = z.v",
        z="CREATE MATERIALIZED VIEW z AS SELECT v, count(*) AS n FROM t GROUP BY v",
    )
    files = [str(tmp_path / "views" / name) for name in ("a.sql", "z.sql")]
    assert run(monkeypatch, "plan", "--json", *files) == 0
    below, above = map(json.loads, capsys.readouterr().out.splitlines())
    assert (below["view"], above["view"]) == ("z", "a")
    assert [each["table"] for each in above["references"]] == ["t", "z"]
    assert all(each["safe"] for each in above["references"])


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["lost/v.sql"], "which tables does lost/v.sql read? There is no schema.sql beside it or in the folder above.", "name a file with CREATE TABLE statements (--schema FILE), or a warehouse (-w WAREHOUSE)."),
        (["one/v.sql", "two/v.sql"], "the files belong to one/schema.sql and two/schema.sql.", "plan them apart, or name one with --schema FILE."),
        (["--schema", "one/schema.sql", "-w", "w", "one/v.sql"], "-w and --schema do not go together.", "give one of them."),
        (["--schema", "no.sql", "one/v.sql"], "the script no.sql cannot be read: [Errno 2] No such file or directory: 'no.sql'.", "check its path."),
    ],
)  # fmt: skip
def test_which_tables_is_not_clear(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    message: str,
    hint: str,
) -> None:
    view = "CREATE MATERIALIZED VIEW v AS SELECT id FROM t"
    script(tmp_path / "one", schema=TABLES, v=view)
    script(tmp_path / "two", schema=TABLES, v=view)
    script(tmp_path / "deep" / "lost", v=view)
    monkeypatch.chdir(tmp_path / "deep" if "lost/v.sql" in arguments else tmp_path)
    assert run(monkeypatch, "plan", "--json", *arguments) == 1
    error = json.loads(capsys.readouterr().out)
    assert (error["message"], error["hint"]) == (message, hint)


def test_a_schema_named_on_the_command_line_goes_before_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", "/nowhere")
    assert run(monkeypatch, "plan", "--schema", str(EXAMPLE / "schema.sql"), *FILES) == 0
    assert run(monkeypatch, "plan", *FILES) != 0


def test_a_schema_is_what_its_statements_leave_behind() -> None:
    catalogue = catalogue_of(
        TABLES
        + "INSERT INTO t VALUES (1, 2); CREATE TABLE IF NOT EXISTS t (x INT); ALTER TABLE t ADD UNIQUE (v);"
        "ALTER TABLE t SET APPEND ONLY; CREATE MATERIALIZED VIEW m AS SELECT id FROM t; REFRESH ALL;"
        "CREATE TABLE gone (x INT); DROP TABLE gone; DROP TABLE IF EXISTS never;"
        "CREATE OR REPLACE TABLE u (x INT); CREATE OR REPLACE TABLE u (y INT REFERENCES t)"
    )
    assert catalogue.names() == ["m", "t", "u"]
    t, u = sorted(catalogue.tables.values(), key=lambda table: table.name)
    assert [key.columns for key in t.keys] == [("id",), ("v",)] and t.append_only
    assert [each.name for each in u.columns] == ["y"] and u.foreign_keys[0].parent_id == t.id
    (report,) = Planner(catalogue).explain(planned_views("CREATE MATERIALIZED VIEW n AS SELECT id FROM m"))
    assert report.to_json()["references"][0]["safe"] is True


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("CREATE TABLE u AS SELECT 1 AS a", InvalidStatementError, "the columns of u are not known without its data."),
        ("ATTACH TABLE u FROM DELTA '/data/u'", InvalidStatementError, "the columns of u are not known without its data."),
        (TABLES + TABLES, NameExistsError, "t is created twice."),
    ],
)  # fmt: skip
def test_what_a_schema_cannot_say(text: str, error: type[ViewkeeperError], message: str) -> None:
    with pytest.raises(error) as caught:
        catalogue_of(text)
    assert caught.value.message == message
