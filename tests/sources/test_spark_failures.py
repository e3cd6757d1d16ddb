"""What Spark raises, as users are told it."""

from __future__ import annotations

from pyspark.errors import PySparkException

from viewkeeper.errors import QueryFailedError
from viewkeeper.sources.spark_failures import spark_failure

WRAPPED = """An error occurred while calling o1.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
	at org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: java.io.UTFDataFormatException: encoded string (x...y) too long: 97005 bytes
	at java.base/java.io.DataOutputStream.writeUTF(DataOutputStream.java:369)
	... 20 more"""


def test_the_cause_is_told_and_not_what_spark_wraps_it_in() -> None:
    found = spark_failure(PySparkException(WRAPPED), "v was refreshed")
    assert isinstance(found, QueryFailedError)
    assert found.message == (
        "the query failed while running: UTFDataFormatException: encoded string (x...y) too long: 97005 bytes."
    )


def test_a_condition_below_a_wrapper_says_more_than_a_class() -> None:
    error = PySparkException(
        f"{WRAPPED}\nCaused by: org.apache.spark.SparkException: [SOME_CONDITION] it is so."
    )
    assert spark_failure(error, "v was refreshed").message == "the query failed while running: it is so."
