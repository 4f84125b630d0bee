"""Commands for telemetry logs: laying one over the trace, moving its clock."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from tracelane.core.logs.header import nearby_logs
from tracelane.core.logs.overlay import LogOptions, Overlay

from ..actions import clocks
from ..actions.view import without_minor_lanes
from ..jobs import background
from ..widgets.prompt import Prompt
from .controller import Commands, Controller, Verbs


def _log_and_lag(text: str) -> tuple[Path, LogOptions]:
    """Return a log's file and what is said of its clock; a file whose name ends in a number is a file."""
    path = Path(text).expanduser()
    name, space, seconds = text.rpartition(" ")
    if not space or path.exists():
        return path, LogOptions()
    try:
        return Path(name.rstrip()).expanduser(), LogOptions(lag_s=float(seconds.removesuffix("s")))
    except ValueError:
        return path, LogOptions()


class LogController(Controller):
    """Commands for logs that lie over the trace."""

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {
            "log-earlier": partial(self._nudge, -1),
            "log-later": partial(self._nudge, 1),
            "smi": self.do_smi,
        }

    def verbs(self) -> Verbs:
        """Return what carries out those with an argument."""
        return {"smi": self.open_log, "smi-offset": self.set_lag}

    def _nudge(self, direction: int) -> None:
        self.store.go(clocks.nudged(self.store.trace, self.store.session, direction), "nudge")
        self.app.say(clocks.log_clock_text(self.store.trace, self.store.session))

    def set_lag(self, text: str) -> None:
        """Set by how many seconds a log's clock runs ahead; empty: as proposed."""
        self.store.go(clocks.with_lag(self.store.trace, self.store.session, text))
        self.app.say(clocks.log_clock_text(self.store.trace, self.store.session))

    def do_smi(self) -> None:
        """Ask for a log; one that lies beside the trace is proposed."""
        there = (
            {one.log.path for one in self.store.trace.placed}
            if isinstance(self.store.trace, Overlay)
            else set()
        )
        nearby = [str(path) for path in nearby_logs(self.store.trace) if str(path) not in there]
        hint = "an aiu-smi log, or any CSV with a header and times"
        self.app.main.query_one(Prompt).ask("smi", "log ", hint, nearby, nearby[0] if nearby else "")

    @background("log")
    def open_log(self, text: str) -> None:
        """Read a log and lay it over the trace, away from the screen: FILE, or FILE SECONDS with its lag."""
        from tracelane.core.logs.opening import with_log

        path, options = _log_and_lag(text)
        self.app.call_from_thread(self.app.say, f"reading {path} …")
        overlay = with_log(self.store.trace, path, options)
        self.app.call_from_thread(self._laid_over, overlay)

    def _laid_over(self, overlay: Overlay) -> None:
        source = overlay.log_sources[-1]
        before = self.store.session
        session = without_minor_lanes(overlay, before)
        hidden = {key for key in session.hidden_lanes if key.source == source}
        session = replace(before, hidden_lanes=before.hidden_lanes | hidden)
        session = clocks.focused_on(overlay, session, source, self.store.lane_lines)
        self.store.show_trace(overlay, session)
        one = overlay.placed[-1]
        self.app.say(
            f"{one.name}: {one.clock_text(self.store.session.clocks, source)}: {one.proposal.reason}"
        )
