"""Who we are, and whether another process that holds a claim is still alive.

Safety never depends on this: two processes that work on the same pinned epoch write the same commits under
the same Delta transaction, and only one of each takes effect. It decides only how soon work that a dead
process left is taken over.
"""

from __future__ import annotations

import getpass
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

from viewkeeper.storage.records import Claim, Holder

LEASE_SECONDS = 120.0
"""A claim of another machine that was not renewed for so long counts as left behind."""

RENEWAL_SECONDS = 30.0

_START_UNKNOWN = "running"
"""Of a process that runs on a machine without /proc: its number may have been taken by another one since."""

_active_tokens: set[str] = set()
_lock = threading.Lock()


@contextmanager
def new_holder() -> Iterator[Holder]:
    """This process as the holder of one new claim, alive until the block ends."""
    holder = Holder(
        socket.gethostname(), _machine(), os.getpid(), _start_of(os.getpid()), uuid.uuid4().hex, _user()
    )
    with _lock:
        _active_tokens.add(holder.token)
    try:
        yield holder
    finally:
        with _lock:
            _active_tokens.discard(holder.token)


def is_alive(claim: Claim) -> bool:
    holder = claim.holder
    if holder.machine != _machine():
        return _is_leased(claim)
    if holder.pid == os.getpid() and holder.started == _start_of(os.getpid()):
        with _lock:
            return holder.token in _active_tokens
    started = _start_of(holder.pid)
    if started == _START_UNKNOWN and not _is_leased(claim):
        return False
    return started != "" and started == holder.started


def _is_leased(claim: Claim) -> bool:
    renewed = datetime.fromisoformat(claim.renewed_at)
    return (datetime.now(timezone.utc) - renewed).total_seconds() < LEASE_SECONDS


def _machine() -> str:
    """Equal for processes that can see each other: same boot, same process namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{socket.gethostname()}/{uuid.getnode()}"


def _start_of(pid: int) -> str:
    """When a process started, in a form to compare; empty if there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    except FileNotFoundError:
        return "" if Path("/proc/self/stat").exists() else _alive_without_proc(pid)
    except OSError:
        return ""


def _alive_without_proc(pid: int) -> str:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return _START_UNKNOWN


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"
