"""Whether the process that holds a claim is alive."""

from __future__ import annotations

import os
import subprocess
import threading
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.storage.examples import claim as example_claim
from tests.storage.worker import hold, working
from viewkeeper.storage import holder as holder_module
from viewkeeper.storage.holder import LEASE_SECONDS, RENEWAL_SECONDS, is_alive, new_holder
from viewkeeper.storage.records import Claim, Holder, now

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this machine has no /proc")


def claim_of(holder: Holder, renewed_at: str | None = None) -> Claim:
    return replace(example_claim(1, ["v"], renewed_at=renewed_at or now()), holder=holder)


def seconds_ago(seconds: float) -> str:
    return (datetime.now(timezone.utc) - timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


# ---------------------------------------------------------------------------------------- our own process


def test_a_holder_says_who_we_are() -> None:
    with new_holder() as mine:
        assert mine.pid == os.getpid()
        assert all((mine.host, mine.machine, mine.started, mine.token, mine.user))


def test_we_are_alive_until_the_block_ends() -> None:
    with new_holder() as mine:
        assert is_alive(claim_of(mine))
    assert not is_alive(claim_of(mine))


def test_a_block_that_fails_ends_too() -> None:
    with pytest.raises(RuntimeError), new_holder() as mine:
        raise RuntimeError
    assert not is_alive(claim_of(mine))


def test_every_claim_has_a_life_of_its_own() -> None:
    with new_holder() as outer:
        with new_holder() as inner:
            assert outer.token != inner.token
        assert is_alive(claim_of(outer))
        assert not is_alive(claim_of(inner))


def test_a_claim_of_another_thread_of_ours_is_alive() -> None:
    held, seen, done = threading.Event(), threading.Event(), []

    def hold() -> None:
        with new_holder() as theirs:
            done.append(theirs)
            held.set()
            assert seen.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10)
    assert is_alive(claim_of(done[0]))
    seen.set()
    thread.join()
    assert not is_alive(claim_of(done[0]))


def test_on_our_own_machine_an_old_lease_does_not_matter() -> None:
    with new_holder() as mine:
        assert is_alive(claim_of(mine, seconds_ago(10 * LEASE_SECONDS)))


# -------------------------------------------------------------------------------------- other processes


@needs_proc
def test_another_process_is_alive_until_it_is_killed() -> None:
    with working(hold, ()) as (worker,):
        theirs = worker.told()
        assert theirs.pid == worker.process.pid
        assert is_alive(claim_of(theirs))
        assert is_alive(claim_of(theirs, seconds_ago(10 * LEASE_SECONDS)))
        worker.kill()
        assert not is_alive(claim_of(theirs))


@needs_proc
def test_a_dead_process_that_nobody_has_collected_yet_is_dead() -> None:
    process = subprocess.Popen(["sleep", "60"])
    with new_holder() as mine:
        theirs = replace(mine, pid=process.pid, started=holder_module._start_of(process.pid), token="other")
    assert is_alive(claim_of(theirs))
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{process.pid}").exists()
    assert not is_alive(claim_of(theirs))
    process.wait()
    assert not is_alive(claim_of(theirs))


@needs_proc
def test_a_process_that_got_the_number_of_a_dead_one_does_not_hold_its_claims() -> None:
    with working(hold, ()) as (worker,):
        theirs = worker.told()
        assert not is_alive(claim_of(replace(theirs, started=str(int(theirs.started) - 1))))


@needs_proc
def test_we_ourselves_may_have_got_the_number_of_a_dead_one() -> None:
    with new_holder() as mine:
        assert not is_alive(claim_of(replace(mine, started=str(int(mine.started) - 1))))
        assert not is_alive(claim_of(replace(mine, started=str(int(mine.started) - 1), token="dead")))


def test_a_number_that_no_process_has_is_dead() -> None:
    with new_holder() as mine:
        assert not is_alive(claim_of(replace(mine, pid=2**22 + 1, token="other")))


# -------------------------------------------------------------------------------------- other machines


@pytest.mark.parametrize(
    ("age", "alive"), [(0, True), (LEASE_SECONDS - 10, True), (LEASE_SECONDS + 1, False), (-30, True)]
)
def test_another_machine_is_alive_while_it_renews(age: float, alive: bool) -> None:
    """A clock that goes wrong by less than the lease takes nobody's life."""
    with new_holder() as mine:
        theirs = replace(mine, machine="elsewhere")
        assert is_alive(claim_of(theirs, seconds_ago(age))) is alive


def test_a_lease_outlives_several_missed_renewals() -> None:
    assert LEASE_SECONDS >= 3 * RENEWAL_SECONDS


def test_machines_differ_by_boot_and_by_process_namespace() -> None:
    with new_holder() as mine, working(hold, ()) as (worker,):
        assert worker.told().machine == mine.machine
    if Path("/proc/self/ns/pid").is_symlink():
        boot, _, namespace = mine.machine.partition("/")
        assert boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert namespace.startswith("pid:[")


# ------------------------------------------------------------------------------- machines without /proc


@pytest.fixture
def without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holder_module, "_start_of", holder_module._alive_without_proc)


@pytest.mark.usefixtures("without_proc")
def test_without_proc_a_dead_number_is_dead_and_a_living_one_lives_while_it_renews() -> None:
    """Whether the number was taken by another process cannot be seen there, so the lease must decide."""
    with working(hold, ()) as (worker,):
        theirs = replace(worker.told(), started="running")
        assert is_alive(claim_of(theirs))
        assert not is_alive(claim_of(theirs, seconds_ago(LEASE_SECONDS + 1)))
        worker.kill()
        assert not is_alive(claim_of(theirs))


@pytest.mark.usefixtures("without_proc")
def test_without_proc_our_own_claims_end_with_their_block() -> None:
    with new_holder() as mine:
        assert mine.started == "running"
        assert is_alive(claim_of(mine, seconds_ago(10 * LEASE_SECONDS)))
    assert not is_alive(claim_of(mine))


def test_a_process_of_another_user_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", forbidden)
    assert holder_module._alive_without_proc(1) == "running"


def test_a_user_without_a_name_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("no name")

    monkeypatch.setattr(holder_module.getpass, "getuser", nameless)
    with new_holder() as mine:
        assert mine.user == str(os.getuid())
