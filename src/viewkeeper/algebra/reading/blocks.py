"""FROM and WHERE of a SELECT as one relation, with what it takes from the queries around it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.expressions import conjuncts, outermost_subqueries
from viewkeeper.algebra.nodes import Relation, aliases_in, aliases_of, inner_join
from viewkeeper.algebra.reading.reader import Reader
from viewkeeper.algebra.reading.scope import Scope
from viewkeeper.algebra.reading.sources import read_from, translated


@dataclass(frozen=True)
class Block:
    """`outside` are the conditions that read relations of the queries around, too."""

    relation: Relation
    outside: tuple[exp.Expr, ...]


def read_block(reader: Reader, tree: exp.Select, scope: Scope, existential: bool = False) -> Block:
    """`existential`: only whether there are rows counts, so nothing is lost if some come more than once."""
    from viewkeeper.algebra.reading.predicates import is_predicate, with_predicate
    from viewkeeper.algebra.reading.values import with_values

    sources, conditions = read_from(reader, tree, scope)
    where = tree.args.get("where")
    parts = conjuncts(None if where is None else where.this)
    predicates = [each for each in parts if is_predicate(each)]
    valued = [each for each in parts if each not in predicates and outermost_subqueries(each)]
    conditions += [translated(each, scope) for each in parts if each not in predicates and each not in valued]
    own = frozenset().union(*(aliases_of(source) for source in sources))
    outside = [each for each in conditions if not aliases_in(each) <= own]
    relation = inner_join(sources, [each for each in conditions if each not in outside])
    if valued:
        relation, written = with_values(reader, relation, valued, scope)
        inside = aliases_of(relation)
        outside += [each for each in written if not aliases_in(each) <= inside]
        relation = inner_join([relation], [each for each in written if aliases_in(each) <= inside])
    for predicate in predicates:
        relation, more = with_predicate(reader, relation, predicate, scope, existential)
        outside += more
    return Block(relation, tuple(outside))
