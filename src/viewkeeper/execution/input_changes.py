"""The net changes of the tables and views that a view reads, between what it has consumed and an epoch's versions.

Small ones lie in the driver as Arrow tables and become local relations; large ones, and those that delta-rs
would read wrongly, are read and kept by Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from viewkeeper.errors import FeedGoneError, UserError, WarehouseProblem
from viewkeeper.execution.local_relations import local_relation
from viewkeeper.execution.workspace import Workspace
from viewkeeper.generated_names import CHANGE_EPOCH, CHANGE_KIND, DELETED, SIGN
from viewkeeper.maintenance.net_changes import lost_bytes, net_rows, part_of, signed_feed
from viewkeeper.maintenance.plan import State
from viewkeeper.sources.arrow_types import UNREADABLE, in_arrow_types, values_in
from viewkeeper.sources.net_effect import CHANGE_TYPE, COMMIT_VERSION, feed_signs, net_bag, net_by_key
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import quote
from viewkeeper.sql.rendering import column, delta_table, literal, render, select_from
from viewkeeper.sql.types import DataType, as_stored
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import ViewRecord

MOST_DRIVER_ROWS = 400_000
"""Up to this many rows pass through the driver: why so many is in docs/decisions/0008-plain-parquet.md."""

MOST_LITERALS = 10_000
"""A limit lists up to this many values; beyond, it is a range."""


@dataclass(frozen=True)
class InputChanges:
    """The parts of one change set that have rows, as Arrow tables or Spark frames."""

    columns: tuple[Column, ...]
    parts: Mapping[State, Any]
    key: tuple[str, ...] = ()
    _frames: dict[tuple[Any, State], Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def kinds(self) -> frozenset[State]:
        return frozenset(self.parts)

    @property
    def rows(self) -> int:
        """The number of changed rows; both images of an update count."""
        return sum(
            part.num_rows if isinstance(part, pa.Table) else part.count() for part in self.parts.values()
        )

    def frame(self, session: Any, state: State) -> Any:
        """A part as a frame of the session, made once for all views; REMOVED and ADDED take in all removals and additions."""
        asked = (session, state)
        if asked not in self._frames:
            self._frames[asked] = self._frame(session, self._chosen(state))
        return self._frames[asked]

    def _frame(self, session: Any, chosen: list[Any]) -> Any:
        if all(isinstance(part, pa.Table) for part in chosen):
            table = pa.concat_tables(chosen) if chosen else in_arrow_types(pa.table({}), self.columns)
            return local_relation(session, table, schema_text(self.columns))
        return chosen[0] if len(chosen) == 1 else chosen[0].unionAll(chosen[1])

    def values(self, state: State | None, name: str) -> list[Any] | None:
        """The distinct values of a column in a part, or in all of them; None if they are not at hand."""
        chosen = list(self.parts.values()) if state is None else self._chosen(state)
        if not all(isinstance(part, pa.Table) for part in chosen):
            return None
        values = [values_in(part.column(name)) for part in chosen]
        if any(each is None for each in values):
            return None
        return list({value for each in values for value in each or ()})

    def _chosen(self, state: State) -> list[Any]:
        return [self.parts[name] for name in _COMPOSED.get(state, (state,)) if name in self.parts]


_COMPOSED = {
    State.REMOVED: (State.REMOVED, State.DELETED, State.OLD_UPDATED),
    State.ADDED: (State.ADDED, State.INSERTED, State.NEW_UPDATED),
}


def schema_text(columns: Sequence[Column]) -> str:
    """The columns as Spark's DDL.

    >>> from viewkeeper.sql.types import Simple
    >>> schema_text([Column("a b", Simple("INT")), Column("c", Simple("CHAR(3)"))])
    '`a b` INT, `c` STRING'
    """
    return ", ".join(f"{quote(each.name)} {as_stored(each.data_type)}" for each in columns)


@dataclass
class EpochChanges:
    """The changes that one epoch needs, each read once however many views need it."""

    workspace: Workspace
    catalogue: Catalogue
    _known: dict[tuple[str, int, int, tuple[str, ...]], InputChanges] = field(default_factory=dict)
    _kept: list[Any] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def of(self, input_id: str, consumed: int, version: int, key: tuple[str, ...] = ()) -> InputChanges:
        """The net changes, by key where one is given and holds, else as a signed bag."""
        asked = (input_id, consumed, version, key)
        if asked not in self._known:
            record = self.catalogue.object(input_id)
            if isinstance(record, ViewRecord):
                found = self._of_view(record, consumed, version)
            else:
                address = self.workspace.data_address(record)
                found = self._in_driver(address, consumed, version, record.columns, key) or self._by_spark(
                    address, consumed, version, record.columns
                )
            self._known[asked] = found
        return self._known[asked]

    def _in_driver(
        self, address: str, consumed: int, version: int, columns: tuple[Column, ...], key: tuple[str, ...]
    ) -> InputChanges | None:
        """The changes of a table as delta-rs reads them; None: let Spark read them, which holds every value exactly."""
        feed = self.workspace.log.read_feed(address, consumed, version, columns)
        try:
            return None if feed is None else _from_feed(feed, columns, key)
        except UNREADABLE:
            return None

    def estimated_rows(self, input_id: str, consumed: int, version: int) -> int | None:
        """About how many rows changed, both images of an update counted, without reading them; None if that is not known."""
        record = self.catalogue.object(input_id)
        if not isinstance(record, ViewRecord):
            return self.workspace.log.estimated_feed_rows(
                self.workspace.data_address(record), consumed, version
            )
        sizes = [
            self.workspace.log.change_set_size(self.workspace.layout.changes(record.location), epoch)
            for epoch in self._epochs(record, consumed, version)
        ]
        return sum(inserted + deleted for inserted, deleted in (size for size in sizes if size is not None))

    def close(self) -> None:
        for frame in self._kept:
            frame.unpersist()

    def _of_view(self, view: ViewRecord, consumed: int, version: int) -> InputChanges:
        epochs = self._epochs(view, consumed, version)
        if not epochs:
            return InputChanges(view.columns, {})
        address = self.workspace.layout.changes(view.location)
        stored = self.workspace.log.read_change_sets(address, epochs)
        try:
            if stored is not None:
                return _from_change_sets(stored, view.columns)
        except UNREADABLE:
            pass
        return self._from_spark(self._spark_change_sets(address, epochs, view.columns), view.columns)

    def _epochs(self, view: ViewRecord, consumed: int, version: int) -> list[int]:
        """The epochs whose change sets lead from one version of a view to another."""
        commits = self.workspace.log.commits_after(self.workspace.layout.rows(view.location), consumed)
        changes = [commit for commit in commits if commit.version <= version and commit.changes_rows]
        return sorted({commit.epoch for commit in changes if commit.epoch is not None})

    def missing_epochs(self, view: ViewRecord, consumed: int, version: int) -> list[int]:
        """Of these epochs, those whose change sets are not there any more. An epoch that changed rows has a change set."""
        address = self.workspace.layout.changes(view.location)
        return [
            epoch
            for epoch in self._epochs(view, consumed, version)
            if not any(self.workspace.log.change_set_size(address, epoch) or ())
        ]

    def _spark_feed(self, address: str, consumed: int, version: int, columns: Sequence[Column]) -> Any:
        session = self.workspace.sessions.own
        with _feed_failures(address, consumed, version):
            reader = session.read.format("delta").option("readChangeFeed", "true")
            feed = (
                reader.option("startingVersion", consumed + 1).option("endingVersion", version).load(address)
            )
            name = f"_vk_feed_{next(self._numbers)}"
            feed.createOrReplaceTempView(name)
            return session.sql(signed_feed(name, columns, feed.columns))

    def _by_spark(
        self, address: str, consumed: int, version: int, columns: tuple[Column, ...]
    ) -> InputChanges:
        with _feed_failures(address, consumed, version):
            signed = self._spark_feed(address, consumed, version, columns)
            lost = lost_bytes(columns)
            found = self._from_spark(signed, columns, lost)
            if lost is not None and not self._kept[-1].where(lost).isEmpty():
                raise FeedGoneError(
                    f"the change feed of the Delta table at {address} holds texts that are not UTF-8, "
                    "which Spark does not tell apart there."
                )
            return found

    def _spark_change_sets(self, address: str, epochs: Sequence[int], columns: Sequence[Column]) -> Any:
        sign = exp.If(this=column(CHANGE_KIND).eq(literal(DELETED)), true=literal(-1), false=literal(1)).as_(
            SIGN, quoted=True
        )
        rows = select_from(delta_table(address), [*(column(c.name) for c in columns), sign])
        mine = rows.where(column(CHANGE_EPOCH).isin(*epochs))
        with spark_failures(f"the change sets at {address} were read"):
            return self.workspace.sessions.own.sql(render(mine))

    def _from_spark(self, signed: Any, columns: tuple[Column, ...], keeps: str | None = None) -> InputChanges:
        session = self.workspace.sessions.own
        with spark_failures("a large change set was added up"):
            number = next(self._numbers)
            signed.createOrReplaceTempView(f"_vk_signed_{number}")
            net = session.sql(net_rows(f"_vk_signed_{number}", columns, keeps)).persist()
            self._kept.append(net)
            net.createOrReplaceTempView(f"_vk_net_{number}")
            parts = {}
            for state, sign in ((State.REMOVED, -1), (State.ADDED, 1)):
                part = session.sql(part_of(f"_vk_net_{number}", columns, sign))
                if not part.isEmpty():
                    parts[state] = part
        return InputChanges(columns, parts)


@contextmanager
def _feed_failures(address: str, consumed: int, version: int) -> Iterator[None]:
    """What Spark cannot read of a change feed is gone for us: it was switched off meanwhile, vacuumed, or leads over columns
    that were replaced. The table itself may be well."""
    try:
        with spark_failures(f"the change feed at {address} was read"):
            yield
    except FeedGoneError:
        raise
    except (WarehouseProblem, UserError) as problem:
        raise FeedGoneError(
            f"the changes of the Delta table at {address} from version {consumed} to {version} cannot be read: "
            f"{problem.message}",
            "recompute the view: REFRESH MATERIALIZED VIEW … FULL.",
        ) from problem


def _from_feed(feed: pa.Table, columns: tuple[Column, ...], key: tuple[str, ...]) -> InputChanges:
    rows = in_arrow_types(feed, columns)
    parts = None
    if key:
        tagged = rows
        for name in (CHANGE_TYPE, COMMIT_VERSION):
            tagged = tagged.append_column(name, feed.column(name))
        parts = net_by_key(tagged, key)
    if parts is None:
        key, parts = (), net_bag(rows, feed_signs(feed))
    return InputChanges(columns, {state: table for state, table in parts.items() if table.num_rows}, key)


def _from_change_sets(stored: pa.Table, columns: tuple[Column, ...]) -> InputChanges:
    signs = [-1 if kind == DELETED else 1 for kind in stored.column(CHANGE_KIND).to_pylist()]
    parts = net_bag(in_arrow_types(stored, columns), signs)
    return InputChanges(columns, {state: table for state, table in parts.items() if table.num_rows})


def limited_to(name: exp.Column, values: Sequence[Any]) -> exp.Expr | None:
    """A condition that lets through at least the rows with one of these values, for Delta to skip files by.

    >>> limited_to(column("a"), [3, 1]).sql("spark")
    '`a` IN (1, 3)'
    >>> limited_to(column("a"), [float("nan")]) is None
    True
    """
    ordered = [value for value in values if value is not None]
    if not ordered:
        return exp.false()
    if not isinstance(ordered[0], (int, str, date)) or isinstance(ordered[0], (bool, datetime)):
        return None
    ordered.sort()
    if len(ordered) <= MOST_LITERALS:
        return exp.In(this=name, expressions=[_literal(value) for value in ordered])
    return between(name, ordered[0], ordered[-1])


def can_limit(data_type: DataType, values: Sequence[Any]) -> bool:
    """Whether values are of the kind that a column of this type holds, so that comparing them means the same.

    >>> from viewkeeper.sql.types import Simple
    >>> can_limit(Simple("INT"), [1, None]), can_limit(Simple("DATE"), ["2020-01-01"])
    (True, False)
    """
    kinds = {"TINYINT": int, "SMALLINT": int, "INT": int, "BIGINT": int, "STRING": str, "DATE": date}
    wanted = kinds.get(str(data_type))
    return wanted is not None and all(value is None or type(value) is wanted for value in values)


def bounds_of(rows: pa.Table, name: str) -> tuple[Any, Any] | None:
    """The least and the greatest value of a column; None if they do not tell where its rows can be."""
    values = rows.column(name)
    if values.null_count or not len(values) or not _has_literals(values.type):
        return None
    try:
        bounds = pc.min_max(values).as_py()
    except UNREADABLE:
        return None
    return bounds["min"], bounds["max"]


def between(name: exp.Column, low: Any, high: Any) -> exp.Expr:
    return exp.Between(this=name, low=_literal(low), high=_literal(high))


def _has_literals(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date(kind)


def _literal(value: int | str | date) -> exp.Expr:
    return exp.cast(exp.convert(value.isoformat()), "date") if isinstance(value, date) else exp.convert(value)
