"""The eight tables of TPC-H: made once per scale by tpchgen-cli, kept in `.cache/tpch`, loaded into warehouses."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from viewkeeper import Warehouse

SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
"""Parents before children."""

CACHE = Path(__file__).parents[2] / ".cache" / "tpch"


@dataclass(frozen=True)
class Data:
    """The tables of one scale factor as Parquet files."""

    folder: Path

    def file(self, table: str) -> Path:
        return self.folder / f"{table}.parquet"

    def relation(self, table: str) -> str:
        """The table as it was made, in Spark SQL."""
        return f"parquet.`{self.file(table)}`"

    def columns(self, table: str) -> list[str]:
        return list(pq.read_schema(self.file(table)).names)

    def rows(self, table: str) -> int:
        return int(pq.read_metadata(self.file(table)).num_rows)


def generated(scale: float) -> Data:
    """The data of a scale factor, from the cache or made now."""
    folder = CACHE / f"scale_{scale:g}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
            made = Path(temporary) / "tables"
            generator = Path(sys.executable).with_name("tpchgen-cli")
            subprocess.run([generator, "parquet", "-s", f"{scale:g}", "-o", made, "--quiet"], check=True)
            # Whole or not at all; another process may have been faster.
            with contextlib.suppress(OSError):
                made.rename(folder)
    return Data(folder)


def load(warehouse: Warehouse, data: Data) -> None:
    """Create the tables with their keys and fill them."""
    warehouse.run_script(SCHEMA)
    for table in TABLES:
        warehouse.sql(f"INSERT INTO {table} SELECT * FROM {data.relation(table)}")
