"""Limits for the SQL of rules: which rows of the tables that an action reads can matter to the changed rows.

An action reads one changed part and whole tables beside it. Equalities lead from the columns of the part to columns of the
tables: in a block, down into its subqueries, whether they must have rows or not, and up out of a subquery that must have
some. A row that has none of the values there meets nothing that the part can meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.expressions import conjuncts
from viewkeeper.algebra.nodes import Attribute
from viewkeeper.maintenance.differential.limits import Limits, Values, across, along, attribute_of


@dataclass(frozen=True)
class LimitedSql:
    """`starts` tells the values in the columns of a relation, if it is a changed part; `name` what a relation is called
    under its limits; `reached` the values in its columns, if these limits leave few of its rows."""

    starts: Callable[[exp.Table], Limits]
    name: Callable[[exp.Table, Limits], str]
    reached: Callable[[exp.Table, Limits], Limits]

    def write(self, select: exp.Select) -> exp.Select:
        """The select over limited relations, its joins written out."""
        found = select.copy()
        self._write_select(found, {}, {})
        return found

    # -- from the changed part outwards

    def _known(self, select: exp.Select) -> Limits:
        """What holds of the columns of a select, and of the queries around it, if it has a row."""
        found: dict[Attribute, Values] = {}
        for source in _sources(select):
            if isinstance(source, exp.Table):
                found.update(self.starts(source))
            elif isinstance(source.this, exp.Select):
                inner = self._known(source.this)
                for item in source.this.expressions:
                    attribute = attribute_of(item.unalias())
                    if attribute is not None and attribute in inner:
                        found[source.alias_or_name, item.alias_or_name.lower()] = inner[attribute]
        for subquery, is_negative in _subqueries(select):
            if not is_negative:
                own = _aliases(subquery)
                for attribute, values in self._known(subquery).items():
                    if attribute[0] not in own:
                        found.setdefault(attribute, values)
        return across(_comparisons(select), found)

    # -- from there to every relation

    def _write_select(self, select: exp.Select, given: Limits, mine: Mapping[str, Values]) -> None:
        """`given` holds of the queries around, `mine` of the columns of the select itself."""
        own = _aliases(select)
        start = {key: values for key, values in given.items() if key[0] not in own}
        for item in select.expressions:
            attribute, name = attribute_of(item.unalias()), item.alias_or_name.lower()
            if attribute is not None and name in mine:
                start[attribute] = mine[name]
        start |= self._known(select)
        tables = {each.alias_or_name: each for each in _sources(select) if isinstance(each, exp.Table)}
        comparisons = _comparisons(select)
        limits, known = along(
            tables,
            comparisons,
            across(comparisons, start),
            lambda alias, found: self.reached(tables[alias], found),
        )
        for source in _sources(select):
            if isinstance(source, exp.Table):
                source.set("this", exp.to_identifier(self.name(source, limits), quoted=True))
            else:
                here = source.alias_or_name
                inside = {name: values for (of, name), values in limits.items() if of == here}
                self._write_query(source.this, inside)
        for join in select.args.get("joins") or ():
            join.set("kind", "CROSS")
        for subquery, _ in _subqueries(select):
            self._write_select(subquery, known, {})

    def _write_query(self, query: exp.Expr, mine: Mapping[str, Values]) -> None:
        """A query in FROM. Both sides of a set operation have columns of the same names, and a row that one side lacks for
        its values may be lacking on the other."""
        match query:
            case exp.Select():
                self._write_select(query, {}, mine)
            case exp.SetOperation():
                self._write_query(query.this, mine)
                self._write_query(query.expression, mine)
            case exp.Subquery():
                self._write_query(query.this, mine)
            case _:
                raise AssertionError(f"rules write no {query.key}")


def _sources(select: exp.Select) -> Iterator[exp.Table | exp.Subquery]:
    for part in (select.args["from_"], *(select.args.get("joins") or ())):
        assert isinstance(part.this, (exp.Table, exp.Subquery))
        yield part.this


def _aliases(select: exp.Select) -> set[str]:
    return {source.alias_or_name for source in _sources(select)}


def _conditions(select: exp.Select) -> list[exp.Expr]:
    where = select.args.get("where")
    return [] if where is None else list(conjuncts(where.this))


def _comparisons(select: exp.Select) -> list[exp.Expr]:
    return [each for each in _conditions(select) if not isinstance(each, (exp.Exists, exp.Not))]


def _subqueries(select: exp.Select) -> Iterator[tuple[exp.Select, bool]]:
    """The subqueries that the select asks for, each with whether it must have no row."""
    for each in _conditions(select):
        inner = each.this if isinstance(each, exp.Not) else each
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Exists):
            assert isinstance(inner.this, exp.Select)
            yield inner.this, isinstance(each, exp.Not)
