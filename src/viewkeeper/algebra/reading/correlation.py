"""Subqueries that group: their correlated conditions become keys of the group.

(SELECT agg FROM r WHERE r.k = outer.x AND p)    is, for each outer row, the row of
(SELECT k, agg FROM r WHERE p GROUP BY k)        with k = outer.x
"""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.expressions import aggregates, equality_sides, windows
from viewkeeper.algebra.nodes import Derived, Item, aliases_in, aliases_of, output_names
from viewkeeper.algebra.reading.blocks import Block, read_block
from viewkeeper.algebra.reading.reader import Reader
from viewkeeper.algebra.reading.scope import Outside, Scope
from viewkeeper.generated_names import HIDDEN_PREFIX
from viewkeeper.sql.rendering import column


def is_plain(tree: exp.Select, rows_only: bool) -> bool:
    """Whether a SELECT only joins, filters and computes; if only its rows count, also one with DISTINCT and LIMIT."""
    if any(tree.args.get(part) for part in ("group", "having", "qualify", "offset")):
        return False
    limit = tree.args.get("limit")
    if limit is not None and not (
        rows_only and limit.expression.is_int and int(limit.expression.to_py()) > 0
    ):
        return False
    return not any(aggregates(each) or windows(each) for each in tree.selects)


def is_one_group(tree: exp.Select) -> bool:
    """Whether a SELECT always has exactly one row: aggregates without GROUP BY."""
    if any(tree.args.get(part) for part in ("group", "having", "qualify", "offset", "limit", "distinct")):
        return False
    return any(aggregates(each) for each in tree.selects)


def correlation_keys(block: Block) -> tuple[list[Item], list[exp.Expr]] | None:
    """The correlated conditions as keys of the subquery, and as what each key must equal outside; None if they are more
    than equalities."""
    own = aliases_of(block.relation)
    keys: list[Item] = []
    outer: list[exp.Expr] = []
    for condition in block.outside:
        sides = equality_sides(condition)
        inside = [each for each in sides or () if aliases_in(each) and aliases_in(each) <= own]
        others = [each for each in sides or () if not aliases_in(each) & own]
        if len(inside) != 1 or len(others) != 1:
            return None
        keys.append(Item(f"{HIDDEN_PREFIX}outer_{len(keys) + 1}", inside[0]))
        outer.append(others[0])
    return keys, outer


def correlated_groups(
    reader: Reader, tree: exp.Select, scope: Scope
) -> tuple[Derived, list[exp.Expr], list[str]]:
    """A subquery of any shape under an alias, the conditions that tie it to the queries around, its own columns."""
    from viewkeeper.algebra.reading.selects import shape_select

    inner = reader.scope_of(tree, scope)
    block = read_block(reader, tree, inner)
    found = correlation_keys(block)
    if found is None:
        raise Outside("a subquery with groups is correlated by more than equalities")
    keys, outer = found
    if keys and (is_one_group(tree) or tree.args.get("limit") or tree.args.get("offset")):
        raise Outside(
            "a correlated subquery has LIMIT, or an aggregate without GROUP BY, where rows are compared"
        )
    if keys and any(windows(each) for each in tree.selects):
        raise Outside("a correlated subquery uses window functions")
    query = shape_select(reader, tree, block.relation, inner, None, tuple(keys))
    name = reader.fresh("subquery")
    names = [each for each in output_names(query) if each not in {key.name for key in keys}]
    ties: list[exp.Expr] = [
        exp.EQ(this=column(key.name, name), expression=other.copy())
        for key, other in zip(keys, outer, strict=True)
    ]
    return Derived(name, query), ties, names
