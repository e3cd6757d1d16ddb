"""A failing case made small: fewer changes and fewer rows that still fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from viewkeeper.testing.cases import Case
from viewkeeper.testing.changes import violated

MOST_TRIES = 300


def shrunk(case: Case, fails: Callable[[Case], bool], most_tries: int = MOST_TRIES) -> Case:
    """The smallest case found by leaving things out one by one; constraints that hold go on holding."""
    tries = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(case):
            if not _keeps_constraints(candidate, case):
                continue
            tries += 1
            if tries > most_tries:
                return case
            if fails(candidate):
                case, is_smaller = candidate, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    if len(case.stream) > 2:
        for before, after in pairwise(case.stream):
            yield replace(case, stream=(before, after))
        yield replace(case, stream=(case.stream[0], case.stream[-1]))
    for table in case.schema.names():
        if any(rows[table] for rows in case.stream):
            yield replace(case, stream=tuple({**rows, table: []} for rows in case.stream))
    for table in case.schema.names():
        present = dict.fromkeys(row for rows in case.stream for row in rows[table])
        for gone in present:
            yield replace(
                case,
                stream=tuple(
                    {**rows, table: [row for row in rows[table] if row != gone]} for rows in case.stream
                ),
            )


def _keeps_constraints(candidate: Case, case: Case) -> bool:
    broken = {each for rows in case.stream for each in violated(case.schema, rows)}
    return all(violated(case.schema, rows) <= broken for rows in candidate.stream)
