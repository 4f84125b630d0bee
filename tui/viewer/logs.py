"""Commands for telemetry logs: laying one over the trace, moving its clock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tracelane.core.base.errors import TracelaneError
from tracelane.core.overlay.beside import logs_beside
from tracelane.core.overlay.overlay import Overlay

from ..actions import logs
from ..widgets.prompt import Prompt
from .background import background
from .base import Viewer


class Logs(Viewer):
    """Commands for logs that lie over the trace."""

    def do_log_earlier(self) -> None:
        """Move a log by a sampling interval towards the start."""
        self._nudge(-1)

    def do_log_later(self) -> None:
        """Move a log by a sampling interval towards the end."""
        self._nudge(1)

    def _nudge(self, direction: int) -> None:
        self.go(logs.nudged(self.trace, self.session, direction), "nudge")
        self.say(logs.clock_text(self.trace, self.session))

    def set_lag(self, text: str) -> None:
        """Set by how many seconds a log's clock runs ahead; empty: as proposed."""
        self.go(logs.with_lag(self.trace, self.session, text))
        self.say(logs.clock_text(self.trace, self.session))

    def do_smi(self) -> None:
        """Ask for a log; one that lies beside the trace is proposed."""
        there = {one.log.path for one in self.trace.placed} if isinstance(self.trace, Overlay) else set()
        beside = [str(path) for path in logs_beside(self.trace) if str(path) not in there]
        hint = "an aiu-smi log, or any CSV with a header and times"
        self.main.query_one(Prompt).ask("smi", "log ", hint, beside, beside[0] if beside else "")

    @background("log")
    def open_log(self, path: str) -> None:
        """Read a log and lay it over the trace, away from the screen."""
        from tracelane.core.overlay.align import LogOptions
        from tracelane.core.overlay.lay_over import with_log

        self.call_from_thread(self.say, f"reading {path} …")
        try:
            overlay = with_log(self.trace, Path(path).expanduser(), LogOptions())
        except TracelaneError as error:
            self.call_from_thread(self.say, str(error))
            return
        self.call_from_thread(self._laid_over, overlay)

    def _laid_over(self, overlay: Overlay) -> None:
        self.trace = overlay
        source = overlay.log_sources[-1]
        before = self.session
        session = logs.with_first_metrics(overlay, before)
        hidden = {key for key in session.hidden_lanes if key.source == source}
        session = replace(before, hidden_lanes=before.hidden_lanes | hidden)
        self.session = logs.focused_on(overlay, session, source, self.lane_lines)
        self.trace_changed()
        one = overlay.placed[-1]
        self.say(f"{one.name}: {one.clock_text(self.session.clocks, source)}: {one.proposal.reason}")
