"""Groups inside a query that can be kept as views of their own, hidden below the view.

    SELECT r.name, s.total FROM region r JOIN (SELECT region, sum(x) AS total FROM sale GROUP BY region) s ON …

is kept from

    hidden:   SELECT region, sum(x) AS sum_1 FROM sale GROUP BY region
    the view: SELECT r.name, h.sum_1 FROM region r JOIN hidden h ON …

The hidden view is updated from its stored sums, and what it changes reaches the view as the change set of any other
view does; without it, every affected group is evaluated from the rows of `sale`, before and after. Conditions on groups
stay above: the hidden view holds all groups, so what became of a group that HAVING left out is known too.

Nothing here decides whether that pays (`execution.kept_views`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

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
from viewkeeper.generated_names import is_hidden, kept_groups
from viewkeeper.maintenance.group_state import state_of
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Column, Input
from viewkeeper.sql.functions import function_name
from viewkeeper.sql.names import DEFAULT_SCHEMA, QualifiedName
from viewkeeper.sql.rendering import aliased, column, render
from viewkeeper.sql.statements import RefreshPolicy
from viewkeeper.sql.types import UNKNOWN


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
    unless a condition leaves some of them out."""
    found = [
        groups_of(node)
        for node in reversed(list(walk(query)))
        if isinstance(node, Project)
        and isinstance(node.source, Group)
        and scans(node)
        and (node is not query or query.having is not None)
    ]
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
        reason = why_not_updated(groups)
        if reason is not None:
            about.append(f"{groups} are not kept: {reason}")
            return None
        about.append(
            f"{groups} are kept in a hidden view if their types allow it and their sizes at CREATE make it pay"
        )
        name = QualifiedName(view.name.schema, kept_groups(view.name.name, len(about)))
        return Input(
            str(name), name, tuple(Column(each, UNKNOWN) for each in groups.names), name.relation_stem
        )

    if isinstance(view.algebra, Project) and may_keep_groups(view):
        with_kept_groups(view.algebra, keep)
    return about


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
