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
    replaces: bool = False,
) -> bool:
    """Append a change set once: False if another process has stored one for this epoch. With `replaces` it takes the place
    of that one, which could not be applied."""
    data = changes.append_column(CHANGE_EPOCH, pa.array([epoch] * changes.num_rows, pa.int64()))
    what = f"the change sets at {address}"
    with storage_failures(what):
        exists = DeltaTable.is_deltatable(address, storage_options=options)
        target = DeltaTable(address, storage_options=options) if exists else None
        try:
            if target is None:
                _append(address, data, mark, dict(properties), options)
            elif replaces:
                write_deltalake(
                    target,
                    data,
                    mode="overwrite",
                    predicate=f"{CHANGE_EPOCH} = {epoch:d}",
                    commit_properties=CommitProperties(
                        custom_metadata={"userMetadata": mark.metadata}, max_commit_retries=0
                    ),
                )
            elif (target.transaction_version(mark.application) or -1) >= mark.number:
                return False
            else:
                _append(target, data, mark)
        except CommitFailedError as error:
            raise ConcurrencyProblem(
                "another process stored the same change set.", "repeat the statement."
            ) from error
        except DeltaError as error:
            raise storage_failure(error, what) from error
    return True


def _append(
    target: DeltaTable | str,
    data: pa.Table,
    mark: Mark,
    properties: dict[str, str] | None = None,
    options: dict[str, str] | None = None,
) -> None:
    write_deltalake(
        target,
        data,
        mode="append",
        partition_by=[CHANGE_EPOCH, CHANGE_KIND],
        configuration=properties,
        storage_options=options,
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": mark.metadata},
            max_commit_retries=0,
            app_transactions=[Transaction(mark.application, mark.number)],
        ),
    )
