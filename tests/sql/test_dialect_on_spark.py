"""Agreement: Spark reads our rendering as it reads the user's text, for its own examples of every function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sql.expressions_on_one_row import ON_ONE_ROW, ONE_ROW
from tests.sql.helpers import bind, table
from tools.list_spark_functions import TARGET, builtin_functions
from viewkeeper.sql.functions import BUILTIN, NONDETERMINISTIC
from viewkeeper.sql.rendering import render
from viewkeeper.sql.script import parse_sql

pytestmark = pytest.mark.spark

TIME_TYPE = "spark.sql.timeType.enabled"
ROW = table(
    "one_row", a="INT", b="INT", c="INT", f="BOOLEAN", t="STRING", arr="ARRAY<INT>", m="MAP<STRING, INT>", d="DATE",
    ts="TIMESTAMP", st="STRUCT<b: STRUCT<c: INT>>",
)  # fmt: skip

NEEDS_MORE = {
    "measure": "a metric view",
    "to_avro": "the jar of Avro",
    "from_avro": "the jar of Avro",
    "schema_of_avro": "the jar of Avro",
    "to_protobuf": "a descriptor",
    "from_protobuf": "a descriptor",
    "python_worker_logs": "a setting",
}
"""Functions whose examples Spark itself refuses here."""


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Any]:
    own = spark.newSession()
    own.conf.set(TIME_TYPE, "true")
    own.sql(ONE_ROW).createOrReplaceTempView("one_row")
    yield own


def examples(session: Any) -> list[tuple[str, str]]:
    """The queries in the documentation of the builtin functions, with the function each belongs to."""
    found: dict[tuple[str, str], None] = {}
    for info in session._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos():
        query: list[str] = []
        for line in map(str.strip, (info.getExamples() or "").splitlines()):
            if line.startswith("> ") or query:
                query.append(line.removeprefix("> "))
            if query and line.endswith(";"):
                found[info.getName(), "\n".join(query).removesuffix(";")] = None
                query = []
    return list(found)


def difference(session: Any, written: str, rendered: str) -> str | None:
    """How Spark reads two texts differently; None if it reads them alike, or refuses the first."""
    own = session.sql(written)
    try:
        ours = session.sql(rendered)
    except Exception as error:
        return f"{written}\n  {rendered}\n  {str(error)[:200]}"
    own_plan, plan = (frame._jdf.queryExecution().analyzed() for frame in (own, ours))
    if own_plan.sameResult(plan):
        return None
    types = [[field.dataType for field in frame.schema] for frame in (own, ours)]
    if types[0] == types[1] and [tuple(row) for row in own.collect()] == [
        tuple(row) for row in ours.collect()
    ]:
        return None
    return f"{written}\n  {rendered}"


def test_the_list_of_functions_is_complete(session: Any) -> None:
    listed = builtin_functions(session)
    assert listed == {name: kind.value for name, kind in BUILTIN.items() if name in listed}, (
        f"write {TARGET} again"
    )


def test_the_examples_of_all_functions(session: Any) -> None:
    differing, compared = [], set()
    for name, query in examples(session):
        # A string with other escapes is another text: such sessions are none of ours.
        if query.startswith("SET ") or "SystemDrive" in query or name in NEEDS_MORE:
            continue
        if name in NONDETERMINISTIC:
            session.sql(render(parse_sql(query)))
        elif found := difference(session, query, render(parse_sql(query))):
            differing.append(f"{name}: {found}")
        compared.add(name)
    assert differing == []
    assert len(compared) > 500


def test_expressions_over_a_row(session: Any) -> None:
    differing = []
    for text in ON_ONE_ROW:
        query = f"SELECT {text} AS x FROM one_row"
        bound = bind(query, ROW)
        if bound.problems:
            differing.append(f"{text}: {bound.problems}")
        elif found := difference(session, query, bound.rendered):
            differing.append(found)
    assert differing == []
