"""A child process's end of a talk in JSON lines: what it is told, what it tells, and that it never outlives
whoever started it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

from .threads import BackgroundThread

ENDED = 3
"""Exit status when the starter went away."""


def _end() -> None:
    os._exit(ENDED)


def tell(message: dict[str, Any], ended: Callable[[], None] = _end) -> None:
    """Write one line; where nobody reads any more, end the process, or call `ended`."""
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except OSError:
        ended()


def lines(ended: Callable[[], None] = _end) -> Iterator[dict[str, Any]]:
    """Yield the objects of standard input; when it ends, end the process, whatever it is doing, or call
    `ended` (in a thread of its own) and yield no more.
    """
    waiting: SimpleQueue[dict[str, Any] | None] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            waiting.put(json.loads(line))
        waiting.put(None)
        ended()

    BackgroundThread(listen)
    while (message := waiting.get()) is not None:
        yield message
