"""The indexing child: a process that reads one source, builds its index and commits it.

    python -m tracelane.core.index.indexer

The first line of standard input is a JSON object that says what to read and where the index belongs (see
`indexing.order`). Every line of standard output is one too: `{"ready"}` once, `{"progress": [...]}` some
times a second, `{"picture": file}` where pictures are wanted, at the end `{"committed"}` or `{"failed",
"message"}`. When standard input ends, because whoever wanted the index does not any more or was killed, the
process stops, removes what it had written and ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.children import ENDED, stand_back, tell
from ..base.errors import Cancelled, TracelaneError, lacks_memory
from ..base.progress import Progress
from ..base.threads import BackgroundThread, collect_rarely

if TYPE_CHECKING:
    from .options import IndexOptions
    from .sketching import Sketching

PROGRESS_S = 0.1
GRACE_S = 1.0
"""So long the work may take to notice that it is not wanted any more."""


class _Indexer:
    """One order, from its line to the committed index."""

    def __init__(self) -> None:
        self.unwanted = threading.Event()
        self.building: Path | None = None
        self._next = 0.0
        self._stage = ""
        self._stands_back = False
        self._sketching: Sketching | None = None

    def run(self) -> int:
        """Do what the first line of standard input asks for."""
        try:
            order = json.loads(sys.stdin.readline())
        except ValueError:
            return ENDED
        try:
            BackgroundThread(self._listen)
        except MemoryError:
            return ENDED
        return self._build(order)

    def _build(self, order: dict[str, Any]) -> int:
        from ..read.source import Source
        from .cache import IndexLocation
        from .ingest import build_index
        from .options import IndexOptions

        options = IndexOptions.from_message(order["options"])
        source = Source.from_message(order["source"])
        try:
            events = build_index(
                source,
                IndexLocation(Path(order["location"])),
                options,
                progress=self._progress,
                cancelled=self.unwanted.is_set,
                begun=self._begun,
                pictured=self._draw if order["pictures"] else None,
            )
        except Cancelled:
            return ENDED
        except Exception as error:
            return self._failed(error, options)
        tell({"committed": True, "events": events})
        return 0

    def _failed(self, error: Exception, options: IndexOptions) -> int:
        """Tell what went wrong, save for want of memory: whoever waits starts a process with one thread then,
        as where this one is killed.
        """
        if lacks_memory(error):
            return ENDED
        if isinstance(error, TracelaneError):
            tell({"failed": type(error).__name__, "message": str(error)})
            return 1
        if isinstance(error, ImportError) and options.threads != 1:
            return ENDED  # without memory numpy cannot be imported; the next process tells if it is more
        what = "".join(traceback.format_exception_only(error)).strip()
        tell({"failed": "", "message": what, "trace": "".join(traceback.format_exception(error))})
        return 1

    def _begun(self, folder: Path) -> None:
        from .sketching import Sketching

        self.building = folder
        self._sketching = Sketching(folder, self._announce)

    def _draw(self, picture: Path) -> None:
        if self._sketching is not None:
            self._sketching.take(picture)

    def _announce(self, picture: Path) -> None:
        self._tell({"picture": str(picture)})
        if not self._stands_back:
            self._stands_back = True
            stand_back()

    def _progress(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.stage != self._stage and self._sketching is not None:
            self._sketching.pass_on()  # all has been read
        if now >= self._next or progress.stage != self._stage:
            self._next, self._stage = now + PROGRESS_S, progress.stage
            self._tell({"progress": [progress.stage, progress.done, progress.total, progress.events]})

    def _tell(self, message: dict[str, Any]) -> None:
        """Tell something; where nobody listens any more, the index is not wanted and is cleared away."""
        tell(message, self.unwanted.set)

    def _listen(self) -> None:
        while sys.stdin.readline():
            pass
        self.unwanted.set()
        time.sleep(GRACE_S)
        # Busy with something long. Out of sight first, so that nothing more can be written there.
        if self.building is not None:
            doomed = self.building.with_name(f"{self.building.name}.ended")
            with contextlib.suppress(OSError):
                self.building.rename(doomed)
                shutil.rmtree(doomed, ignore_errors=True)
        os._exit(ENDED)


def main() -> int:
    """Serve one order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starter decides what Ctrl+C means
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # and closes our standard input when the terminal is gone
    collect_rarely()
    indexer = _Indexer()
    signal.signal(signal.SIGTERM, lambda number, frame: indexer.unwanted.set())
    tell({"ready": True})
    return indexer.run()


if __name__ == "__main__":
    sys.exit(main())
