"""Writing the range as a trace of its own, away from the screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from textual.worker import get_current_worker

from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import UsageError
from tracelane.core.base.units import format_count

from ..actions.refusal import Refusal
from ..command_line import file_named
from ..jobs import background
from ..session_store import SessionStore
from ..stage import Stage


class CutController:
    """The command that cuts."""

    def __init__(self, app: Stage, store: SessionStore) -> None:
        """Work on a store, and show what comes of it."""
        self.app = app
        self.store = store

    def verbs(self) -> Mapping[str, Callable[[str], object]]:
        """Return what carries out those with an argument."""
        return {"cut": self.cut_to}

    def cut_to(self, name: str) -> None:
        """Write what lies in the range to a file; Refusal where there is no range, or the file is there."""
        if not name:
            raise UsageError("cut FILE.json or FILE.json.gz: the range is written there")
        if self.store.session.range is None:
            raise Refusal("there is no range to cut: v draws one, r takes the selection's time")
        path = file_named(name)
        if path.exists():
            raise Refusal(f"{path} is there already: give another name")
        source = self._source_to_cut()
        self.app.say(f"cutting to {path} …")
        self._cut(source, self.store.session.range, self.store.session.clocks, path)

    def _source_to_cut(self) -> int:
        """Return the source of the focused lane, else the only one; Refusal where that is not known."""
        focus = self.store.session.focus
        files = [source.number for source in self.store.trace.sources if source.is_file]
        if focus is not None and focus.lane.source in files:
            return focus.lane.source
        if len(files) != 1:
            raise Refusal("several files are open: go to a lane of the one to cut")
        return files[0]

    @background("cut")
    def _cut(self, source: int, window: tuple[int, int], clocks: Clocks, path: Path) -> None:
        """Read the blocks of the window and write its events."""
        worker = get_current_worker()
        trace = self.store.trace
        done = trace.cut(source, window, path, clocks, cancelled=lambda: worker.is_cancelled)
        if not worker.is_cancelled:
            count = f"{format_count(done.slices)} slice{'' if done.slices == 1 else 's'}"
            self.app.call_from_thread(self.app.say, f"saved {path.absolute()}: {count}")
