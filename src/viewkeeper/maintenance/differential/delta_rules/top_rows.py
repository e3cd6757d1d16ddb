"""ORDER BY with LIMIT: the first rows before and after. Any change below can move them, so both are evaluated whole."""

from __future__ import annotations

from viewkeeper.algebra.nodes import TopRows, output_names
from viewkeeper.algebra.to_sql import as_relation
from viewkeeper.generated_names import HIDDEN_PREFIX, SIGN
from viewkeeper.maintenance.differential.derivation import Derivation, Signed
from viewkeeper.maintenance.plan import State
from viewkeeper.sql.rendering import alias, column, literal, select_from


def signed(derivation: Derivation, query: TopRows) -> list[Signed]:
    if not derivation.is_changed(query):
        return []
    found = []
    for state, sign, words in (
        (State.NEW, 1, "the first rows now"),
        (State.OLD, -1, "the first rows before"),
    ):
        rows = as_relation(derivation.query_rows(query, state), f"{HIDDEN_PREFIX}rows")
        items = [column(name) for name in output_names(query)]
        found.append(Signed(select_from(rows, [*items, alias(literal(sign), SIGN)]), words))
    return found
