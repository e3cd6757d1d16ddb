"""The parenthesised part of CREATE TABLE and ATTACH TABLE: columns and constraints."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from viewkeeper.errors import SqlSyntaxError
from viewkeeper.sql.statements import ColumnDefinition, Constraint, ForeignKey, Key
from viewkeeper.sql.token_reader import TokenReader
from viewkeeper.sql.types import read_type

_NAMED_ON_A_COLUMN = (("PRIMARY", "KEY"), ("UNIQUE",), ("REFERENCES",), ("NOT", "NULL"), ("CHECK",))
_AFTER_DEFAULT = (",", "NOT NULL", "NULL", "PRIMARY KEY", "UNIQUE", "REFERENCES", "COMMENT", "CONSTRAINT")


@dataclass
class TableElements:
    columns: list[ColumnDefinition] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)


def read_table_elements(reader: TokenReader) -> TableElements:
    """Read `(column …, constraint …)`.

    >>> from viewkeeper.sql.script import Fragment
    >>> elements = read_table_elements(TokenReader(Fragment.whole(
    ...     "(id INT PRIMARY KEY, price DECIMAL(10,2) DEFAULT 0, UNIQUE (price, id))")))
    >>> [column.name for column in elements.columns], len(elements.constraints)
    (['id', 'price'], 2)
    """
    elements = TableElements()
    reader.expect("(")
    while True:
        if starts_constraint(reader):
            elements.constraints.append(read_constraint(reader))
        else:
            _read_column(reader, elements)
        if not reader.take(","):
            break
    reader.expect(")")
    return elements


def starts_constraint(reader: TokenReader) -> bool:
    return (
        reader.sees("CONSTRAINT")
        or reader.sees("PRIMARY", "KEY")
        or reader.sees("FOREIGN", "KEY")
        or reader.sees("UNIQUE", "(")
        or reader.sees("UNIQUE", "KEY")
        or reader.sees("CHECK", "(")
    )


def read_constraint(reader: TokenReader) -> Constraint:
    """`[CONSTRAINT name] PRIMARY KEY (…) | UNIQUE (…) | FOREIGN KEY (…) REFERENCES t [(…)] [RELY]`"""
    name = reader.identifier("the constraint's name") if reader.take("CONSTRAINT") else None
    constraint: Constraint
    if reader.take("PRIMARY", "KEY"):
        constraint = Key(reader.name_list("a column"), primary=True, name=name)
    elif reader.take("UNIQUE"):
        reader.take("KEY")
        constraint = Key(reader.name_list("a column"), primary=False, name=name)
    elif reader.take("FOREIGN", "KEY"):
        columns = reader.name_list("a column")
        constraint = _read_references(reader, columns, name)
    elif reader.sees("CHECK"):
        raise reader.error(
            "CHECK constraints are not kept by Viewkeeper.", "filter in the view's query instead."
        )
    else:
        raise reader.error("PRIMARY KEY, UNIQUE or FOREIGN KEY is expected here.")
    return replace(constraint, rely=_read_rely(reader))


def _read_references(reader: TokenReader, columns: tuple[str, ...], name: str | None) -> ForeignKey:
    reader.expect("REFERENCES")
    parent = reader.name("the referenced table")
    parent_columns = reader.name_list("a column") if reader.sees("(") else ()
    return ForeignKey(columns, parent, parent_columns, name)


def _read_rely(reader: TokenReader) -> bool:
    reader.take("NOT", "ENFORCED")
    if reader.take("NORELY"):
        return False
    return reader.take("RELY")


def _read_column(reader: TokenReader, elements: TableElements) -> None:
    column = ColumnDefinition(reader.identifier("a column name"), read_type(reader))
    constraint_name: str | None = None
    while True:
        if reader.take("CONSTRAINT"):
            constraint_name = reader.identifier("the constraint's name")
            if not any(reader.sees(*words) for words in _NAMED_ON_A_COLUMN):
                raise reader.error("PRIMARY KEY, UNIQUE, REFERENCES or NOT NULL is expected here.")
            continue
        if reader.take("NOT", "NULL"):
            column = replace(column, nullable=False)
        elif reader.take("NULL"):
            column = replace(column, nullable=True)
        elif reader.take("PRIMARY", "KEY"):
            key = Key((column.name,), primary=True, name=constraint_name)
            elements.constraints.append(replace(key, rely=_read_rely(reader)))
        elif reader.take("UNIQUE"):
            key = Key((column.name,), primary=False, name=constraint_name)
            elements.constraints.append(replace(key, rely=_read_rely(reader)))
        elif reader.sees("REFERENCES"):
            foreign_key = _read_references(reader, (column.name,), constraint_name)
            elements.constraints.append(replace(foreign_key, rely=_read_rely(reader)))
        elif reader.take("DEFAULT"):
            column = replace(column, default=reader.text_until(*_AFTER_DEFAULT).text)
        elif reader.take("COMMENT"):
            column = replace(column, comment=reader.string("the comment"))
        elif reader.sees("CHECK"):
            read_constraint(reader)
        elif reader.sees("GENERATED"):
            raise SqlSyntaxError(
                "generated columns are not supported in base tables.",
                "compute the column in the view's query.",
                reader.error("").location,
            )
        else:
            break
        constraint_name = None
    elements.columns.append(column)
