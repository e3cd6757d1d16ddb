"""Spark's own reading of a view's query, before anything is created.

Spark analyses the user's text and our reading of it over the same relations, and runs both over a few rows. Columns and rows must come
out the same; if they do not, plans of ours would be built on a misreading, and the view is recomputed by the user's own text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.errors import InvalidStatementError, UnsupportedError, UserError, ViewkeeperError
from viewkeeper.execution.comparison import why_answers_differ
from viewkeeper.execution.result_settings import why_not_read
from viewkeeper.execution.workspace import Workspace
from viewkeeper.generated_names import is_hidden
from viewkeeper.maintenance.build_plan import ANY_CHANGE, plan_refresh
from viewkeeper.maintenance.stored_shape import with_hidden_columns
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.maintenance.whole_query import as_read
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sources.table_log import columns_of_schema
from viewkeeper.sql.binding import BoundQuery, Column
from viewkeeper.sql.names import QualifiedName, quote
from viewkeeper.sql.references import Substitution
from viewkeeper.sql.rendering import render, select_all
from viewkeeper.sql.statements import RefreshPolicy
from viewkeeper.storage.catalogue import Catalogue

NOT_UNDERSTOOD = "Spark does not understand Viewkeeper's reading of the query"
OTHER_TYPE = "Viewkeeper reads a column otherwise than Spark"
NOT_PLANNED = "Viewkeeper cannot plan its maintenance"


def analyse(
    workspace: Workspace,
    catalogue: Catalogue,
    query: BoundQuery,
    versions: dict[str, int],
    settings: dict[str, str],
    name: QualifiedName,
    view_id: str,
    policy: RefreshPolicy,
) -> ViewDefinition:
    """The view with its columns as Spark sees them; every way the query can be wrong raises."""
    with _over_inputs(workspace, catalogue, query, versions, settings) as session:
        text = query.text_over(lambda found: found.relation)
        schema = _schema_of(session, text.text, text, query)
        columns = _checked_columns(schema, query)
        refusal = why_not_read(settings, query.parsed.fragment.text)
        view = ViewDefinition(name, view_id, query, columns, policy=policy, refusal=refusal)
        return _without_misreading(session, view, catalogue)


def analyse_our_own(
    workspace: Workspace,
    catalogue: Catalogue,
    view: ViewDefinition,
    versions: Mapping[str, int],
    settings: Mapping[str, str],
) -> ViewDefinition:
    """A view whose text is ours, with the columns and hidden columns that Spark tells."""
    with _over_inputs(workspace, catalogue, view.query, versions, settings) as session:
        columns = _columns_of(session, view.query.text_over(lambda found: found.relation).text)
        typed = replace(view, columns=columns)
        return with_hidden_columns(typed, lambda sql: _columns_of(session, sql))


@contextmanager
def _over_inputs(
    workspace: Workspace,
    catalogue: Catalogue,
    query: BoundQuery,
    versions: Mapping[str, int],
    settings: Mapping[str, str],
) -> Iterator[Any]:
    """A session that knows the inputs of a query by their relations, at these versions."""
    session = workspace.sessions.own_with(settings)
    relations = [found.relation for found in query.inputs]
    try:
        with spark_failures("the query was analysed"):
            for found in query.inputs:
                record = catalogue.object(found.object_id)
                pinned = select_all(workspace.relation(record, versions[found.object_id]))
                session.sql(render(pinned)).createOrReplaceTempView(quote(found.relation))
        yield session
    finally:
        for relation in relations:
            session.catalog.dropTempView(relation)


def _columns_of(session: Any, sql: str) -> tuple[Column, ...]:
    with spark_failures("the hidden columns were analysed"):
        return columns_of_schema(session.sql(sql).schema.json())


def _schema_of(session: Any, sql: str, text: Substitution, query: BoundQuery) -> dict[str, Any]:
    try:
        with spark_failures("the query was analysed", text):
            schema: dict[str, Any] = json.loads(session.sql(sql).schema.json())
            return schema
    except ViewkeeperError as error:
        if query.problems and type(error) is type(query.problems[0]):
            raise query.problems[0] from error
        raise


def _checked_columns(schema: dict[str, Any], query: BoundQuery) -> tuple[Column, ...]:
    fragment = query.parsed.fragment
    whole = fragment.locate(0, len(fragment.text))
    seen: dict[str, str] = {}
    for field in schema["fields"]:
        name = field["name"]
        if name.lower() in seen:
            raise InvalidStatementError(
                f"two columns of the view would be called {name}.",
                f"name one of them: … AS other_{name}.",
                whole,
            )
        if is_hidden(name):
            raise InvalidStatementError(
                f"the column {name} has a name that is reserved.", "names may not start with _vk_.", whole
            )
        seen[name.lower()] = name
    try:
        return columns_of_schema(schema)
    except UnsupportedError as error:
        raise UnsupportedError(error.message, error.hint, whole) from None


def _without_misreading(session: Any, view: ViewDefinition, catalogue: Catalogue) -> ViewDefinition:
    """The view with its hidden columns; if our reading of its query is not Spark's, the view by its own text alone.

    Whatever goes wrong on our side is no fault of the query, which Spark has understood.
    """
    try:
        refusal = _why_misread(session, view, catalogue)
        if refusal is None:
            view = with_hidden_columns(view, lambda sql: _columns_of(session, sql))
            plan_refresh(view, dict.fromkeys([each.object_id for each in view.query.inputs], ANY_CHANGE))
            return view
    except UserError:
        refusal = NOT_UNDERSTOOD
    except ViewkeeperError:
        raise
    except Exception as error:
        refusal = f"{NOT_PLANNED} ({type(error).__name__})"
    return view.refused(refusal)


def _why_misread(session: Any, view: ViewDefinition, catalogue: Catalogue) -> str | None:
    """Why our reading of the query is not Spark's; None if it is, as far as types and a few rows tell, or if there is none."""
    query = view.algebra
    if isinstance(query, OutsideAlgebra):
        return None
    with spark_failures("our reading of the query was analysed"):
        ours = columns_of_schema(session.sql(as_read(query)).schema.json())
    for theirs, mine in zip(view.columns, ours, strict=True):
        if mine.data_type != theirs.data_type:
            return f"{OTHER_TYPE}: {theirs.name} as {mine.data_type} instead of {theirs.data_type}"
    return why_answers_differ(session, view, catalogue)
