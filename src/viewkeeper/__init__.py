"""Viewkeeper keeps SQL materialized views fresh on Apache Spark, and proves them right."""

from viewkeeper.errors import ViewkeeperError
from viewkeeper.execution.reports import RefreshFailedError, RefreshReport, StatementReport, VerifyReport
from viewkeeper.warehouse import Warehouse

__all__ = [
    "RefreshFailedError",
    "RefreshReport",
    "StatementReport",
    "VerifyReport",
    "ViewkeeperError",
    "Warehouse",
]
