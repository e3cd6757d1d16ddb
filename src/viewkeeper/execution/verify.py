"""VERIFY: recompute at the versions a view was made from, and compare as bags, both ways.

Rows are equal when all columns are, NULL equal to NULL. Rows that differ only in floating-point columns, and
there by no more than a relative tolerance, count as equal: sums of floats depend on their order.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from viewkeeper.errors import InvalidStatementError
from viewkeeper.execution.reports import VerifyReport
from viewkeeper.execution.workspace import Workspace, users_definition
from viewkeeper.generated_names import SIGNED_COUNT
from viewkeeper.maintenance.bag_changes import signed_difference
from viewkeeper.maintenance.whole_query import visible_query
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import quote
from viewkeeper.sql.rendering import render, select_all
from viewkeeper.sql.types import is_floating
from viewkeeper.storage.records import ViewRecord

TOLERANCE = 1e-9
_EXAMPLES = 5
_MOST_FLOAT_ROWS = 100_000


def verify_view(workspace: Workspace, view: ViewRecord) -> VerifyReport:
    started = time.monotonic()
    catalogue = workspace.state.read()
    published = catalogue.published[view.id]
    definition = users_definition(view, catalogue)
    query = definition.query
    replaced = [catalogue.object(i).name for i, version in published.inputs.items() if version < 0]
    if replaced:
        raise InvalidStatementError(
            f"{view.name} reads {replaced[0]}, which was replaced since its last refresh.",
            f"REFRESH MATERIALIZED VIEW {view.name} first.",
        )
    session = workspace.sessions.own_with(view.settings)
    relations: list[str] = []

    def define(name: str, sql: str) -> str:
        session.sql(sql).createOrReplaceTempView(quote(name))
        relations.append(name)
        return name

    try:
        with spark_failures(f"{view.name} was verified"):
            for found in query.inputs:
                record = catalogue.object(found.object_id)
                pinned = workspace.relation(record, published.inputs[found.object_id])
                define(found.relation, render(select_all(pinned)))
            truth = define("_vk_truth", visible_query(definition, lambda found: found.relation))
            stored = define("_vk_stored", render(select_all(workspace.relation(view, published.version))))
            difference = define("_vk_difference", signed_difference(truth, stored, view.columns))
            report = _compare(session, view, difference)
            rows = session.sql(f"SELECT count(*) AS n FROM {stored}").collect()[0]["n"]
    finally:
        for relation in reversed(relations):
            session.catalog.dropTempView(relation)
    floats = any(is_floating(column.data_type) for column in view.columns)
    missing, unexpected, missing_rows, unexpected_rows = report
    return VerifyReport(
        str(view.name),
        published.epoch,
        not missing and not unexpected,
        missing,
        unexpected,
        tuple(missing_rows),
        tuple(unexpected_rows),
        rows,
        round(time.monotonic() - started, 3),
        TOLERANCE if floats else None,
    )


def _compare(
    session: Any, view: ViewRecord, difference: str
) -> tuple[int, int, list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows missing and unexpected, with examples; floats are paired when there are few enough to pair."""
    totals = session.sql(
        f"SELECT coalesce(sum(greatest({SIGNED_COUNT}, 0)), 0) AS missing, "
        f"coalesce(sum(greatest(-{SIGNED_COUNT}, 0)), 0) AS unexpected FROM {difference}"
    ).collect()[0]
    missing, unexpected = int(totals["missing"]), int(totals["unexpected"])
    if not missing and not unexpected:
        return 0, 0, [], []
    floating = [at for at, column in enumerate(view.columns) if is_floating(column.data_type)]
    pairable = floating and missing and unexpected and missing + unexpected <= _MOST_FLOAT_ROWS
    limit = _MOST_FLOAT_ROWS if pairable else _EXAMPLES
    left = _rows(session, difference, view.columns, f"{SIGNED_COUNT} > 0", limit)
    right = _rows(session, difference, view.columns, f"{SIGNED_COUNT} < 0", limit)
    if pairable:
        left, right = pair_close_rows(left, right, floating)
        missing, unexpected = len(left), len(right)
    names = [column.name for column in view.columns]
    return missing, unexpected, _named(names, left), _named(names, right)


def _rows(
    session: Any, difference: str, columns: Sequence[Column], condition: str, limit: int
) -> list[tuple[Any, ...]]:
    found = session.sql(f"SELECT * FROM {difference} WHERE {condition} LIMIT {limit:d}").collect()
    rows: list[tuple[Any, ...]] = []
    for row in found:
        values = tuple(row[: len(columns)])
        rows.extend([values] * abs(int(row[SIGNED_COUNT])))
    return rows


def _named(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in rows[:_EXAMPLES]]


def pair_close_rows(
    left: Sequence[tuple[Any, ...]], right: Sequence[tuple[Any, ...]], floating: Sequence[int]
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Take away rows that differ only in floating-point columns and only within the tolerance.

    >>> pair_close_rows([("a", 1.0), ("b", 2.0)], [("a", 1.0 + 1e-12), ("b", 2.5)], [1])
    ([('b', 2.0)], [('b', 2.5)])
    """
    groups: dict[str, list[list[tuple[Any, ...]]]] = {}
    for side, rows in enumerate((left, right)):
        for row in rows:
            key = repr([value for at, value in enumerate(row) if at not in floating])
            groups.setdefault(key, [[], []])[side].append(row)
    remaining: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]] = ([], [])
    for ours, theirs in groups.values():
        theirs = sorted(theirs, key=lambda row: _sort_key(row, floating))
        for row in sorted(ours, key=lambda row: _sort_key(row, floating)):
            partner = next((other for other in theirs if _close(row, other, floating)), None)
            if partner is None:
                remaining[0].append(row)
            else:
                theirs.remove(partner)
        remaining[1].extend(theirs)
    return remaining


def _sort_key(row: tuple[Any, ...], floating: Sequence[int]) -> list[tuple[bool, float]]:
    return [(row[at] is None, 0.0 if row[at] is None or math.isnan(row[at]) else row[at]) for at in floating]


def _close(row: tuple[Any, ...], other: tuple[Any, ...], floating: Sequence[int]) -> bool:
    for at in floating:
        mine, theirs = row[at], other[at]
        if mine is None or theirs is None:
            if mine is not theirs:
                return False
        elif not (math.isnan(mine) and math.isnan(theirs)) and not math.isclose(
            mine, theirs, rel_tol=TOLERANCE
        ):
            return False
    return True
