"""The interactive prompt: history, completion of names, one statement at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory

from viewkeeper.cli.output import Output
from viewkeeper.errors import SqlSyntaxError, ViewkeeperError
from viewkeeper.sql.script import split_script

_WORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "ORDER",
    "BY",
    "JOIN",
    "LEFT",
    "ON",
    "AS",
    "CREATE",
    "TABLE",
    "MATERIALIZED",
    "VIEW",
    "REFRESH",
    "ALL",
    "VERIFY",
    "EXPLAIN",
    "DESCRIBE",
    "HISTORY",
    "SHOW",
    "TABLES",
    "VIEWS",
    "DROP",
    "ALTER",
    "INSERT",
    "INTO",
    "VALUES",
    "UPDATE",
    "SET",
    "DELETE",
    "MERGE",
    "VACUUM",
    "WAREHOUSE",
    "RETAIN",
    "EPOCHS",
    "PRIMARY",
    "KEY",
    "FOREIGN",
    "REFERENCES",
    "UNIQUE",
    "NOT",
    "NULL",
    "AUTO",
    "INCREMENTAL",
    "STRICT",
    "FULL",
    "ATTACH",
    "DELTA",
]

_HELP = "End a statement with ; and press Enter. \\q leaves, \\h shows this."


def run_interactively(warehouse: Any, output: Output) -> None:
    output.say(f"Viewkeeper at {warehouse.path}. {_HELP}")
    history = FileHistory(str(Path.home() / ".viewkeeper_history"))
    prompt: PromptSession[str] = PromptSession(history=history, enable_open_in_editor=True)
    pending = ""
    while True:
        completer = WordCompleter([*_WORDS, *warehouse.names()], ignore_case=True)
        try:
            line = prompt.prompt("viewkeeper> " if not pending else "         .> ", completer=completer)
        except KeyboardInterrupt:
            pending = ""
            continue
        except EOFError:
            break
        if not pending and line.strip() in ("\\q", "quit", "exit"):
            break
        if not pending and line.strip() in ("\\h", "help", "?"):
            output.say(_HELP)
            continue
        pending += line + "\n"
        if is_complete(pending):
            _run(warehouse, pending, output)
            pending = ""
    warehouse.close()


def is_complete(text: str) -> bool:
    """Whether the text ends with a semicolon outside quotes and comments.

    >>> is_complete("SELECT ';"), is_complete("SELECT 1; -- done"), is_complete("SELECT 1")
    (False, True, False)
    """
    if not text.strip():
        return True
    try:
        before = len(list(split_script(text)))
        return len(list(split_script(text + "\nSELECT 1"))) > before
    except SqlSyntaxError:
        return False


def _run(warehouse: Any, text: str, output: Output) -> None:
    try:
        warehouse.run_script(text, lambda fragment, result: output.result(result))
    except ViewkeeperError as error:
        output.error(error)
    except KeyboardInterrupt:
        output.say("interrupted; nothing was published.")
