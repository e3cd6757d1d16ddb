"""One factory for Spark sessions: embedded, handed in, a cluster, or Spark Connect.

Two sessions are used. The *user's* session runs queries and changes of base tables. A session *of our own*,
made from it, writes views: our settings never touch the user's, and theirs never change what a view holds.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from viewkeeper.errors import EnvironmentProblem, SparkUnavailableError
from viewkeeper.execution.result_settings import ALWAYS_KEPT, changes_results, matters_to

DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

ROW_GROUP_BYTES = str(8 * 1024 * 1024)
"""A file tells the range of values of each row group, so small ones let few rows be found by reading little; Parquet's default
is 128 MB. Measured in docs/decisions/0008-plain-parquet.md."""

SMALL_WORK_SETTINGS = {
    # One shuffle task per core: the default 200 cost more than small changes themselves.
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    # Delta rebuilds the state of a table in 50 tasks by default.
    "spark.databricks.delta.snapshotPartitions": "1",
    # VACUUM lists files in 10,000 tasks by default: a minute for an empty table.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.hadoop.parquet.block.size": ROW_GROUP_BYTES,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
"""For the embedded session; measured in docs/decisions/0004-spark-settings.md."""

OWN_SETTINGS = {
    # Inferring constraints takes memory that grows exponentially with the columns of plans such as ours.
    "spark.sql.constraintPropagation.enabled": "false",
    # Superseded versions stay readable for as long as their files are there.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "parquet.block.size": ROW_GROUP_BYTES,
    "spark.databricks.delta.schema.autoMerge.enabled": "false",
    # What we merge is a stored change set: reading it twice gives the same rows, a copy of it only costs jobs.
    "spark.databricks.delta.merge.materializeSource": "none",
}
"""For our own session, whatever the user's session says."""


class _OwnSession(threading.local):
    """The session of our own that one thread works in, and the settings of views that it has taken. Plans name temporary
    relations alike, so threads must not share a session."""

    def __init__(self) -> None:
        self.session: Any = None
        self.applied: dict[str, str] = {}


class Sessions:
    """The sessions of one warehouse, started when first needed: the user's, and one of our own for each thread.

    `given` is a session, a master URL (`spark://…`), a Connect URL (`sc://…`) or None for the embedded one.
    """

    def __init__(self, given: Any = None) -> None:
        self._given = given if given is not None else os.environ.get("VIEWKEEPER_SPARK") or None
        self._user: Any = None
        self._own = _OwnSession()
        self._made: list[Any] = []
        self._starting = threading.RLock()
        self._started_here = False

    @property
    def started(self) -> bool:
        return self._user is not None

    @property
    def may_know_names(self) -> bool:
        """Whether the user's session can have tables or views of its own; one not started yet has none."""
        return self.started or not (self._given is None or isinstance(self._given, str))

    @property
    def user(self) -> Any:
        with self._starting:
            if self._user is None:
                self._started_here = self._given is None or isinstance(self._given, str)
                if self._given is None and (running := _running_session()) is not None:
                    self._started_here = False
                    self._user = running
                else:
                    self._user = _open(self._given)
            return self._user

    @property
    def own(self) -> Any:
        """Our own session of this thread."""
        if self._own.session is None:
            own = _another_session(self.user)
            for key, value in OWN_SETTINGS.items():
                own.conf.set(key, value)
            self._own.session = own
            self._made.append(own)
            # What the whole Spark was started with, or a clone brought along, is no setting of a view either.
            self._own.applied = {
                key: value for key, value in _set_in(own).items() if own.conf.isModifiable(key)
            }
        return self._own.session

    def own_with(self, settings: Mapping[str, str]) -> Any:
        """Our own session with the result-changing settings of a view, and with none of the view before it."""
        session = self.own
        applied = self._own.applied
        for key in [key for key in applied if key not in settings]:
            session.conf.unset(key)
            del applied[key]
        for key, value in settings.items():
            if applied.get(key) != value:
                _apply(session, key, value)
                applied[key] = value
        return session

    def result_settings(self, text: str = "") -> dict[str, str]:
        """The user's settings that a new view with this text keeps."""
        settings = {}
        for key in ALWAYS_KEPT:
            with contextlib.suppress(Exception):
                value = self.user.conf.get(key, None)
                if value is not None and matters_to(key, text):
                    settings[key] = value
        for key, value in sorted(_set_in(self.user).items()):
            if key not in settings and matters_to(key, text) and self.user.conf.isModifiable(key):
                settings[key] = value
        return settings

    @contextmanager
    def commit_settings(self, application: str, epoch: int, marker: str) -> Iterator[Any]:
        """Our session set up so that its next commit takes effect once, however often it is repeated."""
        session = self.own
        settings = {
            "spark.databricks.delta.write.txnAppId": application,
            "spark.databricks.delta.write.txnVersion": str(epoch),
            "spark.databricks.delta.commitInfo.userMetadata": marker,
        }
        for key, value in settings.items():
            session.conf.set(key, value)
        try:
            yield session
        finally:
            with contextlib.suppress(Exception):
                for key in settings:
                    session.conf.unset(key)

    def forget(self) -> None:
        """After Spark died: the next use starts anew."""
        embedded = self._user is not None and not is_connect(self._user)
        self._drop()
        if embedded:
            _forget_dead_gateway()

    def stop(self) -> None:
        """Stop what we started; a session handed in, or found running, stays as it is."""
        for own in self._made:
            if is_connect(own):
                _close_client(own)
        if self._user is not None and self._started_here:
            with contextlib.suppress(Exception):
                self._user.stop()
        self._drop()

    def _drop(self) -> None:
        self._user = None
        self._own = _OwnSession()
        self._made = []


def _open(given: Any) -> Any:
    if given is None:
        return embedded_session()
    if isinstance(given, str):
        if given.startswith("sc://"):
            return _connect(given)
        if given.startswith(("spark://", "local", "yarn", "k8s://")):
            return embedded_session(given)
        raise EnvironmentProblem(
            f"{given} is no address of a Spark.", "use spark://host:port, sc://host:port or local[2]."
        )
    _require_delta(given)
    return given


def _running_session() -> Any:
    """A session that this process runs already; two Sparks in one process are not possible."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        _require_delta(running)
    return running


def _set_in(session: Any) -> dict[str, str]:
    """The settings that change results, as far as a session was told them; by one call."""
    return {str(key): str(value) for key, value in session.conf.getAll.items() if changes_results(str(key))}


def _apply(session: Any, key: str, value: str) -> None:
    try:
        session.conf.set(key, value)
    except Exception as error:
        raise EnvironmentProblem(
            f"this Spark does not take the setting {key} = {value}, which the view was created with.",
            "use a Spark of the version that the view was created with, or create the view again.",
        ) from error


def embedded_session(master: str = "local[*]", java_options: Sequence[str] | None = None) -> Any:
    """A session of our own making, tuned for small changes. Its JVM starts from the archive of classes, if there is one,
    unless other options are given."""
    from pyspark.sql import SparkSession

    from viewkeeper.execution.class_archive import archive_options
    from viewkeeper.execution.jars import check_java, fetch_jars, find_jars

    check_java()
    jars = find_jars() or fetch_jars(lambda text: print(text, file=sys.stderr))
    builder = SparkSession.builder.master(master).appName("viewkeeper")
    options = (
        f"-Dlog4j2.configurationFile={files('viewkeeper.execution') / 'log4j2.properties'}",
        *(archive_options() if java_options is None else java_options),
    )
    settings = {
        **DELTA_SETTINGS,
        **SMALL_WORK_SETTINGS,
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "viewkeeper-spark-warehouse"),
        "spark.pyspark.python": sys.executable,
        "spark.driver.memory": os.environ.get("VIEWKEEPER_DRIVER_MEMORY", "2g"),
        "spark.driver.extraJavaOptions": " ".join(options),
    }
    if master.startswith("local"):
        settings["spark.driver.bindAddress"] = settings["spark.driver.host"] = "127.0.0.1"
    else:
        del settings["spark.sql.shuffle.partitions"]
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        raise SparkUnavailableError(
            f"Spark does not start: {str(error).strip().splitlines()[0][:300]}",
            "viewkeeper doctor checks Java, the Delta jars and Spark.",
        ) from error
    # PySpark logs every refused query as a page of JSON; the error itself says it all.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    return session


def _connect(url: str) -> Any:
    try:
        from pyspark.sql.connect.session import SparkSession

        session = SparkSession.builder.remote(url).create()
        _give_up_sooner(session)
        session.conf.get("spark.sql.session.timeZone")
    except Exception as error:
        raise SparkUnavailableError(
            f"no Spark Connect server answers at {url}.", "start one there, or check the address."
        ) from error
    _require_delta(session)
    return session


def _require_delta(session: Any) -> None:
    signs = ""
    for key in (*DELTA_SETTINGS, "spark.databricks.clusterUsageTags.sparkVersion"):
        with contextlib.suppress(Exception):
            signs += session.conf.get(key, None) or ""
    if "delta" not in signs.lower() and "databricks" not in signs.lower() and "scala" not in signs.lower():
        settings = " ".join(f"--conf {key}={value}" for key, value in DELTA_SETTINGS.items())
        raise EnvironmentProblem(
            "the Spark session has no Delta Lake.", f"start it with the Delta jars and {settings}."
        )


def is_connect(session: Any) -> bool:
    return "connect" in type(session).__module__


def _another_session(session: Any) -> Any:
    if not is_connect(session):
        another = session.newSession()
        # How storage is reached (mounts, credentials) comes along; nothing else of the user's settings does.
        for key, value in session.conf.getAll.items():
            if key.startswith(("fs.", "spark.hadoop.fs.")):
                another.conf.set(key, value)
        return another
    another = session.cloneSession()
    _give_up_sooner(another)
    return another


def _give_up_sooner(session: Any) -> None:
    """A Connect client waits ten minutes for a dead server by default; a quarter of a minute will do."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=5)])


def _close_client(session: Any) -> None:
    """End a cloned Connect session; PySpark's own stop() does not know clones."""
    with contextlib.suppress(Exception):
        session.client.release_session()
    with contextlib.suppress(Exception):
        session.client.close()


def _forget_dead_gateway() -> None:
    """PySpark keeps a dead JVM for the life of the process; let it start another one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
