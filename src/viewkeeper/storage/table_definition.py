"""A table as its declaration says: columns and constraints, each checked against what it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from viewkeeper.errors import (
    InUseError,
    InvalidStatementError,
    NameExistsError,
    UnknownNameError,
    UnsupportedError,
)
from viewkeeper.generated_names import is_hidden
from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import did_you_mean
from viewkeeper.sql.statements import (
    ColumnDefinition,
    Constraint,
    CreateTable,
    DropConstraint,
    ForeignKey,
    Key,
)
from viewkeeper.storage.catalogue import Catalogue, ObjectRecord
from viewkeeper.storage.records import ForeignKeyRecord, TableRecord, ViewRecord


def defined_table(catalogue: Catalogue, table: TableRecord, statement: CreateTable) -> TableRecord:
    """The table with the columns and constraints that CREATE TABLE gives it."""
    columns = tuple(
        Column(each.name, each.data_type, each.nullable, each.comment)
        for each in column_definitions(statement)
    )
    found = with_constraints(catalogue, replace(table, columns=columns), statement.constraints)
    check_columns(found)
    return found


def column_definitions(statement: CreateTable) -> tuple[ColumnDefinition, ...]:
    """Columns of a primary key are NOT NULL, as SQL has it."""
    key = {
        name.lower()
        for constraint in statement.constraints
        if isinstance(constraint, Key) and constraint.primary
        for name in constraint.columns
    }
    return tuple(replace(d, nullable=False) if d.name.lower() in key else d for d in statement.columns)


def check_columns(table: TableRecord) -> None:
    seen: set[str] = set()
    for column in table.columns:
        if column.name.lower() in seen:
            raise InvalidStatementError(
                f"the table has two columns {column.name}; Delta does not tell upper from lower case.",
                "rename one of them.",
            )
        if "`" in column.name:
            raise UnsupportedError(
                f"the column name {column.name} has a backtick, which Delta's change feed cannot carry.",
                "rename the column.",
            )
        if is_hidden(column.name):
            raise InvalidStatementError(
                f"the column name {column.name} is reserved.", "names may not start with _vk_."
            )
        seen.add(column.name.lower())


def with_constraints(
    catalogue: Catalogue, table: TableRecord, constraints: Sequence[Constraint]
) -> TableRecord:
    """The table with these constraints, each checked against what it names."""
    for constraint in constraints:
        columns = known_columns(table, constraint.columns, "the constraint")
        if len({column.lower() for column in columns}) < len(columns):
            raise InvalidStatementError("a constraint names a column twice.", "name each column once.")
        name = constraint.name or _constraint_name(table, constraint)
        if name.lower() in {each.lower() for each in _constraint_names(table)}:
            raise NameExistsError(f"{table.name} has a constraint {name} already.", "choose another name.")
        if isinstance(constraint, Key):
            if constraint.primary and any(key.primary for key in table.keys):
                raise InvalidStatementError(
                    f"{table.name} would have two primary keys.", "declare the second one UNIQUE."
                )
            table = replace(table, keys=(*table.keys, replace(constraint, columns=columns, name=name)))
        else:
            record = _foreign_key(catalogue, table, replace(constraint, columns=columns), name)
            table = replace(table, foreign_keys=(*table.foreign_keys, record))
    return table


def known_columns(table: TableRecord, columns: Sequence[str], what: str) -> tuple[str, ...]:
    by_lower = {column.name.lower(): column.name for column in table.columns}
    for column in columns:
        if column.lower() not in by_lower:
            raise UnknownNameError(
                f"{what} names the column {column}, which {table.name} does not have.",
                did_you_mean(column, by_lower.values(), f"its columns are {', '.join(by_lower.values())}."),
            )
    return tuple(by_lower[column.lower()] for column in columns)


def _foreign_key(catalogue: Catalogue, table: TableRecord, key: ForeignKey, name: str) -> ForeignKeyRecord:
    parent: ObjectRecord | None = table if key.parent.key == table.name.key else catalogue.named(key.parent)
    if parent is None:
        tables = [str(each.name) for each in catalogue.tables.values()]
        raise UnknownNameError(
            f"the foreign key references {key.parent}, which does not exist.",
            did_you_mean(str(key.parent), tables, "create the referenced table first."),
        )
    if isinstance(parent, ViewRecord):
        raise InvalidStatementError(
            f"a foreign key cannot reference the view {key.parent}.", "reference a table."
        )
    if key.parent_columns:
        parent_columns = known_columns(parent, key.parent_columns, "the foreign key")
    else:
        parent_columns = next((each.columns for each in parent.keys if each.primary), ())
    if len(parent_columns) != len(key.columns):
        raise InvalidStatementError(
            f"the foreign key has {len(key.columns)} columns and references {len(parent_columns)}.",
            f"name the referenced columns: REFERENCES {key.parent} (…).",
        )
    require_key(parent, parent_columns, "the foreign key references")
    for mine, theirs in zip(key.columns, parent_columns, strict=True):
        my_type = next(c.data_type for c in table.columns if c.name == mine)
        their_type = next(c.data_type for c in parent.columns if c.name == theirs)
        if my_type != their_type:
            raise InvalidStatementError(
                f"the foreign key compares {mine} {my_type} with {theirs} {their_type}.", "use the same type."
            )
    return ForeignKeyRecord(key.columns, parent.id, parent_columns, name, key.rely)


def require_key(parent: TableRecord, columns: Sequence[str], who: str) -> None:
    wanted = {column.lower() for column in columns}
    if not any({column.lower() for column in key.columns} == wanted for key in parent.keys):
        raise InvalidStatementError(
            f"{who} {parent.name} ({', '.join(columns)}), which is no key.",
            f"declare it: ALTER TABLE {parent.name} ADD CONSTRAINT … UNIQUE ({', '.join(columns)}).",
        )


def _constraint_name(table: TableRecord, constraint: Constraint) -> str:
    kind = "fk" if isinstance(constraint, ForeignKey) else "pk" if constraint.primary else "unique"
    base = "_".join([table.name.name, *constraint.columns, kind]) if kind != "pk" else f"{table.name.name}_pk"
    taken, name, number = {each.lower() for each in _constraint_names(table)}, base, 2
    while name.lower() in taken:
        name, number = f"{base}{number}", number + 1
    return name


def _constraint_names(table: TableRecord) -> list[str]:
    return [key.name or "" for key in table.keys] + [key.name for key in table.foreign_keys]


def without_constraint(catalogue: Catalogue, table: TableRecord, action: DropConstraint) -> TableRecord:
    wanted = action.name.lower()
    if wanted not in {name.lower() for name in _constraint_names(table)}:
        if action.if_exists:
            return table
        raise UnknownNameError(
            f"{table.name} has no constraint {action.name}.",
            did_you_mean(action.name, _constraint_names(table), "DESCRIBE lists its constraints."),
        )
    keys = tuple(key for key in table.keys if (key.name or "").lower() != wanted)
    remaining = replace(
        table, keys=keys, foreign_keys=tuple(key for key in table.foreign_keys if key.name.lower() != wanted)
    )
    for child in [*catalogue.children_of(table.id), remaining]:
        for foreign_key in child.foreign_keys:
            if foreign_key.parent_id == table.id:
                try:
                    require_key(remaining, foreign_key.parent_columns, "it references")
                except InvalidStatementError:
                    raise InUseError(
                        f"the foreign key {foreign_key.name} of {child.name} needs this key.",
                        f"drop {foreign_key.name} first.",
                    ) from None
    return remaining
