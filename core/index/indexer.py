"""A process that builds indexes, one after another, for `Indexing`.

    python -m tracelane.core.index.indexer

Every line of standard input is a JSON object: first how to index, then `{"source", "location"}` per file.
Every line of standard output answers: `{"ready"}` once, `{"progress": [...]}` some times a second, and per
file `{"committed": true, "events"}` or `{"committed": false, "failed", "message"}`. When standard input ends,
because whoever wanted the indexes does not any more or was killed, the process stops, removes what it had
written and ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.children import ENDED, lines, stand_back, tell
from ..base.errors import Cancelled, TracelaneError, lacks_memory
from ..base.progress import Progress
from ..base.threads import collect_rarely

if TYPE_CHECKING:
    from .options import IndexOptions

PROGRESS_S = 0.1
GRACE_S = 1.0
"""So long the work may take to notice that it is not wanted any more."""


class _Indexer:
    """Builds what it is told to; `unwanted` once nobody waits for it any more."""

    def __init__(self) -> None:
        self.unwanted = threading.Event()
        self._building: Path | None = None
        self._next = 0.0
        self._stage = ""
        self._events = 0  # of the files that are finished
        self._events_here = 0

    def run(self) -> int:
        try:
            orders = lines(self._give_up)
            greeting = next(orders)
            if greeting["stands_back"]:
                stand_back()
            for order in orders:
                if not self._build(order, greeting["options"]):
                    return ENDED
        except (Cancelled, MemoryError, StopIteration):
            return ENDED
        return 0

    def _build(self, order: dict[str, Any], told_options: dict[str, Any]) -> bool:
        """Build one index and tell what has become of it; False where memory was wanting for that."""
        from ..read.source import Source, open_source
        from .cache import IndexLocation, locate
        from .indexing import build_index
        from .options import IndexOptions

        options = IndexOptions.from_message(told_options)
        source = Source.from_message(order["source"])
        location = IndexLocation(Path(order["location"]))
        try:
            if not source.is_unchanged:
                source = open_source(source.path, ts_unit=source.ts_unit)
                location = locate(dict(source.fingerprint), options.index_dir)
            events = build_index(
                source,
                location,
                options,
                progress=self._progress,
                cancelled=self.unwanted.is_set,
                begun=self._begun,
            )
        except Exception as error:
            if isinstance(error, Cancelled):
                raise
            return self._failed(error, options)
        finally:
            self._building, self._stage = None, ""
            self._events, self._events_here = self._events + self._events_here, 0
            source.close()
        self._tell({"committed": True, "events": events})
        return True

    def _failed(self, error: Exception, options: IndexOptions) -> bool:
        """Tell what went wrong, save for want of memory: whoever waits starts a process with one thread then,
        as where this one is killed.
        """
        if lacks_memory(error):
            return False
        if isinstance(error, TracelaneError):
            self._tell({"committed": False, "failed": type(error).__name__, "message": str(error)})
            return True
        if isinstance(error, ImportError) and options.threads != 1:
            return False  # without memory numpy cannot be imported; the next process tells if it is more
        what = "".join(traceback.format_exception_only(error)).strip()
        trace = "".join(traceback.format_exception(error))
        self._tell({"committed": False, "failed": "", "message": what, "trace": trace})
        return True

    def _begun(self, folder: Path) -> None:
        self._building = folder

    def _progress(self, progress: Progress) -> None:
        self._events_here = max(self._events_here, progress.events)
        now = time.monotonic()
        if now >= self._next or progress.stage != self._stage:
            self._next, self._stage = now + PROGRESS_S, progress.stage
            events = self._events + self._events_here
            self._tell({"progress": [progress.stage, progress.done, progress.total, events]})

    def _tell(self, message: dict[str, Any]) -> None:
        """Tell something; where nobody listens any more, the index is not wanted and is cleared away."""
        tell(message, self.unwanted.set)

    def _give_up(self) -> None:
        self.unwanted.set()
        time.sleep(GRACE_S)
        # Busy with something long. Out of sight first, so that nothing more can be written there.
        if (building := self._building) is not None:
            doomed = building.with_name(f"{building.name}.ended")
            with contextlib.suppress(OSError):
                building.rename(doomed)
                shutil.rmtree(doomed, ignore_errors=True)
        os._exit(ENDED)


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starter decides what Ctrl+C means
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # and closes our standard input when the terminal is gone
    collect_rarely()
    indexer = _Indexer()
    signal.signal(signal.SIGTERM, lambda number, frame: indexer.unwanted.set())
    tell({"ready": True})
    return indexer.run()


if __name__ == "__main__":
    sys.exit(main())
