"""A process that indexes one file after another for `index_several`.

    python -m tracelane.core.index.several_worker

Every line of standard input is a JSON object: first how to index, then `{"path"}` per file. Every line of
standard output answers: `{"done": bytes, "events": n}` now and then, `{"finished": whether it worked}` per
file. The process ends when its standard input does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ..base.errors import TracelaneError
from ..base.progress import Progress
from .ingest import ingest_index

TELL_S = 0.1
_ENDED = 3
"""Exit status when the starter went away."""


class _Teller:
    """Passes progress on, a few times a second; events of earlier files are kept in the count."""

    def __init__(self) -> None:
        self.before = 0  # events of the files that are finished
        self.events = 0
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        self.events = max(self.events, progress.events)
        now = time.monotonic()
        if progress.stage == "reading" and now >= self._next:
            self._next = now + TELL_S
            tell({"done": progress.done, "events": self.before + self.events})

    def finished(self) -> None:
        """Begin the next file."""
        self.before, self.events = self.before + self.events, 0


def main() -> int:
    """Index files until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starter decides what Ctrl+C means
    lines = _lines()
    how = next(lines)
    index_dir = None if how["index_dir"] is None else Path(how["index_dir"])
    teller = _Teller()
    for job in lines:
        try:
            index = ingest_index(
                job["path"],
                index_dir=index_dir,
                decoder=how["decoder"],
                workers=how["workers"],
                force=how["force"],
                progress=teller,
            )
        except (TracelaneError, OSError):
            tell({"finished": False})
        else:
            index.close()
            tell({"finished": True})
        teller.finished()
    return 0


def tell(message: dict[str, Any]) -> None:
    """Write one line; where nobody listens any more, end."""
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except OSError:
        os._exit(_ENDED)


def _lines() -> Iterator[dict[str, Any]]:
    """Yield the objects of standard input; when it ends, end the process, whatever it is doing."""
    waiting: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            waiting.put(json.loads(line))
        os._exit(_ENDED)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield waiting.get()


if __name__ == "__main__":
    sys.exit(main())
