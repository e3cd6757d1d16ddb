"""Random views of the kind that is analysed: selects with subqueries in subqueries, DISTINCT, set operations; over tables with
several keys, few values and some NULLs, so that everything meets."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise

from viewkeeper.testing.tables import read_schema

TABLES = read_schema("""
CREATE TABLE one (id INT PRIMARY KEY, a INT NOT NULL, b INT, UNIQUE (a));
CREATE TABLE two (id INT PRIMARY KEY, a INT NOT NULL, b INT NOT NULL, c INT, UNIQUE (a, b));
CREATE TABLE three (x INT NOT NULL, y INT NOT NULL, a INT, PRIMARY KEY (x, y), UNIQUE (a))
""")
TYPED_TABLES = read_schema("""
CREATE TABLE four (id INT PRIMARY KEY, big BIGINT NOT NULL, money DECIMAL(6,2), rate DOUBLE, UNIQUE (big));
CREATE TABLE five (id BIGINT PRIMARY KEY, small SMALLINT, price DECIMAL(9,1) NOT NULL, a INT, UNIQUE (price))
""")
"""Columns of different types, which set operations compare."""
KEYS = {table.id: [key.columns for key in table.declared.keys] for table in TABLES.tables}
COLUMNS = {table.id: [column.name for column in table.columns] for table in TABLES.tables}
TYPED_COLUMNS = {table.id: [column.name for column in table.columns] for table in TYPED_TABLES.tables}


def random_selects(generator: random.Random) -> str:
    """The text of a view."""
    return _Writer(generator, COLUMNS).view()


def random_keyed_select(generator: random.Random) -> str:
    """A view that shows a key of each of its tables, so that no row can occur twice."""
    writer = _Writer(generator, COLUMNS)
    aliases = writer.aliases("t", generator.choice((1, 1, 2, 2, 3)))
    shown = [f"{alias}.{name}" for alias, table in aliases.items() for name in generator.choice(KEYS[table])]
    if generator.random() < 0.4:
        shown.append(writer.column(aliases))
    return f"SELECT {_items(shown)} {writer.from_where(aliases, {}, 2, 't')}"


def random_set_operation(generator: random.Random, is_typed: bool) -> str:
    """A view of INTERSECT and EXCEPT, mostly, over each other or not; over tables with columns of many types, or of one."""
    return _Writer(generator, TYPED_COLUMNS if is_typed else COLUMNS).set_operation()


def random_stack(generator: random.Random) -> dict[str, str]:
    """Two or three views by name, each over tables and the views before it. Some group; those are not analysed."""
    views: dict[str, str] = {}
    columns = dict(COLUMNS)
    for name in ("low", "middle", "high")[: generator.choice((2, 2, 3))]:
        if generator.random() < 0.15:
            table = generator.choice(list(columns))
            key = generator.choice(columns[table])
            views[name] = f"SELECT {key} AS c0, count(*) AS c1 FROM {table} GROUP BY {key}"
        else:
            views[name] = _Writer(generator, columns).view()
        width = views[name].partition(" FROM ")[0].count(" AS c")
        # Fewer tables, so that the next view reads this one, and often a table below it too.
        few = generator.sample(list(columns), generator.choice((1, 1, 2)))
        columns = {each: columns[each] for each in few} | {name: [f"c{at}" for at in range(width)]}
    return views


def _items(shown: list[str]) -> str:
    return ", ".join(f"{column} AS c{at}" for at, column in enumerate(shown))


@dataclass(frozen=True)
class _Writer:
    """Writes over tables with these columns."""

    generator: random.Random
    columns: dict[str, list[str]]

    def view(self) -> str:
        if self.generator.random() < 0.2:
            width = self.generator.randint(1, 2)
            parts = [self.select(width, 1) for _ in range(self.generator.choice((2, 2, 3)))]
            operator = self.generator.choice(("UNION", "INTERSECT", "EXCEPT", "UNION ALL"))
            return f" {operator} ".join(parts)
        return self.select(self.generator.randint(1, 3), 2)

    def set_operation(self) -> str:
        choice, width = self.generator.choice, self.generator.randint(1, 2)
        text = self.side(width)
        for _ in range(choice((1, 1, 1, 2, 2, 3))):
            operator = choice(("UNION", "INTERSECT", "INTERSECT", "EXCEPT", "EXCEPT"))
            sides = [f"({text})", f"({self.side(width)})"]
            self.generator.shuffle(sides)
            text = f" {operator} ".join(sides)
        return text

    def side(self, width: int) -> str:
        """One or two tables, few conditions and computed columns: rows of both sides are to meet."""
        aliases = self.aliases("t", self.generator.choice((1, 1, 1, 2)))
        shown = [
            f"{self.column(aliases)}{' + 1' if self.generator.random() < 0.1 else ''}" for _ in range(width)
        ]
        where = self.from_where(aliases, {}, self.generator.choice((0, 0, 0, 1)), "t")
        return f"SELECT {_items(shown)} {where}"

    def select(self, width: int, depth: int) -> str:
        aliases = self.aliases("t", self.generator.choice((1, 1, 2, 2, 3)))
        shown = [self.column(aliases) for _ in range(width)]
        distinct = "DISTINCT " if self.generator.random() < 0.5 else ""
        return f"SELECT {distinct}{_items(shown)} {self.from_where(aliases, {}, depth, 't')}"

    def aliases(self, prefix: str, count: int) -> dict[str, str]:
        return {f"{prefix}{at}": self.generator.choice(list(self.columns)) for at in range(count)}

    def column(self, aliases: dict[str, str]) -> str:
        alias = self.generator.choice(list(aliases))
        return f"{alias}.{self.generator.choice(self.columns[aliases[alias]])}"

    def from_where(self, own: dict[str, str], around: dict[str, str], depth: int, prefix: str) -> str:
        choice = self.generator.choice
        conditions = [self.comparison(own, own) for _ in range(choice((0, 1, 1, 2)))]
        names = list(own)
        for one, other in pairwise(names):
            conditions.append(f"{self.column({other: own[other]})} = {self.column({one: own[one]})}")
        for _ in range(choice((1, 1, 2)) if around else 0):
            conditions.append(self.comparison(own, around, 0.85))
        for at in range(choice((0, 1, 1, 2)) if depth else 0):
            conditions.append(self.asked(own, depth - 1, f"{prefix}{at}s"))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"FROM {', '.join(f'{table} {alias}' for alias, table in own.items())}{where}"

    def comparison(self, own: dict[str, str], others: dict[str, str], equal: float = 0.6) -> str:
        is_equality = self.generator.random() < equal
        operator = "=" if is_equality else self.generator.choice(("<", "<>", ">="))
        other = (
            str(self.generator.randint(0, 3))
            if self.generator.random() < 0.4 and own is others
            else self.column(others)
        )
        return f"{self.column(own)} {operator} {other}"

    def asked(self, around: dict[str, str], depth: int, prefix: str) -> str:
        """A subquery that a row must pass, mostly; else one under OR, or under NOT."""
        kind = self.generator.random()
        if kind > 0.2:
            return self.subquery(around, depth, prefix, ("ANY", "ALL"))
        first = self.subquery(around, depth, f"{prefix}x")
        other = self.subquery(around, depth, f"{prefix}y") if kind < 0.05 else self.comparison(around, around)
        return f"NOT ({other} AND {first})" if kind > 0.16 else f"({other} OR {first})"

    def subquery(self, around: dict[str, str], depth: int, prefix: str, more: tuple[str, ...] = ()) -> str:
        own = self.aliases(prefix, self.generator.choice((1, 1, 1, 2)))
        kind = self.generator.choice(("EXISTS", "NOT EXISTS", "NOT EXISTS", "IN", "NOT IN", *more))
        if "EXISTS" in kind:
            return f"{kind} (SELECT 1 {self.from_where(own, around, depth, prefix)})"
        inner = f"(SELECT {self.column(own)} {self.from_where(own, {}, depth, prefix)})"
        if "IN" in kind:
            return f"{self.column(around)} {kind} {inner}"
        comparison = self.generator.choice(("<", "=", "<>", ">="))
        return f"{self.column(around)} {comparison} {kind} {inner}"
