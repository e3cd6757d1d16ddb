"""Columns, plans and a DuckDB to run generated Spark SQL on."""

from __future__ import annotations

from tests.sql.helpers import bind
from viewkeeper.maintenance.build_plan import ANY_CHANGE, plan_first_load, plan_refresh
from viewkeeper.maintenance.plan import MaintenancePlan
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Column
from viewkeeper.sql.dialect import transpile
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.statements import RefreshPolicy
from viewkeeper.sql.types import read_type_text

PLAIN = {"id": "INT", "name": "STRING", "amount": "DECIMAL(10,2)"}
HOSTILE = {"it`s": "INT", 'say "hi"; --': "STRING", "two\nlines */": "INT", "größe": "INT"}
NESTED = {
    "id": "INT",
    "m": "MAP<STRING, INT>",
    "v": "VARIANT",
    "s": "STRUCT<a: INT, m: MAP<STRING, VARIANT>>",
    "xs": "ARRAY<MAP<INT, INT>>",
    "plain": "ARRAY<STRUCT<a: INT>>",
}
SHAPES = {"plain": PLAIN, "hostile": HOSTILE, "nested": NESTED}

TOTALS = QualifiedName("default", "totals")
TOTALS_QUERY = "SELECT customer_id, SUM(amount) AS total -- in cents\nFROM orders GROUP BY customer_id"
TOTALS_COLUMNS = {"customer_id": "INT", "total": "DECIMAL(20,2)"}


def columns(shape: dict[str, str]) -> list[Column]:
    return [Column(name, read_type_text(data_type)) for name, data_type in shape.items()]


def definition(
    text: str = TOTALS_QUERY,
    view: QualifiedName = TOTALS,
    shape: dict[str, str] | None = None,
    policy: RefreshPolicy = RefreshPolicy.AUTO,
) -> ViewDefinition:
    return ViewDefinition(
        view, "id of the view", bind(text), tuple(columns(shape or TOTALS_COLUMNS)), policy=policy
    )


def refresh_plan(
    text: str = TOTALS_QUERY,
    view: QualifiedName = TOTALS,
    shape: dict[str, str] | None = None,
    policy: RefreshPolicy = RefreshPolicy.FULL,
) -> MaintenancePlan:
    """What happens when every input has changed."""
    found = definition(text, view, shape, policy)
    return plan_refresh(found, {each.object_id: ANY_CHANGE for each in found.query.inputs})


def load_plan(text: str = TOTALS_QUERY, view: QualifiedName = TOTALS) -> MaintenancePlan:
    return plan_first_load(definition(text, view))


def to_duckdb(spark_sql: str) -> str:
    return transpile(spark_sql, "duckdb")
