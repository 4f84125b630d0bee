"""The viewer, telling through a pipe when all lanes are drawn, and when nothing is left to be computed.

    python -c "from benchmarks.watched_viewer import main; main()" DESCRIPTOR view TRACE …

Each line that it writes is one of DRAWN, IDLE and KNOWN: IDLE whenever nothing is computed in the background,
KNOWN once that has lasted for a moment.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tracelane.tui.cli import viewer
from tracelane.tui.cli.main import main as tracelane

if TYPE_CHECKING:
    from tracelane.tui.app import TracelaneApp
    from tracelane.tui.terminal.taken_screen import Host

DRAWN, IDLE, KNOWN = "drawn", "idle", "known"
LOOK_S, LOOKS = 0.05, 10
"""So many looks in a row find nothing that is computed until all is known."""


class _Watch:
    """Looks at an App after each frame, and from the first one with all lanes on some times a second."""

    def __init__(self, app: TracelaneApp, descriptor: int) -> None:
        self._app, self._descriptor = app, descriptor
        self._displayed = app.post_display_hook
        self._is_drawn = False
        self._looks = 0  # in a row, at which nothing was computed
        app.post_display_hook = self._display  # type: ignore[method-assign]

    def _display(self) -> None:
        self._displayed()
        if not self._is_drawn and self._app.store.is_ready and self._app.trace.lanes:
            self._is_drawn = True
            self._tell(DRAWN)
            self._app.set_interval(LOOK_S, self._look)

    def _look(self) -> None:
        from textual.worker import WorkerState  # not before the processes that index are started

        working = (WorkerState.PENDING, WorkerState.RUNNING)
        is_busy = any(worker.state in working for worker in self._app.workers)
        self._looks = 0 if is_busy else self._looks + 1
        if self._looks in (1, LOOKS):
            self._tell(IDLE if self._looks == 1 else KNOWN)

    def _tell(self, what: str) -> None:
        os.write(self._descriptor, f"{what}\n".encode())


def main() -> None:
    """Run what the command line says, but for the descriptor."""
    run, descriptor = viewer.run, int(sys.argv[1])

    def watched(app: TracelaneApp, host: Host) -> None:
        _Watch(app, descriptor)
        run(app, host)

    viewer.run = watched
    sys.exit(tracelane(sys.argv[2:]))
