"""A case: tables, a view over them, and a stream of their rows."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from viewkeeper.testing.changes import Rows, random_stream
from viewkeeper.testing.schemas import random_schema
from viewkeeper.testing.tables import Schema, read_schema
from viewkeeper.testing.values import Values, literals_of
from viewkeeper.testing.views import random_view

_HARD_SHARE = 0.3
"""So many random cases have values that are hard to keep right."""


@dataclass(frozen=True)
class Case:
    """`stream` holds the rows of all tables at the first load and after each batch of changes.

    `is_trusted`: plans may rely on what the schema declares. `changes_by_key`: the changes of every table with a
    trusted key are told apart into insertions, deletions and updates, not only those of parents.
    """

    schema: Schema
    text: str
    stream: tuple[Rows, ...]
    is_trusted: bool = True
    changes_by_key: bool = True
    name: str = "a case"
    constructs: frozenset[str] = field(default=frozenset(), compare=False)

    def to_python(self) -> str:
        """An expression that makes the case again, to be kept as a regression test."""
        stream = [{name: [tuple(row) for row in rows] for name, rows in each.items()} for each in self.stream]
        lines = [
            repr(self.schema.to_sql()),
            repr(self.text),
            repr(stream),
            f"is_trusted={self.is_trusted}",
            f"changes_by_key={self.changes_by_key}",
            f"name={self.name!r}",
        ]
        return f"case_of({', '.join(lines)})"


def case_of(
    schema: str,
    text: str,
    stream: list[Rows],
    is_trusted: bool = True,
    changes_by_key: bool = True,
    name: str = "a case",
) -> Case:
    """A case from CREATE TABLE statements, a query, and the rows of every table at every moment."""
    return Case(read_schema(schema), text, tuple(stream), is_trusted, changes_by_key, name)


def random_case(
    seed: int, breaks_constraints: bool = False, largest: int | None = None, is_plain: bool = False
) -> Case:
    """The case of a seed: random tables, a random view of at most so many characters, random changes. A plain one has no values
    that are rounded or far away, and no query that fails on some rows."""
    generator = random.Random(seed)
    schema = random_schema(generator)
    view = random_view(generator, schema, largest, may_fail=not is_plain)
    values = Values(are_hard=not is_plain and generator.random() < _HARD_SHARE)
    return _case(generator, schema, view.text, values, seed, breaks_constraints, view.constructs)


def case_for_view(schema: Schema, text: str, seed: int, breaks_constraints: bool = False) -> Case:
    """Random changes for tables and a view that are given."""
    return _case(
        random.Random(seed), schema, text, Values(literals_of(text)), seed, breaks_constraints, frozenset()
    )


def _case(
    generator: random.Random,
    schema: Schema,
    text: str,
    values: Values,
    seed: int,
    breaks_constraints: bool,
    constructs: frozenset[str],
) -> Case:
    steps = generator.choice((1, 1, 2, 2, 3))
    stream = random_stream(generator, schema, values, steps, breaks_constraints)
    is_trusted = breaks_constraints or generator.random() < 0.7
    name = f"seed {seed}{', constraints broken' if breaks_constraints else ''}"
    return Case(schema, text, stream, is_trusted, generator.random() < 0.6, name, constructs)
