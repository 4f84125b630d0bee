"""Waiting for descriptors. `select.select` takes none from 1,024 on, which a process has that holds the files
of 1,024 ranks.
"""

from __future__ import annotations

import select
from collections.abc import Sequence


def readable(descriptors: Sequence[int], seconds: float | None = None) -> list[int]:
    """Return those of some descriptors that can be read, or whose other end is closed; wait for one so long,
    or without end.
    """
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(None if seconds is None else seconds * 1000)]
