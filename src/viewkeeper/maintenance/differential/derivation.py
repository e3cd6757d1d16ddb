"""The change of a tree, node by node, written as steps of a plan.

Every relation has *changes*: frames with a sign, whose union is what the relation gained (+) and lost (−). Every query has
*signed selects*, the same with its own columns. Nodes that are linear pass changes on; the others evaluate the old and
the new state at what is affected, and subtract. The rules stand in one file per node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count

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
from viewkeeper.facts.declared import Declarations, UniqueKey
from viewkeeper.generated_names import SIGN, state_relation
from viewkeeper.maintenance.differential.dropped import Dropped
from viewkeeper.maintenance.differential.kinds import Kinds
from viewkeeper.maintenance.differential.limits import Limits, Reading, Values, limits_in
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
    change_keys: Mapping[str, UniqueKey] = field(default_factory=dict)
    """By parent, the key by which its changes are told apart."""
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
        spread = limits_in(relation, limits or {}, self.reading(lambda _: state))
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

    def reading(self, state_of: Callable[[Scan], State]) -> Reading:
        """What scans are read as, each in its state."""

        def relation(scan: Scan, limits: Limits) -> str | None:
            read = self.state_read(scan, state_of(scan), limits)
            return None if read.limit is None else read.relation

        return relation

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
        read = Read(plain, table.object_id, table.name, state, limit, only_if)
        return self.known(replace(read, relation=self._name(read)))

    def _name(self, read: Read) -> str:
        """The same table may be read under several limits. The path from a changed part may be long: its start says enough."""
        name = read.relation
        if read.limit is not None:
            start = self._chain(read.limit.relation)[:1]
            is_reached = bool(start) and start[0].relation != read.limit.relation
            name = f"{name}_reached_from_{start[0].relation}" if is_reached else read.limit.name(name)
        if read.only_if is not None:
            name = f"{name}_if_{read.only_if}"
        numbered = (name if number == 1 else f"{name}_{number}" for number in count(1))
        return next(each for each in numbered if self._is_free_for(each, read))

    def _is_free_for(self, name: str, read: Read) -> bool:
        known = self._reads.get(name)
        return known is None or known == replace(read, relation=name)

    def known(self, read: Read) -> Read:
        """Remember a read, for the steps that name its relation."""
        return self._reads.setdefault(read.relation, read)

    def reads_of(self, query: exp.Expr) -> tuple[Read, ...]:
        """What a query reads of tables and views."""
        names = dict.fromkeys(table.name for table in query.find_all(exp.Table, bfs=False))
        chains = [self._chain(name) for name in names]
        deepest = max(map(len, chains), default=0)
        # What limits others comes first, for all of them: so the values that matter in one table are known together.
        return tuple(dict.fromkeys(chain[at] for at in range(deepest) for chain in chains if at < len(chain)))

    def _chain(self, name: str) -> list[Read]:
        """A read, after those whose rows tell which of its own matter."""
        read = self._reads.get(name)
        if read is None:
            return []
        return [*([] if read.limit is None else self._chain(read.limit.relation)), read]

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
