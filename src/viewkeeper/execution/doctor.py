"""Is this machine fit to run Viewkeeper? Every answer says what was found and, if it will not do, the way out."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from viewkeeper.errors import ViewkeeperError
from viewkeeper.execution import jars
from viewkeeper.execution.class_archive import find_archive

OLDEST_PYTHON = (3, 10)

_ARCHIVING = f"{sys.executable} -m viewkeeper.execution.class_archive"


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `advice` is empty if it is `ok`."""

    name: str
    ok: bool
    detail: str
    advice: str = ""


def diagnose(start_spark: bool = True) -> list[Finding]:
    """Look at everything that Viewkeeper needs, in the order in which the needs build on each other.

    Starting Spark takes some seconds and is left out if it cannot succeed, or with `start_spark=False`.
    """
    findings = [_look_at_python(), _look_at_java(), _look_at_pyspark(), _look_at_jars()]
    if not start_spark:
        return findings
    if not all(finding.ok for finding in findings):
        return [*findings, Finding("Spark", False, "not started", "put right what is wrong above first.")]
    return [*findings, *_try_spark_and_delta()]


def _look_at_python() -> Finding:
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return Finding(
        "Python",
        ok := sys.version_info >= OLDEST_PYTHON,
        f"{platform.python_version()} ({sys.executable})",
        "" if ok else f"install Python {oldest} or newer and make a new virtual environment with it.",
    )


def _look_at_java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    java = jars.find_java()
    if java is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH, and JAVA_HOME is not set"
        return Finding("Java", False, f"none found {where}", jars.INSTALL_JAVA)
    source = "from JAVA_HOME" if home else "from the PATH"
    found = jars.java_version(java)
    if not found:
        return Finding("Java", False, f"{java} ({source}) does not run", jars.INSTALL_JAVA)
    ok = jars.java_major_version(found) >= jars.OLDEST_JAVA
    return Finding("Java", ok, f"{found} ({java}, {source})", "" if ok else jars.INSTALL_JAVA)


def _look_at_pyspark() -> Finding:
    advice = f"run pip install 'pyspark[connect]=={jars.SPARK_VERSION}'."
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return Finding("pyspark", False, "not installed", advice)
    ok = found == jars.SPARK_VERSION
    detail = found if ok else f"{found}, but Delta {jars.DELTA_VERSION} goes with {jars.SPARK_VERSION}"
    return Finding("pyspark", ok, detail, "" if ok else advice)


def _look_at_jars() -> Finding:
    directory = jars.jar_directory()
    if jars.find_jars():
        archive = (
            "an archive of classes" if find_archive() else f"no archive of classes, {_ARCHIVING} writes one"
        )
        return Finding("Delta jars", True, f"{jars.DELTA_VERSION} ({directory}), {archive}")
    return Finding(
        "Delta jars",
        False,
        f"missing or incomplete in {directory}",
        f"run {sys.executable} -m viewkeeper.execution.jars (needs network once).",
    )


def _try_spark_and_delta() -> list[Finding]:
    """Start Spark, write a Delta table with it, and read that back with Spark and with delta-rs."""
    findings: list[Finding] = []
    step, advice = "Spark", "the Java and Python above must be able to start a local server on this machine."
    try:
        from viewkeeper.execution.spark_session import embedded_session

        session = embedded_session()
        findings.append(Finding(step, True, f"{session.version} starts"))

        step, advice = "Delta", f"remove {jars.jar_directory()} and fetch the jars again."
        with tempfile.TemporaryDirectory(prefix="viewkeeper-doctor-") as scratch:
            table = Path(scratch) / "table"
            session.range(3).write.format("delta").save(str(table))
            _expect_three_rows(session.read.format("delta").load(str(table)).count())
            findings.append(Finding(step, True, "Spark writes and reads a Delta table"))

            step, advice = "delta-rs", "install deltalake again, in the version that viewkeeper asks for."
            _expect_three_rows(_count_with_delta_rs(table))
            findings.append(Finding(step, True, f"deltalake {version('deltalake')} reads it"))
    except Exception as error:  # whatever it is, it is the finding
        findings.append(Finding(step, False, _first_line(error), _hint(error) or advice))
    return findings


def _count_with_delta_rs(table: Path) -> int:
    from deltalake import DeltaTable, QueryBuilder

    # Not `to_pyarrow_table`, which refuses tables with deletion vectors.
    query = QueryBuilder().register("written", DeltaTable(table))
    return int(query.execute("SELECT count(*) AS n FROM written").read_all()["n"][0].as_py())


def _expect_three_rows(found: int) -> None:
    if found != 3:
        raise RuntimeError(f"3 rows were written and {found} were read back")


def _first_line(error: Exception) -> str:
    text = error.message if isinstance(error, ViewkeeperError) else str(error)
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)[:300]


def _hint(error: Exception) -> str:
    # Elsewhere the way out may be to ask the doctor. Not here.
    hint = error.hint if isinstance(error, ViewkeeperError) else ""
    return "" if "doctor" in hint else hint
