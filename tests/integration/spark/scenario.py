"""One story that must come out the same on every Spark: tables, a chain of views, changes, refreshes, proof.

As a script: `python scenario.py WAREHOUSE SPARK_ADDRESS`, for a driver in a process of its own.
"""

from __future__ import annotations

import sys
from decimal import Decimal

from viewkeeper import Warehouse


def play(warehouse: Warehouse) -> None:
    warehouse.run_script("""
        CREATE TABLE item (id INT PRIMARY KEY, name STRING);
        CREATE TABLE line (id INT PRIMARY KEY, item INT REFERENCES item, price DECIMAL(10,2));
        INSERT INTO item VALUES (1, 'ball'), (2, 'doll'), (3, NULL);
        INSERT INTO line VALUES (1, 1, 2.50), (2, 1, 2.50), (3, 2, 1), (4, NULL, NULL);
        CREATE MATERIALIZED VIEW sold AS
          SELECT item.name, line.price FROM line LEFT JOIN item ON line.item = item.id;
        CREATE MATERIALIZED VIEW totals AS
          SELECT name, sum(price) AS total, count(*) AS n FROM sold GROUP BY name;
        UPDATE line SET price = price + 1 WHERE item = 1;
        DELETE FROM line WHERE id = 3
    """)
    report = warehouse.refresh()
    assert [(view.name, view.inserted, view.deleted) for view in report.views] == [
        ("sold", 2, 3),
        ("totals", 1, 2),
    ]
    for name in ("sold", "totals"):
        verdict = warehouse.verify(name)
        assert verdict.equal, verdict
    totals = {
        (row["name"], row["total"], row["n"]) for row in warehouse.sql("SELECT * FROM totals").collect()
    }
    assert totals == {("ball", Decimal("7.00"), 2), (None, None, 1)}
    assert {view.strategy for view in warehouse.refresh().views} == {"none"}
    before = warehouse.sql(f"SELECT * FROM totals AS OF EPOCH {report.epoch - 1}").collect()
    assert len(before) == 3
    assert [entry.outcome for entry in warehouse.history("sold")] == ["published", "published"]


if __name__ == "__main__":
    with Warehouse(sys.argv[1], sys.argv[2]) as opened:
        play(opened)
    print("the scenario passed")
