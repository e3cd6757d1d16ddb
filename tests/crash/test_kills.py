"""Every named point of an epoch, and random moments: a killed refresh leaves one whole epoch and loses nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.killing import (
    CHAIN,
    KEPT,
    MAPPED,
    PLAIN,
    Kill,
    assert_survives,
    make_warehouse,
    random_kill,
    undisturbed_calls,
)
from tests.support.spark_servers import connect_server
from viewkeeper import Warehouse
from viewkeeper.execution.jars import find_jars
from viewkeeper.execution.progress import Moment
from viewkeeper.maintenance import cost

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

EPOCH_MOMENTS = (
    Moment.PINNED,
    Moment.VIEW_STARTED,
    Moment.CHANGE_SET_STORED,
    Moment.VIEW_COMMITTED,
    Moment.PUBLISHING,
    Moment.PUBLISHED,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect"), find_jars(), for_long=True) as running:
        yield running.url


@pytest.fixture(scope="module")
def plain(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Warehouse, Path]]:
    path = tmp_path_factory.mktemp("plain") / "warehouse"
    with make_warehouse(path, server, PLAIN) as warehouse:
        yield warehouse, path


@pytest.fixture(scope="module")
def chain(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Warehouse, Path]]:
    path = tmp_path_factory.mktemp("chain") / "warehouse"
    with make_warehouse(path, server, CHAIN) as warehouse:
        yield warehouse, path


@pytest.fixture(scope="module")
def kept(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Warehouse, Path]]:
    """One view with a hidden view below it."""
    path = tmp_path_factory.mktemp("kept") / "warehouse"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "KEPT_SECONDS", -1.0)
        warehouse = make_warehouse(path, server, KEPT)
    with warehouse:
        yield warehouse, path


@pytest.mark.parametrize("moment", EPOCH_MOMENTS, ids=lambda moment: moment.name)
def test_killed_at_a_named_point_with_one_view(plain: Any, server: str, moment: Moment) -> None:
    """I1, I8: readers see one whole epoch, and the next refresh brings the truth."""
    warehouse, path = plain
    for seed in range(2):
        assert assert_survives(warehouse, path, server, Kill(moment), seed), "the client was not killed"


@pytest.mark.parametrize("occurrence", [1, 2])
@pytest.mark.parametrize("moment", EPOCH_MOMENTS[1:4], ids=lambda moment: moment.name)
def test_killed_between_the_targets_of_a_chain(
    chain: Any, server: str, moment: Moment, occurrence: int
) -> None:
    """I1, I9, I15: what is committed of one view and not of the next is not seen."""
    warehouse, path = chain
    for seed in range(2):
        kill = Kill(moment, occurrence)
        assert assert_survives(warehouse, path, server, kill, seed), "the client was not killed"


@pytest.mark.parametrize("occurrence", [1, 2])
@pytest.mark.parametrize("moment", [Moment.CHANGE_SET_STORED, Moment.VIEW_COMMITTED], ids=lambda m: m.name)
def test_killed_between_a_hidden_view_and_its_owner(
    kept: Any, server: str, moment: Moment, occurrence: int
) -> None:
    """I32: both are published in one swap."""
    warehouse, path = kept
    assert len(warehouse._workspace.state.read().views) == 2
    kill = Kill(moment, occurrence)
    assert assert_survives(warehouse, path, server, kill, occurrence), "the client was not killed"


def test_killed_while_it_creates_a_view_with_a_hidden_one(kept: Any, server: str) -> None:
    """The hidden view is loaded, or both are, and neither was published."""
    warehouse, path = kept
    before = set(warehouse._workspace.state.read().views)
    statement = KEPT.replace("VIEW kept", "VIEW fresh")
    for moment, occurrence in (
        (Moment.VIEW_COMMITTED, 1),
        (Moment.VIEW_COMMITTED, 2),
        (Moment.PUBLISHING, 1),
    ):
        kill = Kill(moment, occurrence, statement=statement, keeps_groups=True)
        assert assert_survives(warehouse, path, server, kill, 1), "the client was not killed"
        assert set(warehouse._workspace.state.read().views) == before, "what was never published is visible"
    assert len(list((path / "views").iterdir())) == 1, "the folder of a view that never was is left"


@pytest.mark.parametrize("occurrence", [1, 2])
@pytest.mark.parametrize("rows", [-1, 20_000], ids=["own commit", "overwrite"])
def test_killed_inside_every_way_to_apply(chain: Any, server: str, rows: int, occurrence: int) -> None:
    """All files of the view are written, and its log does not know them yet."""
    warehouse, path = chain
    for seed in range(2):
        kill = Kill(Moment.ROWS_WRITTEN, occurrence, overwritten_rows=rows)
        assert assert_survives(warehouse, path, server, kill, seed), "the client was not killed"


def test_killed_while_it_merges(server: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A view whose column names need mapping is merged by Spark, which goes on when its client is dead."""
    path = tmp_path_factory.mktemp("mapped") / "warehouse"
    with make_warehouse(path, server, MAPPED) as warehouse:
        for moment in (Moment.CHANGE_SET_STORED, Moment.VIEW_COMMITTED):
            for seed in range(2):
                kill = Kill(moment)
                assert assert_survives(warehouse, path, server, kill, seed), "the client was not killed"


def test_killed_at_random_moments(plain: Any, chain: Any, server: str) -> None:
    """At calls of functions, not at times: the same moments on every machine."""
    generator = random.Random(20240607)
    for warehouse, path in (plain, chain):
        calls = undisturbed_calls(warehouse, path, server)
        for seed in range(6):
            kill = random_kill(generator, calls)
            died = assert_survives(warehouse, path, server, kill, seed)
            assert died or not kill.is_certain, f"the client was not killed {kill} of {calls}"


@pytest.mark.parametrize("moment", [Moment.CLEANING, Moment.CLEANED], ids=lambda moment: moment.name)
def test_killed_during_clean_up(plain: Any, server: str, moment: Moment) -> None:
    warehouse, path = plain
    kill = Kill(moment, statement="VACUUM WAREHOUSE RETAIN 1 EPOCH")
    assert assert_survives(warehouse, path, server, kill, 1), "the client was not killed"


def test_killed_while_it_creates_a_view(plain: Any, server: str) -> None:
    warehouse, path = plain
    statement = "CREATE MATERIALIZED VIEW fresh AS SELECT v FROM base"
    for moment in (Moment.PINNED, Moment.VIEW_COMMITTED, Moment.PUBLISHING):
        kill = Kill(moment, statement=statement)
        assert assert_survives(warehouse, path, server, kill, 1), "the client was not killed"
        assert warehouse.view_names() == ["plain"], "a view that was never published is visible"
    assert len(list((path / "views").iterdir())) == 1, "the folder of a view that never was is left"


@pytest.mark.parametrize("moment", EPOCH_MOMENTS, ids=lambda moment: moment.name)
def test_killed_together_with_its_jvm(plain: Any, moment: Moment) -> None:
    """An embedded client: the process group, Python and Java, dies at once."""
    warehouse, path = plain
    for seed in range(2 if moment in EPOCH_MOMENTS[1:5] else 1):
        assert assert_survives(warehouse, path, None, Kill(moment), seed), "the client was not killed"
