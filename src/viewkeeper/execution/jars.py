"""The Delta jars: where they lie, and how they get there once.

Spark from PyPI comes without Delta. `fetch_jars` asks Spark's own resolver for them and keeps the few that
Spark does not have already, so that every later session starts without network::

    python -m viewkeeper.execution.jars

They are kept in `$VIEWKEEPER_JARS`, or in `.cache/jars` of a source checkout, or in the user's cache directory.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from viewkeeper.errors import EnvironmentProblem

# These go together (Delta declares the Spark versions that it supports), and with pyproject.toml.
SPARK_VERSION = "4.2.0"
DELTA_VERSION = "4.4.0"
DELTA_COORDINATES = f"io.delta:delta-spark_4.2_2.13:{DELTA_VERSION}"

JAR_NAMES = (
    f"io.delta_delta-kernel-api-{DELTA_VERSION}.jar",
    f"io.delta_delta-kernel-defaults-{DELTA_VERSION}.jar",
    f"io.delta_delta-kernel-unitycatalog-{DELTA_VERSION}.jar",
    f"io.delta_delta-spark_4.2_2.13-{DELTA_VERSION}.jar",
    f"io.delta_delta-storage-{DELTA_VERSION}.jar",
    "io.unitycatalog_unitycatalog-client-0.6.0.jar",
    "io.unitycatalog_unitycatalog-hadoop-0.6.0.jar",
)
"""All that `DELTA_COORDINATES` needs beyond Spark's own jars, named as Spark's resolver names them."""

# Everything else that Delta depends on is among Spark's own jars, in the version that Spark wants. Not even
# asking for it saves 74 MB, and dozens of lookups that fail.
NOT_NEEDED = ("com.*:*", "commons-*:*", "io.airlift:*", "javax.*:*", "org.*:*")

OLDEST_JAVA = 17
RESOLVER_TIMEOUT_SECONDS = 600

INSTALL_JAVA = (
    f"install a Java runtime of version {OLDEST_JAVA} or newer (Debian: apt install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17), or point JAVA_HOME at one."
)


def jar_directory() -> Path:
    """The directory that holds the Delta jars, whether they are there yet or not."""
    chosen = os.environ.get("VIEWKEEPER_JARS")
    if chosen:
        return Path(chosen).expanduser().absolute()
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1]
    if package.parent.name == "src" and (checkout / "pyproject.toml").is_file():
        return checkout / ".cache" / "jars"
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser().absolute() / "viewkeeper" / f"jars-{DELTA_VERSION}"


def find_jars() -> list[Path]:
    """The Delta jars for `spark.jars`, or nothing if any of them is missing or damaged."""
    return _complete_set(jar_directory())


def fetch_jars(progress: Callable[[str], object] = print) -> list[Path]:
    """The Delta jars, downloaded first if they are not there.

    Any number of processes may do this at once: each downloads into a directory of its own and moves whole
    files into place.
    """
    directory = jar_directory()
    jars = _complete_set(directory)
    if jars:
        return jars
    check_java()
    progress(f"Fetching the Delta jars for Spark into {directory} (13 MB, once) ...")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # Beside their final place, so that moving them there is atomic.
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=directory) as scratch:
            _resolve(Path(scratch))
            for name in JAR_NAMES:
                (Path(scratch) / "jars" / name).replace(directory / name)
    except OSError as error:
        raise EnvironmentProblem(
            f"the Delta jars could not be written to {directory}: {error.strerror or error}.",
            "make room or get permission there, or set VIEWKEEPER_JARS to another directory.",
        ) from error
    jars = _complete_set(directory)
    if not jars:
        raise EnvironmentProblem(
            f"the Delta jars that were fetched into {directory} are damaged.",
            f"remove {directory} and fetch them again.",
        )
    progress(f"Fetched {len(jars)} jars.")
    return jars


def find_java() -> Path | None:
    """The Java that Spark would start: the one in JAVA_HOME, otherwise the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    return Path(found) if found else None


@lru_cache
def java_version(java: Path) -> str:
    """What `java -version` says of itself, for instance `17.0.15`; empty if it does not run."""
    try:
        outcome = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, errors="replace", timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r'version "([^"]+)"', outcome.stderr + outcome.stdout)
    return found[1] if found and outcome.returncode == 0 else ""


def java_major_version(version: str) -> int:
    """The number that people call a Java by; 0 if there is none.

    >>> [java_major_version(text) for text in ("17.0.15", "21-ea", "1.8.0_392", "")]
    [17, 21, 8, 0]
    """
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found[1]) if found else 0


def check_java() -> None:
    """Raise `EnvironmentProblem` unless Spark will find a Java that is new enough."""
    home = os.environ.get("JAVA_HOME")
    where = f"in JAVA_HOME ({home})" if home else "on the PATH"
    java = find_java()
    version = java_version(java) if java else ""
    if not version:
        raise EnvironmentProblem(
            f"Spark needs Java {OLDEST_JAVA} or newer, and there is none {where}.", INSTALL_JAVA
        )
    if java_major_version(version) < OLDEST_JAVA:
        raise EnvironmentProblem(
            f"Spark needs Java {OLDEST_JAVA} or newer, and the one {where} is {version}.", INSTALL_JAVA
        )


def _complete_set(directory: Path) -> list[Path]:
    jars = [directory / name for name in JAR_NAMES]
    # A jar is a zip file, whose index stands at its end: a truncated one is none.
    return jars if all(zipfile.is_zipfile(jar) for jar in jars) else []


def _resolve(scratch: Path) -> None:
    """Let Spark's resolver download `JAR_NAMES` into `scratch/jars`."""
    home = spark_home()
    submit = home / "bin" / ("spark-submit.cmd" if os.name == "nt" else "spark-submit")
    # An application that does nothing: packages are resolved before it runs, and no session is started.
    application = scratch / "nothing.py"
    application.write_text("pass\n")
    command = [
        *(str(submit), "--master", "local[1]", "--deploy-mode", "client"),
        *("--packages", DELTA_COORDINATES, "--exclude-packages", ",".join(NOT_NEEDED)),
        *("--conf", f"spark.jars.ivy={scratch}", str(application)),
    ]
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_SUBMIT_OPTS": " ".join([os.environ.get("SPARK_SUBMIT_OPTS", ""), *_proxy_options(os.environ)]),
    }
    try:
        outcome = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=RESOLVER_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise _download_failed(f"no answer within {RESOLVER_TIMEOUT_SECONDS} seconds") from None
    missing = [name for name in JAR_NAMES if not (scratch / "jars" / name).is_file()]
    if outcome.returncode != 0 or missing:
        raise _download_failed(_reason(outcome.stdout) or f"{', '.join(missing)} did not come")


def spark_home() -> Path:
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise EnvironmentProblem(
            "pyspark is not installed.", f"run pip install 'pyspark[connect]=={SPARK_VERSION}'."
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _proxy_options(environment: Mapping[str, str]) -> list[str]:
    """Java looks for proxies in its own properties, not in HTTPS_PROXY as everything else does."""
    own = environment.get("SPARK_SUBMIT_OPTS", "") + environment.get("JAVA_TOOL_OPTIONS", "")
    proxies = urllib.request.getproxies()
    proxy = urllib.parse.urlsplit(proxies.get("https", ""))
    if not proxy.hostname or proxy.username or "proxyHost" in own:
        return []
    return [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"]


def _download_failed(reason: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"the Delta jars could not be downloaded from Maven Central: {reason}.",
        "check the network and try again (behind a proxy set HTTPS_PROXY); without network, copy the directory "
        f"{jar_directory()} from a machine where it is filled, or set VIEWKEEPER_JARS to such a copy.",
    )


def _reason(noise: str) -> str:
    """The line of the resolver's output that says most, shortened; empty if there is none."""
    # Spark also asks a second repository, which knows nothing of Delta: its failures mean nothing.
    lines = [line.strip() for line in noise.splitlines() if "spark-packages" not in line]
    for telling in (
        r"No space left on device|Permission denied",
        r"UnknownHostException|Host \S+ not found",
        r"ConnectException|SocketException|SocketTimeoutException|Connection (?:refused|timed out|reset)",
        r"SSLHandshakeException|SSLException",
        r"Server access error|HTTP response status: [45]",
        r"unresolved dependency|download failed",
        r"Exception in thread|^(?:ERROR|Error)\b",
    ):
        found = [line for line in lines if re.search(telling, line)]
        if found:
            return found[-1].removeprefix("Caused by:").strip().rstrip(".")[:200]
    return next((line for line in reversed(lines) if line), "")[:200]


def main() -> int:
    try:
        fetch_jars()
    except EnvironmentProblem as problem:
        print(problem.message, file=sys.stderr)
        if problem.hint:
            print(f"To do: {problem.hint}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
