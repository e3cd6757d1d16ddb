"""Settings of Spark that change what a query means. A view keeps those of its creation.

Spark has a thousand settings. Of those that were set to something in the user's session, a view keeps the ones of a kind that
can change results: how a query is read, which types it has, what its functions return. What was not set has Spark's default,
and has it again at every refresh.
"""

from __future__ import annotations

from collections.abc import Mapping

ALWAYS_KEPT = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.timestampType",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.ansi.doubleQuotedIdentifiers",
    "spark.sql.groupByOrdinal",
    "spark.sql.groupByAliases",
    "spark.sql.orderByOrdinal",
    "spark.sql.legacy.sizeOfNull",
    "spark.sql.legacy.charVarcharAsString",
)
"""With their values, also where these are Spark's defaults: they differ between versions of Spark, or are users' favourites."""

_KINDS = (
    "spark.sql.ansi.",
    "spark.sql.legacy.",
    "spark.sql.parser.",
    "spark.sql.function.",
    "spark.sql.functionResolution.",
    "spark.sql.collation.",
    "spark.sql.session.collation",
    "spark.sql.json.",
    "spark.sql.jsonGenerator.",
    "spark.sql.variant.allow",
    "spark.sql.variant.validate",
    "spark.sql.datetime.",
    "spark.sql.avro.datetimeRebase",
    "spark.sql.parquet.datetimeRebase",
    "spark.sql.parquet.int96Rebase",
    "spark.sql.parquet.int96",
    "spark.sql.analyzer.allow",
    "spark.sql.analyzer.lower",
    "spark.sql.analyzer.prefer",
    "spark.sql.analyzer.scalarSubquery",
    "spark.sql.optimizer.decorrelate",
    "spark.sql.optimizer.scalarSubquery",
    "spark.sql.lateralColumnAlias.",
    "spark.sql.listagg.",
    "spark.sql.cteRecursion",
    "spark.sql.icu.",
)

_NAMES = frozenset(
    f"spark.sql.{name}"
    for name in (
        "allowNamedFunctionArguments", "binaryOutputStyle", "charAsVarchar", "chunkBase64String.enabled",
        "columnNameOfCorruptRecord", "crossJoin.enabled", "defaultColumn.useNullsForMissingDefaultValues",
        "enforceTypeCoercionBeforeUnionDeduplication.enabled", "mapZipWithUsesJavaCollections",
        "operatorPipeSyntaxEnabled", "orderingAwareLimitOffset", "pivotMaxValues", "preserveCharVarcharTypeInfo",
        "prioritizeOrdinalResolutionInSort.enabled", "readSideCharPadding",
        "runCollationTypeCastsBeforeAliasAssignment.enabled", "selfJoinAutoResolveAmbiguity",
        "stableDerivedColumnAlias.enabled", "storeAssignmentPolicy", "timeType.enabled",
    )
)  # fmt: skip

_READ_OTHERWISE = {
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.functionResolution.sessionOrder": "second",
    "spark.sql.legacy.bangEqualsNot": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "corrected",
    "spark.sql.legacy.groupingIdWithAppendedUserGroupBy": "false",
    "spark.sql.legacy.inSubqueryNullability": "false",
    "spark.sql.legacy.nullInEmptyListBehavior": "false",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
    "spark.sql.legacy.scalarSubqueryAllowGroupByNonEqualityCorrelatedPredicate": "false",
    "spark.sql.legacy.scalarSubqueryCountBugBehavior": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.optimizer.decorrelateExistsSubqueryLegacyIncorrectCountHandling.enabled": "false",
    "spark.sql.optimizer.decorrelateSubqueryLegacyIncorrectCountHandling.enabled": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
}
"""Settings by which a query has another structure than the one that we read in it, with Spark's defaults."""

_WRITTEN_OTHERWISE = {
    "spark.sql.parser.escapedStringLiterals": "\\",
    "spark.sql.ansi.doubleQuotedIdentifiers": '"',
}
"""Settings by which a sign in the text of a query means something else."""


def changes_results(setting: str) -> bool:
    """
    >>> changes_results("spark.sql.legacy.setopsPrecedence.enabled"), changes_results("spark.sql.shuffle.partitions")
    (True, False)
    """
    return setting in ALWAYS_KEPT or setting in _NAMES or setting.startswith(_KINDS)


def matters_to(setting: str, text: str) -> bool:
    """Whether a setting can matter to a query. What a sign means is kept only for texts that have it: SQL that we write
    has the meaning that Spark gives it by default."""
    sign = _WRITTEN_OTHERWISE.get(setting)
    return sign is None or sign in text


def why_not_read(settings: Mapping[str, str], text: str) -> str | None:
    """Why the text of a query does not mean to Spark what it means to us; it is then evaluated as written.

    >>> why_not_read({"spark.sql.parser.escapedStringLiterals": "true"}, r"SELECT a RLIKE '\\\\d' FROM t")
    'the setting spark.sql.parser.escapedStringLiterals = true changes how its text is read'
    """
    for setting, value in settings.items():
        is_on = setting in _WRITTEN_OTHERWISE and value.lower() == "true" and matters_to(setting, text)
        is_other = setting in _READ_OTHERWISE and value.lower() != _READ_OTHERWISE[setting]
        if is_on or is_other:
            return f"the setting {setting} = {value} changes how its text is read"
    return None
