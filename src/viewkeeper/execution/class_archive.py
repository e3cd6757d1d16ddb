"""An archive of the classes that Spark loads, from which a JVM starts with a quarter less work (docs/decisions/0015).

Java's class data sharing: one JVM does what a refresh does, and writes down at its end what it has loaded, parsed and verified;
later ones map that file into memory. It is written once::

    python -m viewkeeper.execution.class_archive

and lies beside the Delta jars. Without it, or where it does not fit (another Java, other jars), Java starts as it always does.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from viewkeeper.execution.jars import find_java, jar_directory, java_version, spark_home

_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
"""An archive that does not fit is no news to whoever runs a query."""

_SUFFIX = ".jsa"

_HASTY = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""A JVM that lives for seconds does not repay what it compiles well."""

_EXIT_SECONDS = 120


def find_archive() -> Path | None:
    """The archive for the Java that Spark will start. Java itself passes over one that does not fit; but a truncated one would
    kill it, so the name tells the size, and one that is older than the installed Spark counts as none."""
    installed = (spark_home() / "jars").stat().st_mtime
    for path in sorted(jar_directory().glob(f"{_stem()}-*{_SUFFIX}")):
        found = path.stat()
        if path.stem.endswith(f"-{found.st_size}") and found.st_mtime >= installed and " " not in str(path):
            return path
    return None


def _stem() -> str:
    java = find_java()
    return f"classes-java-{java_version(java) if java else ''}"


def archive_options() -> tuple[str, ...]:
    """Options for a JVM to start from the archive; none if there is no archive."""
    path = find_archive()
    return () if path is None else (f"-XX:SharedArchiveFile={path}", "-Xshare:auto", *_QUIET)


def write_archive() -> Path | None:
    """Write the archive anew. A JVM ends for it, so a process calls this before it starts Spark for anything else."""
    from viewkeeper.execution.spark_session import embedded_session

    directory = jar_directory()
    directory.mkdir(parents=True, exist_ok=True)
    fresh = directory / f".{_stem()}-{os.getpid()}{_SUFFIX}"
    session = embedded_session("local[2]", (f"-XX:ArchiveClassesAtExit={fresh}", *_HASTY, *_QUIET))
    try:
        with tempfile.TemporaryDirectory(prefix="viewkeeper-archive-") as scratch:
            _work(session, Path(scratch))
        _end_jvm(session)
        if not fresh.is_file():
            return None
        for old in directory.glob(f"{_stem()}-*{_SUFFIX}"):
            old.unlink()
        return fresh.replace(directory / f"{_stem()}-{fresh.stat().st_size}{_SUFFIX}")
    finally:
        fresh.unlink(missing_ok=True)


def _work(session: Any, scratch: Path) -> None:
    """What a first refresh makes Spark load: Delta tables changed in every way, and queries of most kinds."""
    table, view = f"delta.`{scratch / 'table'}`", f"delta.`{scratch / 'view'}`"
    for statement in (
        f"CREATE TABLE {table} (id INT NOT NULL, g INT, x DECIMAL(10,2), d DATE, s STRING) USING delta"
        " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')",
        f"INSERT INTO {table} VALUES (1, 1, 2.5, DATE '2020-01-01', 'a'), (2, 1, 3.5, NULL, 'b'), (3, NULL, 1, NULL, NULL)",
        f"CREATE TABLE {view} USING delta AS SELECT g, sum(x) AS total, count(*) AS n FROM {table} GROUP BY g",
        f"UPDATE {table} SET x = x + 1 WHERE id = 1",
        f"DELETE FROM {table} WHERE id = 2",
        f"MERGE INTO {view} AS v USING (SELECT g, sum(x) AS total FROM {table} GROUP BY g) AS q ON v.g <=> q.g"
        " WHEN MATCHED THEN UPDATE SET total = q.total WHEN NOT MATCHED THEN INSERT (g, total) VALUES (q.g, q.total)",
        f"SELECT t.*, v.n, row_number() OVER (PARTITION BY t.g ORDER BY t.id) AS r FROM {table} t"
        f" LEFT JOIN {view} v ON t.g = v.g WHERE EXISTS (SELECT 1 FROM {view} w WHERE w.n > 0)"
        f" UNION ALL SELECT *, 1, 1 FROM {table} WHERE id NOT IN (SELECT n FROM {view}) ORDER BY 1 LIMIT 5",
    ):
        session.sql(statement).toArrow()
    feed = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    rows = feed.load(str(scratch / "table")).toArrow()
    session.createDataFrame(rows).createOrReplaceTempView("_vk_feed")
    session.sql(
        "SELECT g, count(DISTINCT s), min(d), max(x) FROM _vk_feed GROUP BY g HAVING count(*) > 0"
    ).toArrow()
    session.read.parquet(str(scratch / "view")).selectExpr("*", "_metadata.row_index").toArrow()


def _end_jvm(session: Any) -> None:
    """Stop Spark and wait until its JVM, which writes the archive at its end, has gone."""
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_EXIT_SECONDS)


def main(arguments: Sequence[str] = ()) -> int:
    """Nothing depends on an archive, so failing to write one is said and is no failure."""
    if find_archive() is not None and "--again" not in arguments:
        return 0
    print("Writing an archive of Spark's classes, so that Spark starts faster (once) ...")
    try:
        written = write_archive()
    except Exception as error:  # whatever it is, Spark works without
        print(f"No archive was written, Spark starts as usual: {error}", file=sys.stderr)
        return 0
    print("No archive was written, Spark starts as usual." if written is None else f"Wrote {written.name}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
