"""Kill refreshes at random, for a number of kills or of seconds: `make soak KILLS=500`."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

from tests.crash.killing import (
    CHAIN,
    Kill,
    assert_survives,
    make_warehouse,
    random_kill,
    undisturbed_calls,
)
from tests.support.spark_servers import connect_server
from viewkeeper.execution.jars import find_jars
from viewkeeper.execution.progress import Moment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    kills = options.kills or (None if options.seconds else 200)
    generator = random.Random(options.seed)
    print(f"seed {options.seed}")
    with (
        tempfile.TemporaryDirectory() as folder,
        connect_server(Path(folder), find_jars(), for_long=True) as server,
    ):
        path = Path(folder) / "warehouse"
        warehouse = make_warehouse(path, server.url, CHAIN)
        calls = undisturbed_calls(warehouse, path, server.url)
        started, died, rounds = time.monotonic(), 0, 0
        while died < kills if kills else time.monotonic() - started < options.seconds:
            moments = [moment for moment in Moment if moment is not Moment.TAKEN_OVER]
            kill = (
                random_kill(generator, calls)
                if generator.random() < 0.5
                else Kill(generator.choice(moments), generator.choice([1, 2]))
            )
            died += assert_survives(warehouse, path, server.url, kill, rounds)
            rounds += 1
            if rounds % 10 == 0:
                print(f"{rounds} rounds, {died} kills, {time.monotonic() - started:.0f} s", flush=True)
        warehouse.sql("VACUUM WAREHOUSE RETAIN 1 EPOCH")
        assert warehouse.verify("high").equal
    print(f"{died} passed, 0 failed")


if __name__ == "__main__":
    main()
