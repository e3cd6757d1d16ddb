"""VERIFY TABLE: every declared constraint of a table, checked over all its rows."""

from __future__ import annotations

import time
from typing import Any

from viewkeeper.execution.changed_tables import versions_of
from viewkeeper.execution.reports import ConstraintCheck, TableVerifyReport
from viewkeeper.execution.workspace import Workspace
from viewkeeper.generated_names import HIDDEN_PREFIX, SIGNED_COUNT
from viewkeeper.maintenance.constraint_checks import duplicate_keys, orphans
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sql.rendering import render, select_all
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import TableRecord

_EXAMPLES = 5
_CHILD, _PARENT = f"{HIDDEN_PREFIX}child", f"{HIDDEN_PREFIX}parent"


def verify_table(
    workspace: Workspace, catalogue: Catalogue, table: TableRecord, only: str | None = None
) -> TableVerifyReport:
    """Keys and foreign keys, or one of them, at the newest versions, which are fixed before the first check."""
    started = time.monotonic()
    parents = {key.parent_id for key in table.foreign_keys}
    versions = versions_of(workspace, {table.id, *parents}, catalogue)
    session = workspace.sessions.own
    checks = []
    with spark_failures(f"the constraints of {table.name} were checked"):
        _show(workspace, session, table, versions[table.id], _CHILD)
        for key in table.keys:
            if only not in (None, key.name):
                continue
            kind = "PRIMARY KEY" if key.primary else "UNIQUE"
            sql = duplicate_keys(_CHILD, key.columns, key.primary)
            checks.append(_checked(session, key.name or "", f"{kind} ({', '.join(key.columns)})", sql))
        for foreign_key in table.foreign_keys:
            if only not in (None, foreign_key.name):
                continue
            parent = catalogue.tables[foreign_key.parent_id]
            _show(workspace, session, parent, versions[parent.id], _PARENT)
            sql = orphans(_CHILD, foreign_key.columns, _PARENT, foreign_key.parent_columns)
            what = f"FOREIGN KEY ({', '.join(foreign_key.columns)}) REFERENCES {parent.name}"
            checks.append(_checked(session, foreign_key.name, what, sql))
        for relation in (_CHILD, _PARENT):
            session.catalog.dropTempView(relation)
    seconds = round(time.monotonic() - started, 3)
    return TableVerifyReport(str(table.name), versions[table.id], tuple(checks), seconds)


def _show(workspace: Workspace, session: Any, table: TableRecord, version: int, relation: str) -> None:
    rows = render(select_all(workspace.relation(table, version)))
    session.sql(rows).createOrReplaceTempView(relation)


def _checked(session: Any, name: str, what: str, sql: str) -> ConstraintCheck:
    found = session.sql(sql).persist()
    try:
        violations = found.count()
        examples = found.limit(_EXAMPLES).collect() if violations else []
    finally:
        found.unpersist()
    rows = [{k: v for k, v in row.asDict(recursive=True).items() if k != SIGNED_COUNT} for row in examples]
    return ConstraintCheck(name, what, violations, tuple(rows))
