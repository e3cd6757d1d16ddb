"""Real Spark servers for tests, started from the pyspark package and stopped by process id.

Two context managers::

    with connect_server(tmp_path, jars) as server:
        spark = SparkSession.builder.remote(server.url).getOrCreate()

    with standalone_cluster(tmp_path) as cluster:
        ...  # a classic driver (in its own process) with master cluster.url

Every server is one JVM that leads its own process group and listens on loopback ports picked by the kernel
(the port is read back from the server's log, so two servers never race for one). Leaving the context sends
SIGTERM to the group, then SIGKILL to whatever is left. Logs, scratch space and the warehouse stay below the
given directory. A server that does not come up raises :class:`ServerStartError` with the end of its log.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from viewkeeper.execution.class_archive import archive_options

HOST = "127.0.0.1"
START_TIMEOUT = 120.0
STOP_TIMEOUT = 20.0
LOG_TAIL_LINES = 60

DELTA_CONF: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "2",
    # Delta lists directories (VACUUM) with one task per unit of this, 10 000 by default.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.ui.enabled": "false",
}
"""Delta on Spark, sized for tables of a few rows. Good for any session, classic or Connect."""

_CONNECT_STARTED = re.compile(r"Spark Connect server started at: \S*?:(\d+)")
_MASTER_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_MASTER_READY = re.compile(r"New state: ALIVE")
_WORKER_REGISTERED = re.compile(r"Successfully registered with master")


class ServerStartError(RuntimeError):
    """A server ended, or stayed silent for too long, before it was ready."""


class ServerProcess:
    """One server JVM: the leader of its own process group, with its output in :attr:`log_path`."""

    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str], work_dir: Path) -> None:
        """Start ``command`` (a script that execs the JVM) in ``work_dir``, logging to ``<name>.log``."""
        self.name = name
        self.log_path = work_dir / f"{name}.log"
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                list(command),
                cwd=work_dir,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id of the JVM, which is also the id of its process group."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the JVM has not ended yet."""
        return self._process.poll() is None

    def log(self) -> str:
        """Everything the server has printed so far."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, pattern: re.Pattern[str], deadline: float) -> re.Match[str]:
        """Wait until the log matches ``pattern``; ``deadline`` is a :func:`time.monotonic` time."""
        while True:
            running = self.running  # asked before reading: the log of an ended process is then complete
            if found := pattern.search(self.log()):
                return found
            if not running:
                raise self._start_error(f"ended with status {self._process.returncode} before it was ready")
            if time.monotonic() > deadline:
                raise self._start_error(f"was not ready in time (no line matches {pattern.pattern!r})")
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL the JVM and all it started, and reap it; no effect once it has ended."""
        self._signal(signal.SIGKILL)
        self._process.wait(STOP_TIMEOUT)

    def stop(self) -> None:
        """SIGTERM the process group, wait for the JVM, then SIGKILL whatever is left of the group."""
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_TIMEOUT)
        self.kill()

    def _signal(self, number: signal.Signals) -> None:
        # The group outlives its leader while executors are left in it, and its id is not reused until then.
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _start_error(self, what: str) -> ServerStartError:
        tail = "\n".join(self.log().splitlines()[-LOG_TAIL_LINES:])
        return ServerStartError(f"{self.name} (pid {self.pid}) {what}; end of {self.log_path}:\n{tail}")


@dataclass(frozen=True)
class ConnectServer:
    """A running Spark Connect server."""

    url: str
    """Address for ``SparkSession.builder.remote``, such as ``sc://127.0.0.1:40123``."""

    process: ServerProcess

    @property
    def pid(self) -> int:
        """Process id of the server's JVM."""
        return self.process.pid

    @property
    def log_path(self) -> Path:
        """The server's log file."""
        return self.process.log_path

    def kill(self) -> None:
        """SIGKILL the server, as if its machine had gone; returns once it is dead."""
        self.process.kill()


@dataclass(frozen=True)
class StandaloneCluster:
    """A running standalone cluster: one master and its workers, each in its own JVM."""

    url: str
    """Master address for ``SparkSession.builder.master``, such as ``spark://127.0.0.1:40123``."""

    master: ServerProcess
    workers: tuple[ServerProcess, ...]

    def driver_conf(self, jars: Sequence[Path]) -> dict[str, str]:
        """Return settings for a classic driver on this cluster: Delta, and one 1-core executor per worker.

        The driver serves ``spark.jars`` to the executors itself, so the jars need no shared directory.
        """
        return {
            **DELTA_CONF,
            "spark.master": self.url,
            "spark.jars": _jar_list(jars),
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.cores.max": str(len(self.workers)),
        }

    def driver_env(self) -> dict[str, str]:
        """Return the environment for a driver process: this one, with this Python for the executors' workers.

        A driver that pyspark starts reads ``PYSPARK_PYTHON`` alone: the setting ``spark.pyspark.python`` is
        for spark-submit, and without either the executors run whatever ``python3`` is on their path.
        """
        return {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": HOST}


@contextmanager
def connect_server(
    work_dir: Path,
    jars: Sequence[Path],
    conf: Mapping[str, str] | None = None,
    *,
    start_timeout: float = START_TIMEOUT,
    for_long: bool = False,
) -> Iterator[ConnectServer]:
    """Run a Spark Connect server (master ``local[2]``, Delta configured) for the length of the context.

    ``jars`` go on the server's class path; ``conf`` is added to, and wins over, the server's settings. ``for_long``: it has work
    for minutes.
    """
    work_dir = work_dir.resolve()
    work_dir.mkdir(parents=True, exist_ok=True)
    settings: dict[str, str] = {
        **DELTA_CONF,
        "spark.master": "local[2]",
        "spark.app.name": "viewkeeper-tests-connect",
        "spark.jars": _jar_list(jars),
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.driver.memory": "1g",
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.warehouse.dir": str(work_dir / "warehouse"),
        **(conf or {}),
    }
    command = [str(_spark_home() / "bin" / "spark-submit")]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with _started("connect-server", command, work_dir, for_long=for_long) as process:
        found = process.wait_for(_CONNECT_STARTED, time.monotonic() + start_timeout)
        yield ConnectServer(url=f"sc://{HOST}:{found[1]}", process=process)


@contextmanager
def standalone_cluster(
    work_dir: Path,
    workers: int = 2,
    *,
    start_timeout: float = START_TIMEOUT,
) -> Iterator[StandaloneCluster]:
    """Run a standalone cluster for the length of the context; ready once every worker is registered.

    Each worker offers 1 core and 1 GiB. Workers stop before the master does.
    """
    work_dir = work_dir.resolve()
    work_dir.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + start_timeout
    spark_class = str(_spark_home() / "bin" / "spark-class")
    listen = ["--host", HOST, "--port", "0", "--webui-port", "0"]
    with ExitStack() as stack:

        def start(name: str, *arguments: str) -> ServerProcess:
            return stack.enter_context(_started(name, [spark_class, *arguments], work_dir))

        master = start("master", "org.apache.spark.deploy.master.Master", *listen)
        url = master.wait_for(_MASTER_STARTED, deadline)[1]
        master.wait_for(_MASTER_READY, deadline)
        started = []
        for number in range(1, workers + 1):
            resources = ["--cores", "1", "--memory", "1g", "--work-dir", str(work_dir / f"worker-{number}")]
            worker_class = "org.apache.spark.deploy.worker.Worker"
            started.append(start(f"worker-{number}", worker_class, *listen, *resources, url))
        for worker in started:
            worker.wait_for(_WORKER_REGISTERED, deadline)
        yield StandaloneCluster(url=url, master=master, workers=tuple(started))


@contextmanager
def _started(
    name: str, command: Sequence[str], work_dir: Path, *, for_long: bool = False
) -> Iterator[ServerProcess]:
    """A JVM that lives for a minute does not repay what it compiles well."""
    options = (*archive_options(), *(() if for_long else ("-XX:TieredStopAtLevel=1",)))
    process = ServerProcess(name, command, _environment(work_dir, options), work_dir)
    try:
        yield process
    finally:
        process.stop()


def _spark_home() -> Path:
    return Path(pyspark.__file__).parent


def _jar_list(jars: Sequence[Path]) -> str:
    """Return the value of ``spark.jars``; Spark itself only logs a missing jar, so ask for each here."""
    return ",".join(str(jar.resolve(strict=True)) for jar in jars)


def _environment(work_dir: Path, options: Sequence[str]) -> dict[str, str]:
    """Return the caller's environment less its Spark settings, with everything bound to loopback."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    env |= {
        "SPARK_HOME": str(_spark_home()),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(work_dir / "scratch"),
        "SPARK_DAEMON_MEMORY": "512m",
        # The master's REST endpoint has a fixed port (6066) and is on by default.
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "JDK_JAVA_OPTIONS": " ".join([os.environ.get("JDK_JAVA_OPTIONS", ""), *options]),
        "PYSPARK_PYTHON": sys.executable,
    }
    return env
