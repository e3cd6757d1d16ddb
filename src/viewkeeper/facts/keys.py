"""Which columns of a query tell its rows apart, and why.

A query's relation consists of parts (tables, queries), each with keys of its own. Equal columns and constants determine
each other, a key determines every column of its part. If the columns of the query determine a key of every part, no two
rows of the query are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.algebra.nodes import (
    Attribute,
    Constant,
    Derived,
    Generate,
    Group,
    InnerJoin,
    Item,
    OuterJoin,
    Project,
    Query,
    Relation,
    Scan,
    SemiJoin,
    SetKind,
    SetOperation,
    TopRows,
    Window,
    aliases_of,
    output_names,
    scans,
)
from viewkeeper.facts.declared import Declarations, Declared, Reliance
from viewkeeper.sql.types import DataType, Simple


@dataclass(frozen=True)
class KeyFact:
    """Columns of the query that are its key, the reason, and the constraints that make it one."""

    columns: tuple[str, ...]
    reason: str
    relies_on: frozenset[Reliance] = frozenset()


def key_of(query: Query, declared: Declarations) -> KeyFact | None:
    """A key among the columns of the query, as small as it can be made."""
    match query:
        case Project(Group() as group):
            return _key_of_groups(query, group)
        case Project(Window() as window):
            return _key_of_rows(query.items, window.source, declared)
        case Project(source, items):
            assert not isinstance(source, (Group, Window))
            return _key_of_rows(items, source, declared)
        case SetOperation(kind, is_all, left, _):
            if kind is SetKind.UNION:
                return None
            if is_all:
                return key_of(left, declared)
            return KeyFact(output_names(query), f"{kind.value.upper()} leaves no row twice")
        case TopRows(inner):
            return key_of(inner, declared)


def _key_of_groups(query: Project, group: Group) -> KeyFact | None:
    shown = {
        item.expression.name: item.name for item in query.items if isinstance(item.expression, exp.Column)
    }
    if any(key.name not in shown for key in group.keys):
        return None
    columns = tuple(shown[key.name] for key in group.keys)
    one = "there is one row" if query.having is None else "there is at most one row"
    return KeyFact(columns, f"there is one row for each {', '.join(columns)}" if columns else one)


def _key_of_rows(items: Sequence[Item], relation: Relation, declared: Declarations) -> KeyFact | None:
    shown = {
        attribute: item.name
        for item in items
        if isinstance(item.expression, exp.Column) and (attribute := attribute_of(item.expression))
    }
    known = _known_of(relation, declared)
    kept = list(shown)
    reached = known.keys_reached(kept)
    if reached is None:
        return None
    for attribute in reversed(list(shown)):
        fewer = [each for each in kept if each != attribute]
        again = known.keys_reached(fewer)
        if again is not None:
            kept, reached = fewer, again
    columns = tuple(shown[attribute] for attribute in kept)
    because = "; ".join(key.words for key in reached)
    reliances = frozenset(reliance for key in reached for reliance in key.relies_on)
    what = f"{', '.join(columns)} determines every row" if columns else "there is at most one row"
    return KeyFact(columns, f"{what}: {because}", reliances)


@dataclass(frozen=True)
class _Key:
    columns: frozenset[Attribute]
    words: str
    relies_on: frozenset[Reliance] = frozenset()


@dataclass
class _Known:
    """What is known of a relation: the keys of its parts, what determines what, and constants."""

    parts: list[list[_Key]] = field(default_factory=list)
    dependencies: list[tuple[frozenset[Attribute], frozenset[Attribute]]] = field(default_factory=list)
    constants: set[Attribute] = field(default_factory=set)

    def add(self, other: _Known) -> None:
        self.parts += other.parts
        self.dependencies += other.dependencies
        self.constants |= other.constants

    def determined_by(self, start: Iterable[Attribute]) -> set[Attribute]:
        known = set(start) | self.constants
        before = -1
        while len(known) != before:
            before = len(known)
            for few, many in self.dependencies:
                if few <= known:
                    known |= many
        return known

    def keys_reached(self, start: Iterable[Attribute]) -> list[_Key] | None:
        """For each part a key that the attributes determine; None if one has none."""
        given = set(start) | self.constants
        known = self.determined_by(given)
        reached = [
            next((key for near in (given, known) for key in keys if key.columns <= near), None)
            for keys in self.parts
        ]
        return None if None in reached else [key for key in reached if key is not None]


def _known_of(relation: Relation, declared: Declarations) -> _Known:
    match relation:
        case Scan():
            return _known_of_scan(relation, declared)
        case Derived(alias, query):
            every = frozenset((alias.lower(), name.lower()) for name in output_names(query))
            found = key_of(query, declared)
            if found is None:
                return _Known([[]])
            columns = frozenset((alias.lower(), name.lower()) for name in found.columns)
            return _Known([[_Key(columns, f"{alias}: {found.reason}", found.relies_on)]], [(columns, every)])
        case Constant():
            return _Known([[]])
        case InnerJoin(sources, conditions):
            known = _Known()
            for source in sources:
                known.add(_known_of(source, declared))
            for one, other in _equal(relation, conditions):
                known.dependencies += [
                    (frozenset({one}), frozenset({other})),
                    (frozenset({other}), frozenset({one})),
                ]
            known.constants |= constants(relation, conditions)
            return known
        case OuterJoin():
            return _known_of_outer_join(relation, declared)
        case SemiJoin(left):
            return _known_of(left, declared)
        case Generate(source):
            known = _known_of(source, declared)
            known.parts.append([])
            return known


def _known_of_scan(scan: Scan, declared: Declarations) -> _Known:
    every = frozenset((scan.alias.lower(), each.name.lower()) for each in scan.input.columns)
    keys = [
        _Key(
            frozenset((scan.alias.lower(), name.lower()) for name in key.columns),
            f"({', '.join(key.columns)}) is a key of {scan.alias}",
            frozenset({Reliance(scan.input.object_id, key.name)}),
        )
        for key in declared.get(scan.input.object_id, Declared()).keys
    ]
    return _Known([keys], [(key.columns, every) for key in keys])


def _known_of_outer_join(join: OuterJoin, declared: Declarations) -> _Known:
    """What determines what stays true with NULLs in place of a missing partner; constants do not. If at most one
    partner is found by the condition, the row determines it."""
    left, right = _known_of(join.left, declared), _known_of(join.right, declared)
    parts = left.parts + right.parts
    if join.is_full:
        # A key of groups may be NULL, and so look like a row without a partner; a declared one may not.
        parts = [[key for key in keys if key.relies_on] for keys in parts]
    known = _Known(
        parts,
        left.dependencies + right.dependencies,
        set() if join.is_full else left.constants,
    )
    if not join.is_full:
        mine, theirs = aliases_of(join.left), aliases_of(join.right)
        pairs = [(one, other) for pair in _equal(join, join.conditions) for one, other in (pair, pair[::-1])]
        matched = {one for one, other in pairs if one[0] in theirs and other[0] in mine}
        if right.keys_reached(matched) is not None:
            asked = frozenset(
                attribute
                for condition in join.conditions
                for found in condition.find_all(exp.Column)
                if (attribute := attribute_of(found))[0] in {alias.lower() for alias in mine}
            )
            partner = frozenset().union(*(key.columns for keys in right.parts for key in keys))
            known.dependencies.append((asked, partner))
    return known


def equalities(join: InnerJoin) -> list[tuple[Attribute, Attribute]]:
    """Columns that the conditions make the same, value for value."""
    return _equal(join, join.conditions)


def _equal(relation: Relation, conditions: Iterable[exp.Expr]) -> list[tuple[Attribute, Attribute]]:
    types = _types(relation)
    found = []
    for condition in conditions:
        if not isinstance(condition, (exp.EQ, exp.NullSafeEQ)):
            continue
        left, right = condition.this, condition.expression
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            pair = attribute_of(left), attribute_of(right)
            if types.get(pair[0]) == types.get(pair[1]) and is_exact(types.get(pair[0])):
                found.append(pair)
    return found


def constants(relation: Relation, conditions: Iterable[exp.Expr]) -> set[Attribute]:
    """Columns that the conditions fix to one value."""
    types = _types(relation)
    found = set()
    for condition in conditions:
        if isinstance(condition, exp.EQ):
            for one, other in (
                (condition.this, condition.expression),
                (condition.expression, condition.this),
            ):
                if isinstance(one, exp.Column) and isinstance(other, exp.Literal):
                    attribute = attribute_of(one)
                    if is_exact(types.get(attribute)):
                        found.add(attribute)
    return found


def _types(relation: Relation) -> dict[Attribute, DataType]:
    """The types of the columns of tables; those of queries are not known here."""
    return {
        (scan.alias.lower(), each.name.lower()): each.data_type
        for scan in scans(relation)
        for each in scan.input.columns
    }


def attribute_of(expression: exp.Expr) -> Attribute:
    assert isinstance(expression, exp.Column)
    return expression.table.lower(), expression.name.lower()


def is_exact(data_type: DataType | None) -> bool:
    """Whether values that are equal are the same: not so for 0.0 and -0.0, nor for padded CHAR."""
    return isinstance(data_type, Simple) and not data_type.name.startswith(("FLOAT", "DOUBLE", "CHAR"))
