"""Rows that some values point to, looked for in data files: few of them come to the driver, with their places."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from viewkeeper.execution.input_changes import MOST_DRIVER_ROWS, MOST_LITERALS, limited_to, schema_text
from viewkeeper.execution.local_relations import with_places
from viewkeeper.sources.arrow_types import has_arrow_types
from viewkeeper.sources.data_files import DataFiles
from viewkeeper.sources.row_groups import no_rows_with_places, rows_with
from viewkeeper.sql.binding import Column
from viewkeeper.sql.rendering import column


@dataclass(frozen=True)
class Wanted:
    """The values that matter in a column, NULL among them if rows with NULL do."""

    column: str
    values: frozenset[Any]

    @property
    def condition(self) -> exp.Expr | None:
        found = limited_to(column(self.column), list(self.values))
        if found is None or None not in self.values:
            return found
        return exp.or_(found, exp.Is(this=column(self.column), expression=exp.Null()))

    @property
    def is_listed(self) -> bool:
        """Whether a condition lists the values; of more it is a range."""
        return len(self.values) <= MOST_LITERALS


def holding(files: Iterable[DataFiles], wanted: Wanted) -> dict[str, str]:
    """The files that can hold such rows, of some versions of a table: addresses by name."""
    return {
        name: each.addresses[name] for each in files for name in each.holding(wanted.column, wanted.values)
    }


def may_be_few(files: Iterable[DataFiles], wanted: Wanted, columns: Sequence[Column]) -> bool:
    """Whether the driver can take the rows, as far as types and statistics tell; they tell little of texts."""
    if not has_arrow_types(columns):
        return False
    is_text = any(isinstance(value, str) for value in wanted.values)
    estimates = [each.estimated_rows(wanted.column, wanted.values) for each in files]
    return is_text or max(estimates, default=0) <= MOST_DRIVER_ROWS


def few_rows(
    session: Any, wanted: Wanted, columns: Sequence[Column], addresses: Collection[str]
) -> pa.Table | None:
    """The rows of some files with one of the values, with file and position, by one scan; None if they are too many."""
    if not addresses:
        return no_rows_with_places(columns)
    found = rows_with(wanted.values, wanted.column, columns, addresses, MOST_DRIVER_ROWS)
    if found is None:
        condition = wanted.condition
        if condition is None or isinstance(condition, exp.Between):
            return None
        found = _scanned(session, columns, condition, list(addresses))
    return None if found.num_rows > MOST_DRIVER_ROWS else found


def _scanned(
    session: Any, columns: Sequence[Column], condition: exp.Expr, addresses: Sequence[str]
) -> pa.Table:
    """The rows of some files for which a condition holds, with file and position, but few more than may come to the driver."""
    files = session.read.schema(schema_text(columns)).parquet(*addresses)
    found = with_places(files.where(condition.sql(dialect="spark")), columns)
    return found.limit(MOST_DRIVER_ROWS + 1).toArrow()
