"""What other processes have done to base tables beside changing their rows, and whom it concerns.

The catalogue keeps the columns of a table as they were declared or attached. A table that is gone, or a column that is
lost, is the matter of the views that read it, and of no other view.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from viewkeeper.errors import (
    CorruptWarehouseError,
    RefreshConflictError,
    SchemaChangedError,
    ViewkeeperError,
)
from viewkeeper.execution.epoch_reads import words_in
from viewkeeper.execution.workspace import Workspace
from viewkeeper.sources.table_log import REPLACING_COLUMNS, TableShape
from viewkeeper.sql.binding import BoundQuery, Column
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import TableRecord


@dataclass(frozen=True)
class Pins:
    """The newest versions of base tables, and why others cannot be read."""

    versions: dict[str, int]
    problems: dict[str, ViewkeeperError]


def pins_of(workspace: Workspace, table_ids: Iterable[str], catalogue: Catalogue) -> Pins:
    """The newest version of each base table. What has become of it meanwhile is noted in the catalogue first."""
    pins = Pins({}, {})
    for table_id in sorted(table_ids):
        table = catalogue.tables[table_id]
        try:
            shape = workspace.shape_of(table)
            if _differs(table, shape):
                _note(workspace, table, shape)
            pins.versions[table_id] = shape.version
        except (CorruptWarehouseError, RefreshConflictError) as problem:
            pins.problems[table_id] = problem
    return pins


def versions_of(workspace: Workspace, table_ids: Iterable[str], catalogue: Catalogue) -> dict[str, int]:
    """The same where all tables are needed."""
    pins = pins_of(workspace, table_ids, catalogue)
    for problem in pins.problems.values():
        raise problem
    return pins.versions


def problem_of(workspace: Workspace, table: TableRecord) -> ViewkeeperError:
    """Why a table has no pinned version."""
    try:
        workspace.shape_of(table)
    except CorruptWarehouseError as problem:
        return problem
    return RefreshConflictError(
        f"{table.name} could not be read when this refresh started.", "refresh the view again."
    )


def _differs(table: TableRecord, shape: TableShape) -> bool:
    return _is_another(table, shape) or _loosened(table, shape) != table.columns


def _is_another(table: TableRecord, shape: TableShape) -> bool:
    return table.attached and shape.delta_id != table.delta_id


def _loosened(table: TableRecord, shape: TableShape) -> tuple[Column, ...]:
    """The known columns without NOT NULL where that was dropped. Where it was added nothing is concluded from it: views were
    made without it."""
    nullable = {column.name.lower() for column in shape.columns if column.nullable}
    return tuple(
        replace(column, nullable=True) if column.name.lower() in nullable else column
        for column in table.columns
    )


def _note(workspace: Workspace, table: TableRecord, shape: TableShape) -> None:
    """Keep in the catalogue that a table was replaced, or that its columns can be NULL.

    What follows from NOT NULL for views above is forgotten with it. Plans that know less are right before and after.
    """

    def step(newest: Catalogue) -> Catalogue:
        current = newest.tables.get(table.id)
        if current is None or not _differs(current, shape):
            return newest
        loosened = _loosened(current, shape)
        if loosened != current.columns:
            newest = _above_loosened(newest, table.id)
        if _is_another(current, shape):
            claim = next((claim for claim in newest.claims if table.id in claim.pins), None)
            if claim is not None:
                raise RefreshConflictError(
                    f"{table.name} was replaced by another table while {claim.holder} refreshes a view over it.",
                    "wait for it to finish, then refresh again.",
                )
            newest = newest.forgetting(table.id)
        return newest.with_table(replace(current, columns=loosened, delta_id=_id_of(current, shape)))

    workspace.state.change(step)


def _id_of(table: TableRecord, shape: TableShape) -> str | None:
    return shape.delta_id if table.attached else table.delta_id


def _above_loosened(catalogue: Catalogue, table_id: str) -> Catalogue:
    for view in list(catalogue.views.values()):
        if table_id in catalogue.tables_below(view.input_ids):
            columns = tuple(replace(column, nullable=True) for column in view.columns)
            catalogue = catalogue.with_view(replace(view, columns=columns))
    return catalogue


def why_history_is_broken(
    workspace: Workspace, table: TableRecord, query: BoundQuery, before: int, after: int
) -> str | None:
    """Why the change feed between two versions does not lead from the one to the other, as far as a query can tell.

    A column that the query reads and that is lost, or of another type, is an error.
    """
    used = _used(table, query)
    shape = workspace.shape_of(table, after)
    present = {column.name.lower(): column.data_type for column in shape.columns}
    for column in used:
        found = present.get(column.name.lower())
        if found != column.data_type:
            what = "was dropped or renamed" if found is None else f"was {column.data_type} and is {found} now"
            raise SchemaChangedError(
                f"the column {column.name} of {table.name} {what}.",
                "put it back, or create the view again without it; CREATE OR REPLACE keeps its name.",
            )
    commits = workspace.log.commits_after(workspace.data_address(table), before)
    setting = [commit.operation for commit in commits if commit.version <= after and commit.sets_columns]
    return _replaced_column(workspace, table, used, shape, before, setting) if setting else None


def _replaced_column(
    workspace: Workspace,
    table: TableRecord,
    used: Collection[Column],
    after: TableShape,
    before: int,
    operations: Collection[str],
) -> str | None:
    try:
        earlier = workspace.shape_of(table, before)
    except CorruptWarehouseError:
        return f"the log of {table.name} no longer tells what version {before} looked like"
    if earlier.delta_id != after.delta_id:
        return f"{table.name} was replaced"
    known = {column.name.lower() for column in earlier.columns}
    for column in used:
        name = column.name.lower()
        # Column mapping that was only switched on leaves a column what it was.
        is_another = name in earlier.identities and earlier.identities[name] != after.identities.get(name)
        if name not in known or is_another:
            return f"the column {column.name} of {table.name} was dropped and added again"
    if not after.identities and any(each.startswith(REPLACING_COLUMNS) for each in operations):
        return f"columns of {table.name} were replaced"
    return None


def _used(table: TableRecord, query: BoundQuery) -> list[Column]:
    """The columns of a table that a query may mention."""
    if not query.rendered:
        return list(table.columns)
    words = words_in(query.rendered)
    return [column for column in table.columns if column.name.lower() in words]
