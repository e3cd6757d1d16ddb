"""The change of a tree, node by node, written as steps of a plan.

Every relation has *changes*: frames with a sign, whose union is what the relation gained (+) and lost (−). Every query has
*signed selects*, the same with its own columns. Nodes that are linear pass changes on; the others evaluate the old and
the new state at what is affected, and subtract. The rules stand in one file per node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from sqlglot import exp

from viewkeeper.algebra.nodes import (
    Constant,
    Derived,
    Generate,
    Group,
    InnerJoin,
    OuterJoin,
    Project,
    Query,
    Relation,
    Scan,
    SemiJoin,
    SetOperation,
    TopRows,
    Window,
    aliases_of,
    scans,
)
from viewkeeper.algebra.to_sql import Frame, Writer, flat_name, frame_from
from viewkeeper.facts.declared import Declarations
from viewkeeper.generated_names import SIGN, state_relation
from viewkeeper.maintenance.differential.dropped import Dropped
from viewkeeper.maintenance.differential.kinds import Kinds
from viewkeeper.maintenance.differential.limits import Limits, Values, limits_in
from viewkeeper.maintenance.plan import Derive, Limit, Read, State
from viewkeeper.sql.binding import Input
from viewkeeper.sql.rendering import alias, aliased, render, union_all


@dataclass(frozen=True)
class Change:
    """Rows that a relation gained or lost. `limits` are the values that its columns have, where they are at hand."""

    frame: Frame
    sign: exp.Expr
    title: str
    limits: Limits = field(default_factory=dict)


@dataclass(frozen=True)
class Signed:
    """Rows of a query with their sign as the last column."""

    select: exp.Query
    title: str


@dataclass
class Derivation:
    """Collects the steps that lead to the change of one tree."""

    stem: str
    root: Query
    kinds: Kinds
    declared: Declarations
    without_losses: frozenset[str] = frozenset()
    """Inputs whose losses the view has seen already: what they were before is what they were without these rows."""
    steps: list[Derive] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    _changes: dict[Relation, list[Change]] = field(default_factory=dict)
    _reads: dict[str, Read] = field(default_factory=dict)
    _names: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.writer = Writer(self.root)

    # -- what the rules are

    def changes(self, relation: Relation) -> list[Change]:
        """The changes of a relation, derived once."""
        if relation not in self._changes:
            self._changes[relation] = self._derived_changes(relation)
        return self._changes[relation]

    def _derived_changes(self, relation: Relation) -> list[Change]:
        from viewkeeper.maintenance.differential import delta_rules as rules

        match relation:
            case Scan():
                return rules.scan.changes(self, relation)
            case Constant():
                return []
            case Derived():
                return rules.derived.changes(self, relation)
            case InnerJoin():
                return rules.inner_join.changes(self, relation)
            case OuterJoin():
                return rules.outer_join.changes(self, relation)
            case SemiJoin():
                return rules.semi_join.changes(self, relation)
            case Generate():
                return rules.generate.changes(self, relation)

    def signed(self, query: Query) -> list[Signed]:
        from viewkeeper.maintenance.differential import delta_rules as rules

        match query:
            case Project(Group()):
                return rules.group.signed(self, query)
            case Project(Window()):
                return rules.window.signed(self, query)
            case Project():
                return rules.project.signed(self, query)
            case SetOperation():
                return rules.set_operation.signed(self, query)
            case TopRows():
                return rules.top_rows.signed(self, query)

    def is_changed(self, relation: Relation | Query) -> bool:
        """Whether any input of it has changes."""
        return any(self.kinds.get(scan.input.object_id) for scan in scans(relation))

    # -- what the rules use

    def rows(self, relation: Relation, state: State, limits: Limits | None = None) -> Frame:
        """A relation in one state; rows that the limits make needless may be missing."""
        spread = limits_in(relation, limits or {})
        return self.writer.frame(relation, lambda found: self._leaf(found, state, spread))

    def query_rows(
        self, query: Query, state: State, limits: Limits | None = None, only_if: str | None = None
    ) -> exp.Query:
        """A query in one state; `limits` are those of its scans."""
        return self.writer.query(query, lambda found: self._leaf(found, state, limits or {}, only_if))

    def _leaf(
        self, relation: Relation, state: State, limits: Limits, only_if: str | None = None
    ) -> Frame | None:
        if not isinstance(relation, Scan):
            return None
        read = self.state_read(relation, state, limits, only_if)
        return frame_from(aliased(read.relation, relation.alias))

    def state_read(self, scan: Scan, state: State, limits: Limits, only_if: str | None = None) -> Read:
        mine = {name: values for (of, name), values in limits.items() if of == scan.alias}
        return self.table_read(scan.input, state, mine, only_if)

    def table_read(
        self, table: Input, state: State, limits: Mapping[str, Values], only_if: str | None = None
    ) -> Read:
        """A table in one state; the limits are by its columns, in lower case."""
        if not self.kinds.get(table.object_id):
            state = State.NEW
        elif state is State.OLD and table.object_id in self.without_losses:
            state = State.BETWEEN
        plain = state_relation(table.relation, state.value)
        limit = None
        for each in table.columns:
            values = limits.get(each.name.lower())
            if values is not None:
                limit = Limit((each.name,), values.relation, (values.column,), values.or_null)
                break
        name = plain if limit is None else limit.name(plain)
        if only_if is not None:
            name = f"{name}_if_{only_if}"
        return self.known(Read(name, table.object_id, table.name, state, limit, only_if))

    def known(self, read: Read) -> Read:
        """Remember a read, for the steps that name its relation."""
        return self._reads.setdefault(read.relation, read)

    def reads_of(self, query: exp.Expr) -> tuple[Read, ...]:
        """What a query reads of tables and views."""
        names = dict.fromkeys(table.name for table in query.find_all(exp.Table, bfs=False))
        found = [self._reads[name] for name in names if name in self._reads]
        needed = [self._reads[r.limit.relation] for r in found if r.limit and r.limit.relation in self._reads]
        return tuple(dict.fromkeys([*needed, *found]))

    def derive(self, title: str, name: str, query: exp.Query, shared: bool = True, ends: bool = False) -> str:
        """A step that makes a relation; its name comes from `name`."""
        number = self._names[name] = self._names.get(name, 0) + 1
        relation = state_relation(self.stem, name if number == 1 else f"{name}_{number}")
        self.steps.append(Derive(title, relation, render(query), self.reads_of(query), shared, ends))
        return relation

    def signed_relation(self, relation: Relation, changes: Sequence[Change], called: str) -> str:
        """The changes of a relation under flat names."""
        selects = [
            change.frame.selecting(
                [*self.writer.flat_items(change.frame, relation), alias(change.frame.over(change.sign), SIGN)]
            )
            for change in changes
        ]
        return self.derive(
            f"find the changes of {called}: {titles(changes)}", f"{called}_delta", union(selects)
        )

    def flat_frame(self, relation: Relation, name: str, part: str | None = None) -> Frame:
        """A relation of the plan that has the columns of another under flat names."""
        under = part or name
        return Frame(frame_from(aliased(name, under)).select, dict.fromkeys(aliases_of(relation), under))

    def flat_limits(self, relation: Relation, name: str) -> Limits:
        return {
            (each.table, each.name.lower()): Values(name, flat_name((each.table, each.name)))
            for each in self.writer.needed(relation)
        }


def union(selects: Sequence[exp.Query]) -> exp.Query:
    return reduce(union_all, selects)


def titles(changes: Iterable[Change | Signed]) -> str:
    return ", ".join(dict.fromkeys(each.title for each in changes))


def called(relation: Relation) -> str:
    """A relation's name for people and for relations of the plan."""
    return "_".join(sorted(aliases_of(relation)))
