"""Tables with their keys and foreign keys, read from CREATE TABLE statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from viewkeeper.errors import InvalidStatementError, UnknownNameError
from viewkeeper.facts.declared import Declarations, Declared, TotalForeignKey, UniqueKey
from viewkeeper.sql.binding import Column, Input
from viewkeeper.sql.names import QualifiedName, did_you_mean, quote_if_needed
from viewkeeper.sql.parse_statement import parse_statement
from viewkeeper.sql.script import split_script
from viewkeeper.sql.statements import ColumnDefinition, Constraint, CreateTable, ForeignKey, Key


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
        never_null = {column.name for column in self.columns if not column.nullable}
        return Declared(
            tuple(
                UniqueKey(key.columns, key.name or "", key.rely)
                for key in sorted(self.keys, key=lambda key: not key.primary)
                if never_null.issuperset(key.columns)
            ),
            tuple(
                TotalForeignKey(key.columns, str(key.parent), key.parent_columns, key.name or "", key.rely)
                for key in self.foreign_keys
                if never_null.issuperset(key.columns)
            ),
            tuple(
                UniqueKey(key.columns, key.name or "", key.rely)
                for key in self.keys
                if not never_null.issuperset(key.columns)
            ),
        )

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
    tables: dict[str, Table] = {}
    for statement in statements:
        keys = tuple(
            _with_column_case(replace(each, name=each.name or _key_name(statement, each)), statement.columns)
            for each in statement.constraints
            if isinstance(each, Key)
        )
        never_null = {name for key in keys if key.primary for name in key.columns}
        columns = tuple(
            Column(each.name, each.data_type, each.nullable and each.name not in never_null)
            for each in statement.columns
        )
        tables[statement.name.key] = Table(statement.name, columns, keys)
        foreign_keys = tuple(
            _resolved(statement, each, tables)
            for each in statement.constraints
            if isinstance(each, ForeignKey)
        )
        tables[statement.name.key] = replace(tables[statement.name.key], foreign_keys=foreign_keys)
    return Schema(tuple(tables.values()))


def _key_name(statement: CreateTable, key: Key) -> str:
    columns = "" if key.primary else f"_{'_'.join(key.columns)}"
    return f"{statement.name.relation_stem}{columns}_{'pk' if key.primary else 'key'}"


def _with_column_case(key: Key, columns: Iterable[ColumnDefinition]) -> Key:
    return replace(key, columns=_as_declared(key.columns, [column.name for column in columns]))


def _as_declared(names: Iterable[str], declared: list[str]) -> tuple[str, ...]:
    by_lower = {name.lower(): name for name in declared}
    for name in names:
        if name.lower() not in by_lower:
            raise UnknownNameError(
                f"there is no column {name} to put a constraint on.", did_you_mean(name, declared)
            )
    return tuple(by_lower[name.lower()] for name in names)


def _resolved(statement: CreateTable, key: ForeignKey, tables: Mapping[str, Table]) -> ForeignKey:
    parent = tables.get(key.parent.key)
    if parent is None:
        raise UnknownNameError(
            f"{statement.name} refers to {key.parent}, which is not created before it.",
            did_you_mean(str(key.parent), [str(each.name) for each in tables.values()], "create it first."),
        )
    primary = next((each.columns for each in parent.keys if each.primary), ())
    parent_columns = key.parent_columns or primary
    if len(parent_columns) != len(key.columns):
        raise InvalidStatementError(
            f"the foreign key of {statement.name} has not as many columns as the key of {key.parent}.",
            "name the columns of both.",
        )
    return replace(
        key,
        columns=_as_declared(key.columns, [column.name for column in statement.columns]),
        parent=parent.name,
        parent_columns=_as_declared(parent_columns, [column.name for column in parent.columns]),
        name=key.name or f"{statement.name.relation_stem}_{'_'.join(key.columns)}_fk",
    )
