"""Whatever Spark answers is kept: many odd queries as views of one warehouse, compared after several changes with Spark's own answer."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import spark_queries
from viewkeeper import Warehouse
from viewkeeper.errors import RefreshPolicyError
from viewkeeper.execution import analysis
from viewkeeper.execution.create_view import RecomputeWarning
from viewkeeper.execution.run_plan import PlanRun

pytestmark = pytest.mark.spark

QUERIES = {**spark_queries.KEPT, **{f"spark_{name}": text for name, text in spark_queries.DEPARTURES.items()}}


def answer(frame: Any) -> list[str]:
    """The rows as a bag; fractions to nine digits, maps without their order."""
    return sorted(repr(_comparable(tuple(row))) for row in frame.collect())


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((repr(_comparable(key)), repr(_comparable(each))) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return [_comparable(each) for each in value]
    return f"{value:.9g}" if isinstance(value, float) else value


@pytest.fixture(scope="module")
def created(
    tmp_path_factory: pytest.TempPathFactory, spark: Any
) -> Iterator[tuple[Warehouse, dict[str, str]]]:
    """All views, and why each that is recomputed is."""
    folder: Path = tmp_path_factory.mktemp("queries")
    warehouse = Warehouse(folder / "warehouse", spark)
    for statement in (*spark_queries.TABLES, *spark_queries.START):
        warehouse.sql(statement)
    reasons: dict[str, str] = {}
    for name, text in QUERIES.items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            warehouse.sql(f"CREATE MATERIALIZED VIEW {name}_v REFRESH INCREMENTAL AS {text}")
        for warning in said:
            reasons[name] = (
                str(warning.message).removeprefix(f"{name}_v will be recomputed: ").removesuffix(".")
            )
    yield warehouse, reasons


def test_every_view_equals_its_query_after_every_change(created: tuple[Warehouse, dict[str, str]]) -> None:
    warehouse, _ = created
    for number, changes in enumerate(spark_queries.CHANGES, start=1):
        for statement in changes:
            warehouse.sql(statement)
        warehouse.sql("REFRESH ALL")
        differing = {
            name: (theirs, ours)
            for name, text in QUERIES.items()
            if (theirs := answer(warehouse.sql(text)))
            != (ours := answer(warehouse.sql(f"SELECT * FROM {name}_v")))
        }
        assert not differing, f"after change {number}: {differing}"


def test_which_views_are_recomputed_and_why(created: tuple[Warehouse, dict[str, str]]) -> None:
    """A reading that gets lost shows here, and so does a reason that nobody would understand."""
    _, reasons = created
    assert reasons == spark_queries.RECOMPUTED
    assert not [reason for reason in reasons.values() if "_vk_" in reason]


def test_a_strict_view_is_refused_with_the_reason(created: tuple[Warehouse, dict[str, str]]) -> None:
    warehouse, _ = created
    with pytest.raises(
        RefreshPolicyError, match=r"cannot be maintained without recomputing: .*different answers"
    ):
        warehouse.sql(f"CREATE MATERIALIZED VIEW strict_v REFRESH STRICT AS {spark_queries.MISREAD}")


def test_a_create_that_fails_unexpectedly_leaves_nothing_behind(
    created: tuple[Warehouse, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse, _ = created
    folder = Path(str(warehouse.path)) / "views"
    before = sorted(each.name for each in folder.iterdir())

    def fail(self: PlanRun, plan: object) -> None:
        (folder / Path(self.view.location).name).mkdir()
        raise RuntimeError("unexpected")

    with monkeypatch.context() as patch:
        patch.setattr(PlanRun, "run", fail)
        with pytest.raises(RuntimeError):
            warehouse.sql("CREATE MATERIALIZED VIEW failing AS SELECT k FROM e")
    assert sorted(each.name for each in folder.iterdir()) == before
    assert warehouse.sql("CREATE MATERIALIZED VIEW failing AS SELECT k FROM e") is not None


def test_our_own_failures_do_not_refuse_a_query(
    created: tuple[Warehouse, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse, _ = created

    def fail(*_: object) -> None:
        raise KeyError("internal")

    with monkeypatch.context() as patch:
        patch.setattr(analysis, "plan_refresh", fail)
        with pytest.warns(RecomputeWarning, match=r"Viewkeeper cannot plan its maintenance \(KeyError\)"):
            warehouse.sql("CREATE MATERIALIZED VIEW unplanned REFRESH INCREMENTAL AS SELECT k, w FROM e")
    warehouse.sql("INSERT INTO e VALUES (50, 51)")
    report = warehouse.sql("REFRESH MATERIALIZED VIEW unplanned")
    assert [(each.strategy, each.inserted) for each in report.views] == [("recompute", 1)]
    assert "Viewkeeper cannot plan its maintenance (KeyError)" in report.views[0].reason
