"""Bad input that is refused before Spark is needed: one clear error, and a warehouse as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.seeded import files_of, seeded_warehouse
from viewkeeper import Warehouse, errors

E = errors

CASES: list[tuple[str, type[errors.ViewkeeperError], str]] = [
    # names that do not exist
    ("CREATE MATERIALIZED VIEW v AS SELECT * FROM lime", E.UnknownNameError, "there is no table or view lime"),
    ("EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT prise FROM line", E.UnknownNameError, "no column prise here"),
    ("EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT line.prise FROM line", E.UnknownNameError, "no column prise here"),
    ("EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT id FROM line, item", E.UnknownNameError, "id is ambiguous"),
    ("EXPLAIN MATERIALIZED VIEW nothing", E.UnknownNameError, "the materialized view nothing does not exist"),
    ("EXPLAIN MATERIALIZED VIEW line", E.UnknownNameError, "line is a table, not a materialized view"),
    ("REFRESH MATERIALIZED VIEW solt", E.UnknownNameError, "the materialized view solt does not exist"),
    ("REFRESH MATERIALIZED VIEW item", E.UnknownNameError, "item is a table, not a materialized view"),
    ("VERIFY MATERIALIZED VIEW solt", E.UnknownNameError, "the materialized view solt does not exist"),
    ("RESTORE MATERIALIZED VIEW solt", E.UnknownNameError, "the materialized view solt does not exist"),
    ("DESCRIBE lines", E.UnknownNameError, "there is no table or view lines"),
    ("DESCRIBE HISTORY line", E.UnknownNameError, "line is a table, not a materialized view"),
    ("DROP TABLE lines", E.UnknownNameError, "there is no table lines"),
    ("DROP MATERIALIZED VIEW solt", E.UnknownNameError, "the materialized view solt does not exist"),
    ("ALTER TABLE lines SET APPEND ONLY", E.UnknownNameError, "there is no table lines"),
    ("ALTER MATERIALIZED VIEW solt RENAME TO x", E.UnknownNameError, "the materialized view solt does not exist"),
    ("ALTER TABLE line DROP CONSTRAINT line_itm_fk", E.UnknownNameError, "line has no constraint line_itm_fk"),
    ("ALTER TABLE line SET UPDATABLE (prise)", E.UnknownNameError, "names the column prise, which line does not have"),
    ("ALTER TABLE line ADD UNIQUE (prise)", E.UnknownNameError, "names the column prise, which line does not have"),
    # names that are taken
    ("CREATE TABLE line (id INT)", E.NameExistsError, "line exists already"),
    ("CREATE TABLE LINE (id INT)", E.NameExistsError, "LINE exists already"),
    ("CREATE TABLE sold (id INT)", E.NameExistsError, "sold exists already"),
    ("CREATE OR REPLACE TABLE sold (id INT)", E.NameExistsError, "sold is a materialized view, not a table"),
    ("CREATE MATERIALIZED VIEW sold AS SELECT id FROM line", E.NameExistsError, "sold exists already"),
    ("CREATE MATERIALIZED VIEW line AS SELECT id FROM item", E.NameExistsError, "line exists already"),
    ("CREATE OR REPLACE MATERIALIZED VIEW line AS SELECT id FROM item", E.NameExistsError, "line is a table"),
    ("ALTER TABLE line RENAME TO item", E.NameExistsError, "item exists already"),
    ("ALTER MATERIALIZED VIEW sold RENAME TO totals", E.NameExistsError, "totals exists already"),
    ("ALTER TABLE line ADD CONSTRAINT line_pk UNIQUE (item)", E.NameExistsError, "has a constraint line_pk already"),
    ("ATTACH TABLE item FROM DELTA '/nowhere'", E.NameExistsError, "item exists already"),
    # keys and foreign keys that cannot be
    ("CREATE TABLE t (id INT, PRIMARY KEY (idd))", E.UnknownNameError, "names the column idd, which t does not have"),
    ("CREATE TABLE t (id INT PRIMARY KEY, x INT PRIMARY KEY)", E.InvalidStatementError, "two primary keys"),
    ("CREATE TABLE t (id INT, UNIQUE (id, ID))", E.InvalidStatementError, "names a column twice"),
    ("CREATE TABLE t (x INT REFERENCES nothing)", E.UnknownNameError, "references nothing, which does not exist"),
    ("CREATE TABLE t (x INT REFERENCES sold (name))", E.InvalidStatementError, "cannot reference the view sold"),
    ("CREATE TABLE t (x STRING REFERENCES item)", E.InvalidStatementError, "compares x STRING with id INT"),
    ("CREATE TABLE t (x STRING REFERENCES item (name))", E.InvalidStatementError, r"item \(name\), which is no key"),
    ("CREATE TABLE t (x INT REFERENCES item (idd))", E.UnknownNameError, "names the column idd, which item does not"),
    ("CREATE TABLE t (x INT, FOREIGN KEY (x) REFERENCES item (id, name))", E.InvalidStatementError, "1 columns and references 2"),
    ("CREATE TABLE t (x INT, FOREIGN KEY (y) REFERENCES item)", E.UnknownNameError, "names the column y"),
    ("ALTER TABLE item DROP CONSTRAINT item_pk", E.InUseError, "the foreign key line_item_fk of line needs this key"),
    ("ALTER TABLE item ADD PRIMARY KEY (name)", E.InvalidStatementError, "two primary keys"),
    # columns that cannot be
    ("CREATE TABLE t (a INT, A INT)", E.InvalidStatementError, "two columns A; Delta does not tell upper from lower"),
    ("CREATE TABLE t (`a``b` INT)", E.UnsupportedError, "has a backtick, which Delta's change feed cannot carry"),
    ("CREATE TABLE t (_vk_copy INT)", E.InvalidStatementError, "the column name _vk_copy is reserved"),
    ("CREATE TABLE t (a TIME)", E.UnsupportedError, "cannot store the type TIME"),
    ("CREATE TABLE t (a INTERVAL DAY)", E.UnsupportedError, "cannot store the type INTERVAL"),
    ("CREATE TABLE t (a STRING COLLATE UTF8_LCASE)", E.UnsupportedError, "cannot store collated strings"),
    ("CREATE TABLE t (a VOID)", E.UnsupportedError, "cannot store the type VOID"),
    ("CREATE TABLE t (a NUMBER)", E.UnsupportedError, "there is no column type NUMBER"),
    ("CREATE TABLE t (a DECIMAL(50,2))", E.UnsupportedError, r"DECIMAL\(50,2\) is out of range"),
    ("CREATE TABLE t (a ARRAY<TIME>)", E.UnsupportedError, "cannot store the type TIME"),
    ("CREATE TABLE t (id INT GENERATED ALWAYS AS (1))", E.SqlSyntaxError, "generated columns are not supported"),
    ("CREATE TABLE t (id INT, CHECK (id > 0))", E.SqlSyntaxError, "CHECK constraints are not kept"),
    # what is in use
    ("DROP TABLE item", E.InUseError, "item is read by sold"),
    ("DROP TABLE line", E.InUseError, "line is read by sold"),
    ("DROP MATERIALIZED VIEW line", E.UnknownNameError, "line is a table, not a materialized view"),
    ("DROP TABLE sold", E.InvalidStatementError, "sold is a materialized view, not a table"),
    ("CREATE OR REPLACE TABLE line (id INT)", E.InUseError, "sold reads line and would not work any more"),
    ("CREATE OR REPLACE TABLE item (id INT, name STRING)", E.InvalidStatementError, r"line references item \(id\), which is no key"),
    # what views are not
    ("INSERT INTO sold VALUES ('a', 1)", E.InvalidStatementError, "sold is a materialized view; only a refresh"),
    ("DELETE FROM totals", E.InvalidStatementError, "totals is a materialized view; only a refresh"),
    ("UPDATE sold SET price = 1", E.InvalidStatementError, "sold is a materialized view; only a refresh"),
    ("UPDATE line SET item = 3", E.InvalidStatementError, "the column item of line is declared not to change"),
    (
        "MERGE INTO line USING item ON line.item = item.id WHEN MATCHED THEN UPDATE SET line.item = 3",
        E.InvalidStatementError,
        "the column item of line is declared not to change",
    ),
    ("CREATE MATERIALIZED VIEW v AS SELECT 1 AS a", E.UnsupportedError, "reads no table of the warehouse"),
    ("CREATE MATERIALIZED VIEW v AS DELETE FROM line", E.InvalidStatementError, "a view is made of a query"),
    ("CREATE MATERIALIZED VIEW v AS SELECT * FROM line VERSION AS OF 3", E.UnsupportedError, "cannot be fixed to one version"),
    ("CREATE MATERIALIZED VIEW v AS SELECT * FROM sold AS OF EPOCH 1", E.UnsupportedError, "cannot be fixed to one version"),
    ("CREATE MATERIALIZED VIEW v REFRESH STRICT AS SELECT id FROM line ORDER BY id LIMIT 3 OFFSET 2", E.RefreshPolicyError, "cannot be maintained without recomputing"),
    ("CREATE MATERIALIZED VIEW v REFRESH STRICT REMATERIALIZE ON DELETE FROM line AS SELECT id FROM line", E.RefreshPolicyError, "REMATERIALIZE ON asks for it"),
    ("CREATE MATERIALIZED VIEW v REMATERIALIZE ON DELETE FROM lines AS SELECT id FROM line", E.UnknownNameError, "v does not read lines"),
    ("EXPLAIN RULES FOR line", E.UnknownNameError, "is a table, not a materialized view"),
    ("CREATE MATERIALIZED VIEW v SELF MAINTAINED AS SELECT id FROM line", E.UnsupportedError, "come in a later version"),
    ("ATTACH SOURCE pg FROM POSTGRES OPTIONS (host 'x')", E.UnsupportedError, "comes in a later version"),
    ("CREATE OR REPLACE MATERIALIZED VIEW sold AS SELECT name, total AS price FROM totals", E.InvalidStatementError, "would read itself through totals"),
    ("CREATE OR REPLACE MATERIALIZED VIEW sold AS SELECT name, price FROM sold", E.InvalidStatementError, "would read itself through sold"),
    ("CREATE VIEW v AS SELECT id FROM line", E.UnsupportedError, "only materialized views"),
    ("SELECT * FROM line AS OF EPOCH 1", E.UnsupportedError, "line is a table; epochs are of views"),
    ("SELECT * FROM sold AS OF EPOCH 99", E.VersionGoneError, "there is no epoch 99 yet"),
    ("SELECT * FROM sold VERSION AS OF 1", E.UnsupportedError, "sold is a materialized view"),
    ("ATTACH TABLE t FROM DELTA 'relative/path'", E.InvalidStatementError, "is a relative path"),
    ("ATTACH TABLE t FROM DELTA '/no/such/table'", E.InvalidStatementError, "there is no Delta table at /no/such/table"),
    # text that is no statement
    ("", E.SqlSyntaxError, "there is no statement here"),
    ("SELECT 1; SELECT 2", E.SqlSyntaxError, "one statement is expected here, not 2"),
    ("SELEC * FROM line", E.SqlSyntaxError, "SELEC does not start a statement"),
    ("SELECT * FROM line WHERE (price >", E.SqlSyntaxError, "this is not valid SQL"),
    ("SELECT 'never closed FROM line", E.SqlSyntaxError, "opened here and never closed"),
    ("EXPLAIN SELECT 1", E.UnsupportedError, "EXPLAIN is for materialized views"),
    ("VACUUM WAREHOUSE RETAIN 0 EPOCHS", E.SqlSyntaxError, "at least one epoch must be kept"),
    ("SELECT * FROM a.b.c", E.UnsupportedError, "at most two parts"),
]  # fmt: skip


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Warehouse, Path]:
    path = tmp_path_factory.mktemp("seeded") / "warehouse"
    return seeded_warehouse(path), path


@pytest.mark.parametrize(("statement", "kind", "message"), CASES, ids=[case[0][:60] for case in CASES])
def test_one_clear_error_and_nothing_changed(
    seeded: tuple[Warehouse, Path], statement: str, kind: type[errors.ViewkeeperError], message: str
) -> None:
    """I26, I30: an error of ours, whatever is wrong, and the warehouse as it was."""
    warehouse, path = seeded
    before, files = warehouse._workspace.state.read(), files_of(path)
    with pytest.raises(kind, match=message) as caught:
        warehouse.sql(statement)
    error = caught.value
    assert error.message.endswith("."), error.message
    assert error.exit_code != 0
    assert "Traceback" not in str(error)
    assert warehouse._workspace.state.read() == before
    assert files_of(path) == files


def test_an_unknown_table_needs_no_spark_to_be_unknown(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse")
    with pytest.raises(errors.UnknownNameError, match="there is no table or view lines"):
        warehouse.sql("SELECT * FROM lines")
    assert not warehouse._workspace.sessions.started


def test_a_script_stops_at_its_first_error_and_points_at_the_line(seeded: tuple[Warehouse, Path]) -> None:
    warehouse, _ = seeded
    with pytest.raises(errors.UnknownNameError) as caught:
        warehouse.run_script(
            "SHOW TABLES;\n\nDESCRIBE line;\nEXPLAIN CREATE MATERIALIZED VIEW v AS\nSELECT prise\nFROM line;"
        )
    location = caught.value.location
    assert location is not None and (location.line, location.column, location.length) == (5, 8, 5)
    assert str(caught.value).splitlines()[1:] == [
        "line 5: SELECT prise",
        "               ^^^^^",
        "To do: did you mean price?",
    ]


def test_a_path_that_is_no_warehouse(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("something else")
    with pytest.raises(errors.NotAWarehouseError, match="exists and is no Viewkeeper warehouse"):
        Warehouse(tmp_path)
    with pytest.raises(errors.NotAWarehouseError, match="is no Viewkeeper warehouse"):
        Warehouse(tmp_path / "nothing", create=False)
    assert files_of(tmp_path) == {"other.txt"}


def test_strict_underlines_what_cannot_be_maintained(tmp_path: Path) -> None:
    warehouse = seeded_warehouse(tmp_path)
    text = "CREATE MATERIALIZED VIEW v REFRESH STRICT AS SELECT id, abs(rand()) AS r FROM line"
    with pytest.raises(E.RefreshPolicyError, match="rand gives another value each time") as caught:
        warehouse.sql(text)
    assert str(caught.value).splitlines()[2].strip() == "^" * len("rand")
