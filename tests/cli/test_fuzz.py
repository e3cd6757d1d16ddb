"""`viewkeeper fuzz`: files, answers, errors and exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from viewkeeper.cli.app import main
from viewkeeper.testing import agreement

SHOP = """
CREATE TABLE customer (id INT PRIMARY KEY, name STRING NOT NULL);
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT NOT NULL REFERENCES customer, state STRING, total DECIMAL(8,2));
"""
VIEW = """
CREATE MATERIALIZED VIEW spent AS
SELECT c.name, sum(o.total) AS total FROM orders o JOIN customer c ON c.id = o.customer
WHERE o.state = 'paid' GROUP BY c.name
"""


@pytest.fixture
def fuzz(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    def run(view: str, *options: str, schema: str | None = SHOP) -> tuple[int, str, str]:
        (tmp_path / "view.sql").write_text(view)
        arguments = ["viewkeeper", "fuzz", str(tmp_path / "view.sql"), *options]
        if schema is not None:
            (tmp_path / "schema.sql").write_text(schema)
            arguments += ["--schema", str(tmp_path / "schema.sql")]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as caught:
            main()
        answer = capsys.readouterr()
        return int(caught.value.code or 0), answer.out, answer.err

    return run


Fuzz = Callable[..., tuple[int, str, str]]


def test_a_view_that_is_right(fuzz: Fuzz) -> None:
    code, out, _ = fuzz(VIEW, "--cases", "5")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("spent: 5 cases of seed 1 in ")
    assert "differential" in lines[1]
    assert lines[-1] == "  the view was equal to its query every time"


def test_json_and_tables_in_the_same_file(fuzz: Fuzz) -> None:
    code, out, _ = fuzz(
        f"{SHOP} {VIEW}; SELECT DISTINCT name FROM customer", "--cases", "3", "--json", schema=None
    )
    assert code == 0
    spent, query = map(json.loads, out.splitlines())
    assert (spent["view"], spent["equal"], spent["cases"], spent["failure"]) == ("spent", True, 3, None)
    assert query["view"] == "view"


def test_a_view_that_is_wrong(fuzz: Fuzz, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = agreement.plan_refresh

    def wrong(*arguments: Any) -> Any:
        plan = planned(*arguments)
        *before, store, apply = plan.steps
        nothing = replace(store, sql=f"SELECT * FROM ({store.sql}) WHERE FALSE")
        return replace(plan, steps=(*before, nothing, apply))

    monkeypatch.setattr(agreement, "plan_refresh", wrong)
    code, out, _ = fuzz("SELECT state FROM orders", "--cases", "5")
    assert code == 6
    assert "the view is WRONG in seed 100003: the view is not what its query gives." in out
    assert "again: case_of(" in out


@pytest.mark.parametrize(
    ("view", "schema", "message"),
    [
        ("SELECT nam FROM customer", SHOP, "Error: there is no column nam here."),
        ("\nCREATE MATERIALIZED VIEW v AS\nSELECT id FROM nothing", SHOP, "line 3: SELECT id FROM nothing"),
        ("SELECT 1 AS a FROM customer; DROP TABLE customer", SHOP, "fuzz takes CREATE TABLE with columns"),
        ("SELECT id FROM customer", None, "there are no tables for the view to read."),
        (SHOP, None, "there is no view in "),
        ("SELECT spark_partition_id() AS p FROM customer", SHOP, "DuckDB does not take the query"),
        (
            "SELECT m FROM t",
            "CREATE TABLE t (m MAP<INT, INT>)",
            "random values of the type MAP<INT, INT> are not made.",
        ),
    ],
)
def test_errors(fuzz: Fuzz, view: str, schema: str | None, message: str) -> None:
    code, out, err = fuzz(view, schema=schema)
    assert (code, out) == (1, "")
    assert message in err


def test_without_duckdb(fuzz: Fuzz, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "viewkeeper.cli.fuzz.find_spec", lambda name: None if name == "duckdb" else util.find_spec(name)
    )
    code, _, err = fuzz(VIEW)
    assert code == 5
    assert err.splitlines() == [
        "Error: fuzz needs DuckDB, which is not installed.",
        'To do: pip install "viewkeeper[testing]"',
    ]
