"""What a user can say, each statement a frozen dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.script import Fragment
from viewkeeper.sql.types import DataType


class RefreshPolicy(Enum):
    AUTO = "AUTO"
    INCREMENTAL = "INCREMENTAL"
    STRICT = "STRICT"
    FULL = "FULL"


class Operation(Enum):
    """What can happen to the rows of a table."""

    INSERT = "INSERT"
    DELETE = "DELETE"
    UPDATE = "UPDATE"


@dataclass(frozen=True)
class ColumnDefinition:
    name: str
    data_type: DataType
    nullable: bool = True
    default: str | None = None
    comment: str | None = None


@dataclass(frozen=True)
class Key:
    """PRIMARY KEY or UNIQUE. `rely`: trusted, never checked."""

    columns: tuple[str, ...]
    primary: bool
    name: str | None = None
    rely: bool = False


@dataclass(frozen=True)
class ForeignKey:
    columns: tuple[str, ...]
    parent: QualifiedName
    parent_columns: tuple[str, ...]
    name: str | None = None
    rely: bool = False


Constraint: TypeAlias = Key | ForeignKey


@dataclass(frozen=True)
class CreateTable:
    name: QualifiedName
    columns: tuple[ColumnDefinition, ...]
    constraints: tuple[Constraint, ...]
    comment: str | None = None
    query: Fragment | None = None
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class AttachTable:
    name: QualifiedName
    uri: str | None
    catalogue_name: str | None
    constraints: tuple[Constraint, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class SetUpdatable:
    columns: tuple[str, ...]


@dataclass(frozen=True)
class SetAppendOnly:
    append_only: bool


@dataclass(frozen=True)
class AddConstraint:
    constraint: Constraint


@dataclass(frozen=True)
class DropConstraint:
    name: str
    if_exists: bool


@dataclass(frozen=True)
class RenameTo:
    name: QualifiedName


@dataclass(frozen=True)
class SetPolicy:
    policy: RefreshPolicy


@dataclass(frozen=True)
class AlterTable:
    name: QualifiedName
    action: SetUpdatable | SetAppendOnly | AddConstraint | DropConstraint | RenameTo


@dataclass(frozen=True)
class CreateView:
    name: QualifiedName
    query: Fragment
    policy: RefreshPolicy = RefreshPolicy.AUTO
    comment: str | None = None
    or_replace: bool = False
    if_not_exists: bool = False
    goes_on_after_violation: bool = False
    rematerialized_on: tuple[tuple[Operation, QualifiedName], ...] = ()
    """Operations on tables after which the whole view is to be evaluated."""


@dataclass(frozen=True)
class AlterView:
    """ALTER MATERIALIZED VIEW: another query, another name or another policy."""

    name: QualifiedName
    action: Fragment | RenameTo | SetPolicy


@dataclass(frozen=True)
class Refresh:
    """`names` empty: all views. `full`: recompute them, changed or not."""

    names: tuple[QualifiedName, ...]
    full: bool = False


@dataclass(frozen=True)
class ExplainView:
    name: QualifiedName


@dataclass(frozen=True)
class ExplainCreate:
    create: CreateView


@dataclass(frozen=True)
class ExplainRules:
    name: QualifiedName


@dataclass(frozen=True)
class VerifyView:
    name: QualifiedName


@dataclass(frozen=True)
class VerifyTable:
    """Check the declared constraints of a table over all its rows."""

    name: QualifiedName


@dataclass(frozen=True)
class RestoreView:
    """Put a view's table back to its published epoch after somebody else wrote into it."""

    name: QualifiedName


@dataclass(frozen=True)
class Show:
    """`what` is 'tables' or 'views'."""

    what: str


@dataclass(frozen=True)
class Describe:
    name: QualifiedName
    history: bool = False


@dataclass(frozen=True)
class Drop:
    """`what` is 'table' or 'view'."""

    what: str
    name: QualifiedName
    if_exists: bool = False


@dataclass(frozen=True)
class VacuumWarehouse:
    retain_epochs: int


@dataclass(frozen=True)
class Query:
    text: Fragment


@dataclass(frozen=True)
class ChangeData:
    """INSERT, UPDATE, DELETE, MERGE or TRUNCATE on a base table. `verb` is its first word."""

    verb: str
    text: Fragment


Statement: TypeAlias = (
    CreateTable
    | AttachTable
    | AlterTable
    | CreateView
    | AlterView
    | Refresh
    | ExplainView
    | ExplainCreate
    | ExplainRules
    | VerifyView
    | VerifyTable
    | RestoreView
    | Show
    | Describe
    | Drop
    | VacuumWarehouse
    | Query
    | ChangeData
)
