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
from viewkeeper.maintenance.differential.limits import Limits, Values, across, attribute_of


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
        limits = {key: values for key, values in given.items() if key[0] not in own}
        for item in select.expressions:
            attribute, name = attribute_of(item.unalias()), item.alias_or_name.lower()
            if attribute is not None and name in mine:
                limits[attribute] = mine[name]
        limits = dict(across(_comparisons(select), {**limits, **self._known(select)}))
        limits, below = self._along(select, limits)
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
            self._write_select(subquery, below, {})

    def _along(self, select: exp.Select, limits: Limits) -> tuple[dict[Attribute, Values], Limits]:
        """The limits, and those that follow table by table: of a table that is read under a limit few rows can have
        partners. Besides, what subqueries may know of all these rows."""
        found, below = dict(limits), dict(limits)
        waiting = [source for source in _sources(select) if isinstance(source, exp.Table)]
        while True:
            limited = {alias for alias, _ in found}
            table = next((each for each in waiting if each.alias_or_name in limited), None)
            if table is None:
                return found, across(_comparisons(select), below)
            waiting.remove(table)
            left = {each.alias_or_name for each in waiting}
            below = {**self.reached(table, found), **below}
            spread = across(_comparisons(select), below)
            found |= {key: values for key, values in spread.items() if key[0] in left}

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
