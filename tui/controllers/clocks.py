"""Commands for clocks: of telemetry logs, which they lay over the trace too, of devices and of ranks."""

from __future__ import annotations

from pathlib import Path

from tracelane.core.logs.header import nearby_logs
from tracelane.core.logs.overlay import LogOptions, Overlay
from tracelane.core.trace import Trace

from ..actions import clocks
from ..actions.scene import Refusal
from ..actions.view import without_minor_lanes
from ..session import Session
from ..stage import Controller, does
from ..widgets.prompt import Prompt

NO_LOGS = "none"


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


class ClockController(Controller):
    """Commands for logs that lie over the trace, and for clocks."""

    @does("smi")
    def do_smi(self) -> None:
        """Ask for a log; one that lies beside the trace is proposed."""
        trace = self.store.trace
        there = {one.log.path for one in trace.placed} if isinstance(trace, Overlay) else set()
        nearby = [str(path) for path in nearby_logs(trace) if str(path) not in there]
        hint = "an aiu-smi log, or any CSV with a header and times"
        self.app.main.query_one(Prompt).ask("smi", "log ", hint, nearby, nearby[0] if nearby else "")

    @does("smi", typed=True)
    def open_log(self, text: str) -> None:
        """Read a log and lay it over the trace, away from the screen: FILE, or FILE SECONDS with its lag. Or
        `none`: remove those that are there.
        """
        from tracelane.core.logs.overlay import with_log

        trace = self.store.trace
        if text == NO_LOGS:
            self._remove_logs(trace)
            return
        path, options = _log_and_lag(text)
        self.app.say(f"reading {path} …")
        self.app.jobs.ask("log", lambda _: with_log(trace, path, options), self._laid_over)

    def _remove_logs(self, trace: Trace) -> None:
        if not isinstance(trace, Overlay):
            raise Refusal("no log is shown with this trace")
        self.store.show_trace(trace.below_logs, clocks.without_logs(trace, self.store.session))
        self.app.say(f"without the lanes of {', '.join(one.name for one in trace.placed)}")

    def _laid_over(self, overlay: Overlay) -> None:
        source = overlay.log_sources[-1]
        before = self.store.session
        session = without_minor_lanes(overlay, before)
        hidden = {key for key in session.hidden_lanes if key.source == source}
        session = before._replace(hidden_lanes=before.hidden_lanes | hidden)
        session = clocks.focused_on(overlay, session, source, self.store.now.lane_lines)
        self.store.show_trace(overlay, session)
        one = overlay.placed[-1]
        self.app.say(
            f"{one.name}: {one.clock_text(self.store.session.clocks, source)}: {one.proposal.reason}"
        )

    @does("log-earlier", -1)
    @does("log-later", 1)
    def _nudge(self, direction: int) -> None:
        self.store.go(clocks.nudged(self.store.trace, self.store.session, direction), "nudge")
        self.app.say(clocks.log_clock_text(self.store.trace, self.store.session))

    @does("smi-offset", typed=True)
    def set_lag(self, text: str) -> None:
        self.store.go(clocks.with_lag(self.store.trace, self.store.session, text))
        self.app.say(clocks.log_clock_text(self.store.trace, self.store.session))

    @does("rank-clocks")
    def do_rank_clocks(self) -> None:
        self.store.go(clocks.switch_alignment(self.store.trace, self.store.session))
        self.app.say(clocks.clocks_text(self.store.trace, self.store.session))

    # -- devices --------------------------------------------------------------------------------------------

    @does("device-clock")
    def do_device_clock(self) -> None:
        self._move_devices(clocks.switch_device_clocks(self.store.trace, self.store.session))

    @does("device-offset", typed=True)
    def set_device_offset(self, text: str) -> None:
        """Add so many seconds to a device's times; auto: as estimated; empty: as stamped."""
        self._move_devices(clocks.with_offset(self.store.trace, self.store.session, text))

    def _move_devices(self, session: Session) -> None:
        self.store.go(session)
        self.app.say(clocks.device_clocks_text(self.store.trace, self.store.session))
