"""Which groups of bounds are read again: those that lost something they showed, and only these."""

from __future__ import annotations

import duckdb
import pytest

from viewkeeper.maintenance.build_plan import plan_first_load, plan_refresh
from viewkeeper.testing import case_of
from viewkeeper.testing.agreement import definition
from viewkeeper.testing.duckdb_runner import DuckDbRun, TableState

CASES = {
    "a greater one came": ("max", [5, 3], [5, 3, 9], 0, 9),
    "not the greatest went": ("max", [5, 3], [5], 0, 5),
    "the greatest went": ("max", [5, 3], [3], 1, 3),
    "a copy of the greatest went": ("max", [5, 5], [5], 1, 5),
    "a greater one for the greatest": ("max", [5, 3], [7, 3], 0, 7),
    "a lesser one for the greatest": ("max", [5, 3], [4, 3], 1, 4),
    "a lesser one for the least": ("min", [5, 3], [5, 2], 0, 2),
    "the last one went, NULL stays": ("min", [5, None], [None], 1, None),
    "bits came": ("bit_or", [5], [5, 2], 0, 7),
    "bits went": ("bit_or", [5, 2], [2], 1, 2),
    "more bits for those that went": ("bit_or", [5, 8], [7, 8], 0, 15),
    "other bits for those that went": ("bit_or", [5, 8], [3, 8], 1, 11),
    "no bits went": ("bit_or", [0, 4], [4], 0, 4),
    "the last value went, and it had no bits": ("bit_or", [0, None], [None], 0, None),
    "fewer bits came": ("bit_and", [7], [7, 5], 0, 5),
    "one without a bit went": ("bit_and", [7, 5], [7], 1, 7),
    "one with all bits went": ("bit_and", [-1, 5], [5], 0, 5),
    "fewer bits for those that went": ("bit_and", [5, 7], [4, 7], 0, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_only_groups_that_lost_what_they_showed_are_read_again(name: str) -> None:
    bound, before, after, lost, shown = CASES[name]
    case = case_of("CREATE TABLE t (k INT, v INT)", f"SELECT k, {bound}(v) AS v FROM t GROUP BY k", [])
    (columns,) = (table.columns for table in case.schema.tables)
    old, new = ([(None, value) for value in values] for values in (before, after))
    with duckdb.connect() as database:
        view = definition(database, case)
        (table,) = view.query.inputs
        run = DuckDbRun(database, view)
        run.run(plan_first_load(view), {table.object_id: TableState(columns, old, old)})
        change = TableState(columns, old, new)
        run.run(plan_refresh(view, {table.object_id: change.kinds}), {table.object_id: change})
        (found,) = database.execute(f'SELECT count(*) FROM "{view.stem}_lost"').fetchall()
        assert (found, run.visible()) == ((lost,), [(None, shown)])
