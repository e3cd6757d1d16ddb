"""What every statement works with: where the warehouse lies, its state, its table logs, its Spark sessions."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.errors import CorruptWarehouseError
from viewkeeper.execution.progress import Listener
from viewkeeper.execution.spark_session import Sessions
from viewkeeper.generated_names import is_hidden
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sources.table_log import TableLog, TableShape
from viewkeeper.sql.binding import BoundQuery, Input, Resolver, bind_query
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.rendering import delta_table, visible_rows
from viewkeeper.sql.script import Fragment
from viewkeeper.sql.statements import Operation
from viewkeeper.storage.catalogue import Catalogue, ObjectRecord
from viewkeeper.storage.layout import Layout
from viewkeeper.storage.records import OverKept, TableRecord, ViewRecord
from viewkeeper.storage.warehouse_state import WarehouseState


@dataclass(frozen=True)
class Workspace:
    layout: Layout
    state: WarehouseState
    log: TableLog
    sessions: Sessions
    listener: Listener
    storage_options: dict[str, str] | None = None

    def data_address(self, record: ObjectRecord) -> str:
        """The Delta table that holds the rows of a table or view."""
        if isinstance(record, ViewRecord):
            return self.layout.rows(record.location)
        return self.layout.address(record.location)

    def relation(self, record: ObjectRecord, version: int | None = None) -> exp.Expr:
        """A table or view as a relation of Spark SQL, without our hidden columns."""
        table = delta_table(self.data_address(record), version)
        if isinstance(record, TableRecord):
            return table
        return visible_rows(table, [column.name for column in record.columns if not is_hidden(column.name)])

    def shape_of(self, table: TableRecord, version: int | None = None) -> TableShape:
        try:
            return self.log.shape(self.data_address(table), version)
        except CorruptWarehouseError as error:
            raise CorruptWarehouseError(
                f"the table {table.name} cannot be read: {error.message}", error.hint
            ) from error


def resolver(catalogue: Catalogue, references: Mapping[str, str] | None = None) -> Resolver:
    """How names of a query become objects: by the catalogue's names, or as a stored view has bound them."""

    def resolve(name: QualifiedName) -> Input | None:
        record = catalogue.named(name) if references is None else catalogue.object(references[name.key])
        return None if record is None else Input(record.id, record.name, record.columns)

    return resolve


def bind_new(query: Fragment, catalogue: Catalogue) -> BoundQuery:
    """Bind the query of a view to be created."""
    return bind_query(query, resolver(catalogue), catalogue.names)


def bind_stored(view: ViewRecord | OverKept, catalogue: Catalogue) -> BoundQuery:
    """Bind the query of an existing view, whatever its tables are called by now."""
    return bind_query(Fragment.whole(view.query), resolver(catalogue, view.references), catalogue.names)


def definition_of(view: ViewRecord, catalogue: Catalogue) -> ViewDefinition:
    """What plans for an existing view are made from: its query, over hidden views if it keeps groups in some.

    It is remembered, with the plans made from it, until the view or something that it reads is another.
    """
    made_from = (view, [catalogue.object(each) for each in view.input_ids])
    with _REMEMBERING:
        known = _REMEMBERED.pop(view.id, None)
    if known is None or known[0] != made_from:
        known = made_from, _defined_by(view, bind_stored(view.over_kept or view, catalogue))
    with _REMEMBERING:
        _REMEMBERED[view.id] = known
        if len(_REMEMBERED) > _MOST_REMEMBERED:
            del _REMEMBERED[next(iter(_REMEMBERED))]
    return known[1]


_REMEMBERING = threading.Lock()
_MOST_REMEMBERED = 500
_REMEMBERED: dict[str, tuple[tuple[ViewRecord, list[ObjectRecord]], ViewDefinition]] = {}
"""By the view's id, the one that was asked for last at the end."""


def users_definition(view: ViewRecord, catalogue: Catalogue) -> ViewDefinition:
    """The view as the user wrote it, over what the user's text names; hidden columns belong to the query that is planned."""
    definition = _defined_by(view, bind_stored(view, catalogue))
    return definition if view.over_kept is None else replace(definition, hidden=())


def _defined_by(view: ViewRecord, query: BoundQuery) -> ViewDefinition:
    return ViewDefinition(
        view.name,
        view.id,
        query,
        view.columns,
        view.hidden,
        view.policy,
        rematerialized=frozenset((table, Operation(each)) for each, table in view.rematerialized_on),
        refusal=view.refusal,
    )
