"""The checks that a plan needs for the constraints it relies on.

A foreign key must hold in the old state: either that is known (it was checked when that state was new), or the whole
table is looked at. Then what changed is checked, so that it is known for the next refresh: new children must have a
parent, and deleted parents no children.
"""

from __future__ import annotations

from collections.abc import Iterable

from viewkeeper.facts.declared import Reliance, TotalForeignKey, UniqueKey
from viewkeeper.generated_names import state_relation
from viewkeeper.maintenance.constraint_checks import children_of, duplicate_keys, orphans
from viewkeeper.maintenance.differential.kinds import Kinds
from viewkeeper.maintenance.plan import CheckConstraint, Limit, Read, State
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Input

_GAINS = (State.ADDED, State.INSERTED, State.NEW_UPDATED)


def checks_for(
    view: ViewDefinition, relies_on: Iterable[Reliance], kinds: Kinds, verified: frozenset[Reliance]
) -> tuple[CheckConstraint, ...]:
    """The checks for these reliances; `verified` are those known to hold in the old state."""
    inputs = {found.object_id: found for found in view.query.inputs}
    steps: list[CheckConstraint] = []
    for reliance in sorted(relies_on, key=lambda each: (inputs[each.object_id].name, each.constraint)):
        table = inputs[reliance.object_id]
        declared = view.declared[reliance.object_id]
        for key in (*declared.keys, *declared.nullable_keys):
            if key.name == reliance.constraint and not key.rely:
                is_nullable = key in declared.nullable_keys
                added = _added(view, table, key, kinds.get(table.object_id, frozenset()))
                steps += _key_checks(table, key, added, reliance in verified, is_nullable)
        for foreign_key in declared.foreign_keys:
            if foreign_key.name == reliance.constraint and not foreign_key.rely:
                parent = inputs[foreign_key.parent_id]
                steps += _foreign_key_checks(table, parent, foreign_key, kinds, reliance in verified)
    return tuple(steps)


def _added(view: ViewDefinition, table: Input, key: UniqueKey, parts: frozenset[State]) -> State | None:
    """The part of a change set that can hold new values of a key: an update by this key leaves it as it is."""
    if not parts & set(_GAINS):
        return None
    is_told_apart_by_it = view.change_key(table.object_id) == key and State.ADDED not in parts
    return State.INSERTED if is_told_apart_by_it else State.ADDED


def _key_checks(
    table: Input, key: UniqueKey, added: State | None, is_verified: bool, is_nullable: bool
) -> list[CheckConstraint]:
    steps = []
    if not is_verified:
        old = _read(table, State.OLD)
        sql = duplicate_keys(old.relation, key.columns, primary=not is_nullable)
        steps.append(CheckConstraint(table.name, key.name, "all rows before the changes", sql, (old,)))
    if added is not None:
        coming = _read(table, added)
        new = _read(table, State.NEW, _limit(key.columns, key.columns, coming))
        sql = duplicate_keys(new.relation, key.columns, primary=not is_nullable)
        steps.append(CheckConstraint(table.name, key.name, "the inserted keys", sql, (coming, new)))
    return steps


def _foreign_key_checks(
    child: Input, parent: Input, foreign_key: TotalForeignKey, kinds: Kinds, is_verified: bool
) -> list[CheckConstraint]:
    own, other = foreign_key.columns, foreign_key.parent_columns
    steps = []
    if not is_verified:
        before, parents_before = _read(child, State.OLD), _read(parent, State.OLD)
        sql = orphans(before.relation, own, parents_before.relation, other)
        what = "all rows before the changes"
        steps.append(CheckConstraint(child.name, foreign_key.name, what, sql, (before, parents_before)))
    if kinds.get(child.object_id, frozenset()) & set(_GAINS):
        added = _read(child, State.ADDED)
        parents = _read(parent, State.NEW, _limit(other, own, added))
        sql = orphans(added.relation, own, parents.relation, other)
        steps.append(
            CheckConstraint(child.name, foreign_key.name, "new rows have a parent", sql, (added, parents))
        )
    if State.DELETED in kinds.get(parent.object_id, frozenset()):
        deleted = _read(parent, State.DELETED)
        children = _read(child, State.NEW, _limit(own, other, deleted))
        sql = children_of(children.relation, own, deleted.relation, other)
        what = "deleted parents have no children"
        steps.append(CheckConstraint(child.name, foreign_key.name, what, sql, (deleted, children)))
    return steps


def _read(table: Input, state: State, limit: Limit | None = None) -> Read:
    plain = state_relation(table.relation, state.value)
    relation = plain if limit is None else limit.name(plain)
    return Read(relation, table.object_id, table.name, state, limit)


def _limit(columns: tuple[str, ...], of_columns: tuple[str, ...], change: Read) -> Limit:
    return Limit(columns, change.relation, of_columns)


def trusted(view: ViewDefinition, relies_on: Iterable[Reliance]) -> list[str]:
    """The constraints among these that were declared RELY, and so are not checked."""
    names: set[tuple[str, str]] = set()
    for object_id, declared in view.declared.items():
        names |= {(object_id, key.name) for key in (*declared.keys, *declared.nullable_keys) if key.rely}
        names |= {(object_id, foreign_key.name) for foreign_key in declared.foreign_keys if foreign_key.rely}
    return sorted(each.constraint for each in relies_on if (each.object_id, each.constraint) in names)
