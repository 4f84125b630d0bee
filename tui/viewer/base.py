"""What all parts of the App share: the trace, the Session, its history, and how a command runs."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from types import MappingProxyType

from textual.reactive import var
from textual.screen import Screen

from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import DamagedIndexError, TracelaneError
from tracelane.core.base.safe_text import safe
from tracelane.core.index.verification import Verification
from tracelane.core.overlay.over import Over
from tracelane.core.query.hits import Hits
from tracelane.core.trace import Trace

from ..actions import ranges, select, view
from ..actions.history import History
from ..actions.refusal import Refusal
from ..actions.table import MOVES, TOGETHER, Scene
from ..commands import Command
from ..config import Config
from ..draw.layout import Layout, layout_of
from ..keys import shown_keys
from ..prepared import Prepared
from ..session import Session
from ..terminal.pacing import PacedApp
from ..things import Thing, thing_by_id
from ..widgets.bars import Footer


class Viewer(PacedApp):
    """The App without its keys and panels. Actions only replace `session`; one watcher follows."""

    session: var[Session] = var(Session(view.view_of(0, 1, 1), 0), init=False)
    """What is being looked at."""
    maximised: var[bool] = var(False, init=False)
    """Whether the panel has the whole screen."""

    def __init__(self, trace: Trace, session: Session | None, config: Config) -> None:
        """Hold a trace and how it is seen."""
        super().__init__()
        self.trace = trace
        self.verification = Verification(self._verified)
        self.verification.attach(trace.indexes)
        self.config = config
        self.history = History()
        self.lanes_wanted: frozenset[str] = frozenset()  # kinds of lanes to be computed at the start
        self.lane_lines = 1  # lines of the lane area
        self.left: Hits | None = None  # what the session's filter leaves, None while it is not known
        self.whole_left: Hits | None = None  # the same once all of the trace was looked through
        self._widgets_there = False
        self._laid_out: Layout | None = None
        self.set_reactive(Viewer.session, session or view.first_session(trace, 80))

    def take_trace(self, trace: Trace, session: Session) -> None:
        """Show this trace from now on; before the lanes are composed."""
        self.trace = trace
        self.verification.attach(trace.indexes)
        self.history = History()
        self._laid_out = None
        self.set_reactive(Viewer.session, session)

    def take_up(self, prepared: Prepared) -> None:
        """Go on where the trace was left: with the views before, and the lanes that were computed."""
        self.history = prepared.history
        self.lanes_wanted = prepared.computed

    def _verified(self) -> None:
        """Say what a thread found out about the columns that are drawn."""
        with suppress(RuntimeError):  # the viewer is closing
            self.call_from_thread(self.verification_changed)

    def verification_changed(self) -> None:
        """Show whether what is drawn has been checked; report damage."""
        if self.verification.damage is not None:
            self.report_error(self.verification.damage)

    @property
    def own_trace(self) -> Trace:
        """The trace without logs and computed lanes."""
        trace = self.trace
        while isinstance(trace, Over):
            trace = trace.own
        return trace

    @property
    def own_clocks(self) -> Clocks:
        """The session's clocks without those of logs and computed lanes."""
        count = len(self.own_trace.indexes)
        own = {key: ns for key, ns in self.session.clocks.offsets.items() if key[0] < count}
        return Clocks(MappingProxyType(own))

    @property
    def main(self) -> Screen[None]:
        """The screen below all others."""
        return self.screen_stack[0]

    @property
    def _main(self) -> Screen[None]:
        return self.screen_stack[0]

    @property
    def composed(self) -> bool:
        """Whether the screen's widgets are there: not yet at the start, no more while the App closes."""
        return self._widgets_there and bool(self.screen_stack)

    @property
    def layout_now(self) -> Layout:
        """The lines of the present session."""
        self._laid_out = layout_of(self.trace, self.session, self._laid_out)
        return self._laid_out

    def run_command(self, command_id: str) -> None:
        """Do a command of the table; what cannot be done is said in the footer."""
        self.say("")
        self.host.log.note(f"command {command_id}")
        try:
            move = MOVES.get(command_id)
            if move is not None:
                scene = Scene(self.trace, self.session, self.layout_now, self.lane_lines, self.left)
                self.go(move(scene), TOGETHER.get(command_id, ""))
            else:
                getattr(self, doer(command_id))()
        except (Refusal, TracelaneError) as refusal:
            if isinstance(refusal, DamagedIndexError):
                self.report_error(refusal)
            else:
                self.say(str(refusal))
        except Exception as error:
            self.report_error(error)

    def go(self, session: Session, together: str = "") -> None:
        """Change the session and remember the one before."""
        session = ranges.extended(self.session, session)
        if session != self.session:
            self.history = self.history.left(self.session, together, monotonic())
            self.session = session

    def trace_changed(self) -> None:
        """Show the trace anew after logs were laid over it."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        """Show a message in the footer until the next command."""
        if self.composed:
            self.main.query_one(Footer).message = safe(text)

    def keys_shown(self, entry: Command) -> str:
        """Return a command's keys as text, the user's own in place."""
        return shown_keys(entry, self.config.keys)

    @property
    def selected(self) -> Thing:
        """What is selected; Refusal where nothing is."""
        identity = self.session.selection
        thing = None if identity is None else thing_by_id(self.trace, self.session.clocks, identity)
        if thing is None:
            raise Refusal("nothing is selected: Enter selects what lies at the cursor")
        return thing

    def select(self, thing: Thing) -> None:
        """Select a thing, in sight."""
        session = select.unhidden(self.trace, self.session, thing)
        layout = layout_of(self.trace, session, self._laid_out)
        self.go(select.select(self.trace, session, layout, self.lane_lines, thing))


def doer(command_id: str) -> str:
    """Return the name of the method that does a command which is no mere move."""
    return "do_" + command_id.replace("-", "_")
