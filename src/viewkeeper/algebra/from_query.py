"""A bound query as a tree of the algebra, or the reason why it is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.nodes import Project, output_names
from viewkeeper.algebra.open_aggregates import DECIDED
from viewkeeper.algebra.reading.disjunctions import as_union, without_disjunctions
from viewkeeper.algebra.reading.reader import Reader
from viewkeeper.algebra.reading.scope import Outside
from viewkeeper.algebra.ties import BY_POSITION, breaks_ties, is_windowed, why_not_ordered
from viewkeeper.sql.binding import BoundQuery
from viewkeeper.sql.functions import calls, is_aggregate, why_not_of_the_bag, why_not_repeatable
from viewkeeper.sql.script import parse_sql


@dataclass(frozen=True)
class OutsideAlgebra:
    """What in a query keeps it from being maintained incrementally, as a clause that can follow "because"; and the
    function that the clause is about, if it is about one."""

    reason: str
    function: str | None = None


@dataclass(frozen=True)
class Branches:
    """A query that has the same rows, not counting copies, and no subquery under OR or NOT, or the reason why there is none.
    `core` is the query without its disjunctions, if it is one select."""

    query: Project | OutsideAlgebra
    core: Project | None


def read_algebra(query: BoundQuery, names: Sequence[str]) -> Project | OutsideAlgebra:
    """The tree of a query whose columns have these names."""
    if not query.rendered:
        return OutsideAlgebra("its query is not understood well enough")

    def read() -> Project:
        tree = _bound_tree(query)
        _refuse_functions(tree, query)
        _refuse_pivoted_joins(query)
        return _read(tree, query, names)

    return _or_reason(read)


def read_branches(query: BoundQuery, names: Sequence[str]) -> Branches:
    """A query that can be read, once more, with its subqueries under OR and NOT as branches."""
    tree = _bound_tree(query)
    without = without_disjunctions(tree)
    core = None if without is None else _or_reason(lambda: _read(without, query, names))
    return Branches(
        _or_reason(lambda: _read(as_union(tree), query, names)),
        None if isinstance(core, OutsideAlgebra) else core,
    )


def _bound_tree(query: BoundQuery) -> exp.Expr:
    """The bound query parsed. Every column in it has a table, so a third part of a name is the field of a struct."""
    tree = parse_sql(query.rendered)
    for each in list(tree.find_all(exp.Column)):
        if each.args.get("db") is not None:
            table, name, *fields = each.parts
            found: exp.Expr = exp.Column(this=name.copy(), table=table.copy())
            for part in fields:
                found = exp.Dot(this=found, expression=part.copy())
            each.replace(found)
    return tree


def _or_reason(read: Callable[[], Project]) -> Project | OutsideAlgebra:
    try:
        return read()
    except Outside as outside:
        return OutsideAlgebra(str(outside), outside.function)
    except RecursionError:
        return OutsideAlgebra("its query is nested too deeply")


def _read(tree: exp.Expr, query: BoundQuery, names: Sequence[str]) -> Project:
    reader = Reader({found.relation.lower(): found for found in query.inputs})
    found = reader.query(tree, None, names)
    unordered = why_not_ordered(found) if breaks_ties(found) else None
    if unordered is not None:
        raise Outside(unordered)
    if isinstance(found, Project):
        return found
    return reader.pass_through(found, output_names(found), "rows")


def _refuse_pivoted_joins(query: BoundQuery) -> None:
    """For Spark, PIVOT after a join is about the whole join; the tree that was bound has it at the last table."""
    joins = query.parsed.tree.find_all(exp.Join)
    if any(isinstance(each.this, exp.Expr) and each.this.args.get("pivots") for each in joins):
        raise Outside("it uses PIVOT or UNPIVOT after a join")


def _refuse_functions(tree: exp.Expr, query: BoundQuery) -> None:
    """Plans run our rendering again and again: it must call what the user calls, and always give the same."""
    found = list(calls(tree))
    reason = why_not_repeatable(tree)
    if reason is not None:
        raise Outside(reason, next((each.name for each in found if reason.startswith(f"{each.name} ")), None))
    for call in found:
        reason = why_not_of_the_bag(call.name) if is_aggregate(call.node) else None
        if reason is not None and call.name not in (BY_POSITION if is_windowed(call.node) else DECIDED):
            raise Outside(reason, call.name)
    written = {call.name for call in calls(parse_sql(query.parsed.fragment.text))}
    rendered = {call.name for call in calls(tree)}
    odd = (written ^ rendered) - {"coalesce"}  # USING is rendered with COALESCE
    if odd:
        raise Outside(f"{min(odd)} is not known to mean the same in our rendering", min(odd))
