"""Verdicts, advice, rules and triggers on the command line, for the airline, without Spark."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.seeded import NoSpark
from tests.support.airline import AIRLINE, EXAMPLE
from tests.support.counted_calls import counting_calls
from viewkeeper import Warehouse
from viewkeeper.cli.app import main
from viewkeeper.errors import UnsupportedError
from viewkeeper.execution.constraints import checked
from viewkeeper.execution.describe import as_if_created
from viewkeeper.execution.planning import catalogue_of
from viewkeeper.facts.declared import Reliance
from viewkeeper.sql.parse_statement import parse_text
from viewkeeper.sql.statements import CreateView
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import Publication, TableRecord, now

FILES = sorted(str(path) for path in (EXAMPLE / "views").glob("*.sql"))


def with_airline(catalogue: Catalogue) -> Catalogue:
    for table in AIRLINE.tables:
        record = TableRecord(table.id, table.name, table.columns, f"tables/{table.id}", table.keys)
        catalogue = catalogue.with_table(record)
    return catalogue


@pytest.fixture
def airline(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(tmp_path / "airline", NoSpark())
    warehouse._workspace.state.change(with_airline)
    return warehouse


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["viewkeeper", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


def test_plan_tells_verdicts_and_advice(
    airline: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, calls = counting_calls(lambda: run(monkeypatch, "plan", "-w", airline.path, *FILES))
    assert code == 0 and calls < 2_500_000
    shown = capsys.readouterr().out
    assert "  res (top): not safe; no key of res is bound" in shown
    assert "  flight (negative): I-safe, DU-safe; " in shown
    assert "  DELETE res: rows leave by the view alone" in shown
    assert "  advice: show res.res_id in the view: SELECT …, res.res_id; then no row of the view" in shown


def test_plan_as_json(
    airline: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "plan", "-w", airline.path, "--json", *FILES) == 0
    plans = {each["view"]: each for each in map(json.loads, capsys.readouterr().out.splitlines())}
    assert set(plans) == {"bad_flight", "ff_res", "many_miles", "special_meals"}
    assert list(plans["ff_res"]) == [
        "create", "view", "policy", "duplicates", "references", "bound_columns", "correlated_bound_columns",
        "rules", "advice", "refresh",
    ]  # fmt: skip
    assert plans["ff_res"]["duplicates"]["possible"] is True
    assert [each["safe"] for each in plans["ff_res"]["references"]] == [True, False]


def test_emit_postgres_writes_one_trigger_for_each_operation_on_each_table(
    airline: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "plan", "-w", airline.path, "--emit", "postgres", *FILES) == 0
    script = capsys.readouterr().out
    assert script.count("CREATE TABLE ") == 4
    assert script.count("CREATE TRIGGER ") == 16
    assert script.count('CREATE TRIGGER "vk_update_res" AFTER UPDATE ON "res"') == 1
    assert run(monkeypatch, "plan", "-w", airline.path, "--emit", "postgres", "--json", *FILES) == 0
    assert json.loads(capsys.readouterr().out)["sql"] == script


@pytest.mark.parametrize(
    ("views", "message"),
    [
        (
            "CREATE MATERIALIZED VIEW s.a AS SELECT seat FROM res",
            "the table of s.a would get another name in PostgreSQL.",
        ),
    ],
)
def test_what_triggers_are_not_written_for(airline: Warehouse, views: str, message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        airline.emit_postgres(views)
    assert caught.value.message == message


def test_a_view_over_a_view_that_no_triggers_keep(airline: Warehouse) -> None:
    below = parse_text("CREATE MATERIALIZED VIEW a AS SELECT seat FROM res")
    assert isinstance(below, CreateView)
    airline._workspace.state.change(lambda catalogue: as_if_created(catalogue, below))
    with pytest.raises(UnsupportedError) as caught:
        airline.emit_postgres("CREATE MATERIALIZED VIEW b AS SELECT seat FROM a")
    assert caught.value.message == "b reads the view a, for which no triggers are written here."
    assert caught.value.hint == "name the file with a too."


def test_views_above_react_before_the_views_below_change(airline: Warehouse) -> None:
    """Whatever the order of the statements. The table of a view is changed by our triggers only, which do not update."""
    script = airline.emit_postgres(
        "CREATE MATERIALIZED VIEW b AS SELECT r.res_id, a.seat FROM res r, a WHERE r.seat = a.seat;"
        "CREATE MATERIALIZED VIEW a AS SELECT seat FROM res"
    )
    assert script.index('CREATE TABLE "a"') < script.index('CREATE TABLE "b"')
    deletion = script.split('CREATE FUNCTION "vk_delete_res"')[1].split("$vk$;")[0]
    assert deletion.index("-- b: rule count_res_b") < deletion.index("-- a: rule count_res_a")
    on_a = [
        line for line in script.splitlines() if line.startswith("CREATE TRIGGER") and line.endswith('ON "a"')
    ]
    assert on_a == [
        'CREATE TRIGGER "vk_insert_a" AFTER INSERT ON "a"',
        'CREATE TRIGGER "vk_delete_a" AFTER DELETE ON "a"',
    ]


def test_a_view_that_is_always_recomputed_gets_triggers_that_evaluate_it(airline: Warehouse) -> None:
    script = airline.emit_postgres("CREATE MATERIALIZED VIEW a AS SELECT seat, rand() AS r FROM res")
    assert "-- a: evaluated anew, because rand gives another value each time" in script


def test_the_key_of_a_view_below_follows_from_its_query(airline: Warehouse) -> None:
    groups, over = airline.explain_script(
        "CREATE MATERIALIZED VIEW seats AS SELECT flight_id, count(*) AS seats FROM res GROUP BY flight_id;"
        "CREATE MATERIALIZED VIEW full AS SELECT f.flight_no, f.date, s.seats FROM flight f, seats s "
        "WHERE f.flight_id = s.flight_id"
    )
    assert "not_analysed" in groups.to_json()
    assert [each["safe"] for each in over.to_json()["references"]] == [True, True]
    assert "(flight_id) is a key of s" in over.to_json()["references"][1]["reason"]


def test_what_is_trusted_is_not_taken_for_checked() -> None:
    """A key may lose its RELY: then a refresh must look before it relies on it."""
    catalogue = catalogue_of("CREATE TABLE t (a INT PRIMARY KEY RELY, b INT NOT NULL UNIQUE)")
    (table,) = catalogue.tables.values()
    both = [Reliance(table.id, each.name or "") for each in table.keys]
    assert [each.constraint for each in checked(catalogue, both)] == ["t_b_unique"]


def test_explain_rules_prints_every_rule(airline: Warehouse) -> None:
    statement = parse_text((EXAMPLE / "views" / "bad_flight.sql").read_text(encoding="utf-8"))
    assert isinstance(statement, CreateView)

    def created(catalogue: Catalogue) -> Catalogue:
        after = as_if_created(catalogue, statement)
        (view,) = after.views.values()
        shown = replace(view, columns=tuple(replace(c, data_type=AIRLINE.tables[1].columns[0].data_type) for c in view.columns))  # fmt: skip
        return after.with_view(shown).with_publication(view.id, Publication(1, 0, {}, {}, now()))

    airline._workspace.state.change(created)
    report = airline.sql("EXPLAIN RULES FOR bad_flight")
    assert [line for line in str(report).splitlines() if line.startswith("rule ")] == [
        "rule del_res_bad_flight",
        "rule old_upd_res_bad_flight",
        "rule new_upd_flight_bad_flight",
        "rule ins_flight_bad_flight",
        "rule new_upd_res_bad_flight",
        "rule ins_res_bad_flight",
        "rule del_flight_bad_flight",
        "rule old_upd_flight_bad_flight",
    ]
    assert "    FROM deleted flight AS `flight`" in str(report)
    assert len(report.to_json()["rules"]) == 8
