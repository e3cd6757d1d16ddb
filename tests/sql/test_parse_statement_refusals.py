"""What is wrong with a statement: the exact text, the hint and the place, marked «like this»."""

from __future__ import annotations

import pytest

from tests.sql.helpers import refuse
from viewkeeper.errors import SqlSyntaxError, UnsupportedError
from viewkeeper.sql.parse_statement import parse_text

LISTED = "the statements are listed in docs/statements.md."
TABLE_ENDS = "AS, COMMENT or the end of the statement is expected here."
VIEW_ENDS = "AS and the view's query are expected here."
POLICIES = "AUTO, INCREMENTAL, STRICT or FULL is expected here."
ALTERATIONS = "SET UPDATABLE, SET APPEND ONLY, ADD CONSTRAINT, DROP CONSTRAINT or RENAME TO is expected here."
CONSTRAINTS = "PRIMARY KEY, UNIQUE or FOREIGN KEY is expected here."
ON_COLUMNS = "PRIMARY KEY, UNIQUE, REFERENCES or NOT NULL is expected here."


def unknown(verb: str) -> str:
    return f"{verb} does not start a statement that Viewkeeper knows."


@pytest.mark.parametrize(
    ("marked", "message", "hint"),
    [
        ("", "there is no statement here.", "write one SQL statement."),
        (" \n ", "there is no statement here.", "write one SQL statement."),
        ("-- only a comment", "there is no statement here.", "write one SQL statement."),
        ("/* only */ ; /* comments */", "there is no statement here.", "write one SQL statement."),
        (
            "SHOW TABLES;\n  «REFRESH ALL»;",
            "one statement is expected here, not 2.",
            "use run_script (on the command line: -f FILE) for several statements.",
        ),
        ("«SELET» 1", unknown("SELET"), "did you mean SELECT?"),
        ("-- x\n  «refesh» ALL", unknown("refesh"), "did you mean REFRESH?"),
        ("«INSRT» INTO t VALUES (1)", unknown("INSRT"), "did you mean INSERT?"),
        ("«CRATE» TABLE t (a INT)", unknown("CRATE"), "did you mean CREATE?"),
        ("«USE» db", unknown("USE"), LISTED),
        ("«CALL» f()", unknown("CALL"), LISTED),
        ("«`DROP`» TABLE t", unknown("DROP"), "did you mean DROP?"),
        ("«'DROP'» TABLE t", unknown("DROP"), "did you mean DROP?"),
        ("«)»", unknown(")"), LISTED),
        ("CREAT«E»", "TABLE or MATERIALIZED VIEW is expected here.", ""),
        ("CREATE «INDEX» i ON t (a)", "TABLE or MATERIALIZED VIEW is expected here.", ""),
        ("CREATE «MATERIALISED» VIEW v AS SELECT 1", "TABLE or MATERIALIZED VIEW is expected here.", ""),
        ("CREATE OR REPLAC«E»", "TABLE or MATERIALIZED VIEW is expected here.", ""),
        ("CREATE TABL«E»", "the table's name is expected here.", ""),
        ("CREATE TABLE «1» (a INT)", "the table's name is expected here.", ""),
        ("CREATE TABLE «'t'» (a INT)", "the table's name is expected here.", ""),
        ("CREATE TABLE «``» (a INT)", "the table's name is expected here.", ""),
        ("CREATE TABLE «?» (a INT)", "the table's name is expected here.", ""),
        ("CREATE TABLE s.«(»a INT)", "the table's name is expected here.", ""),
        ("CREATE TABLE c.s«.»t (a INT)", "a name has at most two parts here: schema.name.", ""),
        ("CREATE TABLE «t»", "a table needs columns.", "write CREATE TABLE t (id INT PRIMARY KEY, …)."),
        (
            "CREATE TABLE t (PRIMARY KEY (a)«)»",
            "a table needs columns.",
            "write CREATE TABLE t (id INT PRIMARY KEY, …).",
        ),
        ("CREATE TABLE t «a» INT", TABLE_ENDS, ""),
        ("CREATE TABLE t (a INT) «PARTITIONED» BY (a)", TABLE_ENDS, ""),
        ("CREATE TABLE t (a INT) «b»", TABLE_ENDS, ""),
        ("CREATE TABLE t («)»", "a column name is expected here.", ""),
        ("CREATE TABLE t «(»", "a column name is expected here.", ""),
        ("CREATE TABLE t (a INT,«)»", "a column name is expected here.", ""),
        ("CREATE TABLE t (a INT,«,» b INT)", "a column name is expected here.", ""),
        ("CREATE TABLE t (a«)»", "a column type is expected here.", ""),
        ("CREATE TABLE t (a«,» b INT)", "a column type is expected here.", ""),
        ("CREATE TABLE t (a IN«T»", ") is expected here.", ""),
        ("CREATE TABLE t (a INT «b» INT)", ") is expected here.", ""),
        ("CREATE TABLE t (a ARRAY<INT>«>», b INT)", ") is expected here.", ""),
        ("CREATE TABLE t (a INT «NOT»)", ") is expected here.", ""),
        ("CREATE TABLE t (a INT DEFAULT «)»", "an expression is expected here.", ""),
        ("CREATE TABLE t (a INT DEFAULT«,» b INT)", "an expression is expected here.", ""),
        ("CREATE TABLE t (a INT DEFAULT «NOT» NULL)", "an expression is expected here.", ""),
        ("CREATE TABLE t (a INT COMMENT «b»)", "the comment in quotes is expected here.", ""),
        ("CREATE TABLE t (a INT CONSTRAINT «)»", "the constraint's name is expected here.", ""),
        ("CREATE TABLE t (a INT CONSTRAINT c«)»", ON_COLUMNS, ""),
        ("CREATE TABLE t (a INT CONSTRAINT c «COMMENT» 'x')", ON_COLUMNS, ""),
        ("CREATE TABLE t (a INT, CONSTRAINT c«)»", CONSTRAINTS, ""),
        ("CREATE TABLE t (a INT, PRIMARY KEY «a»)", "( is expected here.", ""),
        ("CREATE TABLE t (a INT, PRIMARY KEY («)»)", "a column is expected here.", ""),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a «b»))", ") is expected here.", ""),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a)«)»", "REFERENCES is expected here.", ""),
        (
            "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES«)»",
            "the referenced table is expected here.",
            "",
        ),
        ("CREATE TABLE t (a INT REFERENCES u («)»)", "a column is expected here.", ""),
        (
            "CREATE TABLE t (a INT, CONSTRAINT c «CHECK» (a > 1))",
            "CHECK constraints are not kept by Viewkeeper.",
            "filter in the view's query instead.",
        ),
        (
            "CREATE TABLE t (a INT, «CHECK» (a > 1))",
            "CHECK constraints are not kept by Viewkeeper.",
            "filter in the view's query instead.",
        ),
        (
            "CREATE TABLE t (a INT «CHECK» (a > 1))",
            "CHECK constraints are not kept by Viewkeeper.",
            "filter in the view's query instead.",
        ),
        (
            "CREATE TABLE t (a INT «GENERATED» ALWAYS AS IDENTITY)",
            "generated columns are not supported in base tables.",
            "compute the column in the view's query.",
        ),
        (
            "CREATE TABLE t (a INT) USING «PARQUET»",
            "base tables are Delta tables.",
            "write USING DELTA, or leave USING out.",
        ),
        ("CREATE TABLE t A«S»", "a query is expected here.", ""),
        (
            "CREATE TABLE t (a INT) AS «SELECT 1 AS a»",
            "CREATE TABLE … AS SELECT takes its columns from the query.",
            "give constraints only, e.g. (PRIMARY KEY (id)), or leave AS SELECT out.",
        ),
        ("CREATE MATERIALIZED VIE«W»", "the view's name is expected here.", ""),
        ("CREATE MATERIALIZED VIEW «v»", VIEW_ENDS, ""),
        ("CREATE MATERIALIZED VIEW v «SELECT» 1", VIEW_ENDS, ""),
        ("CREATE MATERIALIZED VIEW v «(»a) AS SELECT 1", VIEW_ENDS, ""),
        ("CREATE MATERIALIZED VIEW v A«S»", "a query is expected here.", ""),
        ("CREATE MATERIALIZED VIEW v REFRESH «SOMETIMES» AS SELECT 1", POLICIES, ""),
        ("CREATE MATERIALIZED VIEW v REFRESH «AS» SELECT 1", POLICIES, ""),
        ("CREATE MATERIALIZED VIEW v REFRES«H»", POLICIES, ""),
        ("CREATE MATERIALIZED VIEW v COMMENT «AS» SELECT 1", "the comment in quotes is expected here.", ""),
        (
            "CREATE MATERIALIZED VIEW v REMATERIALIZE ON «TRUNCATE» t AS SELECT 1",
            "INSERT INTO, DELETE FROM or UPDATE OF is expected here.",
            "",
        ),
        ("CREATE MATERIALIZED VIEW v REMATERIALIZE ON DELETE «t» AS SELECT 1", "FROM is expected here.", ""),
        ("ATTACH «t» FROM DELTA 'x'", "TABLE is expected here.", ""),
        ("ATTACH TABL«E»", "the table's name is expected here.", ""),
        ("ATTACH TABLE «t»", "FROM is expected here.", ""),
        (
            "ATTACH TABLE t FROM «PARQUET» 'x'",
            "DELTA 'uri' or TABLE catalogue.schema.name is expected here.",
            "",
        ),
        ("ATTACH TABLE t FROM DELTA «x»", "the table's address in quotes is expected here.", ""),
        ("ATTACH TABLE t FROM TABLE c.«'s'»", "the catalogue's table is expected here.", ""),
        (
            "ATTACH TABLE t FROM DELTA 'x' (a INT«)»",
            "an attached table brings its columns along.",
            "list constraints only.",
        ),
        ("ATTACH TABLE t FROM DELTA 'x' «AS» u", "the statement should end here.", ""),
        ("ALTE«R»", "TABLE is expected here.", ""),
        ("ALTER «VIEW» v AS SELECT 1", "TABLE is expected here.", ""),
        ("ALTER TABL«E»", "the table's name is expected here.", ""),
        ("ALTER TABLE «t»", ALTERATIONS, ""),
        ("ALTER TABLE t «RENAME»", ALTERATIONS, ""),
        ("ALTER TABLE t RENAME T«O»", "the new name is expected here.", ""),
        ("ALTER TABLE t «SET» TBLPROPERTIES ('a' = 'b')", ALTERATIONS, ""),
        ("ALTER TABLE t ADD «COLUMN» a INT", CONSTRAINTS, ""),
        ("ALTER TABLE t DROP CONSTRAIN«T»", "the constraint's name is expected here.", ""),
        ("ALTER TABLE t SET UPDATABLE «a»", "( is expected here.", ""),
        ("ALTER TABLE t SET APPEND ONLY «x»", "the statement should end here.", ""),
        ("ALTER MATERIALIZED VIEW «v»", "SET is expected here.", ""),
        ("ALTER MATERIALIZED VIEW v SET «x»", "REFRESH is expected here.", ""),
        ("ALTER MATERIALIZED VIEW v SET REFRESH «NEVER»", POLICIES, ""),
        ("ALTER MATERIALIZED VIEW v A«S»", "a query is expected here.", ""),
        ("REFRES«H»", "MATERIALIZED is expected here.", ""),
        ("REFRESH «TABLE» t", "MATERIALIZED is expected here.", ""),
        ("REFRESH MATERIALIZED «v»", "VIEW is expected here.", ""),
        ("REFRESH ALL «VIEWS»", "the statement should end here.", ""),
        ("REFRESH MATERIALIZED VIEW a «b»", "the statement should end here.", ""),
        ("REFRESH MATERIALIZED VIEW a«,»", "the view's name is expected here.", ""),
        ("EXPLAIN CREATE TABLE t (a INT«)»", "EXPLAIN CREATE is for materialized views.", ""),
        ("EXPLAIN MATERIALIZED VIEW v «x»", "the statement should end here.", ""),
        ("VERIFY «v»", "MATERIALIZED is expected here.", ""),
        ("RESTORE «TABLE» t TO VERSION AS OF 1", "MATERIALIZED is expected here.", ""),
        ("SHO«W»", "MATERIALIZED is expected here.", ""),
        ("SHOW «VIEWS»", "MATERIALIZED is expected here.", ""),
        ("SHOW TABLES «IN» s", "the statement should end here.", ""),
        ("DESCRIB«E»", "a table or view is expected here.", ""),
        ("DESCRIBE EXTENDED «t»", "the statement should end here.", ""),
        ("DROP «VIEW» v", "MATERIALIZED is expected here.", ""),
        ("DROP TABLE «-»", "the table's name is expected here.", ""),
        ("DROP TABLE t «CASCADE»", "the statement should end here.", ""),
        ("DROP MATERIALIZED VIEW IF EXIST«S»", "the view's name is expected here.", ""),
        ("VACUU«M»", "WAREHOUSE is expected here.", ""),
        ("VACUUM «t»", "WAREHOUSE is expected here.", ""),
        ("VACUUM WAREHOUSE RETAIN «x»", "the number of epochs, a whole number, is expected here.", ""),
        (
            "VACUUM WAREHOUSE RETAIN «1.5» EPOCHS",
            "the number of epochs, a whole number, is expected here.",
            "",
        ),
        ("VACUUM WAREHOUSE RETAIN 3 «DAYS»", "EPOCH is expected here.", ""),
        ("VACUUM WAREHOUSE RETAIN 0 EPOCH«S»", "at least one epoch must be kept.", ""),
        (
            "DROP TABLE «'»t",
            "a string, quoted name or comment is opened here and never closed.",
            "close it with the same quote.",
        ),
    ],
)
def test_syntax_errors(marked: str, message: str, hint: str) -> None:
    refuse(parse_text, marked, SqlSyntaxError, message, hint)


ONLY_MATERIALIZED = ("only materialized views are kept in a warehouse.", "write CREATE MATERIALIZED VIEW.")
EXPLAINED = (
    "EXPLAIN is for materialized views here.",
    "write EXPLAIN MATERIALIZED VIEW v or EXPLAIN RULES FOR v, or call .explain() on the DataFrame of the query.",
)


@pytest.mark.parametrize(
    ("marked", "message", "hint"),
    [
        ("CREATE «VIEW» v AS SELECT 1", *ONLY_MATERIALIZED),
        ("CREATE OR REPLACE «TEMPORARY» VIEW v AS SELECT 1", *ONLY_MATERIALIZED),
        ("CREATE «TEMP» VIEW v AS SELECT 1", *ONLY_MATERIALIZED),
        (
            "CREATE MATERIALIZED VIEW v\n  «SELF» MAINTAINED AS SELECT 1",
            "SELF MAINTAINED views come in a later version.",
            "leave SELF MAINTAINED out; the view is then kept from its base tables.",
        ),
        (
            "ATTACH «SOURCE» shop FROM POSTGRES OPTIONS (url 'x')",
            "ATTACH SOURCE comes in a later version.",
            "attach Delta tables with ATTACH TABLE … FROM DELTA 'uri'.",
        ),
        ("EXPLAIN «SELECT» 1", *EXPLAINED),
        ("EXPLAI«N»", *EXPLAINED),
        (
            "CREATE TABLE t (a «INTERVAL» DAY)",
            "Delta tables cannot store the type INTERVAL.",
            "store the start and the end, or a number of days or seconds.",
        ),
        ("CREATE TABLE t (a INT, b «STRNG»)", "there is no column type STRNG.", "did you mean STRING?"),
        ("CREATE TABLE t (INT «a»)", "there is no column type a.", "did you mean MAP?"),
        (
            "CREATE TABLE t (a «STRING» COLLATE UNICODE)",
            "Delta tables cannot store collated strings.",
            "store a plain STRING and collate in the query.",
        ),
    ],
)
def test_sensible_statements_that_are_not_taken(marked: str, message: str, hint: str) -> None:
    refuse(parse_text, marked, UnsupportedError, message, hint)


def test_errors_in_a_script_point_at_the_scripts_own_line() -> None:
    refuse(
        parse_text,
        "-- the shop\r\n\r\nCREATE TABLE t (\r\n  id INT,\r\n\tname «STRNG»\r\n)",
        UnsupportedError,
        "there is no column type STRNG.",
        "did you mean STRING?",
    )
