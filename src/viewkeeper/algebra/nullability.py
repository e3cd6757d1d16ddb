"""Which columns of a relation are never NULL."""

from __future__ import annotations

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
    SetKind,
    SetOperation,
    TopRows,
    Window,
    output_names,
)


def never_null_columns(query: Query) -> tuple[str, ...]:
    return tuple(name for name in output_names(query) if _output(query, name.lower()))


def rejects_nulls_of(condition: exp.Expr, aliases: frozenset[str]) -> bool:
    """Whether a condition cannot hold where all columns of these aliases are NULL."""
    return any(
        rejects_null(condition, found.table, found.name.lower())
        for found in condition.find_all(exp.Column)
        if found.table in aliases
    )


def is_never_null(expression: exp.Expr, relation: Relation) -> bool:
    match expression:
        case exp.Column():
            return _column(expression.table, expression.name.lower(), relation)
        case exp.Literal():
            return True
        case exp.Paren() | exp.Neg():
            return is_never_null(expression.this, relation)
        case exp.Count():
            return True
        case exp.Coalesce():
            return any(is_never_null(each, relation) for each in [expression.this, *expression.expressions])
        case _:
            return False


def _column(alias: str, name: str, relation: Relation) -> bool:
    match relation:
        case Scan(own, table):
            return own == alias and any(c.name.lower() == name and not c.nullable for c in table.columns)
        case Derived(own, query):
            return own == alias and _output(query, name)
        case Constant():
            return False
        case InnerJoin(sources, conditions):
            return any(_column(alias, name, source) for source in sources) or any(
                rejects_null(each, alias, name) for each in conditions
            )
        case OuterJoin(left, _, _, is_full):
            return not is_full and _column(alias, name, left)
        case SemiJoin(left):
            return _column(alias, name, left)
        case Generate(source):
            return _column(alias, name, source)


def rejects_null(condition: exp.Expr, alias: str, name: str) -> bool:
    """Whether a condition cannot hold where the column is NULL: a comparison of the column itself, or IS NOT NULL."""
    inner = condition
    while isinstance(inner, exp.Paren):
        inner = inner.this
    match inner:
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            sides = (inner.this, inner.expression)
        case exp.Not() if isinstance(inner.this, exp.Is) and isinstance(inner.this.expression, exp.Null):
            sides = (inner.this.this, None)
        case exp.Between() | exp.Like():
            sides = (inner.this, None)
        case _:
            return False
    return any(
        isinstance(side, exp.Column) and side.table == alias and side.name.lower() == name for side in sides
    )


def _output(query: Query, name: str) -> bool:
    match query:
        case Project(source, items):
            found = next((item.expression for item in items if item.name.lower() == name), None)
            if found is None:
                return False
            match source:
                case Group(relation, keys, aggregates):
                    inside = {item.name: item.expression for item in (*keys, *aggregates)}
                    if isinstance(found, exp.Column) and found.name in inside:
                        return is_never_null(inside[found.name], relation)
                    return False
                case Window(relation):
                    return is_never_null(found, relation)
                case _:
                    return is_never_null(found, source)
        case SetOperation(kind, _, left, right):
            one = _output(left, name)
            if kind is SetKind.EXCEPT:
                return one
            return one and _output(right, _partner(left, right, name))
        case TopRows(inner):
            return _output(inner, name)


def _partner(left: Query, right: Query, name: str) -> str:
    """The column of the right side at the place of one of the left side."""
    names = [each.lower() for each in output_names(left)]
    return output_names(right)[names.index(name)].lower()
