"""Random views of the kind that is analysed: selects with subqueries in subqueries, DISTINCT, set operations; over tables with
several keys, few values and some NULLs, so that everything meets."""

from __future__ import annotations

import random

from viewkeeper.testing.tables import read_schema

TABLES = read_schema("""
CREATE TABLE one (id INT PRIMARY KEY, a INT NOT NULL, b INT, UNIQUE (a));
CREATE TABLE two (id INT PRIMARY KEY, a INT NOT NULL, b INT NOT NULL, c INT, UNIQUE (a, b));
CREATE TABLE three (x INT NOT NULL, y INT NOT NULL, a INT, PRIMARY KEY (x, y), UNIQUE (a))
""")
COLUMNS = {table.id: [column.name for column in table.columns] for table in TABLES.tables}


def random_selects(generator: random.Random) -> str:
    """The text of a view."""
    if generator.random() < 0.2:
        width = generator.randint(1, 2)
        parts = [_select(generator, width, 1) for _ in range(generator.choice((2, 2, 3)))]
        operator = generator.choice(("UNION", "INTERSECT", "EXCEPT", "UNION ALL"))
        return f" {operator} ".join(parts)
    return _select(generator, generator.randint(1, 3), 2)


def _select(generator: random.Random, width: int, depth: int) -> str:
    aliases = _aliases(generator, "t", generator.choice((1, 1, 2, 2, 3)))
    shown = [_column(generator, aliases) for _ in range(width)]
    items = ", ".join(f"{column} AS c{at}" for at, column in enumerate(shown))
    distinct = "DISTINCT " if generator.random() < 0.5 else ""
    return f"SELECT {distinct}{items} {_from_where(generator, aliases, {}, depth, 't')}"


def _aliases(generator: random.Random, prefix: str, count: int) -> dict[str, str]:
    return {f"{prefix}{at}": generator.choice(list(COLUMNS)) for at in range(count)}


def _column(generator: random.Random, aliases: dict[str, str]) -> str:
    alias = generator.choice(list(aliases))
    return f"{alias}.{generator.choice(COLUMNS[aliases[alias]])}"


def _from_where(
    generator: random.Random, own: dict[str, str], around: dict[str, str], depth: int, prefix: str
) -> str:
    conditions = [_comparison(generator, own, own) for _ in range(generator.choice((0, 1, 1, 2)))]
    names = list(own)
    for at in range(1, len(names)):
        conditions.append(f"{_column(generator, {names[at]: own[names[at]]})} = {_column(generator, {names[at - 1]: own[names[at - 1]]})}")  # fmt: skip
    for _ in range(generator.choice((1, 1, 2)) if around else 0):
        conditions.append(_comparison(generator, own, around, 0.85))
    for at in range(generator.choice((0, 1, 1, 2)) if depth else 0):
        conditions.append(_subquery(generator, own, depth - 1, f"{prefix}{at}s"))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"FROM {', '.join(f'{table} {alias}' for alias, table in own.items())}{where}"


def _comparison(
    generator: random.Random, own: dict[str, str], others: dict[str, str], equal: float = 0.6
) -> str:
    operator = "=" if generator.random() < equal else generator.choice(("<", "<>", ">="))
    other = (
        str(generator.randint(0, 3))
        if generator.random() < 0.4 and own is others
        else _column(generator, others)
    )
    return f"{_column(generator, own)} {operator} {other}"


def _subquery(generator: random.Random, around: dict[str, str], depth: int, prefix: str) -> str:
    own = _aliases(generator, prefix, generator.choice((1, 1, 1, 2)))
    kind = generator.choice(("EXISTS", "NOT EXISTS", "NOT EXISTS", "IN", "NOT IN", "ANY", "ALL"))
    if "EXISTS" in kind:
        return f"{kind} (SELECT 1 {_from_where(generator, own, around, depth, prefix)})"
    inner = f"(SELECT {_column(generator, own)} {_from_where(generator, own, {}, depth, prefix)})"
    if "IN" in kind:
        return f"{_column(generator, around)} {kind} {inner}"
    return f"{_column(generator, around)} {generator.choice(('<', '=', '<>', '>='))} {kind} {inner}"
