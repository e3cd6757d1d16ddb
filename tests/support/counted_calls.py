"""How much work something is, in calls of Python functions: about the same on every machine, busy or idle."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

_T = TypeVar("_T")


def counting_calls(work: Callable[[], _T]) -> tuple[_T, int]:
    """What `work` gives, and how many functions were called in this thread while it ran."""
    counted = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        answer = work()
    finally:
        sys.setprofile(before)
    return answer, counted
