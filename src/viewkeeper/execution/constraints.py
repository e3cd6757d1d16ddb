"""Which declared constraints a refresh may rely on, and what becomes of those that turn out violated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.errors import ConstraintViolatedError
from viewkeeper.execution.verify_table import verify_table
from viewkeeper.execution.workspace import Workspace, definition_of
from viewkeeper.facts.declared import (
    Declarations,
    Declared,
    Reliance,
    TotalForeignKey,
    UniqueKey,
    declared_by,
)
from viewkeeper.facts.keys import key_of
from viewkeeper.maintenance.build_plan import child_parent_pairs
from viewkeeper.maintenance.rules.leaving import decides_deletions
from viewkeeper.maintenance.rules.plan_rules import why_not_run
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import Publication, TableRecord, ViewRecord

RELIED_ROWS = 10_000_000
"""Below this many rows of the child a term that a foreign key makes empty costs less than the checks: with a million
rows, a refresh of the demo took 4.6 s with the checks and 3.1 s with the term."""


def declarations(catalogue: Catalogue, definition: ViewDefinition) -> Declarations:
    """The constraints of the view's tables that may be relied on: over NOT NULL columns, and not distrusted."""
    found = {}
    for each in definition.query.inputs:
        record = catalogue.object(each.object_id)
        if isinstance(record, TableRecord):
            found[record.id] = _declared(record)
    return found


def known_keys(catalogue: Catalogue, definition: ViewDefinition) -> Declarations:
    """What is known of the view's tables and of the views below it, if everything that is declared holds: a view's key
    follows from its query. For verdicts; no refresh relies on the key of a view."""
    found = dict(declarations(catalogue, definition))
    for each in definition.query.inputs:
        record = catalogue.object(each.object_id)
        if isinstance(record, ViewRecord):
            key = likely_key(record, catalogue)
            if key is not None:
                found[record.id] = Declared((UniqueKey(key, f"the key of {record.name}"),))
    return found


def likely_key(view: ViewRecord, catalogue: Catalogue) -> tuple[str, ...] | None:
    """Columns that tell the rows of a view apart if everything that is declared holds: none at all if it has one row."""
    definition = definition_of(view, catalogue)
    if isinstance(definition.algebra, OutsideAlgebra):
        return None
    key = key_of(definition.algebra, known_keys(catalogue, definition))
    return None if key is None else key.columns


def reliable_declarations(
    workspace: Workspace, catalogue: Catalogue, definition: ViewDefinition
) -> Declarations:
    """The same, as far as relying on them pays: foreign keys of large tables, and keys by which rules keep the view or the
    view tells which of its rows leave."""

    def is_large(table_id: str) -> bool:
        return workspace.log.row_count(workspace.data_address(catalogue.tables[table_id])) >= RELIED_ROWS

    return _paying(definition, declarations(catalogue, definition), is_large)


def planned_declarations(catalogue: Catalogue, definition: ViewDefinition) -> Declarations:
    """What a refresh of a view that does not exist yet would rely on, if its tables are not large."""
    return _paying(definition, declarations(catalogue, definition), lambda table_id: False)


def _paying(definition: ViewDefinition, every: Declarations, is_large: Callable[[str], bool]) -> Declarations:
    declared = dict(every)
    children = {child for child, _ in child_parent_pairs(replace(definition, declared=declared))}
    for child in children:
        if not is_large(child):
            declared[child] = replace(declared[child], foreign_keys=())
    if any(found.foreign_keys for found in declared.values()):
        return declared
    by_rules = why_not_run(definition, declared) is None
    return declared if by_rules or decides_deletions(replace(definition, declared=declared)) else {}


def _declared(table: TableRecord) -> Declared:
    foreign_keys = (
        TotalForeignKey(key.columns, key.parent_id, key.parent_columns, key.name, key.rely)
        for key in table.foreign_keys
        if key.name not in table.distrusted
    )
    keys = [key for key in table.keys if key.name not in table.distrusted]
    return declared_by(table.columns, keys, foreign_keys, table.append_only)


def checked(catalogue: Catalogue, relies_on: Iterable[Reliance]) -> tuple[Reliance, ...]:
    """Those of the constraints that a refresh has checked, as it relied on them: what is declared RELY it has not."""
    found = []
    for each in sorted(relies_on):
        table = catalogue.tables[each.object_id]
        trusted = {key.name for key in table.keys if key.rely}
        trusted |= {key.name for key in table.foreign_keys if key.rely}
        if each.constraint not in trusted:
            found.append(each)
    return tuple(found)


def as_verified(catalogue: Catalogue, relies_on: Iterable[Reliance]) -> tuple[tuple[str, str], ...]:
    """Constraints that hold, as a publication keeps them: by table, and by name with what they say. A constraint that was
    dropped and added again under its name says something else, or the same of the same rows."""
    return tuple(
        (each.object_id, statement)
        for each in sorted(relies_on)
        for name, statement in _statements(catalogue.tables[each.object_id])
        if name == each.constraint
    )


def verified_by(catalogue: Catalogue, published: Publication) -> frozenset[Reliance]:
    """The constraints, as they are declared now, that are known to hold at the versions of a publication."""
    known = set(published.verified)
    return frozenset(
        Reliance(table.id, name)
        for table in catalogue.tables.values()
        for name, statement in _statements(table)
        if (table.id, statement) in known
    )


def _statements(table: TableRecord) -> Iterator[tuple[str, str]]:
    for key in table.keys:
        kind = "PRIMARY KEY" if key.primary else "UNIQUE"
        yield key.name or "", f"{key.name} {kind} ({', '.join(key.columns)})"
    for each in table.foreign_keys:
        there = f"{each.parent_id} ({', '.join(each.parent_columns)})"
        yield each.name, f"{each.name} FOREIGN KEY ({', '.join(each.columns)}) REFERENCES {there}"


def holds_now(workspace: Workspace, catalogue: Catalogue, violation: ConstraintViolatedError) -> bool:
    """Whether a violated constraint holds at the newest versions: then only the pinned ones do not fit together."""
    table = next(t for t in catalogue.tables.values() if str(t.name) == violation.table)
    report = verify_table(workspace, catalogue, table, violation.constraint)
    return report.valid


def distrust(workspace: Workspace, violation: ConstraintViolatedError) -> None:
    def step(catalogue: Catalogue) -> Catalogue:
        for table in catalogue.tables.values():
            if str(table.name) == violation.table and violation.constraint not in table.distrusted:
                return catalogue.with_table(
                    replace(table, distrusted=(*table.distrusted, violation.constraint))
                )
        return catalogue

    workspace.state.change(step)


def trust_again(workspace: Workspace, table: TableRecord) -> None:
    """After VERIFY TABLE has passed."""
    workspace.state.change(
        lambda catalogue: catalogue.with_table(replace(catalogue.tables[table.id], distrusted=()))
    )
