"""Whether our reading of a query answers as Spark does: both are run over a few rows, and their rows compared as bags.

The rows are made up first; that shows most, and reads no table. Where the query fails on them, or finds nothing in them, or where a
column is a CHAR (which only the table itself pads), the first rows of the tables are taken. FLOAT and DOUBLE may differ by the
tolerance of VERIFY; where SQL leaves the answer open because rows tie, only the numbers of rows are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlglot import exp

from viewkeeper.algebra.nodes import Group, OuterJoin, Project, SemiJoin, SetOperation, walk
from viewkeeper.algebra.ties import breaks_ties
from viewkeeper.errors import UserError, ViewkeeperError
from viewkeeper.execution.verify import pair_close_rows
from viewkeeper.maintenance.sample_rows import ROWS, constants_in, sample_rows
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.maintenance.whole_query import our_query
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sql.binding import Input
from viewkeeper.sql.names import quote
from viewkeeper.sql.rendering import relation_named, render, select_all
from viewkeeper.sql.script import parse_sql
from viewkeeper.sql.types import Simple, is_floating
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import TableRecord

_SAMPLED_ROWS = 100
_MAX_RESULT = 20_000

OTHER_ANSWER = "on a sample of rows, Viewkeeper's reading of the query and Spark give different answers"


def why_answers_differ(session: Any, view: ViewDefinition, catalogue: Catalogue) -> str | None:
    """The reason not to use our reading, if it answers otherwise than the user's text; None if nothing was found.

    The session knows the inputs of the query by their relations."""
    constants = constants_in(parse_sql(view.query.rendered))
    keys = {found.object_id: _key_columns(catalogue, found) for found in view.query.inputs}

    def made_up(found: Input, count: int) -> exp.Select:
        return sample_rows(found.columns, keys[found.object_id], constants, count)

    inputs = view.query.inputs
    samples: list[Callable[[Input], Any]] = [lambda found: session.sql(render(made_up(found, ROWS)))]
    if _asks_for_absence(view):

        def mostly_empty(found: Input) -> Any:
            is_filled = found.object_id == inputs[0].object_id and len(inputs) > 1
            return session.sql(render(made_up(found, ROWS if is_filled else 0)))

        samples.append(mostly_empty)
    answer = _compared(session, view, samples)
    is_settled = answer is not None and (answer.differ or answer.rows)
    if not is_settled or (answer is not None and not answer.differ and _has_char(view)):
        again = _compared(session, view, [lambda found: _first_rows(session, found)])
        answer = again if again is not None else answer
    return OTHER_ANSWER if answer is not None and answer.differ else None


def _asks_for_absence(view: ViewDefinition) -> bool:
    """Whether the answer over no rows is more than nothing: outer joins, subqueries, set operations, one group of all rows."""
    assert isinstance(view.algebra, Project)
    return any(
        isinstance(node, (OuterJoin, SemiJoin, SetOperation)) or (isinstance(node, Group) and not node.keys)
        for node in walk(view.algebra)
    )


class _Answer:
    def __init__(self, differ: bool, rows: int) -> None:
        self.differ, self.rows = differ, rows


def _compared(session: Any, view: ViewDefinition, samples: list[Callable[[Input], Any]]) -> _Answer | None:
    """Both queries over every sample, in one query of Spark; None if they cannot be evaluated there."""
    query = view.algebra
    assert isinstance(query, Project)
    is_open = breaks_ties(query) or bool(view.ties_broken)
    try:
        with spark_failures("the query was tried on a few rows"), _relations(session, view, samples) as names:
            whole: Any = None
            for at, name_of in enumerate(names):
                texts = (view.query.text_over(name_of).text, our_query(view, name_of))
                for side, text in enumerate(texts):
                    part = session.sql(text).selectExpr(f"{2 * at + side} AS _vk_side", "*")
                    whole = part if whole is None else whole.unionAll(part)
            rows = whole.limit(_MAX_RESULT).collect()
    except UserError:
        return None
    except ViewkeeperError:
        raise
    except Exception:  # rows that cannot be shown here say nothing about the query
        return None
    if len(rows) >= _MAX_RESULT:
        return None
    return _answer(view, [tuple(row) for row in rows], len(samples), is_open)


def _answer(view: ViewDefinition, rows: list[tuple[Any, ...]], samples: int, is_open: bool) -> _Answer:
    floating = [at for at, each in enumerate(view.columns) if is_floating(each.data_type)]
    for at in range(samples):
        theirs, ours = ([row[1:] for row in rows if row[0] == 2 * at + side] for side in (0, 1))
        if len(theirs) != len(ours):
            return _Answer(True, len(rows))
        if not is_open and _differ(theirs, ours, floating):
            return _Answer(True, len(rows))
    return _Answer(False, len(rows))


def _differ(theirs: list[tuple[Any, ...]], ours: list[tuple[Any, ...]], floating: list[int]) -> bool:
    missing = Counter(map(_comparable, theirs))
    missing.subtract(map(_comparable, ours))
    if not any(missing.values()):
        return False
    if not floating:
        return True
    left, right = pair_close_rows([_told(row) for row in theirs], [_told(row) for row in ours], floating)
    return bool(left or right)


def _told(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(each if isinstance(each, float) else _comparable(each) for each in row)


def _comparable(value: Any) -> Any:
    """A value of a row as one that is equal only to the same value; fractions inside of others are rounded."""
    if isinstance(value, dict):
        return "map", tuple(sorted((repr(_comparable(k)), repr(_comparable(v))) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(_comparable(each) for each in value)
    if isinstance(value, float):
        return f"{value:.9g}"
    return value if value is None or isinstance(value, (int, str)) else repr(value)


@contextmanager
def _relations(
    session: Any, view: ViewDefinition, samples: list[Callable[[Input], Any]]
) -> Iterator[list[Callable[[Input], str]]]:
    made: list[str] = []
    names: list[Callable[[Input], str]] = []
    try:
        for at, sample in enumerate(samples):
            called: dict[str, str] = {}
            for found in view.query.inputs:
                called[found.object_id] = name = f"{found.relation}_sample{at}"
                sample(found).createOrReplaceTempView(quote(name))
                made.append(name)
            names.append(_lookup(called))
        yield names
    finally:
        for name in made:
            session.catalog.dropTempView(name)


def _lookup(called: Mapping[str, str]) -> Callable[[Input], str]:
    return lambda found: called[found.object_id]


def _first_rows(session: Any, found: Input) -> Any:
    """The first rows of a table, the same however often they are read; a small table as it is."""
    whole = session.sql(render(select_all(relation_named(found.relation))))
    few = whole.limit(_SAMPLED_ROWS + 1).toArrow()
    if few.num_rows <= _SAMPLED_ROWS:
        return whole
    return session.createDataFrame(few.slice(0, _SAMPLED_ROWS), schema=whole.schema)


def _key_columns(catalogue: Catalogue, found: Input) -> frozenset[str]:
    record = catalogue.object(found.object_id)
    if not isinstance(record, TableRecord):
        return frozenset()
    return frozenset(name for key in record.keys for name in key.columns)


def _has_char(view: ViewDefinition) -> bool:
    return any(
        isinstance(each.data_type, Simple) and each.data_type.name.startswith("CHAR")
        for found in view.query.inputs
        for each in found.columns
    )
