"""The random views: all constructs, the same for the same seed, understood by us and by DuckDB."""

from __future__ import annotations

import random

from viewkeeper.testing.cases import random_case
from viewkeeper.testing.schemas import random_schema
from viewkeeper.testing.tables import read_schema
from viewkeeper.testing.views import CONSTRUCTS, random_view

VIEWS = 300


def test_every_construct_occurs() -> None:
    seen: set[str] = set()
    for seed in range(VIEWS):
        generator = random.Random(seed)
        seen |= random_view(generator, random_schema(generator), may_fail=True).constructs
    assert seen == CONSTRUCTS


def test_a_seed_is_a_case() -> None:
    assert random_case(7) == random_case(7)
    assert random_case(7) != random_case(8)


def test_random_schemas_can_be_written_down() -> None:
    for seed in range(100):
        schema = random_schema(random.Random(seed))
        assert read_schema(schema.to_sql()) == schema


def test_random_schemas_have_all_kinds_of_constraints() -> None:
    tables = [table for seed in range(100) for table in random_schema(random.Random(seed)).tables]
    keys = [key for table in tables for key in table.keys]
    foreign_keys = [(table, key) for table in tables for key in table.foreign_keys]
    assert any(not table.keys for table in tables)
    assert any(len(key.columns) > 1 for key in keys)
    assert any(not key.primary for key in keys)
    assert any(len(key.columns) > 1 for _, key in foreign_keys)
    assert any(key.parent == table.name for table, key in foreign_keys)
    assert len({len(table.declared.foreign_keys) == len(table.foreign_keys) for table in tables}) == 2
