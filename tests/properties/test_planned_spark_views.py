"""All that Spark SQL has is planned, or recomputed for a reason in plain words; nothing of ours fails on it. Without Spark."""

from __future__ import annotations

import os
import random

from tests.support.spark_views import TABLES, RandomQueries
from viewkeeper import errors
from viewkeeper.execution.planning import Planner, catalogue_of, planned_views

CASES = int(os.environ.get("VIEWKEEPER_SPARK_CASES", "120"))
SEED = int(os.environ.get("VIEWKEEPER_FUZZ_SEED", "2026"))


def test_random_views_of_spark_are_planned() -> None:
    """I18, I29: whatever the plan, it has a reason, and no failure of ours is one."""
    planner = Planner(catalogue_of(TABLES))
    differential, refused = 0, list[str]()
    for number in range(CASES):
        query = RandomQueries(random.Random(SEED * 100_003 + number)).query()
        try:
            (report,) = planner.explain(planned_views(f"CREATE MATERIALIZED VIEW v AS {query}"))
        except errors.SqlSyntaxError:
            refused.append(query)
            continue
        plan = report.plan["refresh"]
        assert plan["reason"] and "Error" not in plan["reason"], f"{query}\n{plan['reason']}"
        differential += plan["strategy"] != "recompute"
    assert differential > 0.7 * CASES
    assert all("|>" in query for query in refused), "only pipes are not read at all"
    assert len(refused) < 0.05 * CASES
