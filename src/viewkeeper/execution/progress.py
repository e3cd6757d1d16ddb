"""What happens while a statement runs, for those who wait: one event at each named point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Moment(Enum):
    """The named points of an epoch, in order."""

    PINNED = "source versions pinned, epoch claimed"
    TAKEN_OVER = "an unfinished epoch is repeated"
    GIVEN_UP = "an unfinished epoch was given up"
    VIEW_STARTED = "working on"
    CHANGE_SET_STORED = "change set stored of"
    ROWS_WRITTEN = "rows written, not yet committed, of"
    FOLDING = "folding small files of"
    VIEW_COMMITTED = "committed"
    PUBLISHING = "publishing"
    PUBLISHED = "published"
    CLEANING = "removing what is no longer needed"
    CLEANED = "removed"


@dataclass(frozen=True)
class Event:
    moment: Moment
    epoch: int
    view: str = ""
    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        counted = f" ({self.done} of {self.total})" if self.total else ""
        return f"epoch {self.epoch}: {self.moment.value}{' ' + self.view if self.view else ''}{counted}"


Listener: TypeAlias = Callable[[Event], None]


def nobody_listens(event: Event) -> None:
    """The default listener."""
