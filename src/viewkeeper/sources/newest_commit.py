"""Whether anybody has committed to a Delta table since it was read: what was read before can be used again if nobody has.

Looking at a log on a local disk takes a tenth of a millisecond, opening a table five. Other storage is always read again.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TypeAlias

NewestCommit: TypeAlias = tuple[str, int, int, int]
"""The name of its file, and what tells it from one of the same name in a table that was made anew."""

_COMMIT = re.compile(r"\d{20}\.json")


def newest_commit(address: str) -> NewestCommit | None:
    """None: it cannot be told, so read the table again."""
    if "://" in address:
        return None
    log = Path(address, "_delta_log")
    try:
        name = max((each for each in os.listdir(log) if _COMMIT.fullmatch(each)), default=None)  # noqa: PTH208
        if name is None:
            return None
        found = (log / name).stat()
    except OSError:
        return None
    return name, found.st_ino, found.st_mtime_ns, found.st_size
