"""Which alias of the tree a name in the query means."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.sql.rendering import column


class Outside(Exception):
    """The query cannot be read; the message is a clause that can follow "because". `function` is what it is about."""

    def __init__(self, reason: str, function: str | None = None) -> None:
        super().__init__(reason)
        self.function = function


@dataclass
class Scope:
    """The sources that one SELECT can name, and those of the queries around it. `columns` are known by table and name
    where only some columns of a table can be named: above groups."""

    parent: Scope | None = None
    aliases: dict[str, str] = field(default_factory=dict)
    columns: dict[tuple[str, str], exp.Column] = field(default_factory=dict)
    ctes: dict[str, exp.CTE] = field(default_factory=dict)

    def add(self, written: str, name: str) -> None:
        self.aliases[written.lower()] = name

    def cte(self, name: str) -> tuple[exp.CTE, Scope] | None:
        """A query of a WITH clause, and where it was written."""
        scope: Scope | None = self
        while scope is not None:
            if name.lower() in scope.ctes:
                return scope.ctes[name.lower()], scope
            scope = scope.parent
        return None

    def column(self, written: exp.Column) -> exp.Column:
        """A column of the query as one of the tree."""
        if not written.table:
            raise Outside(f"the column {written.name} belongs to no table")
        scope: Scope | None = self
        table = written.table.lower()
        while scope is not None:
            if table in scope.aliases:
                return column(written.name, scope.aliases[table])
            if (table, written.name.lower()) in scope.columns:
                return scope.columns[table, written.name.lower()].copy()
            scope = scope.parent
        raise Outside(f"the column {written.name} belongs to no table")
