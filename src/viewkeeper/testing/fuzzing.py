"""A given view, tried with many streams of random changes."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import duckdb

from viewkeeper.errors import QueryFailedError
from viewkeeper.maintenance.plan import Strategy
from viewkeeper.testing.agreement import Disagreement, Outcome
from viewkeeper.testing.cases import Case, case_for_view
from viewkeeper.testing.kept_agreement import check_case
from viewkeeper.testing.shrinking import shrunk
from viewkeeper.testing.tables import Schema

_REASONS_SHOWN = 3


@dataclass
class FuzzReport:
    """What was tried, and how it went. `failed_queries`: cases in which the query itself failed on the rows.

    `failure` is the message of the first case in which the view was wrong, with as few rows as show it.
    """

    view: str
    seed: int
    cases: int = 0
    failed_queries: int = 0
    seconds: float = 0.0
    strategies: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    failure: str | None = None

    @property
    def equal(self) -> bool:
        return self.failure is None

    def add(self, outcome: Outcome) -> None:
        self.cases += 1
        self.strategies.update(each.strategy.value for each in outcome.refreshes)
        self.reasons.update(
            each.reason for each in outcome.refreshes if each.strategy is Strategy.RECOMPUTE and each.reason
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "view": self.view,
            "equal": self.equal,
            "seed": self.seed,
            "cases": self.cases,
            "failed_queries": self.failed_queries,
            "strategies": dict(self.strategies),
            "reasons": dict(self.reasons),
            "seconds": round(self.seconds, 3),
            "failure": self.failure,
        }

    def __str__(self) -> str:
        refreshes = ", ".join(f"{count} {name}" for name, count in self.strategies.most_common()) or "none"
        lines = [f"{self.view}: {self.cases} cases of seed {self.seed} in {self.seconds:.1f} s"]
        lines.append(f"  refreshes: {refreshes}")
        lines += [f"  {count} times: {why}" for why, count in self.reasons.most_common(_REASONS_SHOWN)]
        if self.failed_queries:
            lines.append(f"  in {self.failed_queries} more cases the query itself failed")
        if self.failure is None:
            lines.append("  the view was equal to its query every time")
        else:
            lines.append(f"  the view is WRONG in {self.failure}")
        return "\n".join(lines)


def fuzz_view(
    schema: Schema, text: str, name: str = "the view", cases: int = 100, seconds: float = 0, seed: int = 1
) -> FuzzReport:
    """Try a view until all cases or, if given, the seconds are used up, or it is wrong.

    >>> from viewkeeper.testing import read_schema
    >>> tables = read_schema("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    >>> fuzz_view(tables, "SELECT v, count(*) AS n FROM t GROUP BY v", cases=3).equal
    True
    """
    report = FuzzReport(name, seed)
    started = time.monotonic()
    failed_query: QueryFailedError | None = None
    with duckdb.connect(config={"threads": 1}) as database:
        for number in range(cases):
            if seconds and time.monotonic() - started > seconds:
                break
            case = case_for_view(schema, text, seed * 100_003 + number)
            try:
                report.add(check_case(database, case))
            except QueryFailedError as error:
                report.failed_queries += 1
                failed_query = error
            except Disagreement as error:
                report.failure = _smallest_failure(database, case, error)
                break
    report.seconds = time.monotonic() - started
    if failed_query is not None and not report.cases and report.equal:
        raise failed_query
    return report


def _smallest_failure(database: duckdb.DuckDBPyConnection, case: Case, error: Disagreement) -> str:
    smallest = error

    def fails(each: Case) -> bool:
        nonlocal smallest
        try:
            check_case(database, each)
        except Disagreement as smaller:
            smallest = smaller
            return True
        except QueryFailedError:
            return False
        return False

    shrunk(case, fails)
    return str(smallest)
