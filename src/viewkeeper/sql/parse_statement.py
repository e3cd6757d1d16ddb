"""Text to `Statement`: our own statements are read here, queries and DML are only recognised."""

from __future__ import annotations

from collections.abc import Callable

from viewkeeper.errors import SqlSyntaxError, UnsupportedError
from viewkeeper.sql.names import QualifiedName, did_you_mean, quote
from viewkeeper.sql.parse_table import TableElements, read_constraint, read_table_elements
from viewkeeper.sql.script import Fragment, single_statement
from viewkeeper.sql.statements import (
    AddConstraint,
    AlterTable,
    AlterView,
    AttachTable,
    ChangeData,
    CreateTable,
    CreateView,
    Describe,
    Drop,
    DropConstraint,
    ExplainCreate,
    ExplainRules,
    ExplainView,
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
    VerifyTable,
    VerifyView,
)
from viewkeeper.sql.token_reader import TokenReader

_CHANGE_VERBS = ("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE")
_QUERY_VERBS = ("SELECT", "WITH", "VALUES", "FROM", "(", "TABLE")


def parse_text(text: str) -> Statement:
    """Parse text that must hold one statement.

    >>> parse_text("REFRESH ALL")
    Refresh(names=(), full=False)
    """
    return parse_statement(single_statement(text))


def parse_statement(fragment: Fragment) -> Statement:
    reader = TokenReader(fragment)
    first = reader.peek()
    if first is None:
        raise SqlSyntaxError("there is no statement here.", "write one SQL statement.")
    verb = first.text.upper()
    if verb in _QUERY_VERBS:
        return Query(fragment)
    if verb in _CHANGE_VERBS:
        return ChangeData(verb, fragment)
    if verb not in _READERS or not reader.sees(verb):
        known = [*_READERS, *_CHANGE_VERBS, "SELECT", "WITH"]
        raise SqlSyntaxError(
            f"{first.text} does not start a statement that Viewkeeper knows.",
            did_you_mean(verb, known, "the statements are listed in docs/statements.md."),
            fragment.locate_token(first),
        )
    reader.next_token()
    statement = _READERS[verb](reader)
    reader.expect_end()
    return statement


def _read_create(reader: TokenReader) -> Statement:
    or_replace = reader.take("OR", "REPLACE")
    if reader.take("MATERIALIZED", "VIEW"):
        return _read_create_view(reader, or_replace)
    if reader.take("TABLE"):
        return _read_create_table(reader, or_replace)
    if reader.sees("VIEW") or reader.sees("TEMPORARY") or reader.sees("TEMP"):
        raise UnsupportedError(
            "only materialized views are kept in a warehouse.",
            "write CREATE MATERIALIZED VIEW.",
            reader.error("").location,
        )
    raise reader.error("TABLE or MATERIALIZED VIEW is expected here.")


def _read_create_table(reader: TokenReader, or_replace: bool) -> CreateTable:
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    name = reader.name("the table's name")
    elements = read_table_elements(reader) if reader.sees("(") else TableElements()
    comment = query = None
    while not reader.at_end:
        if reader.take("COMMENT"):
            reader.take("=")
            comment = reader.string("the comment")
        elif reader.take("USING"):
            if not reader.take("DELTA"):
                raise reader.error("base tables are Delta tables.", "write USING DELTA, or leave USING out.")
        elif reader.take("AS"):
            query = reader.rest()
        else:
            raise reader.error("AS, COMMENT or the end of the statement is expected here.")
    if query is not None and elements.columns:
        raise SqlSyntaxError(
            "CREATE TABLE … AS SELECT takes its columns from the query.",
            "give constraints only, e.g. (PRIMARY KEY (id)), or leave AS SELECT out.",
            query.locate(0, len(query.text)),
        )
    if query is None and not elements.columns:
        raise reader.error("a table needs columns.", "write CREATE TABLE t (id INT PRIMARY KEY, …).")
    return CreateTable(
        name, tuple(elements.columns), tuple(elements.constraints), comment, query, or_replace, if_not_exists
    )


def _read_create_view(reader: TokenReader, or_replace: bool) -> CreateView:
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    name = reader.name("the view's name")
    policy, comment, goes_on = RefreshPolicy.AUTO, None, False
    rematerialized: list[tuple[Operation, QualifiedName]] = []
    while not reader.take("AS"):
        if reader.take("REFRESH"):
            policy = _read_policy(reader)
        elif reader.take("COMMENT"):
            comment = reader.string("the comment")
        elif reader.take("ON", "VIOLATION"):
            reader.expect("RECOMPUTE")
            goes_on = True
        elif reader.take("REMATERIALIZE", "ON"):
            rematerialized.append(_read_operation(reader))
            while reader.take(","):
                rematerialized.append(_read_operation(reader))
        elif reader.sees("SELF", "MAINTAINED"):
            raise UnsupportedError(
                "SELF MAINTAINED views come in a later version.",
                "leave SELF MAINTAINED out; the view is then kept from its base tables.",
                reader.error("").location,
            )
        else:
            raise reader.error("AS and the view's query are expected here.")
    return CreateView(
        name, reader.rest(), policy, comment, or_replace, if_not_exists, goes_on, tuple(rematerialized)
    )


def _read_operation(reader: TokenReader) -> tuple[Operation, QualifiedName]:
    for operation, word in ((Operation.INSERT, "INTO"), (Operation.DELETE, "FROM"), (Operation.UPDATE, "OF")):
        if reader.take(operation.value):
            reader.expect(word)
            return operation, reader.name("a table of the view")
    raise reader.error("INSERT INTO, DELETE FROM or UPDATE OF is expected here.")


def _read_policy(reader: TokenReader) -> RefreshPolicy:
    for policy in RefreshPolicy:
        if reader.take(policy.value):
            return policy
    raise reader.error("AUTO, INCREMENTAL, STRICT or FULL is expected here.")


def _read_attach(reader: TokenReader) -> Statement:
    if reader.sees("SOURCE"):
        raise UnsupportedError(
            "ATTACH SOURCE comes in a later version.",
            "attach Delta tables with ATTACH TABLE … FROM DELTA 'uri'.",
            reader.error("").location,
        )
    reader.expect("TABLE")
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    name = reader.name("the table's name")
    reader.expect("FROM")
    uri = catalogue_name = None
    if reader.take("DELTA"):
        uri = reader.string("the table's address")
    elif reader.take("TABLE"):
        parts = [reader.identifier("the catalogue's table")]
        while reader.take("."):
            parts.append(reader.identifier("the catalogue's table"))
        catalogue_name = ".".join(quote(part) for part in parts)
    else:
        raise reader.error("DELTA 'uri' or TABLE catalogue.schema.name is expected here.")
    elements = read_table_elements(reader) if reader.sees("(") else TableElements()
    if elements.columns:
        raise reader.error("an attached table brings its columns along.", "list constraints only.")
    return AttachTable(name, uri, catalogue_name, tuple(elements.constraints), if_not_exists)


def _read_alter(reader: TokenReader) -> Statement:
    if reader.take("MATERIALIZED", "VIEW"):
        name = reader.name("the view's name")
        if reader.take("AS"):
            return AlterView(name, reader.rest())
        if reader.take("RENAME", "TO"):
            return AlterView(name, RenameTo(reader.name("the new name")))
        reader.expect("SET", "REFRESH")
        return AlterView(name, SetPolicy(_read_policy(reader)))
    reader.expect("TABLE")
    name = reader.name("the table's name")
    if reader.take("RENAME", "TO"):
        return AlterTable(name, RenameTo(reader.name("the new name")))
    if reader.take("ADD"):
        return AlterTable(name, AddConstraint(read_constraint(reader)))
    if reader.take("DROP", "CONSTRAINT"):
        if_exists = reader.take("IF", "EXISTS")
        return AlterTable(name, DropConstraint(reader.identifier("the constraint's name"), if_exists))
    if reader.take("SET", "UPDATABLE"):
        if reader.take("ALL"):
            return AlterTable(name, SetUpdatable(("*",)))
        if reader.take("(", ")"):
            return AlterTable(name, SetUpdatable(()))
        return AlterTable(name, SetUpdatable(reader.name_list("a column")))
    if reader.take("SET", "APPEND", "ONLY"):
        return AlterTable(name, SetAppendOnly(True))
    if reader.take("UNSET", "APPEND", "ONLY"):
        return AlterTable(name, SetAppendOnly(False))
    raise reader.error(
        "SET UPDATABLE, SET APPEND ONLY, ADD CONSTRAINT, DROP CONSTRAINT or RENAME TO is expected here."
    )


def _read_refresh(reader: TokenReader) -> Refresh:
    if reader.take("ALL"):
        return Refresh((), reader.take("FULL"))
    reader.expect("MATERIALIZED", "VIEW")
    names = [reader.name("the view's name")]
    while reader.take(","):
        names.append(reader.name("the view's name"))
    return Refresh(tuple(names), reader.take("FULL"))


def _read_explain(reader: TokenReader) -> Statement:
    if reader.sees("CREATE"):
        reader.next_token()
        create = _read_create(reader)
        if not isinstance(create, CreateView):
            raise reader.error("EXPLAIN CREATE is for materialized views.")
        return ExplainCreate(create)
    if reader.take("MATERIALIZED", "VIEW"):
        return ExplainView(reader.name("the view's name"))
    if reader.take("RULES", "FOR"):
        return ExplainRules(reader.name("the view's name"))
    raise UnsupportedError(
        "EXPLAIN is for materialized views here.",
        "write EXPLAIN MATERIALIZED VIEW v or EXPLAIN RULES FOR v, or call .explain() on the DataFrame of the query.",
        reader.error("").location,
    )


def _read_verify(reader: TokenReader) -> VerifyView | VerifyTable:
    if reader.take("TABLE"):
        return VerifyTable(reader.name("the table's name"))
    reader.expect("MATERIALIZED", "VIEW")
    return VerifyView(reader.name("the view's name"))


def _read_restore(reader: TokenReader) -> RestoreView:
    reader.expect("MATERIALIZED", "VIEW")
    return RestoreView(reader.name("the view's name"))


def _read_show(reader: TokenReader) -> Show:
    if reader.take("TABLES"):
        return Show("tables")
    reader.expect("MATERIALIZED", "VIEWS")
    return Show("views")


def _read_describe(reader: TokenReader) -> Describe:
    history = reader.take("HISTORY")
    if not reader.take("MATERIALIZED", "VIEW"):
        reader.take("TABLE")
    return Describe(reader.name("a table or view"), history)


def _read_drop(reader: TokenReader) -> Drop:
    if reader.take("TABLE"):
        what = "table"
    else:
        reader.expect("MATERIALIZED", "VIEW")
        what = "view"
    if_exists = reader.take("IF", "EXISTS")
    return Drop(what, reader.name(f"the {what}'s name"), if_exists)


def _read_vacuum(reader: TokenReader) -> VacuumWarehouse:
    reader.expect("WAREHOUSE")
    epochs = 1
    if reader.take("RETAIN"):
        epochs = reader.whole_number("the number of epochs")
        if not reader.take("EPOCHS"):
            reader.expect("EPOCH")
    if epochs < 1:
        raise reader.error("at least one epoch must be kept.")
    return VacuumWarehouse(epochs)


_READERS: dict[str, Callable[[TokenReader], Statement]] = {
    "CREATE": _read_create,
    "ATTACH": _read_attach,
    "ALTER": _read_alter,
    "REFRESH": _read_refresh,
    "EXPLAIN": _read_explain,
    "VERIFY": _read_verify,
    "RESTORE": _read_restore,
    "SHOW": _read_show,
    "DESCRIBE": _read_describe,
    "DESC": _read_describe,
    "DROP": _read_drop,
    "VACUUM": _read_vacuum,
}
