"""CREATE, ATTACH, ALTER and DROP of base tables: constraints live in our catalogue, rows in Delta."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from viewkeeper.errors import (
    InUseError,
    InvalidStatementError,
    NameExistsError,
    RefreshConflictError,
    UnknownNameError,
    UnsupportedError,
    ViewkeeperError,
)
from viewkeeper.execution.create_view import check_stored_queries
from viewkeeper.execution.queries import substitute_objects
from viewkeeper.execution.reports import StatementReport
from viewkeeper.execution.vacuum import remove_folder
from viewkeeper.execution.workspace import Workspace
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sources.table_log import columns_of_schema
from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import QualifiedName, did_you_mean
from viewkeeper.sql.references import parse_query
from viewkeeper.sql.rendering import create_delta_table, delta_table
from viewkeeper.sql.statements import (
    AddConstraint,
    AlterTable,
    AttachTable,
    ColumnDefinition,
    CreateTable,
    DropConstraint,
    RenameTo,
    SetAppendOnly,
    SetUpdatable,
)
from viewkeeper.storage.catalogue import Catalogue, ObjectRecord
from viewkeeper.storage.layout import new_id, table_location
from viewkeeper.storage.records import TableRecord, ViewRecord
from viewkeeper.storage.table_definition import (
    check_columns,
    column_definitions,
    defined_table,
    known_columns,
    require_key,
    with_constraints,
    without_constraint,
)
from viewkeeper.storage.view_tables import KEPT_HISTORY, column_mapping


def create_table(workspace: Workspace, statement: CreateTable) -> StatementReport:
    catalogue = workspace.state.read()
    existing = catalogue.named(statement.name)
    if existing is not None and statement.if_not_exists:
        return StatementReport(f"{statement.name} exists already.")
    _refuse_taken(existing, statement.name, statement.or_replace)
    table = TableRecord(
        existing.id if existing is not None else new_id(),
        statement.name,
        (),
        table_location(new_id()),
        comment=statement.comment,
    )
    if statement.query is None:
        table = defined_table(catalogue, table, statement)
        _check_replacement(catalogue, table)
        _create_empty(workspace, table, column_definitions(statement))
    else:
        table = _create_from_query(workspace, catalogue, table, statement)

    def step(newest: Catalogue) -> Catalogue:
        other = newest.named(table.name)
        if other is not None and other.id != table.id:
            raise NameExistsError(
                f"{table.name} was created by somebody else meanwhile.", "choose another name."
            )
        if table.id in newest.tables:
            _refuse_claimed(newest, table.id)
            newest = newest.forgetting(table.id)
        return newest.with_table(table)

    try:
        workspace.state.change(step)
    except ViewkeeperError:
        remove_folder(workspace, table.location)
        raise
    if isinstance(existing, TableRecord) and not existing.attached:
        remove_folder(workspace, existing.location)
    return StatementReport(f"table {table.name} {'replaced' if existing else 'created'}.")


def _refuse_taken(existing: ObjectRecord | None, name: QualifiedName, or_replace: bool) -> None:
    if existing is None:
        return
    if not or_replace:
        raise NameExistsError(f"{name} exists already.", "choose another name, or write CREATE OR REPLACE.")
    if isinstance(existing, ViewRecord):
        raise NameExistsError(f"{name} is a materialized view, not a table.", "choose another name.")


def _refuse_claimed(catalogue: Catalogue, object_id: str) -> None:
    claim = catalogue.claim_on(view.id for view in catalogue.readers_of(object_id))
    if claim is not None:
        raise RefreshConflictError(
            f"a view that reads it is being refreshed by {claim.holder} (epoch {claim.epoch}).",
            "wait for it to finish, then repeat the statement.",
        )


def _check_replacement(catalogue: Catalogue, table: TableRecord) -> None:
    """What reads or references a replaced table must still make sense."""
    if table.id not in catalogue.tables:
        return
    check_stored_queries(catalogue.with_table(table), catalogue.readers_of(table.id), str(table.name))
    for child in catalogue.children_of(table.id):
        for foreign_key in child.foreign_keys:
            if foreign_key.parent_id == table.id:
                require_key(table, foreign_key.parent_columns, f"{child.name} references")


def _table_properties(table: TableRecord, has_defaults: bool) -> dict[str, str]:
    return {
        **KEPT_HISTORY,
        **column_mapping(table.columns),
        "delta.enableChangeDataFeed": "true",
        **({"delta.feature.allowColumnDefaults": "supported"} if has_defaults else {}),
    }


def _create_empty(workspace: Workspace, table: TableRecord, definitions: Sequence[ColumnDefinition]) -> None:
    properties = _table_properties(table, any(d.default is not None for d in definitions))
    sql = create_delta_table(workspace.layout.address(table.location), definitions, properties, table.comment)
    try:
        with spark_failures(f"{table.name} was created"):
            workspace.sessions.own.sql(sql)
    except ViewkeeperError:
        remove_folder(workspace, table.location)
        raise


def _create_from_query(
    workspace: Workspace, catalogue: Catalogue, table: TableRecord, statement: CreateTable
) -> TableRecord:
    assert statement.query is not None
    parsed = parse_query(statement.query)
    if parsed.is_change:
        raise InvalidStatementError(
            "a table is filled from a query.",
            "write AS SELECT …",
            statement.query.locate(0, len(statement.query.text)),
        )
    text = substitute_objects(workspace, catalogue, parsed)
    address = workspace.layout.address(table.location)
    try:
        with spark_failures(f"{table.name} was filled", text):
            frame = workspace.sessions.user.sql(text.text)
            table = replace(table, columns=_columns_from_query(frame.schema.json()))
            check_columns(table)
            table = with_constraints(catalogue, table, statement.constraints)
            _check_replacement(catalogue, table)
            writer = frame.write.format("delta").mode("error")
            for key, value in _table_properties(table, False).items():
                writer = writer.option(key, value)
            writer.save(address)
    except ViewkeeperError:
        remove_folder(workspace, table.location)
        raise
    return table


def _columns_from_query(schema: str) -> tuple[Column, ...]:
    """Delta stores the columns of a query as nullable."""
    return tuple(replace(column, nullable=True) for column in columns_of_schema(schema))


def attach_table(workspace: Workspace, statement: AttachTable) -> StatementReport:
    catalogue = workspace.state.read()
    existing = catalogue.named(statement.name)
    if existing is not None and statement.if_not_exists:
        return StatementReport(f"{statement.name} exists already.")
    _refuse_taken(existing, statement.name, or_replace=False)
    address = statement.uri if statement.uri is not None else _address_in_catalogue(workspace, statement)
    if statement.uri is not None and "://" not in address and not address.startswith("/"):
        raise InvalidStatementError(
            f"'{address}' is a relative path.", "give a full path or a URI, so that every process finds it."
        )
    try:
        shape = workspace.log.shape(address)
    except ViewkeeperError as error:
        raise InvalidStatementError(f"there is no Delta table at {address}.", "check the address.") from error
    if not shape.has_change_feed:
        raise UnsupportedError(
            f"the Delta table at {address} has no change feed.",
            f"ALTER TABLE delta.`{address}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true).",
        )
    table = TableRecord(
        new_id(),
        statement.name,
        shape.columns,
        address,
        attached=True,
        catalogue_name=statement.catalogue_name,
        delta_id=shape.delta_id,
    )
    check_columns(table)
    table = with_constraints(catalogue, table, statement.constraints)

    def step(newest: Catalogue) -> Catalogue:
        _refuse_taken(newest.named(table.name), table.name, or_replace=False)
        return newest.with_table(table)

    workspace.state.change(step)
    return StatementReport(f"table {table.name} attached.")


def _address_in_catalogue(workspace: Workspace, statement: AttachTable) -> str:
    with spark_failures(f"{statement.catalogue_name} was looked up"):
        detail = workspace.sessions.user.sql(f"DESCRIBE DETAIL {statement.catalogue_name}").collect()[0]
    if detail["format"] != "delta":
        raise UnsupportedError(f"{statement.catalogue_name} is no Delta table.", "attach Delta tables only.")
    location = str(detail["location"])
    return location.removeprefix("file:") if location.startswith("file:/") else location


def alter_table(workspace: Workspace, statement: AlterTable) -> StatementReport:
    table = table_named(workspace.state.read(), statement.name)
    if isinstance(statement.action, SetAppendOnly) and not table.attached:
        _set_append_only(workspace, table, statement.action.append_only)
    workspace.state.change(lambda newest: altered(newest, statement))
    return StatementReport(f"table {statement.name} altered.")


def altered(catalogue: Catalogue, statement: AlterTable) -> Catalogue:
    """The catalogue after ALTER TABLE."""
    current = table_named(catalogue, statement.name)
    match statement.action:
        case RenameTo(name):
            if catalogue.named(name) is not None:
                raise NameExistsError(f"{name} exists already.", "choose another name.")
            return catalogue.with_table(replace(current, name=name))
        case SetUpdatable(("*",)):
            return catalogue.with_table(replace(current, updatable=None))
        case SetUpdatable(columns):
            if current.append_only:
                raise InvalidStatementError(
                    f"{current.name} is append only.",
                    f"ALTER TABLE {current.name} UNSET APPEND ONLY first.",
                )
            return catalogue.with_table(
                replace(current, updatable=known_columns(current, columns, "UPDATABLE"))
            )
        case SetAppendOnly(append_only):
            return catalogue.with_table(replace(current, append_only=append_only))
        case AddConstraint(constraint):
            return catalogue.with_table(with_constraints(catalogue, current, (constraint,)))
        case DropConstraint() as dropped:
            return catalogue.with_table(without_constraint(catalogue, current, dropped))


def _set_append_only(workspace: Workspace, table: TableRecord, append_only: bool) -> None:
    target = delta_table(workspace.data_address(table)).sql(dialect="spark")
    value = "true" if append_only else "false"
    with spark_failures(f"{table.name} was altered"):
        workspace.sessions.own.sql(f"ALTER TABLE {target} SET TBLPROPERTIES ('delta.appendOnly' = '{value}')")


def table_named(catalogue: Catalogue, name: QualifiedName) -> TableRecord:
    record = catalogue.named(name)
    if isinstance(record, ViewRecord):
        raise InvalidStatementError(
            f"{name} is a materialized view, not a table.", "use ALTER MATERIALIZED VIEW."
        )
    if record is None:
        tables = sorted(str(table.name) for table in catalogue.tables.values())
        raise UnknownNameError(
            f"there is no table {name}.", did_you_mean(str(name), tables, "SHOW TABLES lists them.")
        )
    return record


def drop_table(workspace: Workspace, name: QualifiedName, if_exists: bool) -> StatementReport:
    catalogue = workspace.state.read()
    if if_exists and catalogue.named(name) is None:
        return StatementReport(f"there is no table {name}.")
    table = table_named(catalogue, name)

    def step(newest: Catalogue) -> Catalogue:
        readers = newest.readers_of(table.id)
        if readers:
            names = ", ".join(sorted(str(view.name) for view in readers))
            raise InUseError(f"{name} is read by {names}.", f"drop {names} first.")
        children = newest.children_of(table.id)
        if children:
            names = ", ".join(sorted(str(child.name) for child in children))
            raise InUseError(
                f"{names} references {name} by a foreign key.", "drop that constraint or table first."
            )
        return newest.without(table.id)

    workspace.state.change(step)
    if not table.attached:
        remove_folder(workspace, table.location)
    return StatementReport(f"table {name} {'detached' if table.attached else 'dropped'}.")
