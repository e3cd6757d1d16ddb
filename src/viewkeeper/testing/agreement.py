"""Does a maintained view hold what its query gives? Plans are made and run as a refresh would, on DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import duckdb

from viewkeeper.algebra.open_aggregates import ties_broken, with_decided_aggregates
from viewkeeper.errors import QueryFailedError, UnsupportedError
from viewkeeper.facts.declared import Reliance
from viewkeeper.maintenance.build_plan import plan_first_load, plan_refresh
from viewkeeper.maintenance.check_plan import check_plan
from viewkeeper.maintenance.plan import MaintenancePlan, Strategy
from viewkeeper.maintenance.stored_shape import with_hidden_columns
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import BoundQuery, Column, bind_query
from viewkeeper.sql.names import DEFAULT_SCHEMA, QualifiedName
from viewkeeper.sql.rendering import render
from viewkeeper.sql.script import Fragment, parse_sql
from viewkeeper.testing.bags import Row, compare_bags
from viewkeeper.testing.cases import Case
from viewkeeper.testing.changes import Rows, violated
from viewkeeper.testing.duckdb_runner import (
    DuckDbRun,
    InexactChangeSet,
    TableState,
    fill,
    from_duckdb_type,
    to_duckdb,
)
from viewkeeper.testing.tables import Table

_VIEW = QualifiedName(DEFAULT_SCHEMA, "_vk_view")


class Disagreement(AssertionError):
    """A maintained view differs from its query. The message says how, and has the case as an expression."""

    def __init__(self, case: Case, what: str, plan: MaintenancePlan, before: Rows, after: Rows) -> None:
        self.case, self.plan = case, plan
        super().__init__(
            "\n".join(
                [
                    f"{case.name}: {what}",
                    f"view: {case.text}",
                    f"strategy: {plan.strategy.value} ({plan.reason})",
                    *_shown("before", before),
                    *_shown("after", after),
                    f"again: {case.to_python()}",
                ]
            )
        )


def _shown(when: str, rows: Rows) -> list[str]:
    return [f"{when}: {name} = {[tuple(row) for row in each]!r}" for name, each in rows.items()]


@dataclass(frozen=True)
class Refresh:
    """What one refresh of a case did. `violation`: a check stopped it, rightly."""

    strategy: Strategy
    reason: str
    facts: tuple[str, ...]
    violation: bool = False


@dataclass(frozen=True)
class Outcome:
    """The refreshes of a case in which the view was right every time."""

    refreshes: tuple[Refresh, ...]

    @property
    def strategies(self) -> frozenset[Strategy]:
        return frozenset(each.strategy for each in self.refreshes)


def check_without_kept_groups(database: duckdb.DuckDBPyConnection, case: Case) -> Outcome:
    """Load the view, refresh it after each change, then once over all changes, by plans of the query as it was written
    if that differs from its simplified form; after each it must equal its query.

    A case ends early, and well, where a check finds a constraint broken on which the plan relies, and where the query itself
    fails on the new rows (a division by zero): there a refresh may fail, and what a view holds that does not is left open. Where
    the query does not fail, no refresh may. Raises `Disagreement`
    if the view is wrong, a plan fails, or a check finds what is not there; `QueryFailedError` if the query itself fails
    on the first rows; `UnsupportedError` if DuckDB does not take it.
    """
    with database.cursor() as own, database.cursor() as plans:
        plans.execute("PRAGMA disable_optimizer")  # it costs more than it saves, over so few rows
        view = definition(plans, case)
        oracle = Oracle(own, view.query, case)
        steps = list(pairwise(case.stream))
        done = _refreshes(plans, view, case, steps, oracle)
        at_once = [(case.stream[0], case.stream[-1])]
        if view.algebra_as_written != view.algebra:
            _refreshes(plans, _as_written(plans, view), case, at_once, oracle)
        elif len(steps) > 1:
            done += _refreshes(plans, view, case, at_once, oracle)
        return Outcome(tuple(done))


def definition(database: duckdb.DuckDBPyConnection, case: Case) -> ViewDefinition:
    """The view as CREATE would define it; its types are those that DuckDB tells."""
    query = bind_query(Fragment.whole(case.text), case.schema.resolve, case.schema.names)
    if query.problems:
        raise query.problems[0]
    try:
        columns = typed_columns(database, query)
    except duckdb.Error as error:
        raise UnsupportedError(
            f"DuckDB does not take the query: {_first_line(error)}", "use functions that both engines have."
        ) from error
    declared = case.schema.declarations if case.is_trusted else {}
    view = ViewDefinition(_VIEW, str(_VIEW), query, columns, declared=declared)
    return with_hidden_columns(view, partial(types_of, database))


def _as_written(database: duckdb.DuckDBPyConnection, view: ViewDefinition) -> ViewDefinition:
    """The same view, planned without simplifying its query."""
    return with_hidden_columns(view.unsimplified(), partial(types_of, database))


def typed_columns(database: duckdb.DuckDBPyConnection, query: BoundQuery) -> tuple[Column, ...]:
    """The columns of a query over its inputs, which are there as empty tables from now on."""
    for found in query.inputs:
        fill(database, found.relation, found.columns, ())
    return tuple(types_of(database, query.text_over(lambda found: found.relation).text))


def types_of(database: duckdb.DuckDBPyConnection, sql: str) -> list[Column]:
    described = database.execute(f"DESCRIBE {to_duckdb(sql)}").fetchall()
    return [Column(name, from_duckdb_type(data_type)) for name, data_type, *_ in described]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


class Oracle:
    """The user's own text, evaluated by DuckDB over tables of the user's names; our rendering of it where aggregates are
    left open, for these must be decided as the view decides them."""

    def __init__(self, database: duckdb.DuckDBPyConnection, query: BoundQuery, case: Case) -> None:
        self._database, self._rows = database, dict[str, Sequence[Row]]()
        self._tables = {found: found.name.name for found in query.inputs}
        self._sql = to_duckdb(case.text)
        is_open = ties_broken(parse_sql(query.rendered))
        if is_open or any(found.name.schema != DEFAULT_SCHEMA for found in query.inputs):
            # Our rendering has names of its own; and temporary tables have no schema.
            self._tables = {found: found.relation for found in query.inputs}
            text = query.text_over(lambda found: found.relation).text
            self._sql = to_duckdb(with_one_answer(query.rendered) if is_open else text)
        if " / " in case.text:
            # Whether a division fails of which nobody reads the result, an optimizer decides: plans run without one.
            database.execute("PRAGMA disable_optimizer")
        self._answers = [(rows, self._evaluate(rows)) for rows in case.stream]
        self.answer(case.stream[0])

    def answer(self, rows: Rows) -> list[Row]:
        """What the query gives; raises `QueryFailedError` if it fails on these rows."""
        found = next(answer for known, answer in self._answers if known is rows)
        if isinstance(found, QueryFailedError):
            raise found
        return found

    def fails(self, rows: Rows) -> bool:
        return any(isinstance(answer, QueryFailedError) for known, answer in self._answers if known is rows)

    def _evaluate(self, rows: Rows) -> list[Row] | QueryFailedError:
        for found, name in self._tables.items():
            if self._rows.get(found.object_id) != rows[found.object_id]:
                fill(self._database, name, found.columns, rows[found.object_id])
                self._rows[found.object_id] = rows[found.object_id]
        try:
            return self._database.execute(self._sql).fetchall()
        except duckdb.Error as error:
            return QueryFailedError(f"the query fails on random rows: {_first_line(error)}")


def with_one_answer(text: str) -> str:
    """A query in which the aggregates that SQL leaves open are decided; its columns must be qualified."""
    tree = parse_sql(text)
    return render(with_decided_aggregates(tree)) if ties_broken(tree) else text


def _refreshes(
    database: duckdb.DuckDBPyConnection,
    view: ViewDefinition,
    case: Case,
    steps: Sequence[tuple[Rows, Rows]],
    oracle: Oracle,
) -> list[Refresh]:
    """Load the view and refresh it step by step."""
    run = DuckDbRun(database, view)
    first = steps[0][0] if steps else case.stream[0]
    load = plan_first_load(view)
    run.run(load, _states(view, case, first, first))
    compare(run, oracle, case, load, first, first)
    done: list[Refresh] = []
    verified: frozenset[Reliance] = frozenset()
    plans: dict[tuple[object, ...], MaintenancePlan] = {}
    for before, after in steps:
        states = _states(view, case, before, after)
        kinds = {name: state.kinds for name, state in states.items() if state.kinds}
        if not kinds:
            continue
        asked = (frozenset(kinds.items()), verified)
        if asked not in plans:
            plans[asked] = plan_refresh(view, kinds, None, verified)
            for problem in check_plan(plans[asked]):
                raise Disagreement(case, f"the plan is wrong: {problem}", plans[asked], before, after)
        plan = plans[asked]
        try:
            run.run(plan, states)
        except (duckdb.Error, InexactChangeSet) as error:
            if isinstance(error, duckdb.Error) and oracle.fails(after):
                break
            raise Disagreement(case, f"the plan fails: {error}", plan, before, after) from error
        if oracle.fails(after):
            break
        done.append(Refresh(plan.strategy, plan.reason, plan.facts, bool(run.violations)))
        if run.violations:
            confirm_violation(run, case, plan, before, after)
            break
        compare(run, oracle, case, plan, before, after)
        verified = plan.relies_on
    return done


def _states(view: ViewDefinition, case: Case, before: Rows, after: Rows) -> Mapping[str, TableState]:
    return {
        found.object_id: TableState(
            found.columns,
            before[found.object_id],
            after[found.object_id],
            change_key(case, case.schema.by_id[found.object_id], view),
        )
        for found in view.query.inputs
    }


def change_key(case: Case, table: Table, view: ViewDefinition) -> tuple[str, ...]:
    """By which columns the changes of a table are told apart: all its parents', and others' if the case says so."""
    is_keyed = case.is_trusted and (case.changes_by_key or table.id in case.schema.parents)
    key = view.change_key(table.id) or next(iter(table.declared.keys), None)
    return () if key is None or not is_keyed else key.columns


def compare(
    run: DuckDbRun, oracle: Oracle, case: Case, plan: MaintenancePlan, before: Rows, after: Rows
) -> None:
    difference = compare_bags(oracle.answer(after), run.visible())
    if not difference.is_empty:
        raise Disagreement(case, f"the view is not what its query gives.\n{difference}", plan, before, after)


def confirm_violation(run: DuckDbRun, case: Case, plan: MaintenancePlan, before: Rows, after: Rows) -> None:
    """A check may only find something where a constraint that the plan relies on is broken."""
    broken = violated(case.schema, before) | violated(case.schema, after)
    needed = plan.relies_on | plan.spot_checked
    if not broken & {(each.object_id, each.constraint) for each in needed}:
        raise Disagreement(
            case, f"a check finds violations of what holds: {run.violations}", plan, before, after
        )
