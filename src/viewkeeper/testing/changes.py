"""Random rows for a schema, and random changes of them: streams that keep its constraints, and ones that do not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from viewkeeper.sql.statements import Key
from viewkeeper.testing.bags import Row
from viewkeeper.testing.tables import Schema, Table
from viewkeeper.testing.values import Values

Rows: TypeAlias = Mapping[str, Sequence[Row]]
"""The rows of each table, by its id: one moment of a stream."""

_SIZES = (0, 1, 3, *range(6, 13), *range(6, 13), *range(6, 13))


def random_stream(
    generator: random.Random, schema: Schema, values: Values, steps: int, breaks_constraints: bool = False
) -> tuple[Rows, ...]:
    """Rows before the first of `steps` changes, and after each.

    A stream that breaks constraints starts from rows that keep them.
    """
    stream: list[Rows] = [_first_rows(generator, schema, values)]
    for _ in range(steps):
        changed = _changed_rows(generator, schema, stream[-1], values)
        if not breaks_constraints:
            changed = without_violations(schema, changed)
        elif generator.random() < 0.5:
            changed = _with_a_repeated_key(generator, schema, changed)
        stream.append(changed)
    return tuple(stream)


def _first_rows(generator: random.Random, schema: Schema, values: Values) -> Rows:
    rows: dict[str, list[Row]] = {}
    for table in schema.tables:
        rows[table.id] = []
        for _ in range(generator.choice(_SIZES)):
            rows[table.id].append(_random_row(generator, table, rows, schema, values))
    return without_violations(schema, rows)


def _random_row(generator: random.Random, table: Table, rows: Rows, schema: Schema, values: Values) -> Row:
    """A row whose foreign keys lead, mostly, to rows that are there."""
    row = [values.value(generator, column) for column in table.columns]
    for key in table.foreign_keys:
        at = [table.places[name] for name in key.columns]
        is_missing = any(row[place] is None for place in at)
        parents = rows[str(key.parent)]
        if parents and not is_missing and generator.random() < 0.95:
            chosen, places = generator.choice(parents), schema.by_id[str(key.parent)].places
            for place, name in zip(at, key.parent_columns, strict=True):
                row[place] = chosen[places[name]]
    return tuple(row)


def _changed_rows(generator: random.Random, schema: Schema, before: Rows, values: Values) -> Rows:
    """Deletions, updates (of keys too), insertions; some tables stay as they are, some lose or gain everything."""
    rows = {name: list(each) for name, each in before.items()}
    for table in schema.tables:
        if generator.random() < 0.25:
            continue
        share = generator.choice((0.0, 0.2, 0.3, 0.3, 0.4, 1.0 if generator.random() < 0.3 else 0.1))
        kept: list[Row] = []
        for row in rows[table.id]:
            if generator.random() >= share:
                kept.append(row)
            elif generator.random() < 0.5:
                kept.append(_updated(generator, table, row, rows, schema, values))
        for _ in range(generator.choice((0, 1, 2, 3, 5))):
            kept.append(_random_row(generator, table, rows, schema, values))
        if kept and generator.random() < 0.15:
            kept.append(generator.choice(kept))
        rows[table.id] = kept
    return rows


def _updated(
    generator: random.Random, table: Table, row: Row, rows: Rows, schema: Schema, values: Values
) -> Row:
    """The row with one or two other values: of any columns, or of its foreign keys."""
    fresh = _random_row(generator, table, rows, schema, values)
    if table.foreign_keys and generator.random() < 0.3:
        chosen: Sequence[str] = generator.choice(table.foreign_keys).columns
    else:
        names = [column.name for column in table.columns]
        chosen = generator.sample(names, min(len(names), generator.randint(1, 2)))
    places = {table.places[name] for name in chosen}
    return tuple(fresh[at] if at in places else value for at, value in enumerate(row))


def _with_a_repeated_key(generator: random.Random, schema: Schema, rows: Rows) -> Rows:
    """A row more, in some table, that has the key of another one."""
    full = [table for table in schema.tables if table.keys and rows[table.id]]
    if not full:
        return rows
    table = generator.choice(full)
    again = generator.choice(rows[table.id])
    return {**rows, table.id: [*rows[table.id], again]}


# ------------------------------------------------------------------------------------------- constraints


def violated(schema: Schema, rows: Rows) -> frozenset[tuple[str, str]]:
    """The constraints that do not hold, each as its table's id and its name."""
    found = set()
    for table in schema.tables:
        for key in table.keys:
            if any(copies > 1 for copies in _key_counts(table, key, rows[table.id]).values()):
                found.add((table.id, key.name or ""))
        for foreign_key, orphans in _orphans(schema, table, rows):
            if orphans:
                found.add((table.id, foreign_key))
    return frozenset(found)


def without_violations(schema: Schema, rows: Rows) -> Rows:
    """The rows without those that repeat a key or lack a parent."""
    kept = {table.id: _without_repeated_keys(table, rows[table.id]) for table in schema.tables}
    while True:
        orphans = {
            table.id: {at for _, places in _orphans(schema, table, kept) for at in places}
            for table in schema.tables
        }
        if not any(orphans.values()):
            return kept
        kept = {
            name: [row for at, row in enumerate(each) if at not in orphans[name]]
            for name, each in kept.items()
        }


def _without_repeated_keys(table: Table, rows: Sequence[Row]) -> list[Row]:
    kept = list(rows)
    for key in table.keys:
        seen: set[Row] = set()
        unique = []
        for row in kept:
            value = _values(table, key.columns, row)
            if value is None or value not in seen:
                unique.append(row)
                seen |= {value} if value is not None else set()
        kept = unique
    return kept


def _key_counts(table: Table, key: Key, rows: Sequence[Row]) -> Counter[Row]:
    values = (_values(table, key.columns, row) for row in rows)
    return Counter(each for each in values if each is not None)


def _orphans(schema: Schema, table: Table, rows: Rows) -> list[tuple[str, list[int]]]:
    """For each foreign key the places of the rows that lack a parent."""
    found = []
    for key in table.foreign_keys:
        parent = schema.by_id[str(key.parent)]
        present = {_values(parent, key.parent_columns, row) for row in rows[parent.id]}
        values = [_values(table, key.columns, row) for row in rows[table.id]]
        orphans = [at for at, each in enumerate(values) if each is not None and each not in present]
        found.append((key.name or "", orphans))
    return found


def _values(table: Table, columns: Sequence[str], row: Row) -> Row | None:
    """The values of these columns; None if one of them is NULL, for which no constraint speaks."""
    found: tuple[Any, ...] = tuple(row[table.places[name]] for name in columns)
    return None if any(value is None for value in found) else found
