"""Tables with their keys and foreign keys, read from CREATE TABLE statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from viewkeeper.errors import InvalidStatementError
from viewkeeper.facts.declared import Declarations, Declared, TotalForeignKey, declared_by
from viewkeeper.sql.binding import Column, Input
from viewkeeper.sql.names import QualifiedName, quote_if_needed
from viewkeeper.sql.parse_statement import parse_statement
from viewkeeper.sql.script import split_script
from viewkeeper.sql.statements import Constraint, CreateTable, ForeignKey, Key
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import TableRecord
from viewkeeper.storage.table_definition import defined_table


@dataclass(frozen=True)
class Table:
    """A table and what was declared of it. Its name is its id."""

    name: QualifiedName
    columns: tuple[Column, ...]
    keys: tuple[Key, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()

    @property
    def id(self) -> str:
        return str(self.name)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each column is in a row."""
        return {column.name: at for at, column in enumerate(self.columns)}

    @property
    def input(self) -> Input:
        return Input(self.id, self.name, self.columns)

    @cached_property
    def declared(self) -> Declared:
        """The constraints that plans may rely on: those over columns that are never NULL."""
        foreign_keys = (
            TotalForeignKey(key.columns, str(key.parent), key.parent_columns, key.name or "", key.rely)
            for key in self.foreign_keys
        )
        return declared_by(self.columns, self.keys, foreign_keys)

    def to_sql(self) -> str:
        lines = [
            f"{quote_if_needed(column.name)} {column.data_type}{'' if column.nullable else ' NOT NULL'}"
            for column in self.columns
        ]
        for key in self.keys:
            lines.append(
                f"{_named(key)}{'PRIMARY KEY' if key.primary else 'UNIQUE'} {_names(key.columns)}{_rely(key)}"
            )
        for each in self.foreign_keys:
            parent = f"{each.parent} {_names(each.parent_columns)}"
            lines.append(f"{_named(each)}FOREIGN KEY {_names(each.columns)} REFERENCES {parent}{_rely(each)}")
        return f"CREATE TABLE {self.name} ({', '.join(lines)})"


def _names(columns: Iterable[str]) -> str:
    return f"({', '.join(map(quote_if_needed, columns))})"


def _named(constraint: Constraint) -> str:
    return f"CONSTRAINT {quote_if_needed(constraint.name)} " if constraint.name else ""


def _rely(constraint: Constraint) -> str:
    return " RELY" if constraint.rely else ""


@dataclass(frozen=True)
class Schema:
    tables: tuple[Table, ...]

    @cached_property
    def by_id(self) -> Mapping[str, Table]:
        return {table.id: table for table in self.tables}

    @cached_property
    def declarations(self) -> Declarations:
        return {table.id: table.declared for table in self.tables}

    @cached_property
    def parents(self) -> frozenset[str]:
        """The tables that a foreign key which may be relied on leads to."""
        return frozenset(key.parent_id for each in self.declarations.values() for key in each.foreign_keys)

    def resolve(self, name: QualifiedName) -> Input | None:
        table = next((each for each in self.tables if each.name.key == name.key), None)
        return None if table is None else table.input

    def names(self) -> list[str]:
        return [table.id for table in self.tables]

    def to_sql(self) -> str:
        """CREATE TABLE statements that `read_schema` reads back."""
        return ";\n".join(table.to_sql() for table in self.tables)


def read_schema(script: str) -> Schema:
    """The tables of a script of CREATE TABLE statements; other statements are an error.

    >>> schema = read_schema("CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE c (p INT NOT NULL REFERENCES p)")
    >>> print(schema.to_sql())
    CREATE TABLE p (id INT NOT NULL, CONSTRAINT p_pk PRIMARY KEY (id));
    CREATE TABLE c (p INT NOT NULL, CONSTRAINT c_p_fk FOREIGN KEY (p) REFERENCES p (id))
    """
    statements = []
    for fragment in split_script(script):
        statement = parse_statement(fragment)
        if not isinstance(statement, CreateTable) or statement.query is not None:
            raise InvalidStatementError(
                "only CREATE TABLE with columns is expected here.",
                "leave other statements out.",
                fragment.locate(0, len(fragment.text)),
            )
        statements.append(statement)
    return schema_of(statements)


def schema_of(statements: Iterable[CreateTable]) -> Schema:
    """The tables as a warehouse would know them."""
    catalogue = Catalogue("")
    for statement in statements:
        table = TableRecord(str(statement.name), statement.name, (), "")
        catalogue = catalogue.with_table(defined_table(catalogue, table, statement))
    return Schema(tuple(_table(each, catalogue) for each in catalogue.tables.values()))


def _table(record: TableRecord, catalogue: Catalogue) -> Table:
    foreign_keys = tuple(
        ForeignKey(
            each.columns, catalogue.tables[each.parent_id].name, each.parent_columns, each.name, each.rely
        )
        for each in record.foreign_keys
    )
    return Table(record.name, record.columns, record.keys, foreign_keys)
