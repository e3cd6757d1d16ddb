"""What a piece of work costs: seconds, and what Spark did for it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError

Result = TypeVar("Result")


def seconds_of(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def spread(seconds: Sequence[float], digits: int = 3) -> str:
    """Median, best and worst of several runs.

    >>> spread([0.3, 0.1, 0.2]), spread([2.0], digits=1)
    ('0.200 (0.100 to 0.300)', '2.0')
    """
    median = f"{statistics.median(seconds):.{digits}f}"
    if len(seconds) == 1:
        return median
    return f"{median} ({min(seconds):.{digits}f} to {max(seconds):.{digits}f})"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """
    >>> print(markdown_table(["view", "s"], [["v", "0.1"]]))
    | view | s |
    | --- | --- |
    | v | 0.1 |
    """
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


@dataclass(frozen=True)
class Cost:
    """Rows are those that Spark's tasks read from files and wrote to files, logs of tables included."""

    seconds: float
    jobs: int
    rows_read: int
    rows_written: int


def cost_of(spark: Any, work: Callable[[], Result]) -> tuple[Result, Cost]:
    """Run the work and ask Spark what it did meanwhile, in whichever of its sessions."""
    context = spark.sparkContext._jsc.sc()
    first = context.dagScheduler().numTotalJobs()
    began = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - began
    last = context.dagScheduler().numTotalJobs()
    context.listenerBus().waitUntilEmpty()
    stages = {stage for job in range(first, last) for stage in _stages(spark, job)}
    found = [records for stage in stages if (records := _records(context, stage)) is not None]
    return result, Cost(seconds, last - first, sum(r for r, _ in found), sum(w for _, w in found))


def _stages(spark: Any, job: int) -> Sequence[int]:
    info = spark.sparkContext.statusTracker().getJobInfo(job)
    return () if info is None else [int(stage) for stage in info.stageIds]


def _records(context: Any, stage: int) -> tuple[int, int] | None:
    """Rows read and written; None for a stage that was skipped, which Spark forgets early."""
    try:
        data = context.statusStore().lastStageAttempt(stage)
    except Py4JJavaError as error:
        if "NoSuchElementException" in str(error.java_exception):
            return None
        raise
    return data.inputRecords(), data.outputRecords()
