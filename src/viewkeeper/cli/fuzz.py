"""`viewkeeper fuzz`: is a view right after random changes? On DuckDB, without a warehouse and without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from viewkeeper.cli.output import Output
from viewkeeper.errors import EnvironmentProblem, InvalidStatementError, UserError
from viewkeeper.sql.binding import bind_query
from viewkeeper.sql.parse_statement import parse_statement
from viewkeeper.sql.script import Fragment, split_script
from viewkeeper.sql.statements import CreateTable, CreateView, Query

DIFFERS = 6
"""The exit code if a maintained view differs from its query, as of `verify`."""


def fuzz(
    view: Annotated[
        Path, typer.Argument(help="A file with CREATE MATERIALIZED VIEW statements, or with one query.")
    ],
    schema: Annotated[
        Path | None,
        typer.Option("--schema", help="A file with CREATE TABLE statements; they may stand in VIEW too."),
    ] = None,
    cases: Annotated[
        int, typer.Option("--cases", min=1, help="How many streams of random changes for each view.")
    ] = 100,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0, help="Stop after this time for each view; 0: never.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", help="Other seeds give other rows and changes.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")] = False,
) -> None:
    """Try views with random rows and changes on DuckDB; exit code 6 if one is ever wrong."""
    if find_spec("duckdb") is None:
        raise EnvironmentProblem(
            "fuzz needs DuckDB, which is not installed.", 'pip install "viewkeeper[testing]"'
        )
    from viewkeeper.testing.fuzzing import fuzz_view
    from viewkeeper.testing.tables import schema_of

    output = Output(as_json)
    script = _read_files(view, schema)
    tables = schema_of(script.tables)
    for _, query in script.views:
        problems = bind_query(query, tables.resolve, tables.names).problems
        if problems:
            raise problems[0]
    is_right = True
    for name, query in script.views:
        report = fuzz_view(tables, query.text, name, cases, seconds, seed)
        output.result(report)
        is_right = is_right and report.equal
    if not is_right:
        raise typer.Exit(DIFFERS)


@dataclass(frozen=True)
class _Script:
    tables: list[CreateTable]
    views: list[tuple[str, Fragment]]


def _read_files(view: Path, schema: Path | None) -> _Script:
    """The tables of both files, and the views with their queries."""
    script = _Script([], [])
    for file in (schema, view):
        for fragment in split_script(_text(file)) if file is not None else ():
            statement = parse_statement(fragment)
            if isinstance(statement, CreateTable) and statement.query is None:
                script.tables.append(statement)
            elif isinstance(statement, CreateView):
                script.views.append((str(statement.name), statement.query))
            elif isinstance(statement, Query):
                script.views.append((view.stem, statement.text))
            else:
                raise InvalidStatementError(
                    "fuzz takes CREATE TABLE with columns, CREATE MATERIALIZED VIEW, and queries.",
                    "leave other statements out.",
                    fragment.locate(0, len(fragment.text)),
                )
    if not script.views:
        raise UserError(
            f"there is no view in {view}.", "write CREATE MATERIALIZED VIEW v AS SELECT …, or a query."
        )
    if not script.tables:
        raise UserError(
            "there are no tables for the view to read.",
            "name a file with CREATE TABLE statements: --schema FILE.",
        )
    return script


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the file {file} cannot be read: {error}.", "check its path.") from None
