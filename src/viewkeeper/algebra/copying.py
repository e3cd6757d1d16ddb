"""A relation once more, under aliases of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from viewkeeper.algebra.nodes import Constant, Derived, Generate, Relation, Scan, walk
from viewkeeper.algebra.rebuilding import Rebuilding
from viewkeeper.sql.rendering import column


def copied(relation: Relation, fresh: Callable[[str], str]) -> tuple[Relation, Mapping[str, str]]:
    """The copy, and what each alias of the original is called in it."""
    names = {
        node.alias: fresh(node.alias)
        for node in walk(relation)
        if isinstance(node, (Scan, Derived, Constant, Generate))
    }

    def renamed(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.table in names:
            return column(node.name, names[node.table])
        return node

    rebuilding = Rebuilding(lambda expression: expression.transform(renamed), names.__getitem__)
    return rebuilding.relation(relation), names
