"""A view as the SELECTs that it is made of: tables, conditions, subqueries that must have rows or must have none.

    SELECT … FROM t, u WHERE p AND EXISTS (q)        a Select of a Block with one Subquery
    SELECT … UNION SELECT …                          a Combined of two Selects

Subqueries may stand in subqueries. Queries in FROM that only join and filter are part of the block around them. What
else a query can have (outer joins, groups, windows, …) is `Unread`, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from viewkeeper.algebra.expressions import without_parentheses
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
    output_names,
)
from viewkeeper.sql.rendering import column


@dataclass(frozen=True)
class Block:
    """FROM and WHERE. In a subquery, `conditions` holds the ones too that compare it with the query around."""

    tables: tuple[Scan, ...]
    conditions: tuple[exp.Expr, ...] = ()
    subqueries: tuple[Subquery, ...] = ()


@dataclass(frozen=True)
class Subquery:
    """A block that must have a row for a row around it, or must have none. `origin` is the predicate as written."""

    block: Block
    is_negative: bool
    origin: str


@dataclass(frozen=True)
class Select:
    """`converted` are the places of items whose values a set operation converts to another type."""

    items: tuple[Item, ...]
    block: Block
    is_distinct: bool = False
    converted: frozenset[int] = frozenset()

    def shows(self, at: int) -> exp.Expr | None:
        """What the view shows at a place, if it shows it as it is."""
        return None if at in self.converted else without_parentheses(self.items[at].expression)


@dataclass(frozen=True)
class Combined:
    """A set operation; a UNION ALL keeps copies, the others do not."""

    kind: SetKind
    keeps_copies: bool
    left: Selection
    right: Selection


@dataclass(frozen=True)
class Unread:
    """A query that is more than selects, as a clause that can follow "because"."""

    reason: str


Selection: TypeAlias = Select | Combined | Unread


def read_selection(query: Query) -> Selection:
    try:
        return _query(query)
    except _NotASelect as reason:
        return Unread(str(reason))


def selects(selection: Selection) -> Iterator[Select]:
    """The selects of a view, as they are written."""
    match selection:
        case Select():
            yield selection
        case Combined(_, _, left, right):
            yield from selects(left)
            yield from selects(right)
        case Unread():
            return


def blocks(block: Block) -> Iterator[Block]:
    """The block and those of its subqueries, at any depth."""
    yield block
    for subquery in block.subqueries:
        yield from blocks(subquery.block)


class _NotASelect(Exception):
    pass


def _query(query: Query) -> Selection:
    match query:
        case Project(Derived(alias, SetOperation() as inner), items, None) if _is_whole(items, alias, inner):
            return _query(inner)
        case Project(Group(Derived(alias, SetOperation() as inner), keys, ()), items, None) if _is_distinct(
            items, keys
        ) and _is_whole(keys, alias, inner):
            found = _query(inner)
            assert isinstance(found, Combined)
            return Combined(found.kind, False, found.left, found.right)
        case Project(Group(source, keys, ()), items, None) if _is_distinct(items, keys):
            block, columns = _block(source)
            return Select(_items(keys, columns), block, is_distinct=True)
        case Project(Group()):
            raise _NotASelect("it groups")
        case Project(Window()):
            raise _NotASelect("it has window functions")
        case Project(source, items):
            assert not isinstance(source, (Group, Window))
            block, columns = _block(source)
            return Select(_items(items, columns), block)
        case SetOperation(kind, is_all, left, right):
            if is_all and kind is not SetKind.UNION:
                raise _NotASelect(f"{kind.value.upper()} ALL counts copies")
            return Combined(kind, is_all, _query(left), _query(right))
        case TopRows():
            raise _NotASelect("it takes the first rows of an order")


def _is_whole(items: Sequence[Item], alias: str, inner: Query) -> bool:
    """Whether the items are all columns of the query under the alias, in order."""
    wanted = [column(name, alias) for name in output_names(inner)]
    return [item.expression for item in items] == wanted


def _is_distinct(items: Sequence[Item], keys: Sequence[Item]) -> bool:
    return [item.expression for item in items] == [column(key.name) for key in keys]


_Columns: TypeAlias = Mapping[Attribute, exp.Expr]
"""What the columns of queries in FROM stand for, over the tables."""


def _block(relation: Relation) -> tuple[Block, _Columns]:
    match relation:
        case Scan():
            return Block((relation,)), {}
        case InnerJoin(sources, conditions):
            block, every = Block(()), dict[Attribute, exp.Expr]()
            for source in sources:
                found, inner = _block(source)
                every.update(inner)
                block = Block(
                    block.tables + found.tables,
                    block.conditions + found.conditions,
                    block.subqueries + found.subqueries,
                )
            own = tuple(_over(each, every) for each in conditions)
            return Block(block.tables, block.conditions + own, block.subqueries), every
        case SemiJoin(left, right, conditions, is_anti, origin):
            around, columns = _block(left)
            inside, inner = _block(right)
            ties = tuple(_over(each, {**columns, **inner}) for each in conditions)
            subquery = Subquery(
                Block(inside.tables, inside.conditions + ties, inside.subqueries), is_anti, origin
            )
            return Block(around.tables, around.conditions, (*around.subqueries, subquery)), columns
        case Derived(alias, Project(source, items, None)) if not isinstance(source, (Group, Window)):
            block, columns = _block(source)
            own_columns = {
                (alias.lower(), item.name.lower()): _over(item.expression, columns) for item in items
            }
            return block, own_columns
        case Derived():
            raise _NotASelect("a query in FROM does more than join and filter")
        case OuterJoin():
            raise _NotASelect("it has an outer join, or a subquery that is not a condition of its own")
        case Constant():
            raise _NotASelect("it has VALUES in FROM")
        case Generate():
            raise _NotASelect("it has a LATERAL VIEW")


def _items(items: Sequence[Item], columns: _Columns) -> tuple[Item, ...]:
    return tuple(Item(item.name, _over(item.expression, columns)) for item in items)


def _over(expression: exp.Expr, columns: _Columns) -> exp.Expr:
    if not columns:
        return expression

    def visit(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        found = columns.get((node.table.lower(), node.name.lower()))
        return node if found is None else _grouped(found)

    result: exp.Expr = expression.transform(visit)
    return result


def _grouped(expression: exp.Expr) -> exp.Expr:
    is_operator = isinstance(expression, (exp.Binary, exp.Unary))
    return exp.paren(expression.copy()) if is_operator else expression.copy()
