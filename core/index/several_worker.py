"""A process that indexes one file after another for `SeveralIndexing`.

    python -m tracelane.core.index.several_worker

Every line of standard input is a JSON object: first how to index, then `{"source"}` per file. Every line of
standard output answers: `{"ready"}` once, `{"stage", "done", "events"}` now and then, per file
`{"finished": true}` or `{"finished": false, "failed", "message"}`. When standard input ends the process gives
up what it is at, removes what it has written of that, and ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from ..base.children import ENDED, lines, stand_back, tell
from ..base.errors import Cancelled, TracelaneError
from ..base.progress import Progress
from ..read.source import Source, current_source
from .indexing import PATIENCE_S
from .ingest import ingest_index
from .options import IndexOptions

TELL_S = 0.1
GRACE_S = PATIENCE_S + 1.0
"""So long the work may take to notice that it is not wanted: it may have to end a process of its own."""


class _Teller:
    """Passes progress on, a few times a second; events of earlier files are kept in the count."""

    def __init__(self, unheard: Callable[[], None]) -> None:
        """Tell whoever started the process; `unheard` is done where nobody listens any more."""
        self._unheard = unheard
        self.before = 0  # events of the files that are finished
        self.events = 0
        self._next = 0.0
        self._stage = ""

    def __call__(self, progress: Progress) -> None:
        self.events = max(self.events, progress.events)
        now = time.monotonic()
        if progress.stage != self._stage or now >= self._next:
            self._next, self._stage = now + TELL_S, progress.stage
            events = self.before + self.events
            tell({"stage": progress.stage, "done": progress.done, "events": events}, self._unheard)

    def finished(self) -> None:
        """Begin the next file."""
        self.before, self.events, self._stage = self.before + self.events, 0, ""


def _index(
    source: Source, options: IndexOptions, teller: _Teller, unwanted: threading.Event
) -> dict[str, Any]:
    """Index a source and return what is to be told of it."""
    try:
        index = ingest_index(current_source(source), options, progress=teller, cancelled=unwanted.is_set)
        events = index.events
        index.close()
    except TracelaneError as error:
        return {"finished": False, "failed": type(error).__name__, "message": str(error)}
    except Exception as error:
        if isinstance(error, Cancelled):
            raise
        what = "".join(traceback.format_exception_only(error)).strip()
        return {"finished": False, "failed": "", "message": what, "trace": traceback.format_exc()}
    return {"finished": True, "events": events}


def main() -> int:
    """Index files until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starter decides what Ctrl+C means
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # and closes our standard input when the terminal is gone
    unwanted = threading.Event()

    def give_up() -> None:
        unwanted.set()
        time.sleep(GRACE_S)
        os._exit(ENDED)

    tell({"ready": True})
    jobs = lines(give_up)
    greeting = next(jobs)
    options = IndexOptions.from_message(greeting["options"])
    if greeting["stands_back"]:
        stand_back()
    teller = _Teller(unwanted.set)
    try:
        for job in jobs:
            tell(_index(Source.from_message(job["source"]), options, teller, unwanted), unwanted.set)
            teller.finished()
    except Cancelled:
        return ENDED
    return 0


if __name__ == "__main__":
    sys.exit(main())
