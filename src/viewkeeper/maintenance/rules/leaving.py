"""Rows of the view that the view alone knows to leave: a step of a refresh, before anything else.

    V_before  =  V_old  without the rows whose key went from a table (or that a new row of a NOT EXISTS blocks)

From there on the tables are as if these rows had never been there, and the change of the rest is found as always.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.algebra.nodes import Group, Project
from viewkeeper.facts.declared import Reliance, UniqueKey
from viewkeeper.facts.safety.selects import Select
from viewkeeper.facts.safety.verdicts import Place, Reference, ReferenceVerdict
from viewkeeper.generated_names import SIGN, state_relation
from viewkeeper.maintenance.bag_changes import leaving_changes
from viewkeeper.maintenance.differential.derivation import Derivation, Signed, titles, union
from viewkeeper.maintenance.differential.kinds import GAINS, LOSSES, Kinds
from viewkeeper.maintenance.differential.rows_view import old_rows
from viewkeeper.maintenance.group_state import ROWS
from viewkeeper.maintenance.plan import Limit, Read, SignedRows, State, Step, WriteChangeSet
from viewkeeper.maintenance.rules.decided import DecidedByView, decided_by_view
from viewkeeper.maintenance.rules.view_analysis import analysis_of
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Input
from viewkeeper.sql.rendering import alias, aliased, all_of, column, literal, relation_named, select_from


@dataclass(frozen=True)
class Leaving:
    """Changed rows of one reference, and how the view tells which of its rows they take along."""

    reference: Reference
    decided: DecidedByView
    part: State

    @property
    def table(self) -> Input:
        return self.reference.scan.input

    @property
    def reliance(self) -> Reliance | None:
        key = self.decided.key
        return None if key is None else Reliance(self.table.object_id, key.name)

    @property
    def key(self) -> UniqueKey | None:
        return self.decided.key

    @property
    def relation(self) -> str:
        return state_relation(self.table.relation, self.part.value)

    def __str__(self) -> str:
        names = ", ".join(item.name for item in self.decided.columns)
        what = "inserted into" if self.reference.place is Place.NEGATIVE else "deleted from or updated in"
        because = (
            "the subquery compares it with nothing else"
            if self.key is None
            else f"key {self.key.name} of {self.table.name}"
        )
        return f"what rows {what} {self.reference.scan.alias} take along is found in the view by {names}: {because}"


def leaving_by_view(view: ViewDefinition, kinds: Kinds) -> list[Leaving]:
    """The changes of these kinds that the view alone decides; a table counts only if all references to it agree."""
    query = view.algebra
    assert isinstance(query, Project)
    analysis = analysis_of(view, view.declared)
    selection = analysis.selection
    if not isinstance(selection, Select) or not _is_kept_by_rows(view, query):
        return []
    by_table: dict[str, list[ReferenceVerdict]] = {}
    for verdict in analysis.references:
        by_table.setdefault(verdict.reference.scan.input.object_id, []).append(verdict)
    names = tuple(each.name for each in view.columns)
    found: list[Leaving] = []
    for object_id, verdicts in by_table.items():
        each = [_leaving(verdict, names, view, kinds.get(object_id, frozenset())) for verdict in verdicts]
        found += [one for one in each if one is not None] if None not in each else []
    return found


def decides_deletions(view: ViewDefinition) -> bool:
    """Whether there are deletions that the view alone decides, by a key."""
    if isinstance(view.algebra, OutsideAlgebra):
        return False
    losses = {found.object_id: frozenset({State.REMOVED}) for found in view.query.inputs}
    return any(each.key is not None for each in leaving_by_view(view, losses))


def _is_kept_by_rows(view: ViewDefinition, query: Project) -> bool:
    """Whether the view's table holds the rows of its query, or, of a DISTINCT, how often each is made."""
    return not isinstance(query.source, Group) or [each.name for each in view.hidden] == [ROWS]


def _leaving(
    verdict: ReferenceVerdict, names: tuple[str, ...], view: ViewDefinition, parts: frozenset[State]
) -> Leaving | None:
    reference = verdict.reference
    is_negative = reference.place is Place.NEGATIVE
    if not verdict.decides_deletions or not parts & (GAINS if is_negative else LOSSES):
        return None
    if is_negative and parts & LOSSES:
        return None
    decided = decided_by_view(reference, names, view.declared)
    if decided is None or decided.block.tables != (reference.scan,) or decided.block.subqueries:
        return None
    return Leaving(reference, decided, State.ADDED if is_negative else State.REMOVED)


def without(kinds: Kinds, leaving: list[Leaving]) -> Kinds:
    """What is left of the changes when the view has seen these."""
    seen: Mapping[str, frozenset[State]] = {
        each.table.object_id: GAINS if each.part is State.ADDED else LOSSES for each in leaving
    }
    rest = {object_id: parts - seen.get(object_id, frozenset()) for object_id, parts in kinds.items()}
    return {object_id: parts for object_id, parts in rest.items() if parts}


def leaving_rows_of_view(
    view: ViewDefinition, derivation: Derivation, leaving: list[Leaving], by_count: bool
) -> list[Signed]:
    """The rows of the view that leave, each once: those that an earlier one takes along are left out. `by_count`: of a
    DISTINCT, without hidden columns, and with minus the number of their rows as their sign."""
    columns = view.columns if by_count else view.stored
    found = []
    for at, each in enumerate(leaving):
        derivation.known(Read(each.relation, each.table.object_id, each.table.name, each.part))
        old = derivation.known(old_rows(view, _limit(each)))
        sign = exp.Neg(this=column(ROWS, old.relation)) if by_count else literal(-1)
        items = [column(one.name, old.relation) for one in columns]
        select = select_from(relation_named(old.relation), [*items, alias(sign, SIGN)])
        select = _joined(select, each, old.relation, "left semi")
        for earlier in leaving[:at]:
            select = _joined(select, earlier, old.relation, "left anti")
        found.append(Signed(select, f"rows of the view that {each.reference.scan.alias} takes along"))
    return found


def only_leaving_steps(
    view: ViewDefinition, derivation: Derivation, rows: Sequence[Signed]
) -> tuple[Step, ...]:
    """All copies of these rows leave the view, and nothing else happens to it."""
    delta = derivation.derive(
        f"find what leaves: {titles(rows)}", "delta", union([each.select for each in rows]), ends=True
    )
    changes = leaving_changes(delta, view.stored)
    return (*derivation.steps, WriteChangeSet(changes, (), SignedRows(delta, are_all_copies=True)))


def _limit(leaving: Leaving) -> Limit | None:
    """Only rows that have the values of changed rows, in columns that are compared with nothing but a column of theirs."""
    alias_of = leaving.reference.scan.alias
    pairs = [
        (item.name, item.expression.name)
        for item in leaving.decided.columns
        if isinstance(item.expression, exp.Column) and item.expression.table == alias_of
    ]
    if not pairs:
        return None
    own, changed = zip(*pairs, strict=True)
    return Limit(own, leaving.relation, changed)


def _joined(select: exp.Select, leaving: Leaving, old: str, kind: str) -> exp.Select:
    """The rows of the view that a changed row means, or does not mean."""
    conditions = [
        exp.EQ(this=column(item.name, old), expression=item.expression.copy())
        for item in leaving.decided.columns
    ]
    inside = [each.copy() for each in leaving.decided.block.conditions]
    relation = aliased(leaving.relation, leaving.reference.scan.alias)
    return select.join(relation, on=all_of([*conditions, *inside]), join_type=kind)
