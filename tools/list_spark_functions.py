"""Writes src/viewkeeper/sql/spark_functions.json: the builtin functions of the installed Spark and their kinds.

Run it after raising the version of Spark: .venv/bin/python tools/list_spark_functions.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from viewkeeper.execution.spark_session import embedded_session

TARGET = Path(__file__).parent.parent / "src/viewkeeper/sql/spark_functions.json"

_KINDS = {
    "agg_funcs": "aggregate",
    "window_funcs": "window",
    "generator_funcs": "generator",
    "table_funcs": "table",
}
_TIME_WINDOWS = {"window", "session_window", "window_time"}


def builtin_functions(spark: Any) -> dict[str, str]:
    """The kind of every builtin function that has a name, by Spark's own documentation of it."""
    infos = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()
    kinds = {info.getName(): _KINDS.get(info.getGroup(), "scalar") for info in infos}
    kinds |= {row[0]: kinds.get(row[0], "scalar") for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    kinds |= dict.fromkeys(_TIME_WINDOWS, "time_window")
    return {name: kinds[name] for name in sorted(kinds) if name.replace("_", "a").isalnum()}


def main() -> None:
    spark = embedded_session("local[1]")
    try:
        found = builtin_functions(spark)
    finally:
        spark.stop()
    TARGET.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{len(found)} functions in {TARGET}")


if __name__ == "__main__":
    main()
