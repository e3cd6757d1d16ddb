"""Bound columns: those that a row of the view decides, because it shows them or because they follow from what it shows.

    columns that the view shows, or that a condition equates with a constant, are bound
    a column that a condition equates with a bound one is bound
    a key that is bound binds every column of its table

Two rows that meet the conditions and are the same in the columns of the view are the same in all bound columns. In a
subquery the columns of the query around that are bound take the place of those that the view shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.algebra.expressions import without_parentheses
from viewkeeper.algebra.nodes import Attribute, Scan, sql_of
from viewkeeper.algebra.nullability import rejects_null
from viewkeeper.facts.declared import Declarations, Declared, Reliance, UniqueKey
from viewkeeper.facts.keys import attribute_of, is_exact
from viewkeeper.sql.types import DataType


@dataclass(frozen=True)
class Bound:
    """Why a column is bound, and the columns that this follows from."""

    sentence: str
    follows_from: tuple[Attribute, ...] = ()


@dataclass
class BoundColumns:
    """The bound columns of some tables, each with its reason, in the order in which they were found."""

    tables: tuple[Scan, ...]
    conditions: tuple[exp.Expr, ...]
    declared: Declarations
    types: Mapping[Attribute, DataType]
    """Of all tables that the conditions read, those of the queries around too."""
    around: Mapping[Attribute, Bound] = field(default_factory=dict)
    """What is bound in the queries around."""
    found: dict[Attribute, Bound] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._columns = {
            (scan.alias.lower(), each.name.lower()): each
            for scan in self.tables
            for each in scan.input.columns
        }
        self._aliases = {scan.alias.lower(): scan.alias for scan in self.tables}
        self._bound_by: dict[str, UniqueKey] = {}

    def __contains__(self, attribute: Attribute) -> bool:
        return attribute in self.found or attribute in self.around

    @property
    def names(self) -> list[str]:
        """The columns of the tables that are bound, as people write them."""
        return [self.shown(attribute) for attribute in self._columns if attribute in self.found]

    def names_of(self, scan: Scan) -> tuple[str, ...]:
        """The bound columns of one table."""
        return tuple(
            each.name for each in scan.input.columns if (scan.alias.lower(), each.name.lower()) in self.found
        )

    def shown(self, attribute: Attribute) -> str:
        alias, name = attribute
        known = self._columns.get(attribute)
        return f"{self._aliases.get(alias, alias)}.{name if known is None else known.name}"

    def keys_of(self, scan: Scan) -> list[UniqueKey]:
        """The keys of a table here: a UNIQUE with columns that may be NULL is one where no NULL passes the conditions."""
        declared = self.declared.get(scan.input.object_id, Declared())
        nullable = {each.name.lower() for each in scan.input.columns if each.nullable}
        return [
            *declared.keys,
            *(
                key
                for key in declared.nullable_keys
                if all(self._is_never_null(scan, name) for name in key.columns if name.lower() in nullable)
            ),
        ]

    def _is_never_null(self, scan: Scan, name: str) -> bool:
        return any(rejects_null(each, scan.alias, name.lower()) for each in self.conditions)

    def bound_key(self, scan: Scan) -> UniqueKey | None:
        """A key of the table whose columns are all bound: the one by which the others are."""
        if scan.alias in self._bound_by:
            return self._bound_by[scan.alias]
        keys = self.keys_of(scan)
        return next((key for key in keys if all(each in self for each in _attributes(scan, key))), None)

    @property
    def relies_on(self) -> frozenset[Reliance]:
        """The keys that bind tables here."""
        return frozenset(
            Reliance(scan.input.object_id, self._bound_by[scan.alias].name)
            for scan in self.tables
            if scan.alias in self._bound_by
        )

    def derivation(self, attributes: Iterable[Attribute]) -> list[str]:
        """The sentences that lead to these columns, each after those that it follows from."""
        sentences: dict[str, None] = {}

        def visit(attribute: Attribute) -> None:
            bound = self.found.get(attribute) or self.around[attribute]
            for each in bound.follows_from:
                visit(each)
            sentences.setdefault(bound.sentence)

        for attribute in attributes:
            visit(attribute)
        return list(sentences)

    def why_bound(self, scan: Scan, key: UniqueKey) -> str:
        """The derivation of a bound key as one text."""
        return "; ".join([*self.derivation(_attributes(scan, key)), _bound_by_key(scan, key)])

    def why_not_bound(self, scan: Scan) -> str:
        keys = self.keys_of(scan)
        missing = [
            f"({', '.join(key.columns)}) because {self.shown(_first_unbound(self, scan, key))} is not bound"
            for key in keys
        ]
        missing += [
            f"({', '.join(key.columns)}) because NULLs are admitted there"
            for key in self.declared.get(scan.input.object_id, Declared()).nullable_keys
            if key not in keys
        ]
        if not missing:
            return f"no key of {scan.input.name} is known"
        return f"no key of {scan.alias} is bound: not {', not '.join(missing)}"

    # -- how they are found

    def show(self, values: Iterable[exp.Expr | None]) -> None:
        """Bind the columns that a query shows."""
        for value in values:
            if isinstance(value, exp.Column) and attribute_of(value) in self._columns:
                attribute = attribute_of(value)
                self.found.setdefault(attribute, Bound(f"{self.shown(attribute)} is shown by the view"))

    def close(self) -> None:
        """Add what follows, until nothing more does."""
        for condition in self.conditions:
            self._bind_constant(condition)
        before = -1
        while len(self.found) != before:
            before = len(self.found)
            for condition in self.conditions:
                self._bind_equal(condition)
            for scan in self.tables:
                self._bind_by_key(scan)

    def _bind_constant(self, condition: exp.Expr) -> None:
        for one, other in _sides(condition, exp.EQ):
            attribute = self._own(one)
            if attribute is not None and is_constant(other) and self._is_exact(attribute):
                sentence = f"{self.shown(attribute)} is bound: equal to the constant {sql_of(other)}"
                self.found.setdefault(attribute, Bound(sentence))

    def _bind_equal(self, condition: exp.Expr) -> None:
        for one, other in _sides(condition, exp.EQ, exp.NullSafeEQ):
            attribute = self._own(one)
            if attribute is None or attribute in self.found or not isinstance(other, exp.Column):
                continue
            known = attribute_of(other)
            if known in self and self._is_exact(attribute) and self.types[attribute] == self.types.get(known):
                where = " of the query around" if known in self.around else ""
                sentence = f"{self.shown(attribute)} is bound: equal to {other.table}.{other.name}{where}"
                self.found[attribute] = Bound(sentence, (known,))

    def _bind_by_key(self, scan: Scan) -> None:
        key = self.bound_key(scan)
        if key is None:
            return
        self._bound_by[scan.alias] = key
        columns = _attributes(scan, key)
        sentence = _bound_by_key(scan, key)
        for each in scan.input.columns:
            self.found.setdefault((scan.alias.lower(), each.name.lower()), Bound(sentence, columns))

    def _own(self, expression: exp.Expr) -> Attribute | None:
        if isinstance(expression, exp.Column) and attribute_of(expression) in self._columns:
            return attribute_of(expression)
        return None

    def _is_exact(self, attribute: Attribute) -> bool:
        return is_exact(self.types[attribute])


def types_of(tables: Iterable[Scan]) -> dict[Attribute, DataType]:
    return {
        (scan.alias.lower(), each.name.lower()): each.data_type
        for scan in tables
        for each in scan.input.columns
    }


def _bound_by_key(scan: Scan, key: UniqueKey) -> str:
    return f"({', '.join(key.columns)}) is a key of {scan.alias}, so every column of {scan.alias} is bound"


def _attributes(scan: Scan, key: UniqueKey) -> tuple[Attribute, ...]:
    return tuple((scan.alias.lower(), name.lower()) for name in key.columns)


def _first_unbound(bound: BoundColumns, scan: Scan, key: UniqueKey) -> Attribute:
    return next(each for each in _attributes(scan, key) if each not in bound)


def _sides(condition: exp.Expr, *kinds: type[exp.Binary]) -> list[tuple[exp.Expr, exp.Expr]]:
    inner = without_parentheses(condition)
    if not isinstance(inner, kinds):
        return []
    one, other = without_parentheses(inner.this), without_parentheses(inner.expression)
    return [(one, other), (other, one)]


def is_constant(expression: exp.Expr) -> bool:
    """A literal, or one with a sign or a cast: DATE '2026-03-01'."""
    inner = expression
    while isinstance(inner, (exp.Neg, exp.Cast, exp.Paren)):
        inner = inner.this
    return isinstance(inner, (exp.Literal, exp.Boolean))
