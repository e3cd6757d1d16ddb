"""The page on rules shows what the analysis of the example really gives.

Blocks `verdicts VIEW` and `rule VIEW NAME` hold its output; UPDATE_GOLDEN=1 in the environment writes them, read the diff.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import duckdb

from tests.support.airline import EXAMPLE_VIEWS, WITH_MORE_TABLES, view_of
from viewkeeper.maintenance.rules.explain_rules import explain_verdicts
from viewkeeper.maintenance.rules.rule_sql import shown_sql
from viewkeeper.maintenance.rules.view_rules import ViewRules, rules_for

PAGE = Path(__file__).parent.parent / "docs" / "strategies" / "rules.md"
_BLOCK = re.compile(r"^```(?P<info>(verdicts|rule) [^\n]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def found_for(name: str) -> ViewRules:
    with duckdb.connect() as database:
        found = rules_for(view_of(database, name, EXAMPLE_VIEWS[name]), WITH_MORE_TABLES.declarations)
    assert found is not None
    return found


def expected(info: str) -> str:
    kind, view, *names = info.split(" ")
    found = found_for(view)
    if kind == "verdicts":
        lines = explain_verdicts(found.analysis, found.rules, found.advice)
        return "\n".join(line[2:] for line in lines[1:] if line)
    rule = next(each for each in found.rules.rules if each.name == names[0])
    return f"when {', '.join(map(str, rule.triggers))}\n{shown_sql(found.rules, rule)}"


def test_the_page_shows_what_happens() -> None:
    page = PAGE.read_text(encoding="utf-8")
    blocks = list(_BLOCK.finditer(page))
    assert len(blocks) >= 8
    written = _BLOCK.sub(lambda block: f"```{block['info']}\n{expected(block['info'])}\n```", page)
    if os.environ.get("UPDATE_GOLDEN") == "1":
        PAGE.write_text(written, encoding="utf-8", newline="\n")
        return
    assert page == written
