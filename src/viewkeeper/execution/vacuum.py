"""VACUUM WAREHOUSE: old epochs, left-over folders and unreadable files go; what is kept stays readable."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from viewkeeper.errors import StorageError
from viewkeeper.execution.progress import Event, Moment
from viewkeeper.execution.reports import StatementReport
from viewkeeper.execution.workspace import Workspace
from viewkeeper.generated_names import CHANGE_EPOCH
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sql.rendering import delta_table
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import HistoryEntry, ViewRecord, now

_SAFETY_SECONDS = 5.0
"""Clocks of writers and stores may differ by so much."""

_YOUNG_SECONDS = 3600.0
"""A table's folder that nobody names may belong to a CREATE TABLE under way; after so long it does not."""


def vacuum_warehouse(workspace: Workspace, retain_epochs: int) -> StatementReport:
    started, started_at = time.monotonic(), now()
    catalogue = workspace.state.read()
    first_kept = max(1, catalogue.last_epoch - retain_epochs + 1, catalogue.first_kept_epoch)
    history = workspace.state.history()
    workspace.state.change(
        lambda newest: replace(newest, first_kept_epoch=max(first_kept, newest.first_kept_epoch))
    )
    workspace.listener(Event(Moment.CLEANING, catalogue.last_epoch))
    orphans = _remove_orphans(workspace)
    views = 0
    for view in catalogue.views.values():
        if _vacuum_view(workspace, catalogue, view, history, started_at, first_kept):
            views += view.owner is None
    workspace.listener(Event(Moment.CLEANED, catalogue.last_epoch))
    return StatementReport(
        f"epochs before {first_kept} are no longer kept: {views} views cleaned, {orphans} left-over folders "
        f"removed in {time.monotonic() - started:.1f} s.",
        {"first_kept_epoch": first_kept, "views": views, "orphans": orphans},
    )


def _vacuum_view(
    workspace: Workspace,
    catalogue: Catalogue,
    view: ViewRecord,
    history: list[HistoryEntry],
    started_at: str,
    first_kept: int,
) -> bool:
    """Remove files that only dropped epochs read: those superseded before the oldest kept version was current.

    Files written since the oldest claim may belong to a refresh under way and stay, in both tables of the view.
    """
    entries = [
        e for e in history if e.view_id == view.id and e.location == view.location and e.version is not None
    ]
    older = [entry for entry in entries if entry.epoch <= first_kept]
    if not older or older[-1].version == entries[0].version:
        return False
    claimed = [claim.claimed_at for claim in catalogue.claims]
    rows = delta_table(workspace.layout.rows(view.location)).sql(dialect="spark")
    session = workspace.sessions.own
    with spark_failures(f"the table of {view.name} was vacuumed"):
        session.sql(f"VACUUM {rows} RETAIN {_hours_since([older[-1].finished_at, *claimed])} HOURS").collect()
        if workspace.log.exists(workspace.layout.changes(view.location)):
            changes = delta_table(workspace.layout.changes(view.location)).sql(dialect="spark")
            needed = min(first_kept, _first_unconsumed(workspace, catalogue, view))
            session.sql(f"DELETE FROM {changes} WHERE {CHANGE_EPOCH} < {needed:d}").collect()
            session.sql(f"VACUUM {changes} RETAIN {_hours_since([started_at, *claimed])} HOURS").collect()
    return True


def _first_unconsumed(workspace: Workspace, catalogue: Catalogue, view: ViewRecord) -> int:
    """The first epoch whose change set some reader of the view still needs. While a view is being loaded, nobody knows
    which: then it is every epoch."""
    if any(claim.loads is not None for claim in catalogue.claims):
        return 0
    needed = [catalogue.last_epoch + 1]
    for reader in catalogue.views.values():
        consumed = catalogue.published[reader.id].inputs.get(view.id, -1)
        if view.id in reader.input_ids and consumed >= 0:
            commits = workspace.log.commits_after(workspace.layout.rows(view.location), consumed)
            needed += [commit.epoch for commit in commits if commit.epoch is not None]
    return min(needed)


def _hours_since(moments: Iterable[str]) -> str:
    """The hours since the earliest of these moments, as VACUUM takes them."""
    earliest = min(map(datetime.fromisoformat, moments))
    seconds = (datetime.now(timezone.utc) - earliest).total_seconds() + _SAFETY_SECONDS
    return f"{seconds / 3600:.6f}"


def _remove_orphans(workspace: Workspace) -> int:
    """Folders of views and tables that no record and no running load names."""
    if not workspace.layout.is_local:
        return 0
    removed = 0
    for folder in _storage_folders(workspace):
        if _is_used(workspace.state.read(), folder) or _is_young_table(workspace, folder):
            continue
        remove_folder(workspace, folder)
        removed += 1
    return removed


def _storage_folders(workspace: Workspace) -> Iterable[str]:
    root = Path(workspace.layout.root)
    for kind in ("views", "tables"):
        if (root / kind).is_dir():
            yield from sorted(f"{kind}/{folder.name}" for folder in (root / kind).iterdir())


def _is_used(catalogue: Catalogue, location: str) -> bool:
    if any(record.location == location for record in catalogue.objects()):
        return True
    return any(claim.loads == location for claim in catalogue.claims)


def _is_young_table(workspace: Workspace, location: str) -> bool:
    if not location.startswith("tables/"):
        return False
    try:
        return time.time() - Path(workspace.layout.address(location)).stat().st_mtime < _YOUNG_SECONDS
    except FileNotFoundError:
        return True


def remove_folder(workspace: Workspace, location: str) -> None:
    """Remove a folder of the warehouse; on other stores than a local disk it is left to the store's own rules."""
    if not workspace.layout.is_local:
        return
    try:
        shutil.rmtree(workspace.layout.address(location))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(
            f"{location} cannot be removed: {error.strerror}.", "check the folder's rights."
        ) from error
