"""Trees back to SQL.

A relation becomes a `Frame`: what stands after SELECT … until GROUP BY. Whoever selects from it gives its expressions to
`Frame.over`, because a join that had to be put into a subquery has its columns there under other names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from sqlglot import exp

from viewkeeper.algebra.expressions import standing_for
from viewkeeper.algebra.nodes import (
    Attribute,
    Constant,
    Derived,
    Generate,
    Group,
    InnerJoin,
    Node,
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
    aliases_in,
    aliases_of,
    attributes_in,
    output_names,
)
from viewkeeper.generated_names import HIDDEN_PREFIX
from viewkeeper.sql.rendering import alias, all_of, column, literal, select_from

_KEEP = f"{HIDDEN_PREFIX}keep"


_JOIN_WORDS = {
    "inner": {"kind": "INNER"},
    "cross": {"kind": "CROSS"},
    "left": {"side": "LEFT"},
    "full": {"side": "FULL"},
    "left semi": {"side": "LEFT", "kind": "SEMI"},
    "left anti": {"side": "LEFT", "kind": "ANTI"},
}
"""Joins as sqlglot has them; its own builder parses the words, which costs more than the whole join."""


def flat_name(attribute: Attribute) -> str:
    """What a column of a join is called once the join is a relation of its own."""
    return ".".join(attribute).lower()


@dataclass(frozen=True)
class Frame:
    """FROM with its joins and conditions. `nested` says under which relation the columns of an alias are found by
    their flat names; under None they are all NULL. `carried` are columns that no expression of the tree reads and that
    must not get lost in a subquery."""

    select: exp.Select
    nested: Mapping[str, str | None] = field(default_factory=dict)
    carried: tuple[exp.Column, ...] = ()

    @property
    def is_one_relation(self) -> bool:
        return not any(self.select.args.get(part) for part in ("joins", "where", "laterals"))

    @property
    def relation(self) -> exp.Expr:
        found = self.select.args["from_"].this
        assert isinstance(found, exp.Expr)
        return found

    def over(self, expression: exp.Expr) -> exp.Expr:
        """The expression as it must be written in this frame."""
        if not self.nested:
            return expression.copy()

        def renamed(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and node.table in self.nested:
                relation = self.nested[node.table]
                return (
                    exp.Null() if relation is None else column(flat_name((node.table, node.name)), relation)
                )
            return node

        result: exp.Expr = expression.transform(renamed)
        return result

    def selecting(self, items: Sequence[exp.Expr]) -> exp.Select:
        """SELECT these columns, which must be over this frame already."""
        return extended(self.select).select(*items, append=False, copy=False)

    def where(self, conditions: Sequence[exp.Expr]) -> Frame:
        written = [self.over(each) for each in conditions]
        if not written:
            return self
        return replace(self, select=extended(self.select).where(*written, copy=False))


def extended(select: exp.Select) -> exp.Select:
    """A SELECT to be added to, with the same parts. Nobody changes parts in place, so that they can be shared: copying
    them at every join would cost more than all the rest of planning."""
    return exp.Select(
        **{key: list(value) if isinstance(value, list) else value for key, value in select.args.items()}
    )


def frame_from(relation: exp.Expr) -> Frame:
    return Frame(select_from(relation, []))


def nulls_for(frame: Frame, aliases: frozenset[str]) -> Frame:
    """The frame with columns of these aliases too, all NULL."""
    return replace(frame, nested={**frame.nested, **dict.fromkeys(aliases)})


Leaf: TypeAlias = Callable[[Relation], Frame | None]
"""What stands for a relation: asked for every one, must answer for scans; None goes on below."""


@dataclass(frozen=True)
class Writer:
    """Writes parts of one tree; the tree says which columns are needed where a join becomes a subquery."""

    root: Node

    @cached_property
    def _needed(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, dict[str, None]] = {}
        for relation, name in sorted(attributes_in(self.root)):
            found.setdefault(relation, {}).setdefault(name.lower())
        return {relation: tuple(names) for relation, names in found.items()}

    def needed(self, relation: Relation) -> list[exp.Column]:
        """The columns of a relation that some expression of the tree reads."""
        return [
            column(name, each) for each in sorted(aliases_of(relation)) for name in self._needed.get(each, ())
        ]

    def flat_items(self, frame: Frame, relation: Relation) -> list[exp.Expr]:
        """The needed columns under their flat names; a relation without any has a constant, for there must be one."""
        items = [
            alias(frame.over(each), flat_name((each.table, each.name))) for each in self.needed(relation)
        ]
        return items or [alias(literal(1), f"{HIDDEN_PREFIX}one")]

    def flattened(self, frame: Frame, relation: Relation) -> Frame:
        """The frame as a subquery."""
        name = nested_name(relation)
        carried = [alias(frame.over(each), flat_name((each.table, each.name))) for each in frame.carried]
        select = frame.selecting([*self.flat_items(frame, relation), *carried])
        nested = dict.fromkeys(aliases_of(relation), name)
        return Frame(select_from(as_relation(select, name), []), nested, frame.carried)

    def frame(self, relation: Relation, leaf: Leaf) -> Frame:
        """The relation over the leaves."""
        found = leaf(relation)
        if found is not None:
            return found
        match relation:
            case Scan():
                raise AssertionError("a scan is a leaf")
            case Derived(name, query):
                inner = self.query(query, leaf)
                return frame_from(as_relation(inner, name))
            case Constant():
                return frame_from(_constant(relation))
            case InnerJoin(sources, conditions):
                return self.inner([(each, self.frame(each, leaf)) for each in sources], conditions)
            case OuterJoin(left, right, conditions, is_full):
                sides = self.frame(left, leaf), self.frame(right, leaf)
                return self.joined(relation, *sides, "full" if is_full else "left", conditions)
            case SemiJoin(left, right, conditions, is_anti):
                sides = self.frame(left, leaf), self.frame(right, leaf)
                return self.joined(relation, *sides, "left anti" if is_anti else "left semi", conditions)
            case Generate(source):
                return self.generated(relation, self.frame(source, leaf))

    def inner(self, sources: Sequence[tuple[Relation, Frame]], conditions: Sequence[exp.Expr]) -> Frame:
        """Join source by source, each condition where all it reads is there."""
        pending = list(conditions)
        first, frame = sources[0]
        present = aliases_of(first)
        for relation, right in sources[1:]:
            if frame.select.args.get("laterals"):
                frame = self.flattened(
                    frame, InnerJoin(tuple(r for r, _ in sources if aliases_of(r) <= present), ())
                )
            own = aliases_of(relation)
            present |= own
            ready = [each for each in pending if aliases_in(each) & own and aliases_in(each) <= present]
            pending = [each for each in pending if each not in ready]
            frame = self._join(frame, self._as_one(right, relation), "inner" if ready else "cross", ready)
        return frame.where(pending)

    def joined(
        self,
        join: OuterJoin | SemiJoin,
        left: Frame,
        right: Frame,
        kind: str,
        conditions: Sequence[exp.Expr],
    ) -> Frame:
        """Two sides joined by any kind of join; a filter on the left side is the same after all but FULL joins."""
        if left.select.args.get("laterals") or (kind == "full" and left.select.args.get("where")):
            left = self.flattened(left, join.left)
        right = self._as_one(right, join.right)
        result = self._join(left, right, kind, conditions or [exp.true()])
        if isinstance(join, SemiJoin):
            gone = aliases_of(join.right)
            return replace(result, nested={k: v for k, v in result.nested.items() if k not in gone})
        return result

    def _as_one(self, frame: Frame, relation: Relation) -> Frame:
        return frame if frame.is_one_relation else self.flattened(frame, relation)

    def _join(self, left: Frame, right: Frame, kind: str, conditions: Sequence[exp.Expr]) -> Frame:
        both = Frame(left.select, {**left.nested, **right.nested}, left.carried + right.carried)
        join = exp.Join(this=right.relation, **_JOIN_WORDS[kind])
        if kind != "cross":
            join.set("on", all_of(both.over(each) for each in conditions))
        joined = extended(left.select)
        joined.append("joins", join)
        return replace(both, select=joined)

    def generated(self, node: Generate, frame: Frame) -> Frame:
        lateral = exp.Lateral(
            this=frame.over(node.function),
            view=True,
            outer=node.is_outer or None,
            alias=exp.TableAlias(
                this=exp.to_identifier(node.alias, quoted=True),
                columns=[exp.to_identifier(name, quoted=True) for name in node.columns],
            ),
        )
        return replace(frame, select=extended(frame.select).lateral(lateral, append=True, copy=False))

    def query(self, query: Query, leaf: Leaf) -> exp.Query:
        match query:
            case Project(source):
                relation = source.source if isinstance(source, (Group, Window)) else source
                return self.project(query, self.frame(relation, leaf))
            case SetOperation(kind, is_all, left, right):
                return set_operation(kind, is_all, self.query(left, leaf), self.query(right, leaf))
            case TopRows():
                return top_rows(query, self.query(query.query, leaf))

    def project(self, query: Project, frame: Frame, items: Sequence[exp.Expr] | None = None) -> exp.Query:
        """The query over a frame of its relation, with its own columns or others over the same outputs."""
        shown = items or [alias(item.expression.copy(), item.name) for item in query.items]
        source = query.source
        written = [frame.over(below(each, source)) for each in shown]
        match source:
            case Group(_, keys):
                select = frame.selecting(written)
                if keys:
                    select = select.group_by(*(frame.over(key.expression) for key in keys), copy=False)
                having = query.having
                if having is None:
                    return select
                return select.having(frame.over(below(having, source)), copy=False)
            case Window():
                if query.having is None:
                    return frame.selecting(written)
                keep = alias(frame.over(below(query.having, source)), _KEEP)
                inner = as_relation(frame.selecting([*written, keep]), f"{HIDDEN_PREFIX}kept")
                kept = select_from(inner, [column(each.alias) for each in shown])
                return kept.where(column(_KEEP), copy=False)
            case _:
                return frame.selecting(written)


def below(expression: exp.Expr, source: Relation | Group | Window) -> exp.Expr:
    """An expression over the outputs of a group or window as one over the relation below it."""
    match source:
        case Group(_, keys, aggregates):
            inside = {item.name: item.expression for item in (*keys, *aggregates)}
        case Window(_, functions):
            inside = {item.name: item.expression for item in functions}
        case _:
            return expression.copy()

    def replaced(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and node.name in inside:
            return standing_for(node, inside[node.name])
        return node

    result: exp.Expr = expression.transform(replaced)
    return result


def as_relation(query: exp.Query, name: str) -> exp.Subquery:
    """A query under a name."""
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))


def nested_name(relation: Relation) -> str:
    return HIDDEN_PREFIX + "_".join(sorted(aliases_of(relation)))


def _constant(node: Constant) -> exp.Expr:
    rows = node.rows.copy()
    rows.set(
        "alias",
        exp.TableAlias(
            this=exp.to_identifier(node.alias, quoted=True),
            columns=[exp.to_identifier(name, quoted=True) for name in node.columns],
        ),
    )
    return rows


def set_operation(kind: SetKind, is_all: bool, left: exp.Query, right: exp.Query) -> exp.Query:
    operator = {SetKind.UNION: exp.Union, SetKind.INTERSECT: exp.Intersect, SetKind.EXCEPT: exp.Except}[kind]
    return operator(this=_operand(left), expression=_operand(right), distinct=not is_all)


def _operand(query: exp.Query) -> exp.Expr:
    is_simple = isinstance(query, exp.Select) and not query.args.get("limit") and not query.args.get("order")
    return query if is_simple else exp.Subquery(this=query)


def top_rows(top: TopRows, rows: exp.Query) -> exp.Select:
    """The first of these rows; they must have the columns of the query, and may have more."""
    names = output_names(top.query)
    relation = as_relation(rows, f"{HIDDEN_PREFIX}rows_in_order")
    select = select_from(relation, [column(name) for name in names])
    order = [each.copy() for each in top.order] + [
        exp.Ordered(this=column(name), desc=False, nulls_first=True) for name in names
    ]
    select = select.order_by(*order, copy=False)
    if top.limit is not None:
        select = select.limit(top.limit, copy=False)
    return select.offset(top.offset, copy=False) if top.offset else select
