"""A child process's end of a talk in JSON lines: what it is told, what it tells, and that it never outlives
whoever started it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

ENDED = 3
"""Exit status when the starter went away."""


def tell(message: dict[str, Any]) -> None:
    """Write one line; where nobody listens any more, end the process."""
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except OSError:
        os._exit(ENDED)


def lines() -> Iterator[dict[str, Any]]:
    """Yield the objects of standard input; when it ends, end the process, whatever it is doing."""
    waiting: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            waiting.put(json.loads(line))
        os._exit(ENDED)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield waiting.get()
