"""Random schemas: keys of every kind, foreign keys that lead to them, columns of the common types."""

from __future__ import annotations

import random

from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.statements import ForeignKey, Key
from viewkeeper.sql.types import read_type_text
from viewkeeper.testing.tables import Schema, Table

_KEY_TYPES = ("INT", "INT", "INT", "BIGINT", "STRING", "DATE")
_TYPES = ("INT", "INT", "INT", "BIGINT", "STRING", "STRING", "DECIMAL(10,2)", "DATE", "BOOLEAN", "DOUBLE")
_TYPES_OF_ALTERNATE_KEYS = ("INT", "BIGINT", "STRING")


def random_schema(generator: random.Random) -> Schema:
    """Two to four tables. Keys are single, composite, alternate or missing; foreign keys total or nullable."""
    tables: list[Table] = []
    for number in range(generator.randint(2, 4)):
        tables.append(_random_table(generator, f"t{number}", tables))
    return Schema(tuple(tables))


def _random_table(generator: random.Random, name: str, earlier: list[Table]) -> Table:
    columns: list[Column] = []
    keys: list[Key] = []
    foreign_keys: list[ForeignKey] = []

    def add(stem: str, data_type: str, nullable: bool) -> str:
        column = f"{stem}{sum(each.name.startswith(stem) for each in columns)}"
        columns.append(Column(column, read_type_text(data_type), nullable))
        return column

    own = [add("k", generator.choice(_KEY_TYPES), False) for _ in range(generator.choice((0, 1, 1, 2, 2)))]
    parents = [table for table in earlier if table.keys]
    for parent in generator.sample(parents, min(len(parents), generator.choice((0, 1, 1, 2)))):
        key = generator.choice(parent.keys)
        nullable = generator.random() < 0.35
        types = [str(parent.columns[parent.places[each]].data_type) for each in key.columns]
        refers = tuple(add("f", each, nullable) for each in types)
        foreign_keys.append(ForeignKey(refers, parent.name, key.columns, f"{name}_fk{len(foreign_keys)}"))
        if not nullable and own and generator.random() < 0.2:
            own = [*own, *refers]
    for _ in range(generator.randint(1, 4)):
        add("a", generator.choice(_TYPES), generator.random() < 0.7)
    if own:
        keys.append(Key(tuple(own), primary=True, name=f"{name}_pk"))
    if generator.random() < 0.25:
        alternate = add("u", generator.choice(_TYPES_OF_ALTERNATE_KEYS), generator.random() < 0.3)
        keys.append(Key((alternate,), primary=False, name=f"{name}_key"))
    if keys and generator.random() < 0.1:
        type_of = {each.name: str(each.data_type) for each in columns}
        refers = tuple(add("f", type_of[each], True) for each in keys[0].columns)
        foreign_keys.append(
            ForeignKey(refers, QualifiedName("default", name), keys[0].columns, f"{name}_own_fk")
        )
    return Table(QualifiedName("default", name), tuple(columns), tuple(keys), tuple(foreign_keys))
