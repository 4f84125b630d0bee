"""Progress of long work, and how it is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """How far one stage of the work is; bytes are of the source as it lies on disk."""

    stage: str
    done: int
    total: int | None
    events: int = 0

    @property
    def share(self) -> float | None:
        """Between 0 and 1, or None where the total is not known (standard input)."""
        return None if not self.total else min(1.0, self.done / self.total)


ProgressCallback = Callable[[Progress], None]
CancelledCallback = Callable[[], bool]


def no_progress(_: Progress) -> None:
    """Ignore progress."""


def never() -> bool:
    return False
