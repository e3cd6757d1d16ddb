"""`viewkeeper`: the same SQL and the same reports, in a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from viewkeeper.cli.fuzz import fuzz
from viewkeeper.cli.output import Output
from viewkeeper.errors import UserError, ViewkeeperError
from viewkeeper.execution.planning import Planner, catalogue_of, planned_views

app = typer.Typer(
    help="Keeps SQL materialized views fresh on Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

WarehouseOption = Annotated[
    str,
    typer.Option(
        "--warehouse", "-w", envvar="VIEWKEEPER_WAREHOUSE", help="The warehouse: a folder or a URI."
    ),
]
SparkOption = Annotated[
    str | None,
    typer.Option(
        "--spark", envvar="VIEWKEEPER_SPARK", help="spark://… or sc://…; without it Spark runs locally."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]


def _open(warehouse: str, spark: str | None, output: Output, create: bool = False) -> Any:
    from viewkeeper.warehouse import Warehouse

    opened = Warehouse(warehouse, spark, create=create, on_progress=output.progress)
    if opened.is_new:
        output.note(f"created a new warehouse at {opened.path}")
    return opened


@app.command()
def init(
    warehouse: Annotated[str, typer.Argument(help="The folder or URI to create.")],
    as_json: JsonOption = False,
) -> None:
    """Create a warehouse."""
    output = Output(as_json)
    opened = _open(warehouse, None, output, create=True)
    output.say(f"warehouse at {opened.path}", {"warehouse": opened.path})


@app.command()
def sql(
    warehouse: WarehouseOption,
    execute: Annotated[str | None, typer.Option("--execute", "-e", help="Statements to run.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="A script to run; - reads standard input.")
    ] = None,
    spark: SparkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run SQL: one -e, one -f, or typed in."""
    output = Output(as_json)
    if execute is not None and file is not None:
        raise UserError("-e and -f do not go together.", "give one of them.")
    if execute is None and file is None and sys.stdin.isatty():
        from viewkeeper.cli.interactive import run_interactively

        run_interactively(_open(warehouse, spark, output, create=True), output)
        return
    text = execute if execute is not None else _read_script(file)
    with _open(warehouse, spark, output, create=True) as opened:
        opened.run_script(text, lambda fragment, result: output.result(result))


def _read_script(file: Path | None) -> str:
    if file is None or str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the script {file} cannot be read: {error}.", "check its path.") from None


SCHEMA = "schema.sql"


class EmitTarget(str, Enum):
    """Databases that can carry out the rules of views themselves."""

    POSTGRES = "postgres"


@app.command()
def plan(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="Files with CREATE MATERIALIZED VIEW statements.")],
    warehouse: Annotated[
        str | None,
        typer.Option(
            "--warehouse",
            "-w",
            envvar="VIEWKEEPER_WAREHOUSE",
            help="The warehouse with the tables that the views read.",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            help="Instead of a warehouse: a file with CREATE TABLE statements. Without both, schema.sql beside "
            "the files or in the folder above.",
        ),
    ] = None,
    emit: Annotated[
        EmitTarget | None, typer.Option(help="Write the rules of the views for a database instead.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show how views would be maintained, without creating them and without Spark."""
    output = Output(as_json)
    source = context.get_parameter_source("warehouse")
    if schema is not None and source is not None and source.name == "COMMANDLINE":
        raise UserError("-w and --schema do not go together.", "give one of them.")
    views = [statement for file in files for statement in planned_views(_read_script(file))]
    if schema is None and warehouse is not None:
        planner = _open(warehouse, None, output).planner()
    else:
        planner = _planner_over(schema if schema is not None else schema_beside(files))
    if emit is EmitTarget.POSTGRES:
        script = planner.emit_postgres(views)
        data = {"sql": script} if planner.schema is None else {"schema": planner.schema, "sql": script}
        output.say(script.rstrip("\n"), data)
        return
    if planner.origin is not None and not as_json:
        output.say(f"{planner.origin}\n")
    for report in planner.explain(views):
        output.result(report)


def _planner_over(schema: Path) -> Planner:
    return Planner(catalogue_of(_read_script(schema)), str(schema))


def schema_beside(files: Sequence[Path]) -> Path:
    """The schema.sql of the project that the files are in: beside them, or in the folder above theirs."""
    found: dict[Path, Path] = {}
    for file in files:
        near = [
            file.parent / SCHEMA,
            file.parent.parent / SCHEMA if file.parent.name else Path("..") / SCHEMA,
        ]
        schema = next((each for each in near if each.is_file()), None)
        if schema is None:
            raise UserError(
                f"which tables does {file} read? There is no {SCHEMA} beside it or in the folder above.",
                "name a file with CREATE TABLE statements (--schema FILE), or a warehouse (-w WAREHOUSE).",
            )
        found.setdefault(schema.resolve(), schema)
    if len(found) > 1:
        names = " and ".join(map(str, found.values()))
        raise UserError(f"the files belong to {names}.", "plan them apart, or name one with --schema FILE.")
    return next(iter(found.values()))


@app.command()
def refresh(
    warehouse: WarehouseOption,
    views: Annotated[list[str] | None, typer.Argument(help="The views; none means all.")] = None,
    spark: SparkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring views up to date with their tables."""
    output = Output(as_json)
    with _open(warehouse, spark, output) as opened:
        output.result(opened.refresh(*(views or [])))


@app.command()
def verify(
    warehouse: WarehouseOption,
    views: Annotated[list[str] | None, typer.Argument(help="The views; none means all.")] = None,
    spark: SparkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute views at the versions they were made from and compare; exit code 6 if one differs."""
    output = Output(as_json)
    with _open(warehouse, spark, output) as opened:
        reports = [opened.verify(view) for view in views or opened.view_names()]
        for report in reports:
            output.result(report)
    if not all(report.equal for report in reports):
        raise typer.Exit(6)


@app.command()
def status(warehouse: WarehouseOption, as_json: JsonOption = False) -> None:
    """Show the views, how fresh they are, and epochs under way."""
    output = Output(as_json)
    opened = _open(warehouse, None, output)
    views, unfinished = opened.views(), opened.unfinished()
    if as_json:
        output.json({"views": views.to_json()["rows"], "unfinished_epochs": unfinished.to_json()["rows"]})
        return
    output.result(views)
    if unfinished.rows:
        output.result(unfinished)


@app.command()
def history(
    warehouse: WarehouseOption,
    view: Annotated[str | None, typer.Argument(help="One view; without it all.")] = None,
    last: Annotated[int, typer.Option("--last", "-n", min=1, help="How many entries.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Show what past epochs did."""
    from viewkeeper.execution.describe import history_report

    output = Output(as_json)
    entries = _open(warehouse, None, output).history(view, last)
    if as_json:
        output.json([entry.to_json() for entry in entries])
    else:
        output.result(history_report(entries))


app.command()(fuzz)


@app.command()
def doctor(
    as_json: JsonOption = False,
    quick: Annotated[bool, typer.Option("--quick", help="Do not start Spark.")] = False,
) -> None:
    """Check Java, the Delta jars, Spark and Delta, and say what to do."""
    from viewkeeper.execution.doctor import diagnose

    output = Output(as_json)
    findings = diagnose(start_spark=not quick)
    output.findings(findings)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(5)


@app.command()
def demo(
    warehouse: Annotated[str, typer.Argument(help="Where to leave the demo's warehouse.")] = "demo-warehouse",
    lines: Annotated[int, typer.Option(help="How many sales lines to generate.")] = 1_000_000,
    rounds: Annotated[int, typer.Option(help="How many rounds of changes.")] = 3,
    spark: SparkOption = None,
) -> None:
    """A department store: a million sales lines, two views, rounds of changes, refreshes, proof."""
    from viewkeeper.cli.demo import run_demo

    run_demo(warehouse, lines, rounds, spark, Output(False))


@app.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as version_of

    typer.echo(f"viewkeeper {version_of('viewkeeper')}")


def main() -> None:
    """The entry point: every error is one clear message and a non-zero exit code."""
    code = 0
    try:
        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
    except ViewkeeperError as error:
        if "--json" in sys.argv:
            print(json.dumps(error.as_json(), default=str))
        else:
            Output(False).error(error)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted; nothing was published.", file=sys.stderr)
        _leave_at_once(130)
    except BrokenPipeError:
        _leave_at_once(0)
    except Exception as error:
        # A wrong option or command: typer keeps these classes private.
        if not hasattr(error, "show") or not hasattr(error, "exit_code"):
            raise
        error.show()
        code = error.exit_code
    sys.exit(code)


def _leave_at_once(code: int) -> None:
    """Leave without waiting for a JVM that was interrupted too, and without closing a pipe nobody reads."""
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
