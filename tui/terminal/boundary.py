"""Errors end what they happen in, never the session: they are shown, logged, and the next key is read."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, process_time

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ScreenStackError
from textual.css.query import NoMatches
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import WorkerFailed

from tracelane.core.base.errors import TracelaneError
from tracelane.core.base.safe_text import safe

from ..textual_inside import AltKey, Dispatch, OpenApp, forget_drawing, guard_messages
from .taken_screen import unguarded_host

FAILED_STYLE = Style(reverse=True)
LOOK_EVERY_S = 0.1
PAUSE_S = 0.25
"""Pauses that are longer are logged."""


class BoundedApp(OpenApp):
    """An App that goes on after an error in an action, a timer, a worker, a layout or a widget's drawing."""

    def __init__(self) -> None:
        """Log upon an error to the default file, unless another host is set before the App runs."""
        super().__init__()
        self.host = unguarded_host()
        self.trouble: Exception | None = None
        """What ended the App, where there was nothing to go on with."""
        self._reporting = False
        self._looked = 0.0, 0.0
        self._after_esc: list[events.Key] = []  # keys that wait until Esc is done

    def say(self, text: str, stays: bool = False) -> None:
        """Show a message, one that `stays` until it is dismissed."""
        self.notify(text)

    @property
    def can_go_on(self) -> bool:
        """Whether there is a screen that can show a message and take keys."""
        return self.is_running and bool(self.screen_stack)

    def concerns_nobody(self, error: Exception) -> bool:
        """Tell whether an error only says that a screen or a widget is gone: a message or a job came while
        the App was closing.
        """
        if isinstance(error, WorkerFailed) and isinstance(error.error, Exception):
            error = error.error
        return isinstance(error, (ScreenStackError, NoMatches)) and not self.can_go_on

    def tell(self, callback: Callable[..., object], *values: object) -> None:
        """Call what an answer is for in the event loop, from a thread. Where the App closes meanwhile it is
        dropped: widgets may be gone already.
        """
        self.call_from_thread(self._while_open, callback, values)

    def _while_open(self, callback: Callable[..., object], values: tuple[object, ...]) -> object:
        return callback(*values) if self.is_running else None

    def report_error(self, error: Exception) -> None:
        """Show what went wrong and log it; the session goes on. Before the first screen it cannot."""
        if isinstance(error, WorkerFailed) and isinstance(error.error, Exception):
            error = error.error
        if self._reporting or self.concerns_nobody(error):  # reporting: showing the message failed too
            return
        self._reporting = True
        try:
            text = self._logged(error)
            if self.can_go_on:
                self.say(text, stays=True)
            elif self.trouble is None and self.return_code is None:
                self.trouble = error
                self.exit(return_code=1)
        except Exception as second:
            self.host.log.error(second)
        finally:
            self._reporting = False

    def _logged(self, error: Exception) -> str:
        """Log an error and return the line to show."""
        if isinstance(error, TracelaneError):
            self.host.log.note(f"failed: {error}")
            return str(error)
        log_path = self.host.log.error(error)
        if isinstance(error, OSError) and error.strerror:
            where = f"{error.filename}: " if error.filename else ""
            return f"{where}{error.strerror}"
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return f"this should not have happened: {what}{f' (more in {log_path})' if log_path else ''}"

    # -- keys -----------------------------------------------------------------------------------------------

    def takes_key(self, key: events.Key) -> bool:
        """Take a key before anything else does; False where it goes on."""
        return False

    async def on_event(self, event: events.Event) -> None:
        """Take a key with alt that does nothing here for Esc and that key, which a terminal sends alike."""
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
        elif self._after_esc:
            self._after_esc.append(event)
        elif self.takes_key(event):
            event.stop()
        elif not isinstance(event, AltKey):
            await self._take(event)
        elif event.key in self.screen.active_bindings:
            await self._take(events.Key(event.key, None))
        else:
            self._after_esc.append(event.alone)
            await self._take(events.Key("escape", None))
            self.call_after_refresh(self._hand_on_keys)

    async def _take(self, key: events.Key) -> None:
        """Carry out a key before the next one is looked at, unless a line to type in has the focus: of `5:`
        in one packet the 5 would come to the line, which is open by then, and do nothing there.
        """
        self.app_focus = True  # as textual has it of every key
        if isinstance(self.focused, Input) or not await self.carry_out(key.key):
            await super().on_event(key)

    async def _hand_on_keys(self) -> None:
        """Hand on the keys after Esc, once what Esc closed is closed."""
        keys, self._after_esc = self._after_esc, []
        for key in keys:
            await self.on_event(key)

    # -- pauses ---------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Watch for pauses, if a log was asked for."""
        if self.host.log.path is not None:
            self._looked = monotonic(), process_time()
            self.set_interval(LOOK_EVERY_S, self._note_pause)

    def _note_pause(self) -> None:
        """Log how long no key could be answered."""
        now, worked = monotonic(), process_time()
        pause = now - self._looked[0] - LOOK_EVERY_S
        if pause > PAUSE_S:
            work = worked - self._looked[1]
            self.host.log.note(f"stopped for {pause:.2f} s, the processor worked {work:.2f} s")
        self._looked = now, worked

    # -- where errors arrive --------------------------------------------------------------------------------

    def take_error(self, error: Exception) -> None:
        """Go on after it."""
        self.report_error(error)

    def take_widget(self, widget: Widget) -> None:
        """Go on after its errors."""
        guard_widget(widget, self.report_error)


def guard_widget(widget: Widget, report: Callable[[Exception], None]) -> None:
    """Report what goes wrong when a widget handles a message or draws, instead of stopping the widget."""
    render_lines = widget.render_lines

    async def dispatch_guarded(dispatch: Dispatch, message: Message) -> None:
        try:
            await dispatch(message)
        except Exception as error:
            report(error)
        if isinstance(message, events.Unmount):
            forget_drawing(widget)

    def render_guarded(crop: Region) -> list[Strip]:
        try:
            return render_lines(crop)
        except Exception as error:
            report(error)
            return failed_strips(error, crop)

    guard_messages(widget, dispatch_guarded)
    widget.render_lines = render_guarded  # type: ignore[method-assign]


def failed_strips(error: Exception, crop: Region) -> list[Strip]:
    """Return what is drawn in the place of a widget that cannot be drawn."""
    text = safe(f" cannot be drawn: {type(error).__name__}: {error} ")
    first = Strip([Segment(text, FAILED_STYLE)]).adjust_cell_length(crop.width)
    blank = Strip.blank(crop.width)
    return [first if not line else blank for line in range(crop.height)]
