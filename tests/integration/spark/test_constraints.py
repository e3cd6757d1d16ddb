"""Constraints are checked, not trusted: what a refresh relies on, and what it does when that does not hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.execution import constraints
from viewkeeper.execution.progress import Event, Moment
from viewkeeper.execution.reports import RefreshFailedError, ViewReport

pytestmark = pytest.mark.spark

TABLES = """
CREATE TABLE sale (id INT PRIMARY KEY, day INT);
CREATE TABLE line (id INT PRIMARY KEY, sale_id INT NOT NULL, price INT,
  CONSTRAINT line_sale FOREIGN KEY (sale_id) REFERENCES sale (id){rely});
INSERT INTO sale VALUES (1, 1), (2, 2);
INSERT INTO line VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30);
CREATE MATERIALIZED VIEW sold {option} AS SELECT l.id, s.day, l.price FROM sale s JOIN line l ON s.id = l.sale_id
"""


@pytest.fixture(autouse=True)
def small_tables_are_relied_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constraints, "RELIED_ROWS", 0)


def make(warehouse: Warehouse, option: str = "", rely: str = "") -> None:
    warehouse.run_script(TABLES.format(option=option, rely=rely))


def refreshed(warehouse: Warehouse) -> ViewReport:
    (view,) = warehouse.refresh().views
    return view


def checks(view: ViewReport) -> list[str]:
    return [title for title, _ in view.steps if title.startswith("check ")]


def test_a_foreign_key_is_checked_whole_once_and_then_by_its_changes(warehouse: Warehouse) -> None:
    make(warehouse)
    warehouse.run_script("INSERT INTO sale VALUES (3, 3); INSERT INTO line VALUES (4, 3, 40)")
    first = refreshed(warehouse)
    assert checks(first) == [
        "check line_sale of line: all rows before the changes",
        "check line_sale of line: new rows have a parent",
        "check sale_pk of sale: all rows before the changes",
        "check sale_pk of sale: the inserted keys",
    ]
    assert "rows inserted into sale" not in str(first.steps)
    warehouse.run_script("INSERT INTO sale VALUES (4, 3); INSERT INTO line VALUES (5, 4, 50)")
    second = refreshed(warehouse)
    assert checks(second) == [
        "check line_sale of line: new rows have a parent",
        "check sale_pk of sale: the inserted keys",
    ]
    warehouse.run_script("UPDATE sale SET day = 9 WHERE id = 1")
    assert checks(refreshed(warehouse)) == [], "an update of a parent needs no foreign key"
    assert warehouse.verify("sold").equal
    assert "foreign key line_sale" in str(warehouse.sql("EXPLAIN MATERIALIZED VIEW sold"))


def test_a_violation_stops_the_refresh_with_the_rows(warehouse: Warehouse) -> None:
    make(warehouse)
    warehouse.run_script("INSERT INTO sale VALUES (3, 3); INSERT INTO line VALUES (4, 99, 40)")
    with pytest.raises(
        RefreshFailedError, match=r"line violates line_sale \(new rows have a parent\).*sale_id = 99"
    ):
        warehouse.refresh()
    assert warehouse.sql("SELECT * FROM sold").count() == 3, "the view keeps its epoch"
    warehouse.sql("DELETE FROM line WHERE sale_id = 99")
    refreshed(warehouse)
    assert warehouse.verify("sold").equal


def test_a_key_that_is_not_unique(warehouse: Warehouse) -> None:
    make(warehouse)
    warehouse.run_script("INSERT INTO sale VALUES (2, 7)")
    with pytest.raises(RefreshFailedError, match=r"sale violates sale_pk \(the inserted keys\).*id = 2"):
        warehouse.refresh()
    report = warehouse.sql("VERIFY TABLE sale")
    assert not report.valid
    assert "sale_pk, PRIMARY KEY (id): violated by 1 values" in str(report)
    assert report.checks[0].examples == ({"id": 2},)
    assert warehouse.sql("VERIFY TABLE line").valid


def test_going_on_after_a_violation(warehouse: Warehouse) -> None:
    make(warehouse, "ON VIOLATION RECOMPUTE")
    warehouse.sql(  # what was said of violations stays
        "ALTER MATERIALIZED VIEW sold AS SELECT l.id, s.day, l.price FROM sale s JOIN line l ON s.id = l.sale_id"
    )
    warehouse.run_script("INSERT INTO sale VALUES (3, 3); INSERT INTO line VALUES (4, 99, 40)")
    view = refreshed(warehouse)
    assert "line_sale is violated and no longer relied on until VERIFY TABLE passes" in view.reason
    assert warehouse.verify("sold").equal
    warehouse.run_script("INSERT INTO sale VALUES (99, 4)")
    assert checks(refreshed(warehouse)) == [], "a distrusted constraint is not relied on"
    assert warehouse.verify("sold").equal, "the late parent brings its child into the view"
    assert warehouse.sql("VERIFY TABLE line").valid
    warehouse.run_script("INSERT INTO sale VALUES (5, 5)")
    assert checks(refreshed(warehouse)), "it is trusted again"


def test_a_trusted_constraint_is_named_in_every_report(warehouse: Warehouse) -> None:
    make(warehouse, rely=" RELY")
    warehouse.run_script("INSERT INTO sale VALUES (3, 3); INSERT INTO line VALUES (4, 3, 40)")
    view = refreshed(warehouse)
    assert not [each for each in checks(view) if "line_sale" in each]
    assert "line_sale trusted without a check (RELY)" in view.reason


def test_pins_between_two_commits_are_no_violation(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "warehouse"
    make(Warehouse(path, spark))
    Warehouse(path, spark).run_script("INSERT INTO sale VALUES (3, 3); INSERT INTO line VALUES (4, 77, 40)")

    def parent_comes_late(event: Event) -> None:
        if event.moment is Moment.PINNED:
            Warehouse(path, spark).sql("INSERT INTO sale VALUES (77, 7)")

    warehouse = Warehouse(path, spark, on_progress=parent_comes_late)
    view = refreshed(warehouse)
    assert "line_sale was not relied on: the pinned versions lie between two commits" in view.reason
    assert warehouse.verify("sold").equal
    quiet = Warehouse(path, spark)
    quiet.refresh()
    assert quiet.verify("sold").equal and quiet.sql("SELECT * FROM sold").count() == 4


def test_a_constraint_that_was_added_again_and_says_something_else_is_checked_again(
    warehouse: Warehouse,
) -> None:
    make(warehouse)
    warehouse.run_script("INSERT INTO sale VALUES (3, 3); INSERT INTO line VALUES (4, 3, 40)")
    refreshed(warehouse)
    warehouse.run_script("""
        ALTER TABLE line DROP CONSTRAINT line_sale;
        ALTER TABLE sale DROP CONSTRAINT sale_pk;
        ALTER TABLE sale ADD CONSTRAINT sale_pk UNIQUE (id);
        ALTER TABLE line ADD CONSTRAINT line_sale FOREIGN KEY (sale_id) REFERENCES sale (id);
        INSERT INTO sale VALUES (4, 3);
        INSERT INTO line VALUES (5, 4, 50)
    """)
    assert checks(refreshed(warehouse)) == [
        "check line_sale of line: new rows have a parent",
        "check sale_pk of sale: all rows before the changes",
        "check sale_pk of sale: the inserted keys",
    ]


def test_a_foreign_key_to_another_key_than_the_primary_one(warehouse: Warehouse) -> None:
    """For a child the product is the one with its code, whichever id that has."""
    warehouse.run_script("""
        CREATE TABLE product (id INT PRIMARY KEY, code INT NOT NULL, name STRING, CONSTRAINT codes UNIQUE (code));
        CREATE TABLE item (id INT PRIMARY KEY, code INT NOT NULL, first INT NOT NULL,
          CONSTRAINT item_code FOREIGN KEY (code) REFERENCES product (code),
          CONSTRAINT item_first FOREIGN KEY (first) REFERENCES product (id));
        INSERT INTO product VALUES (1, 10, 'ball'), (2, 20, 'doll'), (3, 30, 'kite');
        INSERT INTO item VALUES (1, 10, 3), (2, 10, 2), (3, 20, 3);
        CREATE MATERIALIZED VIEW named AS
          SELECT i.id, p.name FROM item i JOIN product p ON p.code = i.code;
        CREATE MATERIALIZED VIEW twice AS
          SELECT i.id, p.name, f.code FROM item i JOIN product p ON p.code = i.code JOIN product f ON f.id = i.first;
        DELETE FROM product WHERE id = 1;
        INSERT INTO product VALUES (9, 10, 'marble'), (8, 80, 'top');
        UPDATE product SET code = 31 WHERE id = 3
    """)
    for view in warehouse.refresh().views:
        assert view.strategy == "differential", view
    assert {tuple(row) for row in warehouse.sql("SELECT * FROM named").collect()} == {
        (1, "marble"), (2, "marble"), (3, "doll"),
    }  # fmt: skip
    assert warehouse.verify("named").equal and warehouse.verify("twice").equal
    assert "item_code" in str(warehouse.sql("EXPLAIN MATERIALIZED VIEW named")), "the key helps all the same"
