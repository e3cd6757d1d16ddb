"""Is every view of a warehouse right? Its rows against what Spark makes of the user's own text, in which only aggregates
that SQL leaves open are decided.

VERIFY asks the same of tables on disk. Here the tables are few rows in memory, and nothing is compiled: many small
queries, each run once, take a tenth of the time.
"""

from __future__ import annotations

from typing import Any

from tests.support.published import published, rows
from viewkeeper import Warehouse
from viewkeeper.sql.names import quote
from viewkeeper.storage.records import ViewRecord
from viewkeeper.testing.agreement import with_one_answer
from viewkeeper.testing.bags import compare_bags

_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}


def wrong_views(warehouse: Warehouse, spark: Any) -> dict[str, str]:
    """What is missing and unexpected in the views, as they were published, over the tables as they are now."""
    session = spark.newSession()
    for setting, value in _SETTINGS.items():
        session.conf.set(setting, value)
    wrong = {}
    for record, held in published(warehouse):
        if isinstance(record, ViewRecord):
            expected = rows(session.sql(with_one_answer(record.query)).toArrow())
            difference = compare_bags(expected, rows(held))
            if not difference.is_empty:
                wrong[str(record.name)] = f"{record.query}\n{difference}"
        session.createDataFrame(held).createOrReplaceTempView(quote(record.name.name))
    return wrong
