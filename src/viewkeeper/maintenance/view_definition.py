"""What plans are made from: a view's query in all its forms, and what its table holds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from viewkeeper.algebra.from_query import Branches, OutsideAlgebra, read_algebra, read_branches
from viewkeeper.algebra.nodes import Project
from viewkeeper.algebra.open_aggregates import ties_broken
from viewkeeper.algebra.simplification import simplified
from viewkeeper.facts.declared import Declarations, Declared, UniqueKey
from viewkeeper.facts.foreign_keys import change_keys
from viewkeeper.maintenance.plan import MaintenancePlan
from viewkeeper.sql.binding import BoundQuery, Column
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.script import parse_sql
from viewkeeper.sql.statements import Operation, RefreshPolicy

_MOST_VARIANTS = 4


@dataclass(frozen=True)
class ViewDefinition:
    """`columns` are what users see; `hidden` is what the view's table keeps beside them (see `group_state`)."""

    name: QualifiedName
    id: str
    query: BoundQuery
    columns: tuple[Column, ...]
    hidden: tuple[Column, ...] = ()
    policy: RefreshPolicy = RefreshPolicy.AUTO
    declared: Declarations = field(default_factory=dict)
    rematerialized: frozenset[tuple[str, Operation]] = frozenset()
    """Operations, by the table's id, after which the user has the whole query evaluated."""
    refusal: str | None = None
    """Why our reading of the query is not used, found out when the view was created: what Spark answers is another thing. As a
    clause that can follow "because"; the user's own text is then evaluated whole."""
    is_simplified: bool = True
    """Without simplification plans are slower and say the same; tests compare both."""

    @cached_property
    def algebra_as_written(self) -> Project | OutsideAlgebra:
        if self.refusal is not None:
            return OutsideAlgebra(self.refusal)
        return read_algebra(self.query, [column.name for column in self.columns])

    @cached_property
    def algebra(self) -> Project | OutsideAlgebra:
        return self._simplified(self.algebra_as_written)

    @cached_property
    def branches(self) -> Branches:
        """The query for analysis, if it has subqueries under OR or NOT."""
        found = read_branches(self.query, [column.name for column in self.columns])
        return Branches(self._simplified(found.query), None if found.core is None else simplified(found.core))

    def _simplified(self, query: Project | OutsideAlgebra) -> Project | OutsideAlgebra:
        return query if isinstance(query, OutsideAlgebra) or not self.is_simplified else simplified(query)

    def with_hidden(self, hidden: tuple[Column, ...]) -> ViewDefinition:
        return self._of_the_same_query(replace(self, hidden=hidden))

    def refused(self, refusal: str) -> ViewDefinition:
        """The view, evaluated whole by the user's own text."""
        return replace(self, refusal=refusal, hidden=())

    def unsimplified(self) -> ViewDefinition:
        """The view as it is before its table has hidden columns, planned without simplifying its query."""
        return self._of_the_same_query(replace(self, hidden=(), is_simplified=False))

    def relying_on(
        self, declared: Declarations, rematerialized: frozenset[tuple[str, Operation]] | None = None
    ) -> ViewDefinition:
        """The view with other declarations; for the same ones the same object, which remembers its plans."""
        rematerialized = self.rematerialized if rematerialized is None else rematerialized
        for known in self._variants:
            if known.declared == declared and known.rematerialized == rematerialized:
                return known
        made = self._of_the_same_query(replace(self, declared=declared, rematerialized=rematerialized))
        vars(made)["algebra"] = self.algebra
        self._variants[:] = [made, *self._variants[: _MOST_VARIANTS - 1]]
        return made

    @cached_property
    def _variants(self) -> list[ViewDefinition]:
        return []

    @cached_property
    def plans(self) -> dict[Hashable, MaintenancePlan]:
        """Plans that were made for it, by what else they follow from."""
        return {}

    def _of_the_same_query(self, other: ViewDefinition) -> ViewDefinition:
        """What has been read of the query holds for the other view too: it is read once."""
        vars(other)["algebra_as_written"] = self.algebra_as_written
        return other

    @cached_property
    def change_keys(self) -> Mapping[str, UniqueKey]:
        """By parent, the key that tells its deletions and insertions from updates."""
        return {} if isinstance(self.algebra, OutsideAlgebra) else change_keys(self.algebra, self.declared)

    def change_key(self, object_id: str) -> UniqueKey | None:
        """The key by which the changes of a table come, if they come by key."""
        declared = self.declared.get(object_id, Declared())
        return self.change_keys.get(object_id) or next(iter(declared.keys), None)

    @cached_property
    def ties_broken(self) -> list[str]:
        """What the user's text leaves open in aggregates, and how the tree decides it."""
        return [] if isinstance(self.algebra, OutsideAlgebra) else ties_broken(parse_sql(self.query.rendered))

    @property
    def stored(self) -> tuple[Column, ...]:
        """All columns of the view's table but the copy number."""
        return self.columns + self.hidden

    @cached_property
    def stem(self) -> str:
        """The view's own name in generated SQL, distinct from the relations its query reads."""
        return _distinct(self.name.relation_stem, [found.relation for found in self.query.inputs])


def _distinct(stem: str, taken: Sequence[str]) -> str:
    lowered = {name.lower() for name in taken}
    found, number = stem, 2
    while found.lower() in lowered:
        found, number = f"{stem}{number}", number + 1
    return found
