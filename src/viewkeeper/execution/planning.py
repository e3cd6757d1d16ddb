"""Views that are planned and not created: over the tables of a warehouse, or over those that a script declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from viewkeeper.errors import InvalidStatementError, NameExistsError
from viewkeeper.execution.base_tables import altered
from viewkeeper.execution.describe import as_if_created, emit_triggers, explain_create
from viewkeeper.execution.reports import ExplainReport
from viewkeeper.sql.parse_statement import parse_statement
from viewkeeper.sql.references import parse_query
from viewkeeper.sql.script import Fragment, split_script
from viewkeeper.sql.statements import AlterTable, AttachTable, CreateTable, CreateView, Drop
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.layout import new_id
from viewkeeper.storage.records import TableRecord
from viewkeeper.storage.table_definition import defined_table


@dataclass(frozen=True)
class Planner:
    """`schema` names the script that the tables are from; without it they are those of a warehouse."""

    catalogue: Catalogue
    schema: str | None = None

    def explain(self, statements: Sequence[CreateView]) -> list[ExplainReport]:
        """How these views would be maintained; a view may read others of them."""
        reports, catalogue = [], self.catalogue
        for statement in _in_order(statements):
            found = explain_create(catalogue, statement)
            reports.append(replace(found, plan={**self._origin, **found.plan}))
            catalogue = as_if_created(catalogue, statement)
        return reports

    def emit_postgres(self, statements: Sequence[CreateView]) -> str:
        """These views as PostgreSQL tables that triggers keep."""
        script = emit_triggers(self.catalogue, _in_order(statements))
        return script if self.schema is None else f"-- {self.origin}\n\n{script}"

    @property
    def origin(self) -> str | None:
        return None if self.schema is None else f"tables and keys as {self.schema} declares them"

    @property
    def _origin(self) -> dict[str, str]:
        return {} if self.schema is None else {"schema": self.schema}


def planned_views(text: str) -> list[CreateView]:
    """The statements of a script of views that are only planned."""
    found = []
    for fragment in split_script(text):
        statement = parse_statement(fragment)
        if not isinstance(statement, CreateView):
            raise InvalidStatementError(
                "only CREATE MATERIALIZED VIEW can be planned.",
                "put one or more such statements into the file.",
                fragment.locate(0, len(fragment.text)),
            )
        found.append(statement)
    return found


def _in_order(statements: Sequence[CreateView]) -> list[CreateView]:
    """As given, but each view after those of the others that it reads."""
    waiting, ordered = list(statements), list[CreateView]()
    while waiting:
        names = {each.name.key for each in waiting}
        free = next((each for each in waiting if not names & _reads(each) - {each.name.key}), waiting[0])
        waiting.remove(free)
        ordered.append(free)
    return ordered


def _reads(statement: CreateView) -> set[str]:
    return {reference.name.key for reference in parse_query(statement.query).references}


def catalogue_of(script: str) -> Catalogue:
    """The tables and views that a script leaves behind. Statements that declare nothing, such as INSERT, are passed over.

    >>> [str(each.name) for each in catalogue_of("CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t VALUES (1)").objects()]
    ['t']
    """
    catalogue = Catalogue("")
    for fragment in split_script(script):
        catalogue = _declared(catalogue, fragment)
    return catalogue


def _declared(catalogue: Catalogue, fragment: Fragment) -> Catalogue:
    statement = parse_statement(fragment)
    match statement:
        case CreateTable(query=None) if _is_new(catalogue, statement):
            known = catalogue.named(statement.name)
            table_id = known.id if known is not None else new_id()
            table = TableRecord(table_id, statement.name, (), "", comment=statement.comment)
            return catalogue.with_table(defined_table(catalogue, table, statement))
        case CreateView() if _is_new(catalogue, statement):
            return as_if_created(catalogue, statement)
        case AlterTable():
            return altered(catalogue, statement)
        case Drop(_, name, if_exists) if (found := catalogue.named(name)) is not None or if_exists:
            return catalogue if found is None else catalogue.without(found.id)
        case CreateTable(query=Fragment()) | AttachTable():
            raise InvalidStatementError(
                f"the columns of {statement.name} are not known without its data.",
                "write CREATE TABLE with its columns and keys, or name a warehouse that has it: -w WAREHOUSE.",
                fragment.locate(0, len(fragment.text)),
            )
        case _:
            return catalogue


def _is_new(catalogue: Catalogue, statement: CreateTable | CreateView) -> bool:
    """Whether the statement says something that is not known; else it must be IF NOT EXISTS."""
    known = catalogue.named(statement.name)
    if known is None or statement.or_replace:
        return True
    if statement.if_not_exists:
        return False
    raise NameExistsError(f"{statement.name} is created twice.", "leave one of the two statements out.")
