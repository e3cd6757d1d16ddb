"""A view's change sets, appended by delta-rs: milliseconds, no JVM."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from viewkeeper.errors import ConcurrencyProblem
from viewkeeper.generated_names import CHANGE_EPOCH, CHANGE_KIND
from viewkeeper.sources.delta_failures import storage_failure, storage_failures
from viewkeeper.storage.own_commit import Mark


def append_change_set(
    address: str,
    options: dict[str, str] | None,
    changes: pa.Table,
    epoch: int,
    mark: Mark,
    properties: Mapping[str, str],
) -> None:
    """Append a change set once: not if another process has stored it, or commits at the same moment."""
    data = changes.append_column(CHANGE_EPOCH, pa.array([epoch] * changes.num_rows, pa.int64()))
    commit = CommitProperties(
        custom_metadata={"userMetadata": mark.metadata},
        max_commit_retries=0,
        app_transactions=[Transaction(mark.application, mark.number)],
    )
    what = f"the change sets at {address}"
    with storage_failures(what):
        exists = DeltaTable.is_deltatable(address, storage_options=options)
        target: DeltaTable | str = address
        if exists:
            target = DeltaTable(address, storage_options=options)
            if (target.transaction_version(mark.application) or -1) >= mark.number:
                return
        try:
            write_deltalake(
                target,
                data,
                mode="append",
                partition_by=[CHANGE_EPOCH, CHANGE_KIND],
                configuration=None if exists else dict(properties),
                storage_options=None if exists else options,
                commit_properties=commit,
            )
        except CommitFailedError as error:
            raise ConcurrencyProblem(
                "another process stored the same change set.", "repeat the statement."
            ) from error
        except DeltaError as error:
            raise storage_failure(error, what) from error
