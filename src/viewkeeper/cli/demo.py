"""The demo: a chain of department stores, told step by step.

The schema is store, sale, line and item; the views are the Californian toy sales of 1996 and their totals.
Data and changes are generated from row numbers, so every run shows the same rows.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from viewkeeper.cli.output import Output
from viewkeeper.errors import UserError

_STATES = ("CA", "NY", "TX", "WA", "OR", "NV", "AZ", "FL", "IL", "MA")
_CATEGORIES = ("toy", "food", "book", "garden", "music")

_NAMES = {"store", "item", "sale", "line", "cal_toy_sales", "toy_totals"}

SCHEMA = """
CREATE TABLE store (store_id INT PRIMARY KEY, city STRING, state STRING, manager STRING);
CREATE TABLE item (item_id INT PRIMARY KEY, item_name STRING, category STRING, supplier_name STRING);
CREATE TABLE sale (
  sale_id INT PRIMARY KEY, store_id INT NOT NULL REFERENCES store, day INT, month INT, year INT);
CREATE TABLE line (
  line_id INT PRIMARY KEY, sale_id INT NOT NULL REFERENCES sale, item_id INT NOT NULL REFERENCES item,
  sales_price DECIMAL(10,2))
"""

VIEWS = """
CREATE MATERIALIZED VIEW cal_toy_sales AS
SELECT store.manager, sale.sale_id, sale.month, item.item_id, item.item_name, line.line_id, line.sales_price
FROM store, sale, line, item
WHERE store.store_id = sale.store_id AND sale.sale_id = line.sale_id AND line.item_id = item.item_id
  AND store.state = 'CA' AND sale.year = 1996 AND item.category = 'toy';

CREATE MATERIALIZED VIEW toy_totals AS
SELECT manager, month, count(*) AS lines, sum(sales_price) AS total
FROM cal_toy_sales
GROUP BY manager, month
"""


def generated_data(lines: int) -> str:
    """INSERTs for about `lines` sales lines, ten to a sale."""
    sales, stores, items = max(1, lines // 10), 200, 1000
    states = ", ".join(f"'{state}'" for state in _STATES)
    categories = ", ".join(f"'{category}'" for category in _CATEGORIES)
    return f"""
INSERT INTO store SELECT CAST(id AS INT), concat('city ', id), element_at(array({states}), CAST(id % 10 + 1 AS INT)),
  concat('manager ', id) FROM range({stores});
INSERT INTO item SELECT CAST(id AS INT), concat('item ', id), element_at(array({categories}), CAST(id % 5 + 1 AS INT)),
  concat('supplier ', id % 37) FROM range({items});
INSERT INTO sale SELECT CAST(id AS INT), CAST(id * 7 % {stores} AS INT), CAST(id % 28 + 1 AS INT),
  CAST(id % 12 + 1 AS INT), CAST(1993 + id DIV 10 % 4 AS INT) FROM range({sales});
INSERT INTO line SELECT CAST(id AS INT), CAST(id % {sales} AS INT), CAST((id * 31 + id DIV {sales}) % {items} AS INT),
  CAST((id * 37 % 10000) / 100 AS DECIMAL(10,2)) FROM range({lines})
"""


def changes_of_round(number: int, lines: int) -> list[tuple[str, str]]:
    """What happens in one round: new sales with their lines, price corrections, returns."""
    sales, first_sale = max(1, lines // 10), max(1, lines // 10) + 100 * number
    first_line = lines + 1000 * number
    return [
        (
            "100 new sales in California with 1,000 lines",
            f"INSERT INTO sale SELECT CAST({first_sale} + id AS INT), CAST(id % 20 * 10 AS INT), 1, 6, 1996 "
            "FROM range(100); "
            f"INSERT INTO line SELECT CAST({first_line} + id AS INT), CAST({first_sale} + id % 100 AS INT), "
            "CAST(id * 5 % 1000 AS INT), CAST(9.99 AS DECIMAL(10,2)) FROM range(1000)",
        ),
        (
            "500 prices corrected",
            f"UPDATE line SET sales_price = sales_price + 1 WHERE line_id % {max(1, lines // 500)} = {30 + 40 * number}",
        ),
        (
            "200 lines returned",
            f"DELETE FROM line WHERE line_id % {max(1, lines // 200)} = {30 + 40 * number} AND sale_id < {sales}",
        ),
    ]


def run_demo(path: str, lines: int, rounds: int, spark: str | None, output: Output) -> None:
    from viewkeeper.warehouse import Warehouse

    console = Console(highlight=False, soft_wrap=True)
    _remove_earlier_demo(path)

    def chapter(text: str) -> None:
        console.print(f"\n[bold]{text}[/bold]")

    chapter(f"1. A chain of department stores: four tables with keys and foreign keys, {lines:,} sales lines")
    with Warehouse(path, spark, on_progress=output.progress) as warehouse:
        started = time.monotonic()
        warehouse.run_script(SCHEMA)
        warehouse.run_script(generated_data(lines))
        console.print(
            f"   created and filled in {time.monotonic() - started:.1f} s (Spark's own start included)"
        )

        chapter("2. Two materialized views: Californian toy sales of 1996, and their totals")
        console.print(VIEWS.strip(), style="cyan")
        for report in warehouse.run_script(VIEWS):
            for view in report.views:
                console.print(f"   {view.name}: {view.inserted:,} rows loaded in {view.seconds:.1f} s")

        chapter(f"3. {rounds} rounds of changes, each followed by REFRESH ALL")
        summary = [_one_round(warehouse, number, lines, console) for number in range(rounds)]

        chapter("4. Proof: each view against its query, recomputed at the versions it was made from")
        for name in warehouse.view_names():
            console.print(f"   {warehouse.verify(name)}")

        chapter("5. What it took")
        _print_summary(summary, console)
        chapter("The warehouse is on disk. Try next:")
        for command in (
            f'viewkeeper sql -w {path} -e "SELECT * FROM toy_totals ORDER BY total DESC LIMIT 5"',
            f'viewkeeper sql -w {path} -e "EXPLAIN MATERIALIZED VIEW cal_toy_sales"',
            f"viewkeeper status -w {path}",
            f"viewkeeper history -w {path}",
        ):
            console.print(f"   .venv/bin/{command}", style="cyan")


def _remove_earlier_demo(path: str) -> None:
    """An earlier demo makes room for the new one; anything else stays as it is."""
    from viewkeeper.warehouse import Warehouse

    folder = Path(path)
    if not folder.exists() or not any(folder.iterdir()):
        return
    if set(Warehouse(folder, create=False).names()) - _NAMES:
        raise UserError(f"{path} holds a warehouse that is not of this demo.", "name another folder.")
    shutil.rmtree(folder)


def _one_round(warehouse: Any, number: int, lines: int, console: Console) -> tuple[str, ...]:
    for what, statements in changes_of_round(number, lines):
        warehouse.run_script(statements)
        console.print(f"   round {number + 1}: {what}")
    report = warehouse.refresh()
    for view in report.views:
        console.print(
            f"     {view.name}: {view.strategy}, +{view.inserted} -{view.deleted} rows in {view.seconds:.2f} s "
            f"({view.reason})"
        )
    started = time.monotonic()
    warehouse.sql(f"SELECT * FROM ({_query_of('cal_toy_sales')})").write.format("noop").mode(
        "overwrite"
    ).save()
    warehouse.sql(f"SELECT * FROM ({_query_of('toy_totals')})").collect()
    recompute = time.monotonic() - started
    strategies = ", ".join(sorted({view.strategy for view in report.views}))
    changed = sum(view.inserted + view.deleted for view in report.views)
    return str(number + 1), strategies, str(changed), f"{report.seconds:.2f} s", f"{recompute:.2f} s"


def _query_of(view: str) -> str:
    """The query of one of the demo's views, as its CREATE statement has it."""
    statement = next(part for part in VIEWS.split(";") if f"VIEW {view} AS" in part)
    return statement.split(" AS\n", 1)[1]


def _print_summary(summary: list[tuple[str, ...]], console: Console) -> None:
    table = Table(show_edge=False, pad_edge=False)
    for column in (
        "round",
        "strategy",
        "view rows changed",
        "refresh of both views",
        "only computing both queries",
    ):
        table.add_column(column, justify="right")
    for row in summary:
        table.add_row(*row)
    console.print(table)
