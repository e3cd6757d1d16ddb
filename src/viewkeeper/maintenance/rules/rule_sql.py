"""Actions of rules as statements: DELETE, INSERT, and counting copies.

Rows are compared so that NULL equals NULL, except in columns that are never NULL: there an equality is as good, and faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp
from typing_extensions import assert_never

from viewkeeper.algebra.expressions import conjuncts
from viewkeeper.algebra.to_sql import as_relation
from viewkeeper.generated_names import SIGN, SIGNED_COUNT
from viewkeeper.maintenance.rules.rule import Action, Check, Effect, Rule, TransitionTable
from viewkeeper.maintenance.rules.rule_set import RuleSet
from viewkeeper.sql.rendering import (
    alias,
    aliased,
    all_of,
    call,
    column,
    literal,
    relation_named,
    render,
    select_from,
    union_all,
)

_COMING, _OTHER = "coming", "other"


def statements(rules: RuleSet, rule: Rule) -> list[exp.Expr]:
    """What a rule does to the view, as statements over the relations of its actions."""
    match rule.effect:
        case Effect.DELETE:
            return [delete_rows(rules, each) for each in rule.actions]
        case Effect.INSERT:
            return [insert_rows(rules, each) for each in rule.actions]
        case Effect.REMATERIALIZE:
            (action,) = rule.actions
            return [
                exp.Delete(this=relation_named(rules.stem)),
                _insert(rules, action.rows),
            ]
        case Effect.RECOUNT:
            return [net_copies(rules, rule.actions)]
        case _:
            assert_never(rule.effect)


def delete_rows(rules: RuleSet, action: Action) -> exp.Expr:
    return exp.Delete(
        this=relation_named(rules.stem), where=exp.Where(this=all_of(_why_deleted(rules, action)))
    )


def _why_deleted(rules: RuleSet, action: Action) -> list[exp.Expr]:
    """What holds of a row of the view that an action deletes."""
    values = {each: column(each, rules.stem) for each in rules.columns}
    return [
        _is_in(rules, action.rows, {each: values[each] for each in action.columns}, action.matches_nulls),
        *(_checked(rules, each, values) for each in action.checks),
    ]


def deleted_rows(rules: RuleSet, action: Action, view: str) -> exp.Select:
    """The rows of the view, in a relation of that name, that an action deletes."""
    items = [alias(column(each, rules.stem), each) for each in rules.columns]
    select = select_from(aliased(view, rules.stem), items)
    select.set("where", exp.Where(this=all_of(_why_deleted(rules, action))))
    return select


def insert_rows(rules: RuleSet, action: Action) -> exp.Expr:
    return _insert(rules, checked_rows(rules, action, action.checks))


def checked_rows(rules: RuleSet, action: Action, checks: Sequence[Check]) -> exp.Select:
    """The rows of an action that pass the checks; with all its checks, those that it puts into the view."""
    rows, values = action.rows, _values(action.rows)
    if values is None or any(_aliases(rows) & _aliases(each.query) for each in checks):
        values = {each: column(each, _COMING) for each in rules.columns}
        rows = select_from(as_relation(rows.copy(), _COMING), list(values.values()))
    assert isinstance(rows, exp.Select)
    return _filtered(rows, [_checked(rules, each, values) for each in checks])


def net_copies(rules: RuleSet, actions: Sequence[Action]) -> exp.Select:
    """How many copies of which rows come (+) or go (−), all actions added up."""
    names = [column(each) for each in rules.columns]
    signed: exp.Query | None = None
    for action in actions:
        part = select_from(
            as_relation(action.rows.copy(), _COMING), [*names, alias(literal(action.sign), SIGN)]
        )
        signed = part if signed is None else union_all(signed, part)
    assert signed is not None
    total = call("SUM", column(SIGN))
    return (
        select_from(as_relation(signed, "counted"), [*names, alias(total, SIGNED_COUNT)])
        .group_by(*names)
        .having(exp.NEQ(this=total.copy(), expression=literal(0)))
    )


def _insert(rules: RuleSet, rows: exp.Query) -> exp.Expr:
    columns = [exp.to_identifier(each, quoted=True) for each in rules.columns]
    return exp.Insert(
        this=exp.Schema(this=relation_named(rules.stem), expressions=columns), expression=rows.copy()
    )


def _checked(rules: RuleSet, check: Check, values: Mapping[str, exp.Expr]) -> exp.Expr:
    found = _is_in(rules, check.query, values)
    return found if check.must_have else exp.Not(this=found)


def _is_in(
    rules: RuleSet, query: exp.Query, values: Mapping[str, exp.Expr], matches_nulls: bool = True
) -> exp.Expr:
    """Whether a query has a row with these values in its columns."""
    own = _values(query)
    read = {found.table for each in values.values() for found in each.find_all(exp.Column)}
    if own is None or read & _aliases(query):
        own = {each: column(each, _OTHER) for each in values}
        query = select_from(as_relation(query.copy(), _OTHER), [])
    assert isinstance(query, exp.Select)
    same = [
        _equal(own[name], value, matches_nulls and name not in rules.never_null)
        for name, value in values.items()
    ]
    return exp.Exists(this=_filtered(query.select(literal(1), append=False).distinct(distinct=False), same))


def _filtered(select: exp.Select, conditions: Sequence[exp.Expr]) -> exp.Select:
    """The select with more conditions, side by side with its own."""
    known = select.args.get("where")
    found = select.copy()
    every = [*conjuncts(None if known is None else known.this), *conditions]
    if every:
        found.set("where", exp.Where(this=all_of(each.copy() for each in every)))
    return found


def _equal(one: exp.Expr, other: exp.Expr, is_null_safe: bool) -> exp.Expr:
    comparison = exp.NullSafeEQ if is_null_safe else exp.EQ
    return comparison(this=_operand(one), expression=_operand(other))


def _operand(value: exp.Expr) -> exp.Expr:
    return exp.paren(value.copy()) if isinstance(value, (exp.Binary, exp.Not)) else value.copy()


def _values(query: exp.Query) -> dict[str, exp.Expr] | None:
    """What the columns of a plain select are made of."""
    if not isinstance(query, exp.Select):
        return None
    return {each.alias_or_name: each.unalias() for each in query.expressions}


def _aliases(query: exp.Query) -> set[str]:
    return {found.alias_or_name for found in query.find_all(exp.Table, exp.Subquery)}


def with_tables(
    statement: exp.Expr, rule: Rule, relation: Callable[[TransitionTable, str], exp.Expr]
) -> exp.Expr:
    """The statement over other relations: asked with the transition table and the name it has in the statement."""
    tables = {name: each for action in rule.actions for name, each in action.tables.items()}

    def visit(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Table) and node.name in tables:
            replaced = relation(tables[node.name], node.name)
            if node.args.get("alias") is not None:
                replaced.set("alias", node.args["alias"].copy())
            return replaced
        return node

    result: exp.Expr = statement.transform(visit)
    return result


def shown_sql(rules: RuleSet, rule: Rule) -> str:
    """The statements of a rule as people read them, with `inserted t`, `old t` and the like in place of tables."""
    found = [
        with_tables(
            each, rule, lambda table, name: exp.Table(this=exp.Var(this=table.shown(str(rules.view))))
        )
        for each in statements(rules, rule)
    ]
    return ";\n".join(render(each) for each in found)
