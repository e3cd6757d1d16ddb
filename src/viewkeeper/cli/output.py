"""How answers look: readable tables on a terminal, JSON for programs."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from viewkeeper.errors import ViewkeeperError
from viewkeeper.execution.progress import Event, Moment
from viewkeeper.execution.reports import RefreshFailedError, RefreshReport, TableReport
from viewkeeper.sources.spark_failures import spark_failures

MOST_ROWS = 1000
"""So many rows of a query are shown; programs get all."""

_QUIET = {Moment.PUBLISHING, Moment.CHANGE_SET_STORED, Moment.ROWS_WRITTEN}


class Output:
    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(soft_wrap=True, highlight=False)
        self._errors = Console(stderr=True, soft_wrap=True, highlight=False)
        if not as_json:
            warnings.showwarning = self._show_warning

    def say(self, text: str, data: dict[str, Any] | None = None) -> None:
        if self._as_json:
            self.json(data or {"message": text})
        else:
            self._console.print(Text(text))

    def note(self, text: str) -> None:
        self._errors.print(Text(text, style="dim"))

    def json(self, value: Any) -> None:
        print(json.dumps(value, default=str, ensure_ascii=False))

    def result(self, result: Any) -> None:
        """A report, or the DataFrame of a query."""
        if hasattr(result, "toLocalIterator"):
            self._rows(result)
        elif self._as_json:
            self.json(result.to_json())
        elif isinstance(result, RefreshReport):
            self._refresh(result)
        elif isinstance(result, TableReport):
            self._table(result.columns, result.rows, result.title)
        else:
            self._console.print(Text(str(result)))

    def error(self, error: ViewkeeperError) -> None:
        if isinstance(error, RefreshFailedError):
            self._refresh(error.report)
        self._errors.print(Text("Error: ", style="bold red") + Text(str(error)))

    def progress(self, event: Event) -> None:
        """What is going on, on a terminal only."""
        if self._as_json or not sys.stderr.isatty() or event.moment in _QUIET:
            return
        self._errors.print(Text(f"  {event}", style="dim"))

    def findings(self, findings: Sequence[Any]) -> None:
        if self._as_json:
            self.json([vars(finding) for finding in findings])
            return
        for finding in findings:
            mark = Text("ok   ", style="green") if finding.ok else Text("FAIL ", style="bold red")
            self._console.print(mark + Text(f"{finding.name}: {finding.detail}"))
            if not finding.ok and finding.advice:
                self._console.print(Text(f"     To do: {finding.advice}"))

    def _rows(self, frame: Any) -> None:
        with spark_failures("the query ran"):
            if self._as_json:
                self.json([row.asDict(recursive=True) for row in frame.collect()])
                return
            rows = frame.limit(MOST_ROWS + 1).collect()
        self._table(frame.columns, [tuple(row) for row in rows[:MOST_ROWS]])
        more = f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
        if len(rows) > MOST_ROWS:
            more = f"the first {MOST_ROWS} rows; add LIMIT, or --json for all"
        self._console.print(Text(more, style="dim"))

    def _refresh(self, report: RefreshReport) -> None:
        rows = [
            (
                f"{'' if view is v else '  '}{v.name}",
                "failed" if v.error else v.strategy,
                v.inserted,
                v.deleted,
                f"{v.seconds:.2f}",
                v.error or v.reason,
            )
            for view in report.views
            for v in (view, *view.kept)
        ]
        columns = ("view", "strategy", "inserted", "deleted", "seconds", "reason")
        self._table(columns, rows, f"epoch {report.epoch}, {report.seconds:.2f} s")

    def _table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> None:
        table = Table(
            title=Text(title) if title else None, title_justify="left", show_edge=False, pad_edge=False
        )
        for column in columns:
            table.add_column(Text(column), overflow="fold")
        for row in rows:
            table.add_row(
                *(Text("NULL", style="dim") if value is None else Text(str(value)) for value in row)
            )
        self._console.print(table)

    def _show_warning(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if category.__module__.startswith("viewkeeper"):
            self._errors.print(Text("Note: ", style="bold yellow") + Text(str(message)))
