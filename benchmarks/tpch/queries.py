"""The queries of this folder: the 22 of TPC-H with their validation parameters, and the benchmark's views.

Each file begins with what it asks for, the operators it is made of, and the strategy that a refresh is to report.
An ORDER BY without LIMIT means nothing to a view; with LIMIT it is made total by a key at its end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
TPCH = tuple(f"q{number:02}" for number in range(1, 23))
CHAIN = ("chain_lines", "chain_revenue", "chain_top")
"""Each reads the one before it."""

_HEADER = re.compile(r"-- (?P<title>.+)\n-- Operators: (?P<operators>.+)\n-- Strategy: (?P<strategy>\w+)\n")


@dataclass(frozen=True)
class ViewQuery:
    name: str
    title: str
    operators: str
    strategy: str
    sql: str

    def create(self, policy: str = "INCREMENTAL") -> str:
        """With AUTO a refresh of tables as small as those of tests recomputes."""
        return f"CREATE MATERIALIZED VIEW {self.name} REFRESH {policy} AS\n{self.sql}"


def view_query(name: str) -> ViewQuery:
    """
    >>> query = view_query("q06")
    >>> query.operators
    'filter, group of everything'
    >>> query.create().splitlines()[:2]
    ['CREATE MATERIALIZED VIEW q06 REFRESH INCREMENTAL AS', 'SELECT sum(l_extendedprice * l_discount) AS revenue']
    """
    text = _path(name).read_text(encoding="utf-8")
    header = _HEADER.match(text)
    assert header is not None, f"{name}.sql has no header"
    return ViewQuery(name, **header.groupdict(), sql=text[header.end() :].strip())


def write_strategy(name: str, strategy: str) -> None:
    """Put another strategy into the header."""
    text = _path(name).read_text(encoding="utf-8")
    _path(name).write_text(re.sub(r"(?<=-- Strategy: )\w+", strategy, text, count=1), encoding="utf-8")


def _path(name: str) -> Path:
    return FOLDER / f"{name}.sql"
