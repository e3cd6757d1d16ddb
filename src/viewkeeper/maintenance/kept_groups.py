"""Groups inside a query that can be kept as views of their own, hidden below the view.

    SELECT r.name, s.total FROM region r JOIN (SELECT region, sum(x) AS total FROM sale GROUP BY region) s ON …

is kept from

    hidden:   SELECT region, sum(x) AS sum_1 FROM sale GROUP BY region
    the view: SELECT r.name, h.sum_1 FROM region r JOIN hidden h ON …

The hidden view is updated from its stored sums, and what it changes reaches the view as the change set of any other
view does; without it, every affected group is evaluated from the rows of `sale`, before and after. Conditions on groups
stay above: the hidden view holds all groups, so what became of a group that HAVING left out is known too.

Nothing here decides whether that pays (`execution.kept_views`). Groups with a sum of FLOAT or DOUBLE are kept in any case: computed
again from the same rows it may have other bits, so everything above must read the ones that are stored (`facts.order_dependence`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from viewkeeper.algebra.additive_aggregates import with_additive_aggregates
from viewkeeper.algebra.expressions import standing_for
from viewkeeper.algebra.nodes import (
    Constant,
    Derived,
    Generate,
    Group,
    Item,
    Project,
    Relation,
    Scan,
    inner_join,
    scans,
    sql_of,
    walk,
)
from viewkeeper.algebra.rebuilding import Rebuilding
from viewkeeper.algebra.to_sql import Frame, Writer, frame_from
from viewkeeper.facts.number_kinds import Number, kinds_below, kinds_in
from viewkeeper.facts.order_dependence import order_dependent_call
from viewkeeper.generated_names import is_hidden, kept_groups
from viewkeeper.maintenance.group_state import state_of
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Column, Input
from viewkeeper.sql.functions import function_name
from viewkeeper.sql.names import DEFAULT_SCHEMA, QualifiedName
from viewkeeper.sql.rendering import aliased, column, render
from viewkeeper.sql.statements import RefreshPolicy
from viewkeeper.sql.types import UNKNOWN, DataType, Simple


@dataclass(frozen=True)
class InnerGroups:
    """Groups inside a query. `query` shows all keys and aggregates of all groups, under aliases of its own: groups that
    are written twice in a query are equal here."""

    query: Project

    @property
    def group(self) -> Group:
        assert isinstance(self.query.source, Group)
        return self.query.source

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.query.items)

    @cached_property
    def order_dependent(self) -> str | None:
        """An aggregate that depends on the order in which Spark adds: these groups must be kept."""
        kinds = kinds_in(self.group.source)
        found = (order_dependent_call(each.expression, kinds) for each in self.group.aggregates)
        return next((call for call in found if call is not None), None)

    @property
    def why_needed(self) -> str:
        """Why groups with such an aggregate are kept, as a sentence."""
        return f"{self} are kept in a hidden view: {self.order_dependent} depends on the order in which Spark adds"

    def __str__(self) -> str:
        tables = ", ".join(dict.fromkeys(str(scan.input.name) for scan in scans(self.query)))
        keys = ", ".join(sql_of(key.expression) for key in self.group.keys)
        shown = ", ".join(sql_of(each.expression) for each in self.group.aggregates) or "which there are"
        return f"the groups of {tables}{f' by {keys}' if keys else ''} ({shown})"


@dataclass(frozen=True)
class QueryText:
    """A query as text, and the ids of the objects that its names mean."""

    text: str
    references: Mapping[str, str]


def inner_groups(query: Project) -> list[InnerGroups]:
    """The groups inside the query, innermost first, equal ones once. The groups that the view itself shows are none,
    unless a condition leaves some of them out, and they could be updated."""
    found = []
    for node in reversed(list(walk(query))):
        if not isinstance(node, Project) or not isinstance(node.source, Group) or not scans(node):
            continue
        groups = groups_of(node)
        if node is not query or (query.having is not None and groups.order_dependent is None):
            found.append(groups)
    return list(dict.fromkeys(found))


def why_not_updated(groups: InnerGroups) -> str | None:
    """Why the aggregates of these groups cannot be updated from what is stored of them, as far as that can be said before
    their types are known."""
    group = with_additive_aggregates(groups.query).source
    assert isinstance(group, Group)
    state = state_of(group)
    return state if isinstance(state, str) else None


def may_keep_groups(view: ViewDefinition) -> bool:
    """Whether hidden views are of any use: the view is not always recomputed at its user's wish."""
    return view.policy is not RefreshPolicy.FULL and not view.rematerialized


def about_inner_groups(view: ViewDefinition) -> list[str]:
    """What is known of the groups inside a query before anything is loaded, in sentences."""
    about: list[str] = []

    def keep(groups: InnerGroups) -> Input | None:
        if groups.order_dependent is not None:
            about.append(groups.why_needed)
            return _planned_input(view, groups, len(about))
        reason = why_not_updated(groups)
        if reason is not None:
            about.append(f"{groups} are not kept: {reason}")
            return None
        about.append(
            f"{groups} are kept in a hidden view if their types allow it and their sizes at CREATE make it pay"
        )
        return _planned_input(view, groups, len(about))

    if isinstance(view.algebra, Project) and may_keep_groups(view):
        with_kept_groups(view.algebra, keep)
    return about


def over_needed_groups(view: ViewDefinition) -> ViewDefinition:
    """The view as it will be planned: over hidden views for the groups that must be kept. They do not exist yet."""
    if not isinstance(view.algebra, Project) or not may_keep_groups(view):
        return view
    kept: list[Input] = []

    def keep(groups: InnerGroups) -> Input | None:
        if groups.order_dependent is None:
            return None
        kept.append(_planned_input(view, groups, len(kept) + 1))
        return kept[-1]

    query = with_kept_groups(view.algebra, keep)
    if not kept:
        return view
    planned = replace(view)
    vars(planned)["algebra"] = query
    return planned


def _planned_input(view: ViewDefinition, groups: InnerGroups, number: int) -> Input:
    """A hidden view before Spark has told the types of its columns; of numbers, the kind is known."""
    name = QualifiedName(view.name.schema, kept_groups(view.name.name, number))
    kinds = kinds_below(groups.group)
    columns = tuple(Column(each, _TYPES.get(kinds.get(("", each.lower())), UNKNOWN)) for each in groups.names)
    return Input(str(name), name, columns, name.relation_stem)


_TYPES: Mapping[Number | None, DataType] = {
    Number.SMALL: Simple("INT"),
    Number.BIG: Simple("BIGINT"),
    Number.DECIMAL: Simple("DECIMAL(38,18)"),
    Number.FLOATING: Simple("DOUBLE"),
}


def groups_of(query: Project) -> InnerGroups:
    """All that the groups of a query know."""
    group = query.source
    assert isinstance(group, Group)
    names = tuple(_names(group))
    outputs = (*group.keys, *group.aggregates)
    named = tuple(Item(name, output.expression) for name, output in zip(names, outputs, strict=True))
    known = Group(group.source, named[: len(group.keys)], named[len(group.keys) :])
    return InnerGroups(_under_own_aliases(Project(known, tuple(Item(name, column(name)) for name in names))))


def _names(group: Group) -> Iterator[str]:
    """What the columns of a hidden view are called: after columns and functions, and what has no name by number."""
    taken: set[str] = set()
    for key in group.keys:
        name = key.expression.name.lower() if isinstance(key.expression, exp.Column) else ""
        if not name or name in taken or is_hidden(name):
            name = _numbered("key", taken)
        taken.add(name)
        yield name
    for each in group.aggregates:
        call = each.expression.this if isinstance(each.expression, exp.Filter) else each.expression
        name = _numbered(function_name(call) or "value", taken)
        taken.add(name)
        yield name


def _numbered(stem: str, taken: set[str]) -> str:
    return next(
        name for name in (f"{stem}_{number}" for number in range(1, len(taken) + 2)) if name not in taken
    )


def _under_own_aliases(query: Project) -> Project:
    """The query with aliases that follow from its shape alone."""
    names: dict[str, str] = {}
    for node in walk(query):
        if isinstance(node, (Scan, Derived, Constant, Generate)):
            stem = node.input.relation.lower() if isinstance(node, Scan) else "part"
            names[node.alias] = _numbered(stem, set(names.values()))

    def renamed(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.table in names:
            return column(node.name, names[node.table])
        return node

    return Rebuilding(lambda expression: expression.transform(renamed), names.__getitem__).project(query)


def with_kept_groups(query: Project, keep: Callable[[InnerGroups], Input | None]) -> Project:
    """The query over hidden views for those of its groups for which `keep` makes one. Groups of groups are asked for
    last, over the hidden view of the inner ones if there is one."""
    left_out: set[InnerGroups] = set()
    while True:
        groups = next((each for each in inner_groups(query) if each not in left_out), None)
        if groups is None:
            return query
        kept = keep(groups)
        if kept is None:
            left_out.add(groups)
        else:
            query = reading_kept(query, groups, kept)


def reading_kept(query: Project, groups: InnerGroups, kept: Input) -> Project:
    """The query with a hidden view in place of these groups, wherever they are."""
    taken = {node.alias for node in walk(query) if isinstance(node, (Scan, Derived, Constant, Generate))}
    return _Replacing(lambda expression: expression, groups=groups, kept=kept, taken=taken).project(query)


@dataclass(frozen=True, kw_only=True)
class _Replacing(Rebuilding):
    """Rebuilds a tree with a hidden view in place of some groups; `taken` are the aliases that it has."""

    groups: InnerGroups
    kept: Input
    taken: set[str]

    def project(self, query: Project) -> Project:
        group = query.source
        if not isinstance(group, Group) or groups_of(query) != self.groups:
            return super().project(query)
        alias = _numbered("kept", self.taken)
        self.taken.add(alias)
        outputs = (*group.keys, *group.aggregates)
        columns = {
            output.name: column(name, alias) for name, output in zip(self.groups.names, outputs, strict=True)
        }

        def over(expression: exp.Expr) -> exp.Expr:
            def replaced(node: exp.Expr) -> exp.Expr:
                is_output = isinstance(node, exp.Column) and not node.table and node.name in columns
                return standing_for(node, columns[node.name]) if is_output else node

            result: exp.Expr = expression.transform(replaced)
            return result

        conditions = [] if query.having is None else [over(query.having)]
        return Project(
            inner_join([Scan(alias, self.kept)], conditions),
            tuple(Item(item.name, over(item.expression)) for item in query.items),
        )


def text_of(query: Project) -> QueryText:
    """The query as the text of a view."""
    references: dict[str, str] = {}

    def leaf(relation: Relation) -> Frame | None:
        if not isinstance(relation, Scan):
            return None
        name = relation.input.relation
        references[QualifiedName(DEFAULT_SCHEMA, name).key] = relation.input.object_id
        return frame_from(aliased(name, relation.alias))

    return QueryText(render(Writer(query).query(query, leaf)), references)
