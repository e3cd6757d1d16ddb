"""Every name that Viewkeeper creates in storage, in Spark sessions and in generated SQL."""

from __future__ import annotations

HIDDEN_PREFIX = "_vk_"
"""Columns and relations that start with this are ours; users may not declare such names."""

COPY_NUMBER = "_vk_copy"
"""In a view's table: 1..m tells the m equal rows of a bag apart."""

IDENTITY = "_vk_identity"
"""In a view's table, only where columns cannot be compared in a MERGE: their values as canonical text."""

CHANGE_KIND = "_vk_change"
"""In a change set: 'insert' or 'delete'."""

CHANGE_EPOCH = "_vk_epoch"
"""In a change set: the epoch that made the change."""

USERS_EPOCH = "_epoch"
USERS_CHANGE = "_change_type"
"""The columns that CHANGES(…) shows beside the view's own."""

INSERTED = "insert"
DELETED = "delete"

FILE = "_vk_file"
POSITION = "_vk_position"
"""Where a stored row lies: its data file, and the number of the row in it."""

SIGNED_COUNT = "_vk_count"
OLD_COUNT = "_vk_old_count"
SIGN = "_vk_sign"
LEAVES = "_vk_leaves"
ENTERS = "_vk_enters"
"""Of a row that rules have found: whether some rule deletes it from the view, and whether some rule puts it there."""


def is_hidden(name: str) -> bool:
    return name.lower().startswith(HIDDEN_PREFIX)


def kept_groups(view: str, number: int) -> str:
    """The hidden view that keeps groups inside a view's query. It has no name for users, who may have one like it."""
    return f"{HIDDEN_PREFIX}{view}_groups_{number}"


def query_relation(view: str) -> str:
    """The temporary relation that holds the result of a view's query while it is refreshed."""
    return f"{view}_query"


def state_relation(name: str, state: str) -> str:
    """The temporary relation that shows a table or view in one state: orders_old, orders_new."""
    return f"{name}_{state}"


def change_set_application(view_id: str) -> str:
    """The Delta transaction application under which the change sets of a view are appended."""
    return f"viewkeeper/{view_id}/changes"


def view_application(view_id: str) -> str:
    """The Delta transaction application under which a view's own table is written."""
    return f"viewkeeper/{view_id}"
