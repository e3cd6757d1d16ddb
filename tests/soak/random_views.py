"""Random views and changes on DuckDB against recomputation, for a time: `make fuzz SECONDS=600`.

Every case is checked as the tests check it, every fourth with broken constraints, every fourth with its groups kept. A failing
case is made small and printed as Python, to be put among the regressions.
"""

from __future__ import annotations

import argparse
import sys
import time

import duckdb

from tests.support.random_cases import Tally, wrong_cases
from viewkeeper.testing import check_case, check_case_with_kept_groups, random_case

LARGEST = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    started, number, tally = time.monotonic(), 0, Tally()
    failures: list[str] = []
    with duckdb.connect(config={"threads": 1}) as database:
        while not failures and time.monotonic() - started < options.seconds:
            case = random_case(options.seed * 100_003 + number, number % 4 == 1, LARGEST)
            check = check_case_with_kept_groups if number % 4 == 3 else check_case
            failures = wrong_cases(database, [case], tally, check)
            number += 1
            if number % 100 == 0:
                print(f"{number} cases, {time.monotonic() - started:.0f} s", flush=True)
    print("\n".join([str(tally), *failures]))
    print(f"{number - len(failures)} passed, {len(failures)} failed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
