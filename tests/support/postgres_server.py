"""A PostgreSQL server of its own for a test run: from Debian's packages, on a loopback port, never as root."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

_INSTALLED = Path("/usr/lib/postgresql")
_PATIENCE = 30.0


def binary(name: str) -> str:
    """A program of the newest installed version; Debian does not put all of them on the PATH."""
    versions = sorted(_INSTALLED.glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    found = next((path / name for path in versions if (path / name).exists()), None)
    program = str(found) if found is not None else shutil.which(name)
    assert program is not None, f"there is no {name}; make setup installs PostgreSQL"
    return program


@contextmanager
def postgres_server() -> Iterator[str]:
    """A running server; gives what psycopg connects to."""
    folder = Path(tempfile.mkdtemp(prefix="viewkeeper-postgres-"))
    user = _user()
    if os.geteuid() == 0:
        shutil.chown(folder, user)
    port = _free_port()
    try:
        data = str(folder / "data")
        initialise = [binary("initdb"), "-D", data, "-U", "tester", "--auth=trust", "--no-sync", "-E", "UTF8"]
        _run(initialise, user, folder)
        settings = ["fsync=off", "listen_addresses=127.0.0.1", f"unix_socket_directories={folder}"]
        options = [part for each in settings for part in ("-c", each)]
        log = (folder / "log").open("wb")
        server = subprocess.Popen(
            [binary("postgres"), "-D", data, "-p", str(port), *options],
            stdout=log, stderr=log, cwd=folder, **_as(user),
        )  # fmt: skip
        address = f"host=127.0.0.1 port={port} user=tester dbname=postgres"
        try:
            _wait_for(address, server, folder / "log")
            yield address
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(_PATIENCE)
            log.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> str:
    """Who runs the server: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    known = {each.pw_name for each in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _as(user: str) -> dict[str, str]:
    return {"user": user} if os.geteuid() == 0 else {}


def _run(command: list[str], user: str, folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, **_as(user))
    assert done.returncode == 0, done.stderr


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            psycopg.connect(address).close()
            return
        except psycopg.OperationalError:
            assert server.poll() is None, log.read_text(encoding="utf-8")
            time.sleep(0.1)
    raise AssertionError(f"PostgreSQL does not answer: {log.read_text(encoding='utf-8')}")
