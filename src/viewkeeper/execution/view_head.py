"""What lies in a view's table on top of the version that an epoch starts from, its base.

A change set may be applied only to the rows it was made for. So on top of the base there may be commits that change no
row, whoever made them, and commits of this very epoch, made by a process that died or was taken for dead. Everything else
is in the way: *foreign* commits of other writers, which only the user may undo, and *stale* ones of epochs that were given
up, which a process that woke up late may add at any moment. What a RESTORE to the base has undone no longer counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.errors import ForeignCommitError
from viewkeeper.execution.workspace import Workspace
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sources.table_log import Commit, epoch_marker
from viewkeeper.sql.rendering import delta_table
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import ViewRecord


@dataclass(frozen=True)
class ViewHead:
    """The commits on top of the base that still count, as seen by an epoch; without an epoch, by a reader."""

    base: int
    commits: tuple[Commit, ...]
    epoch: int | None = None

    @property
    def foreign(self) -> Commit | None:
        """The first commit of another writer that changed rows."""
        return next((each for each in self._changes if each.epoch is None), None)

    @property
    def is_stale(self) -> bool:
        """Whether an epoch that was given up has changed rows."""
        return any(each.epoch not in (None, self.epoch) for each in self._changes)

    @property
    def is_applied(self) -> bool:
        """Whether this epoch's change set is in the table already."""
        return any(each.epoch == self.epoch for each in self._changes)

    @property
    def committed(self) -> int:
        """The version that this epoch publishes."""
        return max((each.version for each in self.commits if each.epoch == self.epoch), default=self.base)

    @property
    def _changes(self) -> list[Commit]:
        return [each for each in self.commits if each.changes_rows and each.restored != self.base]


def view_head(
    workspace: Workspace, view: ViewRecord, base: int, epoch: int | None = None, until: int | None = None
) -> ViewHead:
    """What lies on top of the base, up to a version or to the newest one."""
    commits: list[Commit] = []
    for commit in workspace.log.commits_after(workspace.layout.rows(view.location), base):
        if until is not None and commit.version > until:
            break
        if commit.restored == base:
            commits = []
        commits.append(commit)
    return ViewHead(base, tuple(commits), epoch)


def clear_head(
    workspace: Workspace,
    catalogue: Catalogue,
    view: ViewRecord,
    base: int,
    epoch: int,
    until: int | None = None,
) -> bool:
    """Whether nothing was in the way of this epoch's change set. Stale commits are undone by a commit of ours, so that
    nothing is in the way now; foreign ones are an error."""
    head = view_head(workspace, view, base, epoch, until)
    if head.foreign is not None:
        users_view = view if view.owner is None else catalogue.views[view.owner]
        raise ForeignCommitError(
            f"somebody else changed the table of {view.name}: version {head.foreign.version}, {head.foreign.operation}.",
            f"RESTORE MATERIALIZED VIEW {users_view.name} puts it back; then refresh.",
        )
    if head.is_stale:
        restore_table(workspace, view, base, epoch)
    return not head.is_stale


def restore_table(workspace: Workspace, view: ViewRecord, version: int, epoch: int) -> None:
    """Put a view's table back to a version, by a commit of its own."""
    session = workspace.sessions.own
    target = delta_table(workspace.layout.rows(view.location)).sql(dialect="spark")
    with spark_failures(f"the table of {view.name} was restored"):
        session.conf.set(
            "spark.databricks.delta.commitInfo.userMetadata", epoch_marker(epoch, restored=version)
        )
        try:
            session.sql(f"RESTORE TABLE {target} TO VERSION AS OF {version:d}").collect()
        finally:
            session.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
