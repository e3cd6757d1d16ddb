"""Views that react to the same changes share what they look up in other tables, and stay equal to their queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from tests.support.spark_oracle import wrong_views
from viewkeeper import Warehouse
from viewkeeper.execution import epoch_reads
from viewkeeper.execution.reports import RefreshFailedError, RefreshReport
from viewkeeper.execution.searching import Wanted, few_rows
from viewkeeper.sources.data_files import file_name
from viewkeeper.sql.binding import Column

pytestmark = pytest.mark.spark

TABLES = """
CREATE TABLE customer (id INT PRIMARY KEY RELY, name STRING, city STRING);
CREATE TABLE item (id INT PRIMARY KEY RELY, label STRING, kind STRING);
CREATE TABLE sale (id INT PRIMARY KEY RELY, customer_id INT, item_id INT, price DECIMAL(10,2));
INSERT INTO customer VALUES (1, 'Ann', 'Rome'), (2, 'Bob', NULL), (3, 'Cy', 'Oslo'), (4, 'Di', 'Rome'), (5, 'Ed', 'Kyiv');
INSERT INTO item VALUES (1, 'ball', 'toy'), (2, 'doll', 'toy'), (3, 'hat', 'wear'), (4, 'cap', NULL);
INSERT INTO sale VALUES (1, 1, 1, 2.50), (2, 1, 2, NULL), (3, 2, 3, 4.00), (4, NULL, 1, 1.00), (5, 3, 4, 7.00), (6, 4, 4, 1.25)
"""
JOINED = "FROM sale s JOIN customer c ON s.customer_id = c.id JOIN item i ON s.item_id = i.id"
BY_RULES = f"CREATE MATERIALIZED VIEW sold REFRESH STRICT AS SELECT s.id, c.name, i.label {JOINED}"
BY_RULES_TOO = (
    f"CREATE MATERIALIZED VIEW priced REFRESH STRICT AS SELECT s.id, s.price, c.city, i.kind {JOINED}"
)
DIFFERENTIAL = (
    "CREATE MATERIALIZED VIEW by_city REFRESH STRICT AS "
    f"SELECT c.city, sum(s.price) AS total, count(*) AS n {JOINED} GROUP BY c.city"
)
OVER_A_VIEW = "CREATE MATERIALIZED VIEW toys REFRESH STRICT AS SELECT p.city, count(*) AS n FROM priced p WHERE p.kind = 'toy' GROUP BY p.city"
CHANGES = (
    "INSERT INTO sale VALUES (7, 5, 2, 9.99), (8, 2, 4, 4.00)",
    "UPDATE customer SET city = 'Rome' WHERE id IN (2, 3); DELETE FROM sale WHERE id = 2",
    "UPDATE sale SET customer_id = 3, price = price + 1 WHERE id IN (1, 8); DELETE FROM customer WHERE id = 4; "
    "INSERT INTO item VALUES (5, 'net', 'toy'); INSERT INTO sale VALUES (9, 1, 5, 2.00)",
    "DELETE FROM item WHERE id = 1; UPDATE item SET kind = 'toy', label = 'cap!' WHERE id = 4; "
    "INSERT INTO customer VALUES (4, 'Di', NULL); UPDATE sale SET item_id = 3 WHERE id = 5",
)


@dataclass(frozen=True)
class Scan:
    """One search: by which column, in which files, for which columns."""

    column: str
    files: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def of(self) -> tuple[str, tuple[str, ...]]:
        """What is searched: no two tables here have the same columns."""
        return self.column, self.columns


class Scans:
    """The searches in files of tables and of views that are read like tables."""

    def __init__(self) -> None:
        self.made: list[Scan] = []

    def few_rows(
        self, session: Any, wanted: Wanted, columns: Sequence[Column], addresses: Collection[str]
    ) -> pa.Table | None:
        files = tuple(sorted(file_name(each) for each in addresses))
        self.made.append(Scan(wanted.column, files, tuple(each.name for each in columns)))
        return few_rows(session, wanted, columns, addresses)

    def of(self, work: Callable[[], RefreshReport]) -> tuple[RefreshReport, list[Scan]]:
        self.made = []
        return work(), self.made


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> Scans:
    found = Scans()
    monkeypatch.setattr(epoch_reads, "few_rows", found.few_rows)
    return found


def notes(report: RefreshReport) -> dict[str, set[str]]:
    """What the steps of each view say of rows that had been found for another view."""
    return {
        view.name: {
            note
            for title, _ in view.steps
            if "as found for" in title
            for note in title.partition("(")[2].rstrip(")").split("; ")
        }
        for view in report.views
    }


def searched_files(made: Sequence[Scan]) -> Counter[tuple[str, str]]:
    """How often each file was searched by each column."""
    return Counter((scan.column, file) for scan in made for file in scan.files)


def test_files_are_searched_as_for_one_view_however_many_there_are(
    warehouse: Warehouse, spark: Any, scans: Scans
) -> None:
    """A table is searched by what changed, and once more by the rows that this leads to in another table. A plan by rules also
    reads tables before the changes: then it searches the files that no longer count, and no more."""
    warehouse.run_script("; ".join((TABLES, BY_RULES, BY_RULES_TOO, DIFFERENTIAL, OVER_A_VIEW)))
    strategies: dict[str, set[str]] = {}
    told: dict[str, set[str]] = {}
    for change in CHANGES:
        warehouse.run_script(change)
        report, made = scans.of(warehouse.refresh)
        assert wrong_views(warehouse, spark) == {}
        assert made and max(searched_files(made).values()) <= 2
        assert max(Counter(scan.of for scan in made).values()) <= 3
        for view in report.views:
            strategies.setdefault(view.name, set()).add(view.strategy)
            told.setdefault(view.name, set()).update(notes(report)[view.name])
    assert strategies["by_city"] == strategies["toys"] == {"differential"}
    assert strategies["sold"] == strategies["priced"] == {"rules"}
    assert {view: bool(found) for view, found in told.items()} == {
        "by_city": False, "priced": True, "sold": True, "toys": False,
    }  # fmt: skip
    assert "rows of customer as found for by_city" in told["sold"]


def test_three_views_by_rules_take_the_scans_of_one_with_the_columns_of_all(
    warehouse: Warehouse, spark: Any, scans: Scans
) -> None:
    """Also where one of them was refreshed alone before and starts from other versions, and where Spark searches: for
    timestamps."""
    tables = TABLES.replace("kind STRING", "kind STRING, since TIMESTAMP").replace(
        "INSERT INTO item VALUES", "INSERT INTO item SELECT *, TIMESTAMP '2024-02-29 12:00:00' FROM VALUES"
    )
    everything = f"CREATE MATERIALIZED VIEW whole REFRESH STRICT AS SELECT s.id AS sale, c.name, i.* {JOINED}"
    warehouse.run_script("; ".join((tables, BY_RULES, BY_RULES_TOO, everything)))
    warehouse.run_script("INSERT INTO sale VALUES (7, 5, 2, 9.99), (8, 2, 4, 4.00)")
    report, made = scans.of(warehouse.refresh)
    assert {view.strategy for view in report.views} == {"rules"}
    assert sorted(scan.columns for scan in made) == [
        ("id", "label", "kind", "since"),
        ("id", "name", "city"),
    ]
    one = {"rows of customer as found for priced", "rows of item as found for priced"}
    assert notes(report) == {"priced": set(), "sold": one, "whole": one}
    assert wrong_views(warehouse, spark) == {}

    warehouse.run_script("UPDATE customer SET name = 'A', city = 'Bari' WHERE id = 1")
    _, made = scans.of(lambda: warehouse.refresh("sold"))
    assert {scan.columns for scan in made if scan.column == "customer_id"} == {
        ("id", "customer_id", "item_id")
    }
    warehouse.run_script(
        "UPDATE customer SET name = 'B', city = 'Pisa' WHERE id IN (1, 2); UPDATE sale SET item_id = 2 WHERE id = 1"
    )
    report, made = scans.of(warehouse.refresh)
    assert set(searched_files(made).values()) == {1}
    assert "rows of sale as found for priced" in notes(report)["whole"]
    assert wrong_views(warehouse, spark) == {}


def test_a_view_that_fails_in_the_middle_harms_no_other(
    warehouse: Warehouse, spark: Any, scans: Scans
) -> None:
    fails = f"CREATE MATERIALIZED VIEW middle REFRESH STRICT AS SELECT s.id, 1 / (s.price - 3) AS share, c.name {JOINED}"
    warehouse.run_script("; ".join((TABLES, BY_RULES, DIFFERENTIAL, fails)))
    warehouse.run_script("INSERT INTO sale VALUES (7, 5, 2, 3.00), (8, 2, 4, 4.00)")
    with pytest.raises(RefreshFailedError, match="Division by zero") as failure:
        scans.of(warehouse.refresh)
    report = failure.value.report
    assert [view.error is None for view in report.views] == [True, False, True]
    assert notes(report)["sold"] == {
        "rows of customer as found for by_city",
        "rows of item as found for by_city",
    }
    assert all(warehouse.verify(name).equal for name in ("by_city", "sold"))
    warehouse.run_script(
        "UPDATE sale SET price = 5 WHERE id = 7; UPDATE customer SET name = 'Eve' WHERE id = 5"
    )
    warehouse.refresh()
    assert wrong_views(warehouse, spark) == {}


def test_a_view_that_views_read_is_searched_once_like_a_table(
    warehouse: Warehouse, spark: Any, scans: Scans
) -> None:
    warehouse.run_script(f"""
        {TABLES}; {BY_RULES_TOO};
        CREATE TABLE place (name STRING, country STRING);
        INSERT INTO place VALUES ('Rome', 'IT'), ('Oslo', 'NO');
        CREATE MATERIALIZED VIEW sales_abroad REFRESH STRICT AS
          SELECT p.id, p.kind, l.country FROM priced p JOIN place l ON p.city = l.name;
        CREATE MATERIALIZED VIEW turnover REFRESH STRICT AS
          SELECT l.country, sum(p.price) AS total, count(*) AS n FROM priced p JOIN place l ON p.city = l.name GROUP BY l.country
    """)
    for change in (
        "INSERT INTO place VALUES ('Kyiv', 'UA'); UPDATE place SET country = 'Italy' WHERE name = 'Rome'",
        "UPDATE customer SET city = 'Oslo' WHERE id = 1; INSERT INTO place VALUES ('Oslo', 'Norge')",
    ):
        warehouse.run_script(change)
        report, made = scans.of(warehouse.refresh)
        assert wrong_views(warehouse, spark) == {}
        assert set(searched_files(made).values()) == {1}
        by_city = [scan.columns for scan in made if scan.column == "city"]
        assert by_city[0] == ("id", "price", "city", "kind") and len(by_city) <= 2
        assert "rows of priced as found for sales_abroad" in notes(report)["turnover"]
