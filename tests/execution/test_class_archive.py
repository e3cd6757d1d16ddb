"""Scenario: Java starts from the archive of classes, and an archive that does not fit does no harm and is no news."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from viewkeeper.execution import class_archive, jars
from viewkeeper.execution.doctor import diagnose

pytestmark = pytest.mark.spark

_TOP_LAYER = "shared objects file (top)"


def _spark_version(log: Path, options: tuple[str, ...]) -> str:
    """What a JVM with the class path of the embedded Spark prints; which classes it loads goes to files."""
    submit = jars.spark_home() / "bin" / "spark-submit"
    java_options = " ".join([*options, f"-Xlog:class+load:file={log}/%p.log"])
    environment = {**os.environ, "SPARK_HOME": str(jars.spark_home()), "JDK_JAVA_OPTIONS": java_options}
    found = subprocess.run(
        [str(submit), "--version"], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    return found.stdout + found.stderr


def test_a_jvm_takes_sparks_classes_from_the_archive(tmp_path: Path) -> None:
    options = class_archive.archive_options()
    assert options, "make setup writes an archive"
    assert "warning]" not in _spark_version(tmp_path, options)
    loaded = "".join(each.read_text() for each in tmp_path.glob("*.log"))
    assert f"org.apache.spark.deploy.SparkSubmit source: {_TOP_LAYER}" in loaded


def test_a_truncated_archive_which_would_kill_java_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = class_archive.find_archive()
    assert whole is not None
    (tmp_path / whole.name).write_bytes(whole.read_bytes()[:5000])
    monkeypatch.setenv("VIEWKEEPER_JARS", str(tmp_path))
    assert class_archive.find_archive() is None


def test_an_archive_of_other_jars_is_passed_over_in_silence(tmp_path: Path) -> None:
    """The launcher, which starts Spark's JVM, is such a JVM: its class path is another one."""
    printed = _spark_version(tmp_path, (*class_archive.archive_options(), "-Xbootclasspath/a:elsewhere.jar"))
    assert "version 4." in printed and "warning]" not in printed
    assert all(_TOP_LAYER not in each.read_text() for each in tmp_path.glob("*.log"))


def test_without_an_archive_nothing_is_asked_of_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIEWKEEPER_JARS", str(tmp_path))
    assert class_archive.archive_options() == ()


def test_an_archive_of_an_earlier_spark_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = class_archive.find_archive()
    assert whole is not None
    copied = tmp_path / whole.name
    copied.symlink_to(whole)
    monkeypatch.setenv("VIEWKEEPER_JARS", str(tmp_path))
    assert class_archive.find_archive() == copied
    monkeypatch.setattr(class_archive, "spark_home", lambda: tmp_path)
    (tmp_path / "jars").mkdir()
    assert class_archive.find_archive() is None


def test_the_doctor_tells_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    details = {each.name: each.detail for each in diagnose(start_spark=False)}
    assert details["Delta jars"].endswith(", an archive of classes")
    monkeypatch.setattr("viewkeeper.execution.doctor.find_archive", lambda: None)
    details = {each.name: each.detail for each in diagnose(start_spark=False)}
    assert details["Delta jars"].endswith("-m viewkeeper.execution.class_archive writes one")
