"""What statements answer: small objects that print as text and turn into JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from viewkeeper.errors import ViewkeeperError


@dataclass(frozen=True)
class ViewReport:
    """What an epoch did to one view. `error` is set if it kept its last epoch; `kept` is what it did to the hidden views
    that keep groups inside the view's query, whose seconds are not among the view's own. `fallback` is what its
    incremental plan failed with, if the view was recomputed for that reason."""

    name: str
    strategy: str
    reason: str
    inserted: int
    deleted: int
    seconds: float
    steps: tuple[tuple[str, float], ...] = ()
    error: str | None = None
    kept: tuple[ViewReport, ...] = ()
    fallback: str | None = None

    def __str__(self) -> str:
        what = f"failed: {self.error}" if self.error else f"+{self.inserted} -{self.deleted} rows"
        return f"{self.name}: {self.strategy}, {what}, {self.seconds:.2f} s ({self.reason})"


@dataclass(frozen=True)
class RefreshReport:
    epoch: int
    views: tuple[ViewReport, ...]
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"epoch {self.epoch}, {self.seconds:.2f} s"]
        for view in self.views:
            lines.append(f"  {view}")
            lines += [f"    {kept}" for kept in view.kept]
        return "\n".join(lines)


class RefreshFailedError(ViewkeeperError):
    """Some views kept their last epoch; `report` says which, and what became of the others."""

    def __init__(self, message: str, hint: str, report: RefreshReport, exit_code: int = 1) -> None:
        super().__init__(message, hint)
        self.report = report
        self.exit_code = exit_code

    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), "report": self.report.to_json()}


@dataclass(frozen=True)
class VerifyReport:
    """Whether a view equals its query at the versions it was made from.

    `missing` rows are in the query and not in the view, `unexpected` ones the other way round.
    """

    view: str
    epoch: int
    equal: bool
    missing: int
    unexpected: int
    missing_examples: tuple[dict[str, Any], ...] = ()
    unexpected_examples: tuple[dict[str, Any], ...] = ()
    rows: int = 0
    seconds: float = 0.0
    tolerance: float | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        verdict = "equals its query" if self.equal else "DIFFERS from its query"
        lines = [
            f"{self.view} at epoch {self.epoch} {verdict}: {self.rows} rows compared in {self.seconds:.2f} s"
        ]
        if self.tolerance is not None:
            lines.append(
                f"  floating-point columns compared within a relative difference of {self.tolerance:g}"
            )
        if not self.equal:
            lines.append(f"  {self.missing} rows missing, {self.unexpected} rows unexpected")
            lines += [f"  missing:    {row}" for row in self.missing_examples]
            lines += [f"  unexpected: {row}" for row in self.unexpected_examples]
        return "\n".join(lines)


@dataclass(frozen=True)
class ConstraintCheck:
    """One constraint: how many values violate it, with some of them."""

    name: str
    constraint: str
    violations: int
    examples: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class TableVerifyReport:
    """Whether the declared constraints of a table hold at a version."""

    table: str
    version: int
    checks: tuple[ConstraintCheck, ...]
    seconds: float = 0.0

    @property
    def valid(self) -> bool:
        return not any(check.violations for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        return {"valid": self.valid, **asdict(self)}

    def __str__(self) -> str:
        if not self.checks:
            return f"{self.table} has no declared keys."
        verdict = "holds" if self.valid else "VIOLATES"
        lines = [f"{self.table} at version {self.version} {verdict} its constraints ({self.seconds:.2f} s)"]
        for check in self.checks:
            result = f"violated by {check.violations} values" if check.violations else "holds"
            lines.append(f"  {check.name}, {check.constraint}: {result}")
            lines += [f"    {row}" for row in check.examples]
        return "\n".join(lines)


@dataclass(frozen=True)
class StatementReport:
    """What a statement without rows did: one sentence, and details for programs."""

    message: str
    details: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"message": self.message, **self.details}

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class TableReport:
    """Rows that need no Spark: SHOW, DESCRIBE, status, history."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    title: str = ""

    def to_json(self) -> dict[str, Any]:
        keys = [column.replace(" ", "_") for column in self.columns]
        return {"title": self.title, "rows": [dict(zip(keys, row, strict=True)) for row in self.rows]}

    def __str__(self) -> str:
        cells = [self.columns, *[tuple("" if v is None else str(v) for v in row) for row in self.rows]]
        widths = [max(len(row[at]) for row in cells) for at in range(len(self.columns))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in cells
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(([self.title] if self.title else []) + lines)


@dataclass(frozen=True)
class ExplainReport:
    """The plan that runs, as text and as data."""

    text: str
    plan: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return self.plan

    def __str__(self) -> str:
        return self.text
