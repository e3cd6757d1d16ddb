"""Every statement that Viewkeeper reads, with all its options."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.sql.helpers import HOSTILE_NAMES
from viewkeeper.sql.names import QualifiedName, quote
from viewkeeper.sql.parse_statement import parse_statement, parse_text
from viewkeeper.sql.script import Fragment, split_script
from viewkeeper.sql.statements import (
    AddConstraint,
    AlterTable,
    AlterView,
    AttachTable,
    ChangeData,
    ColumnDefinition,
    CreateTable,
    CreateView,
    Describe,
    Drop,
    DropConstraint,
    ExplainCreate,
    ExplainRules,
    ExplainView,
    ForeignKey,
    Key,
    Operation,
    Query,
    Refresh,
    RefreshPolicy,
    RenameTo,
    RestoreView,
    SetAppendOnly,
    SetPolicy,
    SetUpdatable,
    Show,
    Statement,
    VacuumWarehouse,
    VerifyView,
)
from viewkeeper.sql.types import Array, Map, Simple, Struct

INT, STRING = Simple("INT"), Simple("STRING")
ID = ColumnDefinition("id", INT)


def name(text: str) -> QualifiedName:
    schema, _, short = text.rpartition(".")
    return QualifiedName(schema or "default", short)


T, V = name("t"), name("v")


def query_in(script: str, text: str) -> Fragment:
    return Fragment(text, script, script.index(text))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CREATE TABLE t (id INT)", CreateTable(T, (ID,), ())),
        ("create table T (id int)", CreateTable(name("T"), (ID,), ())),
        ("CREATE TABLE s.t (id INT)", CreateTable(name("s.t"), (ID,), ())),
        ("CREATE OR REPLACE TABLE t (id INT)", CreateTable(T, (ID,), (), or_replace=True)),
        ("CREATE TABLE IF NOT EXISTS t (id INT)", CreateTable(T, (ID,), (), if_not_exists=True)),
        ("CREATE TABLE t (id INT) USING DELTA", CreateTable(T, (ID,), ())),
        ("CREATE TABLE t (id INT) COMMENT 'the t''s'", CreateTable(T, (ID,), (), comment="the t's")),
        ("CREATE TABLE t (id INT) COMMENT = 'x' USING delta", CreateTable(T, (ID,), (), comment="x")),
        (
            "CREATE TABLE t (id INT /* c */, -- d\n b STRING)",
            CreateTable(T, (ID, ColumnDefinition("b", STRING)), ()),
        ),
        (
            "CREATE TABLE t (id INT NOT NULL, b INT NULL)",
            CreateTable(T, (ColumnDefinition("id", INT, nullable=False), ColumnDefinition("b", INT)), ()),
        ),
        (
            "CREATE TABLE t (id INT COMMENT 'the id')",
            CreateTable(T, (ColumnDefinition("id", INT, comment="the id"),), ()),
        ),
        (
            "CREATE TABLE t (id INT NOT NULL DEFAULT 1 + (2 * f(3, 4)) COMMENT 'x' PRIMARY KEY)",
            CreateTable(
                T,
                (ColumnDefinition("id", INT, nullable=False, default="1 + (2 * f(3, 4))", comment="x"),),
                (Key(("id",), primary=True),),
            ),
        ),
        (
            "CREATE TABLE t (id INT DEFAULT NULL, b STRING DEFAULT ')' NOT NULL)",
            CreateTable(
                T,
                (
                    ColumnDefinition("id", INT, default="NULL"),
                    ColumnDefinition("b", STRING, nullable=False, default="')'"),
                ),
                (),
            ),
        ),
        (
            "CREATE TABLE t (id BOOLEAN DEFAULT 1 IS NOT NULL)",
            CreateTable(T, (ColumnDefinition("id", Simple("BOOLEAN"), default="1 IS NOT NULL"),), ()),
        ),
        (
            "CREATE TABLE t (id INT, m MAP<STRING, ARRAY<INT>>, s STRUCT<a: INT>, n DECIMAL(10, 2))",
            CreateTable(
                T,
                (
                    ID,
                    ColumnDefinition("m", Map(STRING, Array(INT))),
                    ColumnDefinition("s", Struct((("a", INT),))),
                    ColumnDefinition("n", Simple("DECIMAL(10,2)")),
                ),
                (),
            ),
        ),
        ("CREATE TABLE t (id INT PRIMARY KEY)", CreateTable(T, (ID,), (Key(("id",), primary=True),))),
        (
            "CREATE TABLE t (id INT PRIMARY KEY RELY)",
            CreateTable(T, (ID,), (Key(("id",), primary=True, rely=True),)),
        ),
        (
            "CREATE TABLE t (id INT PRIMARY KEY NOT ENFORCED NORELY)",
            CreateTable(T, (ID,), (Key(("id",), primary=True),)),
        ),
        ("CREATE TABLE t (id INT UNIQUE)", CreateTable(T, (ID,), (Key(("id",), primary=False),))),
        (
            "CREATE TABLE t (id INT CONSTRAINT nn NOT NULL CONSTRAINT u UNIQUE NOT ENFORCED RELY PRIMARY KEY)",
            CreateTable(
                T,
                (ColumnDefinition("id", INT, nullable=False),),
                (Key(("id",), primary=False, name="u", rely=True), Key(("id",), primary=True)),
            ),
        ),
        (
            "CREATE TABLE t (id INT REFERENCES u)",
            CreateTable(T, (ID,), (ForeignKey(("id",), name("u"), ()),)),
        ),
        (
            "CREATE TABLE t (id INT CONSTRAINT f REFERENCES s.u (uid) NOT ENFORCED RELY)",
            CreateTable(T, (ID,), (ForeignKey(("id",), name("s.u"), ("uid",), "f", rely=True),)),
        ),
        (
            "CREATE TABLE t (id INT, PRIMARY KEY (id))",
            CreateTable(T, (ID,), (Key(("id",), primary=True),)),
        ),
        (
            "CREATE TABLE t (id INT, b INT, CONSTRAINT `p k` PRIMARY KEY (id, `b`) RELY)",
            CreateTable(
                T, (ID, ColumnDefinition("b", INT)), (Key(("id", "b"), primary=True, name="p k", rely=True),)
            ),
        ),
        (
            "CREATE TABLE t (id INT, UNIQUE (id), UNIQUE KEY (id) RELY)",
            CreateTable(T, (ID,), (Key(("id",), primary=False), Key(("id",), primary=False, rely=True))),
        ),
        (
            "CREATE TABLE t (id INT, FOREIGN KEY (id) REFERENCES u, CONSTRAINT f FOREIGN KEY (id, id) REFERENCES u (a, b))",
            CreateTable(
                T,
                (ID,),
                (ForeignKey(("id",), name("u"), ()), ForeignKey(("id", "id"), name("u"), ("a", "b"), "f")),
            ),
        ),
        (
            # Whether two primary keys make sense is not the reader's question.
            "CREATE TABLE t (id INT PRIMARY KEY, PRIMARY KEY (id))",
            CreateTable(T, (ID,), (Key(("id",), primary=True), Key(("id",), primary=True))),
        ),
        (
            "CREATE TABLE t (unique INT, `primary` INT, check STRING, UNIQUE (unique))",
            CreateTable(
                T,
                (
                    ColumnDefinition("unique", INT),
                    ColumnDefinition("primary", INT),
                    ColumnDefinition("check", STRING),
                ),
                (Key(("unique",), primary=False),),
            ),
        ),
        ("ATTACH TABLE t FROM DELTA '/data/t'", AttachTable(T, "/data/t", None, ())),
        (
            "ATTACH TABLE IF NOT EXISTS s.t FROM DELTA 's3://b/t' (PRIMARY KEY (id) RELY, FOREIGN KEY (a) REFERENCES u)",
            AttachTable(
                name("s.t"),
                "s3://b/t",
                None,
                (Key(("id",), primary=True, rely=True), ForeignKey(("a",), name("u"), ())),
                if_not_exists=True,
            ),
        ),
        ("ATTACH TABLE t FROM TABLE u", AttachTable(T, None, "`u`", ())),
        ("ATTACH TABLE t FROM TABLE c.`s``x`.u", AttachTable(T, None, "`c`.`s``x`.`u`", ())),
        (
            "ATTACH TABLE t FROM TABLE c.s.u (UNIQUE (a))",
            AttachTable(T, None, "`c`.`s`.`u`", (Key(("a",), False),)),
        ),
        ("ALTER TABLE t SET UPDATABLE ALL", AlterTable(T, SetUpdatable(("*",)))),
        ("ALTER TABLE t SET UPDATABLE ()", AlterTable(T, SetUpdatable(()))),
        ("ALTER TABLE t SET UPDATABLE (a, `b c`)", AlterTable(T, SetUpdatable(("a", "b c")))),
        ("ALTER TABLE t SET APPEND ONLY", AlterTable(T, SetAppendOnly(True))),
        ("ALTER TABLE t UNSET APPEND ONLY", AlterTable(T, SetAppendOnly(False))),
        ("ALTER TABLE t ADD UNIQUE (a)", AlterTable(T, AddConstraint(Key(("a",), primary=False)))),
        (
            "ALTER TABLE t ADD CONSTRAINT c PRIMARY KEY (a) RELY",
            AlterTable(T, AddConstraint(Key(("a",), primary=True, name="c", rely=True))),
        ),
        (
            "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES s.u (b)",
            AlterTable(T, AddConstraint(ForeignKey(("a",), name("s.u"), ("b",)))),
        ),
        ("ALTER TABLE t DROP CONSTRAINT c", AlterTable(T, DropConstraint("c", if_exists=False))),
        (
            "ALTER TABLE t DROP CONSTRAINT IF EXISTS `c d`",
            AlterTable(T, DropConstraint("c d", if_exists=True)),
        ),
        ("ALTER TABLE s.t RENAME TO s.u", AlterTable(name("s.t"), RenameTo(name("s.u")))),
        ("ALTER MATERIALIZED VIEW v RENAME TO w", AlterView(V, RenameTo(name("w")))),
        ("ALTER MATERIALIZED VIEW v SET REFRESH FULL", AlterView(V, SetPolicy(RefreshPolicy.FULL))),
        ("REFRESH ALL", Refresh(())),
        ("REFRESH MATERIALIZED VIEW v", Refresh((V,))),
        ("REFRESH MATERIALIZED VIEW v, s.w, `all`", Refresh((V, name("s.w"), name("all")))),
        ("EXPLAIN MATERIALIZED VIEW s.v", ExplainView(name("s.v"))),
        ("EXPLAIN RULES FOR s.v", ExplainRules(name("s.v"))),
        ("VERIFY MATERIALIZED VIEW v", VerifyView(V)),
        ("RESTORE MATERIALIZED VIEW v", RestoreView(V)),
        ("SHOW TABLES", Show("tables")),
        ("SHOW MATERIALIZED VIEWS", Show("views")),
        ("DESCRIBE t", Describe(T)),
        ("DESC t", Describe(T)),
        ("DESCRIBE TABLE s.t", Describe(name("s.t"))),
        ("DESCRIBE MATERIALIZED VIEW v", Describe(V)),
        ("DESCRIBE HISTORY v", Describe(V, history=True)),
        ("DESC HISTORY MATERIALIZED VIEW v", Describe(V, history=True)),
        ("DESCRIBE `history`", Describe(name("history"))),
        ("DROP TABLE t", Drop("table", T)),
        ("DROP TABLE IF EXISTS s.t", Drop("table", name("s.t"), if_exists=True)),
        ("DROP MATERIALIZED VIEW v", Drop("view", V)),
        ("DROP MATERIALIZED VIEW IF EXISTS v", Drop("view", V, if_exists=True)),
        ("VACUUM WAREHOUSE", VacuumWarehouse(1)),
        ("VACUUM WAREHOUSE RETAIN 1 EPOCH", VacuumWarehouse(1)),
        ("VACUUM WAREHOUSE RETAIN 12 EPOCHS", VacuumWarehouse(12)),
    ],
)
def test_statements(text: str, statement: Statement) -> None:
    assert parse_text(text) == statement
    assert parse_text(f"-- before\n{text} ; -- after") == statement


QUERY = "SELECT ';' /* AS */ FROM t"


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CREATE MATERIALIZED VIEW v AS {}", CreateView(V, Fragment("", ""))),
        (
            "CREATE OR REPLACE MATERIALIZED VIEW s.v AS {}",
            CreateView(name("s.v"), Fragment("", ""), or_replace=True),
        ),
        (
            "CREATE MATERIALIZED VIEW IF NOT EXISTS v AS {}",
            CreateView(V, Fragment("", ""), if_not_exists=True),
        ),
        *(
            (
                f"CREATE MATERIALIZED VIEW v REFRESH {policy.value} AS {{}}",
                CreateView(V, Fragment("", ""), policy),
            )
            for policy in RefreshPolicy
        ),
        (
            "CREATE MATERIALIZED VIEW v COMMENT 'x' AS {}",
            CreateView(V, Fragment("", ""), comment="x"),
        ),
        (
            "CREATE MATERIALIZED VIEW v COMMENT 'AS' REFRESH STRICT AS\n\n  {}",
            CreateView(V, Fragment("", ""), RefreshPolicy.STRICT, comment="AS"),
        ),
        (
            "CREATE MATERIALIZED VIEW `as` REFRESH FULL COMMENT 'x' AS {}",
            CreateView(name("as"), Fragment("", ""), RefreshPolicy.FULL, comment="x"),
        ),
        (
            "CREATE MATERIALIZED VIEW v REMATERIALIZE ON DELETE FROM s.t, UPDATE OF t, INSERT INTO t AS {}",
            CreateView(
                V,
                Fragment("", ""),
                rematerialized_on=(
                    (Operation.DELETE, name("s.t")),
                    (Operation.UPDATE, name("t")),
                    (Operation.INSERT, name("t")),
                ),
            ),
        ),
    ],
)
def test_views_keep_the_users_own_query(text: str, statement: CreateView) -> None:
    script = text.format(QUERY)
    found = parse_text(script)
    assert isinstance(found, CreateView)
    assert found.query == query_in(script, QUERY)
    assert replace(found, query=Fragment("", "")) == statement
    explained = parse_text("EXPLAIN " + script)
    assert isinstance(explained, ExplainCreate)
    assert explained.create.query == query_in("EXPLAIN " + script, QUERY)


def test_altered_queries_and_tables_from_queries() -> None:
    script = f"ALTER MATERIALIZED VIEW v AS {QUERY}"
    assert parse_text(script) == AlterView(V, query_in(script, QUERY))
    script = f"CREATE TABLE t AS {QUERY}"
    assert parse_text(script) == CreateTable(T, (), (), query=query_in(script, QUERY))
    script = f"CREATE OR REPLACE TABLE t (PRIMARY KEY (a)) COMMENT 'x' USING DELTA AS {QUERY}"
    assert parse_text(script) == CreateTable(
        T, (), (Key(("a",), primary=True),), "x", query_in(script, QUERY), or_replace=True
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "select 1",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "VALUES (1), (2)",
        "FROM t SELECT a",
        "(SELECT 1) UNION ALL (SELECT 2)",
        "TABLE t",
    ],
)
def test_queries_are_only_recognised(text: str) -> None:
    assert parse_text(f"\n {text} ;") == Query(Fragment(text, f"\n {text} ;", 2))


@pytest.mark.parametrize(
    ("verb", "text"),
    [
        ("INSERT", "INSERT INTO t VALUES (1)"),
        ("INSERT", "insert into t select 1"),
        ("UPDATE", "UPDATE t SET a = 1"),
        ("DELETE", "DELETE FROM t"),
        ("MERGE", "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE"),
        ("TRUNCATE", "TRUNCATE TABLE t"),
    ],
)
def test_changes_are_only_recognised(verb: str, text: str) -> None:
    assert parse_text(text) == ChangeData(verb, Fragment.whole(text))


@pytest.mark.parametrize("hostile", HOSTILE_NAMES)
def test_hostile_names_in_statements(hostile: str) -> None:
    quoted = quote(hostile)
    own = QualifiedName(hostile, hostile)
    assert parse_text(f"DROP TABLE {quoted}.{quoted};") == Drop("table", own)
    assert parse_text(f"REFRESH MATERIALIZED VIEW {quoted}.{quoted}, t") == Refresh((own, T))
    assert parse_text(
        f"CREATE TABLE {quoted}.{quoted} ({quoted} INT REFERENCES {quoted}.{quoted} ({quoted}), UNIQUE ({quoted}))"
    ) == CreateTable(
        own,
        (ColumnDefinition(hostile, INT),),
        (ForeignKey((hostile,), own, (hostile,)), Key((hostile,), False)),
    )


def test_a_statement_of_a_script_points_into_the_script() -> None:
    script = "SHOW TABLES;\n\nCREATE MATERIALIZED VIEW v\nAS SELECT zz\n  FROM t;"
    statement = parse_statement(list(split_script(script))[1])
    assert isinstance(statement, CreateView)
    place = statement.query.locate(7, 9)
    assert (place.line, place.column, place.length) == (4, 11, 2)
