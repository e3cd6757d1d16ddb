"""What tells whether a table must be read again: any commit, also one to a table that was made anew at the same place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from viewkeeper.sources.delta_rs_log import DeltaRsLog
from viewkeeper.sources.newest_commit import newest_commit

ONE = pa.table({"a": [1]})
TWO = pa.table({"a": [1, 2]})


def test_a_table_is_the_same_until_somebody_commits(tmp_path: Path) -> None:
    address = str(tmp_path / "t")
    assert newest_commit(address) is None
    write_deltalake(address, ONE)
    before = newest_commit(address)
    assert before is not None and newest_commit(address) == before
    write_deltalake(address, ONE, mode="append")
    assert newest_commit(address) not in (before, None)


def test_a_log_sees_every_commit_and_a_table_made_anew(tmp_path: Path) -> None:
    address = str(tmp_path / "t")
    log = DeltaRsLog()
    write_deltalake(address, ONE)
    assert (log.version(address), log.row_count(address)) == (0, 1)
    write_deltalake(address, ONE, mode="append")
    assert (log.version(address), log.row_count(address)) == (1, 2)
    shutil.rmtree(address)
    for rows in (TWO, TWO):
        write_deltalake(address, rows, mode="append")
    assert (log.version(address), log.row_count(address)) == (1, 4)


def test_storage_elsewhere_is_always_read_again() -> None:
    assert newest_commit("s3://bucket/t") is None
