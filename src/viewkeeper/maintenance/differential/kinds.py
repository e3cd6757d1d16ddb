"""What a refresh knows of the changes before it looks at their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from viewkeeper.maintenance.plan import State
from viewkeeper.sql.statements import Operation

Kinds: TypeAlias = Mapping[str, frozenset[State]]
"""For each input that changed, the parts of its change set that have rows: of a table with a key DELETED,
INSERTED and both halves of updates, of others REMOVED and ADDED."""

LOSSES = frozenset({State.REMOVED, State.DELETED, State.OLD_UPDATED})
GAINS = frozenset({State.ADDED, State.INSERTED, State.NEW_UPDATED})
IN_ORDER = (
    State.DELETED,
    State.OLD_UPDATED,
    State.REMOVED,
    State.INSERTED,
    State.NEW_UPDATED,
    State.ADDED,
)
WORDS = {
    State.DELETED: "rows deleted from",
    State.INSERTED: "rows inserted into",
    State.OLD_UPDATED: "old images of updates of",
    State.NEW_UPDATED: "new images of updates of",
    State.REMOVED: "rows taken from",
    State.ADDED: "rows added to",
}


SHOWN_BY = {
    Operation.INSERT: ({State.INSERTED}, {State.ADDED}),
    Operation.DELETE: ({State.DELETED}, {State.REMOVED}),
    Operation.UPDATE: ({State.OLD_UPDATED}, {State.REMOVED, State.ADDED}),
}
"""What of a change set shows that an operation has happened, or, where changes do not come by key, that it may have."""


def sign_of(part: State) -> int:
    return -1 if part in LOSSES else 1
