"""What README and examples show is run here, by the command line itself."""

from __future__ import annotations

import json
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.cli.app import main
from viewkeeper.cli.demo import run_demo
from viewkeeper.cli.output import Output
from viewkeeper.execution.reports import RefreshReport, VerifyReport

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[3]


def _viewkeeper(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["viewkeeper", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


def test_the_sql_of_the_readme_gives_the_result_it_shows(warehouse: Warehouse) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    script = re.search(r"```sql\n(.*?)```", readme, re.DOTALL)
    assert script is not None
    *_, report, frame = warehouse.run_script(script[1])
    assert [(v.name, v.strategy, v.inserted, v.deleted) for v in report.views] == [
        ("revenue", "differential", 1, 1)
    ]
    assert report.views[0].reason in readme
    assert [tuple(row) for row in frame.collect()] == [
        ("ball", 6, Decimal("15.00")),
        ("doll", 3, Decimal("24.00")),
    ]


def test_the_airline_is_kept_by_rules_where_no_row_occurs_twice(warehouse: Warehouse) -> None:
    """Insertions, updates and deletions: the rules that EXPLAIN RULES prints are what the refreshes run."""
    airline = ROOT / "examples/airline"
    warehouse.run_script((airline / "schema.sql").read_text(encoding="utf-8"))
    for view in sorted((airline / "views").glob("*.sql")):
        warehouse.run_script(view.read_text(encoding="utf-8"))
    results = warehouse.run_script((airline / "changes.sql").read_text(encoding="utf-8"))
    reports = [each for each in results if isinstance(each, RefreshReport)]
    verdicts = [each for each in results if isinstance(each, VerifyReport)]
    assert len(verdicts) == 4 * len(reports) and all(verdict.equal for verdict in verdicts)
    for report in reports:
        for view in report.views:
            expected = "differential" if view.name == "ff_res" else "rules"
            assert view.strategy in (expected, "none"), (view.name, view.reason)
    for name in ("special_meals", "many_miles", "bad_flight"):
        rules = warehouse.sql(f"EXPLAIN RULES FOR {name}").to_json()["rules"]
        assert len(rules) == 8 and all(each["in_a_refresh"]["runs"] for each in rules)
    ran = [
        (view.name, view.inserted > 0, view.deleted > 0)
        for report in reports
        for view in report.views
        if view.strategy == "rules"
    ]
    for name in ("special_meals", "many_miles", "bad_flight"):
        assert any(each[0] == name and each[1] for each in ran), f"nothing entered {name} by rules"
        assert any(each[0] == name and each[2] for each in ran), f"nothing left {name} by rules"


def test_the_shop_example_runs_on_the_command_line(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "shop")
    for name in ("schema", "views", "changes"):
        assert _viewkeeper(monkeypatch, "sql", "-w", path, "-f", str(ROOT / f"examples/shop/{name}.sql")) == 0
    capsys.readouterr()
    assert _viewkeeper(monkeypatch, "refresh", "-w", path, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report) >= {"epoch", "views"}
    assert _viewkeeper(monkeypatch, "verify", "-w", path, "--json") == 0
    verdicts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(verdicts) >= 3 and all(verdict["equal"] for verdict in verdicts)
    assert _viewkeeper(monkeypatch, "status", "-w", path) == 0
    assert "fresh" in capsys.readouterr().out


def test_verify_tells_a_wrong_view_by_its_exit_code(
    warehouse: Warehouse, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stored rows are changed behind the view's back: verification must bite."""
    warehouse.run_script("""
        CREATE TABLE t (a INT, b DOUBLE);
        INSERT INTO t VALUES (1, 0.1), (1, 0.1), (2, NULL);
        CREATE MATERIALIZED VIEW v AS SELECT a, b FROM t
    """)
    record = next(iter(warehouse._workspace.state.read().views.values()))
    rows = warehouse._workspace.layout.rows(record.location)
    spark.sql(f"UPDATE delta.`{rows}` SET b = b + 1e-12 WHERE a = 1").collect()
    state = warehouse._workspace.state

    def publish(version: int) -> None:
        from dataclasses import replace

        published = state.read().published[record.id]
        state.change(
            lambda catalogue: catalogue.with_publication(record.id, replace(published, version=version))
        )

    publish(1)
    assert warehouse.verify("v").equal, "a difference in the twelfth digit is a rounding"
    spark.sql(f"DELETE FROM delta.`{rows}` WHERE a = 2").collect()
    spark.sql(f"INSERT INTO delta.`{rows}` VALUES (7, 7.0, 1)").collect()
    publish(3)
    report = warehouse.verify("v")
    assert (report.equal, report.missing, report.unexpected) == (False, 1, 1)
    assert report.missing_examples == ({"a": 2, "b": None},)
    assert report.unexpected_examples == ({"a": 7, "b": 7.0},)
    assert _viewkeeper(monkeypatch, "verify", "-w", warehouse.path) == 6
    assert "DIFFERS" in capsys.readouterr().out


def test_the_demo_in_small(tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "demo")
    run_demo(path, 2000, 1, None, Output(False))
    printed = capsys.readouterr().out
    assert printed.count("equals its query") == 2
    run_demo(path, 1000, 1, None, Output(False))
    Warehouse(path, spark).sql("CREATE TABLE mine (a INT)")
    with pytest.raises(Exception, match="not of this demo"):
        run_demo(path, 1000, 1, None, Output(False))
    assert "mine" in Warehouse(path, spark).names()
