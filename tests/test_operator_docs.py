"""The pages on operators say what is true: the plan of each example is the one that is made, its result the one it gives.

A page has one or more examples, each of fenced blocks: `sql tables` and `sql changes` (kept for later examples of the page
until they are given anew), `sql view`, `result before`, `result after` and `plan`. Comments in a plan are the page's own. A
`plan` ends where the rows to change are looked for in the view, which is the same everywhere; `plan whole` does not.

UPDATE_GOLDEN=1 in the environment writes results and plans into the pages, and keeps comments before the lines they stand
before; read the diff.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pytest

from viewkeeper.maintenance.build_plan import plan_first_load, plan_refresh
from viewkeeper.maintenance.explain import explain_plan
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.script import split_script
from viewkeeper.testing import Case, case_of, check_case
from viewkeeper.testing.agreement import definition
from viewkeeper.testing.bags import Row
from viewkeeper.testing.duckdb_runner import DuckDbRun, TableState, fill, to_duckdb

OPERATORS = Path(__file__).parent.parent / "docs" / "operators"
PAGES = sorted(path.stem for path in OPERATORS.glob("*.md") if path.name != "README.md")
_BLOCK = re.compile(r"^```(?P<info>[^\n`]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^\s*--")
_TAIL = re.compile(
    r"  step \d+: (find these \w+ in the view(, and store the change set)?|update the groups|store the change set)$"
)


@dataclass(frozen=True)
class Example:
    blocks: Mapping[str, str]

    def __getitem__(self, info: str) -> str:
        return self.blocks[info]


def examples(page: str) -> list[Example]:
    """The examples of a page; each ends with its plan."""
    found: list[Example] = []
    blocks: dict[str, str] = {}
    for block in _BLOCK.finditer((OPERATORS / f"{page}.md").read_text(encoding="utf-8")):
        blocks[block["info"]] = block["text"]
        if block["info"].startswith("plan"):
            found.append(Example(dict(blocks)))
            blocks = {info: blocks[info] for info in ("sql tables", "sql changes")}
    return found


def case_of_example(example: Example) -> Case:
    """The rows before and after, as DuckDB makes them of the page's statements."""
    statements = [fragment.text for fragment in split_script(example["sql tables"])]
    tables = [text for text in statements if text.startswith("CREATE")]
    case = case_of(";\n".join(tables), example["sql view"].strip(), [], changes_by_key=False)
    with duckdb.connect() as database:
        for table in case.schema.tables:
            fill(database, table.name.name, table.columns, ())
        for text in statements[len(tables) :]:
            database.execute(to_duckdb(text))
        before = _all_rows(database, case)
        for fragment in split_script(example["sql changes"]):
            database.execute(to_duckdb(fragment.text))
        return replace(case, stream=(before, _all_rows(database, case)))


def _all_rows(database: duckdb.DuckDBPyConnection, case: Case) -> dict[str, list[Row]]:
    return {
        table.id: database.execute(f"SELECT * FROM {table.name.name}").fetchall()
        for table in case.schema.tables
    }


def view_of(database: duckdb.DuckDBPyConnection, case: Case) -> ViewDefinition:
    return replace(definition(database, case), name=QualifiedName("default", "v"), id="v")


def states(view: ViewDefinition, case: Case, old: int, new: int) -> dict[str, TableState]:
    """Changes come by key only for parents of a foreign key, as in a refresh."""
    schema, found = case.schema, {}
    for each in view.query.inputs:
        keys = schema.by_id[each.object_id].declared.keys if each.object_id in schema.parents else ()
        found[each.object_id] = TableState(
            each.columns,
            case.stream[old][each.object_id],
            case.stream[new][each.object_id],
            keys[0].columns if keys else (),
        )
    return found


def results_and_plan(case: Case) -> tuple[str, str, list[str]]:
    """The view before and after as text, and the lines of the plan between."""
    with duckdb.connect() as database:
        view = view_of(database, case)
        run = DuckDbRun(database, view)
        run.run(plan_first_load(view), states(view, case, 0, 0))
        names = [column.name for column in view.columns]
        before = shown(names, run.visible())
        changed = states(view, case, 0, 1)
        plan = plan_refresh(view, {name: state.kinds for name, state in changed.items() if state.kinds})
        run.run(plan, changed)
        return before, shown(names, run.visible()), "\n".join(explain_plan(plan, "refresh")).split("\n")


def shown(names: Sequence[str], rows: Sequence[Row]) -> str:
    """Rows as an aligned table, in order."""
    ordered = sorted(rows, key=lambda row: [(each is not None, each) for each in row])
    lines = [list(names), *([("NULL" if each is None else str(each)) for each in row] for row in ordered)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(names))]
    return "\n".join(
        " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def without_tail(lines: Sequence[str]) -> list[str]:
    end = next((at for at, line in enumerate(lines) if _TAIL.fullmatch(line)), len(lines))
    return list(lines[:end])


def without_comments(text: str) -> list[str]:
    return [line for line in text.rstrip("\n").split("\n") if not _COMMENT.match(line)]


def test_there_are_pages_and_all_are_listed() -> None:
    index = (OPERATORS / "README.md").read_text(encoding="utf-8")
    assert len(PAGES) > 10
    for page in PAGES:
        assert f"({page}.md)" in index, f"{page} is missing in the index"
        assert examples(page), f"{page} has no example"


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_are_what_happens(page: str) -> None:
    for example in examples(page):
        case = case_of_example(example)
        with duckdb.connect() as database:
            check_case(database, case)
        before, after, plan = results_and_plan(case)
        kind = "plan whole" if "plan whole" in example.blocks else "plan"
        expected = plan if kind == "plan whole" else without_tail(plan)
        if os.environ.get("UPDATE_GOLDEN") == "1":
            commented = with_comments_of(example[kind], expected)
            update(page, example, {"result before": before, "result after": after, kind: commented})
            continue
        assert example["result before"].rstrip("\n") == before
        assert example["result after"].rstrip("\n") == after
        assert without_comments(example[kind]) == expected


def with_comments_of(text: str, lines: Sequence[str]) -> str:
    """New lines with the comments of an old text, each before the line that it stood before (the nth of equal ones)."""
    comments: dict[tuple[str, int], list[str]] = {}
    waiting: list[str] = []
    seen: Counter[str] = Counter()
    for line in text.rstrip("\n").split("\n"):
        if _COMMENT.match(line):
            waiting.append(line)
            continue
        comments[line, seen[line]] = waiting
        seen[line] += 1
        waiting = []
    result: list[str] = []
    seen.clear()
    for line in lines:
        result += [*comments.get((line, seen[line]), []), line]
        seen[line] += 1
    return "\n".join(result)


def update(page: str, example: Example, blocks: Mapping[str, str]) -> None:
    """Write blocks of one example, the one with this view, into its page."""
    path = OPERATORS / f"{page}.md"
    head, view, tail = path.read_text(encoding="utf-8").partition(f"```sql view\n{example['sql view']}```")
    assert view
    for info, text in blocks.items():
        old = f"```{info}\n{example[info]}```"
        assert old in tail
        tail = tail.replace(old, f"```{info}\n{text}\n```", 1)
    path.write_text(head + view + tail, encoding="utf-8", newline="\n")
