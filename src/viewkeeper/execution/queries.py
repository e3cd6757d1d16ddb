"""SELECT and changes of base tables: the user's own text, over Delta tables and published views."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from viewkeeper.errors import InvalidStatementError, UnknownNameError, UnsupportedError, VersionGoneError
from viewkeeper.execution.reports import StatementReport
from viewkeeper.execution.workspace import Workspace
from viewkeeper.generated_names import USERS_CHANGE, USERS_EPOCH
from viewkeeper.maintenance.net_changes import visible_changes
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sql.names import did_you_mean, quote
from viewkeeper.sql.references import ParsedText, Reference, Substitution, parse_query, substitute
from viewkeeper.sql.rendering import at_time, delta_table, render, select_all
from viewkeeper.sql.statements import ChangeData, Query
from viewkeeper.storage.catalogue import Catalogue, ObjectRecord
from viewkeeper.storage.records import TableRecord, ViewRecord


class DifferentVersionsWarning(UserWarning):
    """A query reads views that were refreshed from different versions of the same table."""


def run_query(workspace: Workspace, statement: Query) -> Any:
    """A DataFrame of the user's session."""
    catalogue = workspace.state.read()
    parsed = parse_query(statement.text)
    if parsed.is_change:
        return change_data(workspace, ChangeData(parsed.tree.key.upper(), statement.text))
    _warn_of_different_versions(catalogue, parsed)
    text = substitute_objects(workspace, catalogue, parsed)
    with spark_failures("the query was analysed", text):
        return workspace.sessions.user.sql(text.text)


def change_data(workspace: Workspace, statement: ChangeData) -> StatementReport:
    """INSERT, UPDATE, DELETE, MERGE or TRUNCATE of one base table."""
    catalogue = workspace.state.read()
    parsed = parse_query(statement.text)
    target = parsed.target
    if target is None:
        raise UnsupportedError(
            f"Viewkeeper does not understand which table this {statement.verb} changes.",
            "name one table of the warehouse.",
            statement.text.locate(0, len(statement.text.text)),
        )
    record = catalogue.named(target.name)
    if isinstance(record, ViewRecord):
        raise InvalidStatementError(
            f"{target.name} is a materialized view; only a refresh changes it.",
            "change the tables it reads.",
            parsed.locate(target),
        )
    if record is not None:
        _check_updatable(record, parsed)
    text = substitute_objects(workspace, catalogue, parsed)
    with spark_failures(f"{target.name} was changed", text):
        result = workspace.sessions.user.sql(text.text).collect()
    counts = result[0].asDict() if result else {}
    affected = counts.get("num_affected_rows")
    what = f"{affected} rows" if affected is not None else "done"
    return StatementReport(f"{statement.verb} {target.name}: {what}.", {str(k): v for k, v in counts.items()})


def substitute_objects(workspace: Workspace, catalogue: Catalogue, parsed: ParsedText) -> Substitution:
    """The text over Delta tables by address, views at their published version."""

    def relation_for(reference: Reference) -> exp.Expr:
        record = catalogue.named(reference.name)
        if record is None:
            return _relation_of_session(workspace, catalogue, parsed, reference)
        if reference.changes is not None:
            return _changes_of(workspace, catalogue, record, reference, parsed)
        if isinstance(record, TableRecord):
            if reference.epoch is not None:
                raise UnsupportedError(
                    f"{reference.name} is a table; epochs are of views.",
                    "write VERSION AS OF for tables.",
                    parsed.locate(reference),
                )
            table = delta_table(workspace.data_address(record))
            return table if reference.time_travel is None else at_time(table, reference.time_travel)
        if reference.time_travel is not None:
            raise UnsupportedError(
                f"{reference.name} is a materialized view.", "write AS OF EPOCH n.", parsed.locate(reference)
            )
        version = _version_of_view(workspace, catalogue, record, reference, parsed)
        return workspace.relation(record, version)

    return substitute(parsed, relation_for)


def _changes_of(
    workspace: Workspace, catalogue: Catalogue, record: ObjectRecord, reference: Reference, parsed: ParsedText
) -> exp.Expr:
    """`CHANGES(v, first, last)`: what each published epoch changed in a view."""
    assert reference.changes is not None
    if isinstance(record, TableRecord):
        raise UnsupportedError(
            f"{reference.name} is a table; CHANGES is for materialized views.",
            "read the change feed of a table with Spark: table_changes.",
            parsed.locate(reference),
        )
    first, last = reference.changes
    published = catalogue.published[record.id].epoch
    entries = [e for e in workspace.state.history(record.id) if e.location == record.location]
    oldest = max(min((e.epoch for e in entries), default=published) + 1, catalogue.first_kept_epoch)
    if first < oldest:
        raise VersionGoneError(
            f"the changes of {record.name} are kept from epoch {oldest} on.",
            f"write CHANGES({record.name}, {oldest}).",
            parsed.locate(reference),
        )
    address = workspace.layout.changes(record.location)
    if not workspace.log.exists(address):
        nothing = [exp.cast(exp.null(), str(c.data_type)).as_(c.name, quoted=True) for c in record.columns]
        empty = [
            *nothing,
            exp.cast(exp.null(), "bigint").as_(USERS_EPOCH),
            exp.cast(exp.null(), "string").as_(USERS_CHANGE),
        ]
        return exp.select(*empty).where(exp.false()).subquery()
    bound = published if last is None else min(last, published)
    failed = [e.epoch for e in entries if e.outcome != "published"]
    return visible_changes(delta_table(address), record.columns, first, bound, failed)


def _relation_of_session(
    workspace: Workspace, catalogue: Catalogue, parsed: ParsedText, reference: Reference
) -> exp.Expr:
    """A table or temporary view of the user's own session, if there is one of this name."""
    name, schema = reference.name.name, reference.name.schema
    shown = str(reference.name)
    path = quote(name) if schema == "default" else f"{quote(schema)}.{quote(name)}"
    is_path = schema.lower() in ("delta", "parquet", "csv", "json", "orc")
    with spark_failures("a name was looked up"):
        if not reference.is_target and (is_path or _session_knows(workspace, path)):
            table = exp.Table(this=exp.to_identifier(name, quoted=True))
            if schema != "default":
                table.set("db", exp.to_identifier(schema, quoted=True))
            return table if reference.time_travel is None else at_time(table, reference.time_travel)
    raise UnknownNameError(
        f"there is no table or view {shown}.",
        did_you_mean(shown, catalogue.names(), "SHOW TABLES and SHOW MATERIALIZED VIEWS list them."),
        parsed.locate(reference),
    )


def _session_knows(workspace: Workspace, path: str) -> bool:
    return workspace.sessions.may_know_names and bool(workspace.sessions.user.catalog.tableExists(path))


def _version_of_view(
    workspace: Workspace, catalogue: Catalogue, view: ViewRecord, reference: Reference, parsed: ParsedText
) -> int:
    published = catalogue.published[view.id]
    epoch = reference.epoch
    if epoch is None or epoch >= published.epoch:
        if epoch is not None and epoch > catalogue.last_epoch:
            raise VersionGoneError(
                f"there is no epoch {epoch} yet; the last one is {catalogue.last_epoch}.",
                f"DESCRIBE HISTORY {view.name} lists the epochs.",
                parsed.locate(reference),
            )
        return published.version
    entries = [
        entry
        for entry in workspace.state.history(view.id)
        if entry.epoch <= epoch and entry.version is not None and entry.location == view.location
    ]
    if not entries or epoch < catalogue.first_kept_epoch:
        raise VersionGoneError(
            f"{view.name} cannot be read as of epoch {epoch}: "
            + ("it did not exist then." if not entries else "that epoch is no longer kept."),
            f"DESCRIBE HISTORY {view.name} lists the epochs.",
            parsed.locate(reference),
        )
    version = entries[-1].version
    assert version is not None
    return version


def _check_updatable(table: TableRecord, parsed: ParsedText) -> None:
    """An UPDATE of a column that was declared not to change is refused before it runs."""
    for update in parsed.tree.find_all(exp.Update):
        for assignment in update.expressions:
            column = assignment.this if isinstance(assignment, exp.EQ) else None
            if isinstance(column, exp.Column) and not _may_change(table, column.name):
                meta = column.this.meta
                raise InvalidStatementError(
                    f"the column {column.name} of {table.name} is declared not to change.",
                    f"ALTER TABLE {table.name} SET UPDATABLE (…) to allow it.",
                    parsed.fragment.locate(meta["start"], meta["end"] + 1) if "start" in meta else None,
                )


def _may_change(table: TableRecord, column: str) -> bool:
    if table.append_only:
        return False
    return table.updatable is None or column.lower() in {name.lower() for name in table.updatable}


def _warn_of_different_versions(catalogue: Catalogue, parsed: ParsedText) -> None:
    """Views of one query should be made from the same versions of the tables they share."""
    seen: dict[str, tuple[str, int]] = {}
    for reference in parsed.references:
        record = catalogue.named(reference.name)
        if not isinstance(record, ViewRecord) or reference.epoch is not None:
            continue
        for table_id, version in catalogue.published[record.id].sources.items():
            other, other_version = seen.setdefault(table_id, (str(record.name), version))
            if other_version != version:
                table = catalogue.tables[table_id].name
                warnings.warn(
                    f"{other} and {record.name} were refreshed from different versions of {table} "
                    f"({other_version} and {version}); REFRESH ALL brings them to one.",
                    DifferentVersionsWarning,
                    stacklevel=4,
                )
                return


def register(workspace: Workspace, session: Any) -> Mapping[str, str]:
    """Make every table and view visible to plain Spark SQL, as temporary views of the session."""
    catalogue = workspace.state.read()
    names = {}
    for record in catalogue.users_objects():
        version = catalogue.published[record.id].version if isinstance(record, ViewRecord) else None
        plain = (
            record.name.name
            if record.name.schema == "default"
            else f"{record.name.schema}.{record.name.name}"
        )
        with spark_failures(f"{record.name} was registered"):
            frame = session.sql(render(select_all(workspace.relation(record, version))))
            frame.createOrReplaceTempView(quote(plain))
        names[str(record.name)] = plain
    return names
