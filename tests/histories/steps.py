"""The steps of a history, and random ones: what users, other processes and other writers do to a warehouse.

Every relation has the columns k and a, so that any view can stand on any other. A step is text: a history that went wrong
is printed as the script that it was, and runs again from it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from viewkeeper import Warehouse
from viewkeeper.execution.progress import Moment
from viewkeeper.storage.records import TableRecord


class By(Enum):
    """Who runs a step."""

    US = "us"
    ANOTHER_PROCESS = "another process at the same warehouse"
    ANOTHER_WRITER = "another writer, with plain Spark"


@dataclass(frozen=True)
class Step:
    """`{name}` in the text of another writer is the Delta table of a table or view. A step with a moment is killed at its
    n-th occurrence."""

    text: str
    by: By = By.US
    killed_at: Moment | None = None
    occurrence: int = 1

    def __str__(self) -> str:
        notes = [] if self.by is By.US else [f"by {self.by.value}"]
        if self.killed_at is not None:
            notes.append(f"killed at {self.killed_at.name} {self.occurrence}")
        return f"{self.text};" + (f"  -- {', '.join(notes)}" if notes else "")


SCHEMA = """
CREATE TABLE t (k INT PRIMARY KEY, a INT, b STRING);
CREATE TABLE c (k INT PRIMARY KEY, a INT NOT NULL REFERENCES t (k), b STRING);
CREATE TABLE u (k INT, a INT, b STRING);
INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y'), (3, NULL, 'z'), (4, 1, NULL), (5, 7, 'x');
INSERT INTO c VALUES (1, 1, 'p'), (2, 1, 'q'), (3, 2, 'p'), (4, 3, NULL);
INSERT INTO u VALUES (1, 1, 'm'), (1, 1, 'm'), (2, NULL, 'n'), (NULL, 2, 'm')
"""
"""Rows of t with k from 1 to 3 stay, and c refers to no others: no history breaks a constraint."""

FIRST_VIEWS = (
    ("SELECT k, a FROM u WHERE k > 0 OR k IS NULL", "SELECT k, count(*) AS a FROM v0 GROUP BY k"),
    (
        "SELECT c.k, t.a FROM c JOIN t ON c.a = t.k",
        "SELECT a AS k, sum(k) AS a, max(k) AS m FROM v0 GROUP BY a",
        "SELECT v1.k, u.a FROM v1 LEFT JOIN u ON u.k = v1.k",
    ),
    (
        "SELECT c.k, s.n AS a FROM c JOIN (SELECT a, count(*) AS n FROM u GROUP BY a) AS s ON s.a = c.a",
        "SELECT DISTINCT a AS k, a FROM v0 UNION ALL SELECT k, a FROM u",
    ),
)

FEATURES = (
    "",
    "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
    "PARTITIONED BY (a)",
    "TBLPROPERTIES ('delta.checkpointInterval' = '2', 'delta.dataSkippingNumIndexedCols' = '0')",
)
"""Of attached tables."""

_QUERIES = (
    "SELECT k, a FROM {r} WHERE a > {n} OR a IS NULL",
    "SELECT a AS k, a FROM {r}",
    "SELECT k, count(*) AS a, sum(a) AS total FROM {r} GROUP BY k",
    "SELECT a AS k, max(k) AS a, count(k) AS n FROM {r} GROUP BY a HAVING count(*) > 1",
    "SELECT r.k, s.a FROM {r} AS r JOIN {s} AS s ON r.a = s.k",
    "SELECT r.k, s.a FROM {r} AS r LEFT JOIN {s} AS s ON r.k = s.k",
    "SELECT r.k, s.a FROM {r} AS r FULL JOIN {s} AS s ON r.a = s.a",
    "SELECT k, a FROM {r} AS r WHERE EXISTS (SELECT 1 FROM {s} AS s WHERE s.k = r.k)",
    "SELECT k, a FROM {r} AS r WHERE NOT EXISTS (SELECT 1 FROM {s} AS s WHERE s.a = r.a)",
    "SELECT k, a FROM {r} UNION ALL SELECT a AS k, k AS a FROM {s}",
    "SELECT k, a FROM {r} EXCEPT ALL SELECT k, a FROM {s}",
    "SELECT k, a FROM {r} INTERSECT SELECT k, a FROM {s}",
    "SELECT DISTINCT k, a FROM {r}",
    "SELECT k, a, rank() OVER (PARTITION BY a ORDER BY k NULLS FIRST) AS n FROM {r}",
    "SELECT k, a FROM {r} ORDER BY k NULLS FIRST, a NULLS FIRST LIMIT 3",
    "SELECT r.k, r.a, (SELECT max(s.k) FROM {s} AS s WHERE s.a = r.a) AS m FROM {r} AS r",
)

_MOMENTS = (
    Moment.PINNED,
    Moment.VIEW_STARTED,
    Moment.CHANGE_SET_STORED,
    Moment.CHANGE_SET_STORED,
    Moment.ROWS_WRITTEN,
    Moment.VIEW_COMMITTED,
    Moment.VIEW_COMMITTED,
    Moment.PUBLISHING,
    Moment.PUBLISHED,
)

_FEWEST_VIEWS, _MOST_VIEWS = 1, 5


@dataclass
class RandomSteps:
    """Steps that fit the warehouse as it is. `fresh` numbers what is new.

    Every history has a taste of its own: of some kinds of steps it has many, of others none. What needs the same kind three
    times in a row would hardly ever happen if all were mixed alike.
    """

    generator: random.Random
    warehouse: Warehouse
    fresh: int = 100

    def __post_init__(self) -> None:
        self._taste = [self.generator.choice((0.2, 1.0, 1.0, 4.0)) for _ in range(12)]
        self._scope = self.generator.choice(("any", "any", "lowest"))

    def next(self) -> list[Step]:
        make, weight = zip(
            *(
                (self._change, 42), (self._refresh, 26), (self._killed, 8), (self._vacuum, 5), (self._create, 5), (self._replace, 3),
                (self._drop, 2), (self._alter_view, 3), (self._alter_table, 4), (self._other_writer, 6), (self._foreign, 2),
                (self._replaced_table, 1),
            ),
            strict=True,
        )  # fmt: skip
        wanted = [each * taste for each, taste in zip(weight, self._taste, strict=True)]
        return self.generator.choices(make, wanted)[0]()

    # ----------------------------------------------------------------------------------------- what there is

    def _tables(self) -> list[TableRecord]:
        return list(self.warehouse._workspace.state.read().tables.values())

    def _relation(self) -> str:
        return self._pick([*self.warehouse.view_names(), *(str(each.name) for each in self._tables())])

    def _pick(self, among: Sequence[str]) -> str:
        return self.generator.choice(list(among))

    def _view(self) -> str:
        return self._pick(self.warehouse.view_names())

    def _refreshed(self) -> str:
        """In some histories the lowest views are refreshed alone, so that those above lag behind."""
        catalogue = self.warehouse._workspace.state.read()
        lowest = [str(each.name) for each in catalogue.users_views() if catalogue.readers_of(each.id)]
        return self._pick(lowest) if self._scope == "lowest" and lowest else self._view()

    def _query(self, among: Sequence[str] | None = None) -> str:
        r, s = (self._relation() if among is None else self._pick(among) for _ in range(2))
        return self._pick(_QUERIES).format(r=r, s=s, n=self.generator.randint(0, 3))

    def _number(self) -> int:
        self.fresh += 1
        return self.fresh

    def _value(self) -> str:
        return self._pick(("NULL", "0", "1", "1", "2", "3", "7"))

    # ------------------------------------------------------------------------------------------------ changes

    def _change(self) -> list[Step]:
        """One to three commits to one table, which one feed then holds."""
        table = self.generator.choice(self._tables())
        by = self.generator.choice((By.US, By.US, By.ANOTHER_WRITER))
        name = str(table.name) if by is By.US else "{" + str(table.name) + "}"
        role = "c" if table.foreign_keys else "t" if table.keys else "u"
        times = self.generator.choice((1, 1, 2, 3))
        return [Step(self._changed(name, role), by) for _ in range(times)]

    def _changed(self, name: str, role: str) -> str:
        keyed = role != "u"
        key = f"k = {self.generator.randint(4, 6)} OR k > {self.fresh - 3}" if keyed else f"k = {self._value()} OR a = {self._value()}"  # fmt: skip
        new = str(self.generator.randint(1, 3)) if role == "c" else self._value()
        word = self._pick(("'x'", "'y'", "NULL"))
        rows = [f"({self._number() if keyed else self._value()}, {new}, {word})" for _ in range(self.generator.randint(1, 3))]  # fmt: skip
        kinds = ["insert", "insert", "update", "update", "delete", "merge", "word", "nothing"]
        kinds += [] if keyed else ["insert", "overwrite", "truncate", "again"]
        columns = "(k, a, b)"
        match self._pick(kinds):
            case "insert":
                return f"INSERT INTO {name} {columns} VALUES {', '.join(rows)}"
            case "update":
                return f"UPDATE {name} SET a = {new} WHERE {key} OR k = 1"
            case "word":
                return f"UPDATE {name} SET b = {word}"
            case "nothing":
                return f"UPDATE {name} SET a = a WHERE k > 1"
            case "delete":
                return f"DELETE FROM {name} WHERE {key}"
            case "overwrite":
                return f"INSERT OVERWRITE {name} {columns} VALUES {', '.join(rows)}"
            case "truncate":
                return f"DELETE FROM {name}"
            case "again":
                return f"INSERT INTO {name} {columns} SELECT k, a, b FROM {name}"
            case _:
                source = f"(SELECT {self.generator.randint(4, 6)} AS k, {new} AS a)"
                return f"MERGE INTO {name} AS x USING {source} AS s ON x.k = s.k WHEN MATCHED THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT {columns} VALUES (s.k, s.a, {word})"  # fmt: skip

    def _other_writer(self) -> list[Step]:
        """What changes no row, or a column that no view reads, or goes back in time."""
        table = self.generator.choice(self._tables())
        name = "{" + str(table.name) + "}"
        texts = [f"OPTIMIZE {name}", f"ALTER TABLE {name} ADD COLUMN extra{self._number()} INT"]
        if not table.keys:
            texts.append(f"RESTORE TABLE {name} TO VERSION AS OF 1")
        return [Step(self._pick(texts), By.ANOTHER_WRITER)]

    # --------------------------------------------------------------------------------------------- refreshes

    def _refresh(self) -> list[Step]:
        """Mostly after a change, so that there is something to do."""
        ones = 12 if self._scope == "lowest" else 4
        text = self._pick(("all", "all", "all", "two", "full", "all full", *("one",) * ones))
        by = self.generator.choice((By.US, By.US, By.US, By.ANOTHER_PROCESS))
        changes = self._change() if self.generator.random() < 0.5 else []
        return [*changes, Step(self._refreshing(text), by)]

    def _refreshing(self, what: str) -> str:
        match what:
            case "all" | "all full":
                return "REFRESH ALL" if what == "all" else "REFRESH ALL FULL"
            case "one" | "full":
                return f"REFRESH MATERIALIZED VIEW {self._refreshed()}{' FULL' if what == 'full' else ''}"
            case _:
                return f"REFRESH MATERIALIZED VIEW {self._view()}, {self._view()}"

    def _killed(self) -> list[Step]:
        text = self._pick(("all", "all", "all", "one", "create", "vacuum"))
        if text == "create":
            (step,) = self._create()
            moment = self.generator.choice((Moment.PINNED, Moment.VIEW_COMMITTED, Moment.PUBLISHING))
        elif text == "vacuum":
            (step,) = self._vacuum()
            moment = self.generator.choice((Moment.CLEANING, Moment.CLEANED))
        else:
            step, moment = Step(self._refreshing(text)), self.generator.choice(_MOMENTS)
        by = self.generator.choice((By.US, By.ANOTHER_PROCESS))
        killed = Step(step.text, by, moment, self.generator.choice((1, 1, 2)))
        return [*(self._change() if self.generator.random() < 0.7 else []), killed]

    def _vacuum(self) -> list[Step]:
        return [Step(f"VACUUM WAREHOUSE RETAIN {self.generator.randint(1, 3)} EPOCHS")]

    def _foreign(self) -> list[Step]:
        """Somebody writes into the table of a view; the view is not refreshed until it is put back."""
        view = self._view()
        steps = [Step("DELETE FROM {" + view + "} WHERE k IS NOT NULL", By.ANOTHER_WRITER)]
        steps += [Step("REFRESH ALL")] if self.generator.random() < 0.5 else []
        return [*steps, Step(f"RESTORE MATERIALIZED VIEW {view}")]

    # ------------------------------------------------------------------------------------------- definitions

    def _create(self) -> list[Step]:
        if len(self.warehouse.view_names()) >= _MOST_VIEWS:
            return self._refresh()
        policy = self._pick(("", "", "REFRESH INCREMENTAL ", "REFRESH FULL "))
        return [Step(f"CREATE MATERIALIZED VIEW w{self._number()} {policy}AS {self._query()}")]

    def _replace(self) -> list[Step]:
        """With a query over tables, so that no view reads itself; what reads it may refuse."""
        query = self._query([str(each.name) for each in self._tables()])
        return [Step(f"CREATE OR REPLACE MATERIALIZED VIEW {self._view()} AS {query}")]

    def _drop(self) -> list[Step]:
        if len(self.warehouse.view_names()) <= _FEWEST_VIEWS:
            return self._create()
        return [Step(f"DROP MATERIALIZED VIEW {self._view()}")]

    def _alter_view(self) -> list[Step]:
        policy = self._pick(("AUTO", "INCREMENTAL", "STRICT", "FULL"))
        actions = (f"SET REFRESH {policy}", f"SET REFRESH {policy}", f"RENAME TO w{self._number()}")
        return [Step(f"ALTER MATERIALIZED VIEW {self._view()} {self._pick(actions)}")]

    def _alter_table(self) -> list[Step]:
        table = self.generator.choice(self._tables())
        actions = [f"RENAME TO r{self._number()}"]
        actions += [f"DROP CONSTRAINT {each.name}" for each in (*table.foreign_keys, *table.keys)]
        actions += [] if table.foreign_keys or table.keys else ["SET UPDATABLE (a, b)", "SET UPDATABLE ALL"]
        return [Step(f"ALTER TABLE {table.name} {self._pick(actions)}")]

    def _replaced_table(self) -> list[Step]:
        names = [str(each.name) for each in self._tables() if not each.keys and not each.attached]
        if not names:
            return self._change()
        name = self._pick(names)
        text = f"CREATE OR REPLACE TABLE {name} AS SELECT k, a, b FROM {name} WHERE k IS NOT NULL"
        return [Step(text), Step("REFRESH ALL")]
