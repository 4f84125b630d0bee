"""A process that indexes one file after another for `index_several`.

    python -m tracelane.core.index.several_worker

Every line of standard input is a JSON object: first how to index, then `{"path"}` per file. Every line of
standard output answers: `{"done": bytes, "events": n}` now and then, `{"finished": whether it worked}` per
file. The process ends when its standard input does.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from ..base.errors import TracelaneError
from ..base.lines import lines, tell
from ..base.progress import Progress
from .ingest import ingest_index

TELL_S = 0.1


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
    jobs = lines()
    how = next(jobs)
    index_dir = None if how["index_dir"] is None else Path(how["index_dir"])
    teller = _Teller()
    for job in jobs:
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


if __name__ == "__main__":
    sys.exit(main())
