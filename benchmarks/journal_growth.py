"""What a long life costs: reading the catalogue and the history after many epochs.

    python benchmarks/journal_growth.py [--epochs 10000] [--folder FOLDER]

Makes the epochs as a refresh publishes them, one change of the catalogue and one history entry each, and
prints the figures at every power of ten. No Spark.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from deltalake import DeltaTable

from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.delta_store import DeltaStore
from viewkeeper.storage.layout import Layout
from viewkeeper.storage.records import HistoryEntry, now
from viewkeeper.storage.warehouse_state import WarehouseState

REPEATS = 15


def next_epoch(catalogue: Catalogue) -> Catalogue:
    epoch = catalogue.last_epoch + 1
    entry = HistoryEntry(
        epoch, f"view{epoch % 10}", "totals", "published", "recompute", "orders changed", 120, 80, 1.25,
        (("query", 0.75), ("change set", 0.25), ("apply", 0.25)), {"orders": epoch, "items": epoch}, epoch,
        "views/0123456789abcdef", now(),
    )  # fmt: skip
    return replace(catalogue, last_epoch=epoch).with_history([entry])


def milliseconds(work: Callable[[], object]) -> str:
    """Median and worst of several runs."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1000)
    return f"{statistics.median(times):8.1f} ms (worst {max(times):.1f})"


def size(folder: str) -> str:
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    return f"{len(files):,} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB on disk"


def report(layout: Layout, state: WarehouseState, seconds_each: float) -> None:
    print(f"after {state.read().last_epoch:,} epochs ({seconds_each * 1000:.1f} ms each)")
    print(f"  read()                     {milliseconds(state.read)}")
    print(f"  history(last=20)           {milliseconds(lambda: state.history(last=20))}")
    print(f"  history('view3', last=20)  {milliseconds(lambda: state.history('view3', last=20))}")
    print(f"  history()                  {milliseconds(state.history)}")
    print(f"  one change                 {milliseconds(lambda: state.change(lambda c: replace(c)))}")
    print(f"  entries in the catalogue   {len(state.read().recent_history)}")
    print(f"  catalogue                  {size(layout.catalogue)}")
    if DeltaTable.is_deltatable(layout.journal):
        print(f"  journal                    {size(layout.journal)}", end="")
        print(f", {len(DeltaTable(layout.journal).file_uris())} of them data in use")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="a folder to keep; default: a temporary one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        layout = Layout.at(arguments.folder or temporary)
        store = DeltaStore(layout)
        store.create(Catalogue("benchmark"))
        state = WarehouseState(store)
        began, done_before = time.perf_counter(), 0
        for done in range(1, arguments.epochs + 1):
            state.change(next_epoch)
            if done == arguments.epochs or (done >= 100 and str(done).strip("0") == "1"):
                report(layout, state, (time.perf_counter() - began) / (done - done_before))
                began, done_before = time.perf_counter(), done


if __name__ == "__main__":
    main()
