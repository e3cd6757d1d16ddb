"""Random cases checked one after the other: what is wrong with them, made small, and how their views were refreshed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import duckdb

from viewkeeper.errors import QueryFailedError
from viewkeeper.maintenance.plan import Strategy
from viewkeeper.testing import Case, Disagreement, Outcome, check_case, shrunk

MOST_FAILURES = 5
"""After so many the rest is not looked at."""

Check: TypeAlias = Callable[[duckdb.DuckDBPyConnection, Case], Outcome | None]


@dataclass
class Tally:
    """How the views with each construct were refreshed."""

    cases: int = 0
    failed_queries: int = 0
    """Cases in which the query fails on the first rows: nothing is learnt from them."""
    by_construct: dict[str, Counter[Strategy]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, case: Case, outcome: Outcome) -> None:
        self.cases += 1
        for construct in case.constructs:
            self.by_construct[construct].update(each.strategy for each in outcome.refreshes)

    @property
    def incremental(self) -> float:
        return _share(sum(self.by_construct.values(), Counter()))

    def __str__(self) -> str:
        lines = [f"{self.cases} cases; refreshes by construct:"]
        for construct, counts in sorted(
            self.by_construct.items(), key=lambda each: (_share(each[1]), each[0])
        ):
            shown = ", ".join(f"{n} {s.value}" for s, n in counts.most_common())
            lines.append(f"  {construct:28} {_share(counts):4.0%}  {shown}")
        return "\n".join(lines)


def _share(counts: Counter[Strategy]) -> float:
    return 1 - counts[Strategy.RECOMPUTE] / max(1, counts.total())


def wrong_cases(
    database: duckdb.DuckDBPyConnection, cases: Iterable[Case], tally: Tally, check: Check = check_case
) -> list[str]:
    """The messages of the cases that went wrong, made small."""
    failures: list[str] = []
    for case in cases:
        if len(failures) == MOST_FAILURES:
            break
        message = _message(database, case, check, tally)
        if message is not None:
            small = shrunk(case, lambda each: _message(database, each, check) is not None)
            failures.append(_message(database, small, check) or message)
    return failures


def _message(
    database: duckdb.DuckDBPyConnection, case: Case, check: Check, tally: Tally | None = None
) -> str | None:
    """What is wrong with a case; a plan that cannot be made or run is wrong too."""
    try:
        outcome = check(database, case)
    except QueryFailedError:
        if tally is not None:
            tally.failed_queries += 1
        return None
    except Disagreement as error:
        return str(error)
    except Exception as error:
        return f"{case.name}: {type(error).__name__}: {error}\nview: {case.text}\nagain: {case.to_python()}"
    if tally is not None and outcome is not None:
        tally.add(case, outcome)
    return None
