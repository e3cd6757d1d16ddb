"""Which settings a view keeps, and which of them keep us from reading its text."""

from __future__ import annotations

import pytest

from viewkeeper.execution.result_settings import ALWAYS_KEPT, changes_results, matters_to, why_not_read

ESCAPED = "spark.sql.parser.escapedStringLiterals"


@pytest.mark.parametrize(
    "setting",
    [*ALWAYS_KEPT, ESCAPED, "spark.sql.crossJoin.enabled", "spark.sql.storeAssignmentPolicy",
     "spark.sql.legacy.percentileDiscCalculation", "spark.sql.parquet.datetimeRebaseModeInRead",
     "spark.sql.optimizer.decorrelateSubqueryLegacyIncorrectCountHandling.enabled", "spark.sql.readSideCharPadding"],
)  # fmt: skip
def test_settings_that_change_results(setting: str) -> None:
    assert changes_results(setting)


@pytest.mark.parametrize(
    "setting",
    ["spark.sql.shuffle.partitions", "spark.sql.extensions", "spark.sql.codegen.wholeStage",
     "spark.sql.adaptive.enabled", "spark.sql.warehouse.dir", "spark.sql.constraintPropagation.enabled",
     "spark.databricks.delta.snapshotPartitions"],
)  # fmt: skip
def test_settings_that_do_not(setting: str) -> None:
    assert not changes_results(setting)


def test_what_a_sign_means_is_kept_for_texts_that_have_it() -> None:
    assert matters_to(ESCAPED, r"SELECT '\d'") and not matters_to(ESCAPED, "SELECT 'd'")
    assert matters_to("spark.sql.ansi.enabled", "SELECT 1")


def test_a_text_that_is_read_otherwise_is_not_read_by_us() -> None:
    assert why_not_read({ESCAPED: "false"}, r"SELECT '\d'") is None
    assert why_not_read({"spark.sql.legacy.setopsPrecedence.enabled": "false"}, "SELECT 1") is None
    reason = why_not_read({"spark.sql.legacy.setopsPrecedence.enabled": "TRUE"}, "SELECT 1")
    assert (
        reason == "the setting spark.sql.legacy.setopsPrecedence.enabled = TRUE changes how its text is read"
    )
    assert why_not_read({"spark.sql.ansi.doubleQuotedIdentifiers": "true"}, 'SELECT "a"') is not None
