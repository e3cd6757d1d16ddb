"""What the other sides of a set operation say about a row that one side gained or lost.

Whether a row is in the view is a function of which selects have it. With the answer of one select fixed, the rest is a
query again, or its opposite:

    A UNION B        A has it: yes        A has it not: as B says
    A INTERSECT B    A has it: as B says  A has it not: no
    A EXCEPT B       A has it: unless B   A has it not: no        B has it: no    B has it not: as A says
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from viewkeeper.algebra.nodes import SetKind
from viewkeeper.facts.safety.selects import Combined, Select, Selection


@dataclass(frozen=True)
class Members:
    """Rows that a query has, or all rows that it has not."""

    query: Selection
    is_opposite: bool = False


Answer: TypeAlias = bool | Members


def answer_if(selection: Selection, select: Select, has_it: bool) -> Answer:
    """Which rows are in the view, of those that this select has (or has not)."""
    if selection is select:
        return has_it
    if not isinstance(selection, Combined):
        return Members(selection)
    left = answer_if(selection.left, select, has_it)
    right = answer_if(selection.right, select, has_it)
    match selection.kind:
        case SetKind.UNION:
            return _opposite(_both(_opposite(left), _opposite(right)))
        case SetKind.INTERSECT:
            return _both(left, right)
        case SetKind.EXCEPT:
            return _both(left, _opposite(right))


def adds_to_view(selection: Selection, select: Select) -> bool:
    """Whether rows that the select gains can only enter the view; on the right of EXCEPT they can only leave it."""
    match selection:
        case Combined(kind, _, left, right):
            if _holds(left, select):
                return adds_to_view(left, select)
            return adds_to_view(right, select) is not (kind is SetKind.EXCEPT)
        case _:
            return True


def _holds(selection: Selection, select: Select) -> bool:
    if isinstance(selection, Combined):
        return _holds(selection.left, select) or _holds(selection.right, select)
    return selection is select


def _opposite(answer: Answer) -> Answer:
    return not answer if isinstance(answer, bool) else Members(answer.query, not answer.is_opposite)


def _both(one: Answer, other: Answer) -> Answer:
    if isinstance(one, bool):
        return other if one else False
    if isinstance(other, bool):
        return one if other else False
    match one.is_opposite, other.is_opposite:
        case False, False:
            return Members(Combined(SetKind.INTERSECT, False, one.query, other.query))
        case False, True:
            return Members(Combined(SetKind.EXCEPT, False, one.query, other.query))
        case True, False:
            return Members(Combined(SetKind.EXCEPT, False, other.query, one.query))
        case _:
            return Members(Combined(SetKind.UNION, False, one.query, other.query), is_opposite=True)
