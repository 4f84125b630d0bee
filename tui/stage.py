"""The App as controllers see it: its screen, messages, commands and work in the background."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from rich.text import Text
from textual import events, on
from textual.app import ScreenStackError
from textual.reactive import var
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import Worker, get_current_worker

from tracelane.core.base.errors import Cancelled, DamagedIndexError, TracelaneError
from tracelane.core.base.progress import CancelledCallback
from tracelane.core.base.safe_text import safe
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace

from .actions.lanes import lane_change_text
from .actions.scene import Refusal
from .actions.table import MOVES, TOGETHER
from .commands.table import FocusedPart, command, with_keys
from .config import Config
from .draw.header import HeaderPiece
from .draw.room import MESSAGE_FROM
from .draw.things import thing_by_id
from .screens.answer import PickScreen
from .session import Session
from .session_store import SessionStore
from .terminal.boundary import BoundedApp
from .terminal.pacing import PacedApp
from .text.overview import FactBlock
from .view_state import Next
from .widget_message import WidgetMessage
from .widgets.bars import MessageLine
from .widgets.table import ColumnView

MAX_COPIED = 1 << 20
"""Characters that are copied: terminals refuse more, and stand still while they take it."""
MESSAGES_KEPT = 500
K = TypeVar("K")
M = TypeVar("M", bound=Callable[..., object])
T = TypeVar("T")


class Recent(Generic[K, T]):
    """The newest results of jobs by key, so that going back to one shows it at once."""

    def __init__(self, room: int, size: Callable[[T], int] | None = None, most: int = 0) -> None:
        """Hold up to `room` results, of sizes up to `most` together; the newest in any case."""
        self._room, self._size, self._most = room, size or (lambda _: 0), most
        self._results: dict[K, T] = {}

    def get(self, key: K) -> T | None:
        """Return a result, None where it never was or went."""
        return self._results.get(key)

    def put(self, key: K, result: T) -> None:
        self._results.pop(key, None)
        left = self._most - self._size(result) - sum(map(self._size, self._results.values()))
        while self._results and (len(self._results) >= self._room or left < 0):
            left += self._size(self._results.pop(next(iter(self._results))))
        self._results[key] = result

    def clear(self) -> None:
        self._results.clear()


class JobRunner:
    """Starts and cancels the jobs of an App: in a thread, one of a group at a time."""

    def __init__(self, app: BoundedApp) -> None:
        """Report errors to an App, whose jobs end with it."""
        self._app = app

    def start(self, job: Callable[[], None], group: str, exclusive: bool = True) -> Worker[None]:
        """Run a job in a thread; of an exclusive group the one before is cancelled.

        What goes wrong in the job is shown, unless it is bad input or a disk's refusal in a job that nobody
        waits for any more.
        """

        def guarded() -> None:
            worker = get_current_worker()
            try:
                job()
            except Cancelled:
                return
            except Exception as error:
                if worker.is_cancelled and isinstance(error, (TracelaneError, OSError)):
                    return
                with suppress(RuntimeError):  # the viewer is closing
                    self._app.tell(self._app.report_error, error)

        return self._app.run_worker(guarded, group=group, exclusive=exclusive, thread=True)

    def ask(
        self,
        group: str,
        question: Callable[[CancelledCallback], T],
        have: Callable[[T], object],
        failed: Callable[[TracelaneError | OSError], object] | None = None,
        exclusive: bool = True,
    ) -> Worker[None]:
        """Answer a question in a thread; `have` gets the answer in the event loop, but for a cancelled job.

        Bad input and a disk's refusal go to `failed`, where they are not to be shown as such.
        """

        def answer() -> None:
            worker = get_current_worker()
            try:
                result = question(lambda: worker.is_cancelled)
            except (TracelaneError, OSError) as error:
                if failed is None:
                    raise
                if not worker.is_cancelled:
                    self._app.tell(failed, error)
                return
            if not worker.is_cancelled:
                self._app.tell(have, result)

        return self.start(answer, group, exclusive)

    def cancel(self, group: str) -> None:
        self._app.workers.cancel_group(self._app, group)


class Opening(Protocol):
    """What shows files while they are read: it answers commands that cannot be carried out yet."""

    def begin(self) -> None:
        """Begin to watch the files being read."""

    def keys(self) -> list[tuple[str, str]]:
        """Return what the footer shows while no file is there; nothing once one is."""

    def header(self) -> tuple[Text, ...]:
        """Return the pieces of the header: how far the files are."""

    def hint(self) -> Text:
        """Return what the details say where nothing is selected."""

    def takes(self, command_id: str) -> bool:
        """Carry out a command or say why not; False where it can be carried out as ever."""

    def takes_panel(self, name: str) -> bool:
        """Say why a panel cannot be shown; False where it can."""

    def takes_key(self, key: events.Key) -> bool:
        """Take a key of a line that can be answered only later; False where there is none."""


class Stage(PacedApp):
    """Runs commands, shows messages and does work in the background; it knows no controller."""

    maximised: var[bool] = var(False, init=False)
    """Whether the panel has the whole screen."""

    def __init__(self, store: SessionStore, config: Config) -> None:
        super().__init__()
        self.store = store
        self.config = config
        self.jobs = JobRunner(self)
        self.handlers: dict[str, Callable[[], object]] = {}
        """What carries out each command that is no mere move."""
        self.verbs: dict[str, Callable[[str], object]] = {}
        """What carries out each command that is typed with an argument."""
        self.fillers: dict[str, Callable[[], object]] = {}
        """What fills each panel."""
        self.followed: dict[str, Follows] = {}
        """What some panels depend on beside what all do."""
        self.hearers: dict[Heard, list[Callable[[WidgetMessage], object]]] = {}
        """What hears messages of widgets, one after the other."""
        self.opening: Opening | None = None
        """What shows the files while they are read, None once all are."""
        self.is_filled = False
        """Whether the lanes' screen has all its widgets."""
        self.looked_for: Worker[None] | None = None
        """The job that looks for what is to be selected next."""
        self._next_commands: list[str] = []  # those that wait for that selection
        self.used: Counter[str] = Counter()
        """How often each command was run."""
        self.messages: list[str] = []
        """What was said, the newest last."""

    @property
    def main(self) -> Screen[None]:
        """The screen below all others. Raises ScreenStackError where the App closes."""
        if not self.screen_stack:
            raise ScreenStackError("the screen is gone")
        return self.screen_stack[0]

    def give_arrows(self, part: Widget) -> None:
        """Give a part of the screen that came late the arrows: not while a line is open, which was opened
        meanwhile, and of which the rest would be keys of that part.
        """
        if not getattr(self.main, "is_asking", False):
            self.main.set_focus(part)

    @property
    def focused_part(self) -> FocusedPart:
        """What part of the screen has the arrows."""
        part: FocusedPart = getattr(self.main.focused, "part", "lanes")
        return part

    @property
    def composed(self) -> bool:
        """Whether the screen's widgets are there: not yet at the start, no more while the App closes."""
        return self.is_filled and self.can_go_on

    def copied(self, text: str) -> bool:
        """Have the terminal copy a text; return False for one that is too long for it."""
        if len(text) > MAX_COPIED:
            return False
        self.copy_to_clipboard(text)
        return True

    def say(self, text: str, stays: bool = False) -> None:
        """Show a message until the next command, or, where it `stays`, until it is dismissed; an empty one
        takes the last answer away.
        """
        text = self.with_keys(text)
        if text:
            self.messages.append(text)
            del self.messages[:-MESSAGES_KEPT]
        for line in self._lines:
            if stays:
                line.answer, line.notices = "", (*(one for one in line.notices if one != text), text)
            else:
                line.answer = text
        if stays and self.screen_stack:
            self.notices_changed()

    def hover(self, text: str) -> None:
        """Say what the mouse is over, as long as nothing else is said and the line is free."""
        for line in self._lines:
            line.hovered = text if self.size.height >= MESSAGE_FROM else ""

    @property
    def _lines(self) -> Iterable[MessageLine]:
        """The line of messages, where it is there."""
        return self.main.query_children(MessageLine).results() if self.screen_stack else ()

    @property
    def message(self) -> str:
        return next((line.text for line in self._lines), "")

    @property
    def has_notice(self) -> bool:
        """Whether something is said that stays until it is dismissed."""
        return any(line.notices for line in self._lines)

    def withdraw(self, text: str) -> None:
        """Take away a message that holds no more."""
        for line in self._lines:
            line.notices = tuple(one for one in line.notices if one != self.with_keys(text))
        self.notices_changed()

    def dismiss_message(self) -> None:
        """Take away what is being said; a notice said before it is shown again."""
        for line in self._lines:
            line.answer, line.notices = "", line.notices[:-1]
        self.notices_changed()

    def with_keys(self, text: str) -> str:
        """Return a text as it is shown: harmless, and with the user's keys of the commands that it names."""
        return safe(with_keys(text, self.config.keys))

    def jump(self, identity: SliceId) -> None:
        """Select a slice by its identity, or say that it is not there."""
        thing = thing_by_id(self.store.trace, self.store.session.clocks, identity)
        if thing is None:
            self.say("that slice is not in this trace")
        else:
            self.store.select(thing)

    def offer_rows(
        self, title: str, columns: Sequence[ColumnView], rows: int, hint: str, chosen: Callable[[int], object]
    ) -> None:
        """List rows on top of the lanes; `chosen` gets the number of the one chosen, if one is."""

        def answered(row: int | None) -> None:
            if row is not None:
                chosen(row)

        self.push_screen(PickScreen(title, columns, rows, hint=hint), answered)

    def run_command(self, command_id: str) -> None:
        """Do a command of the table; what cannot be done is said."""
        self.say("")
        if self.opening is not None and self.opening.takes(command_id):
            return
        is_looking = self.looked_for is not None and not self.looked_for.is_finished
        if is_looking and command(command_id).is_of_selection:
            self._next_commands.append(command_id)
            return
        self.host.log.note(f"command {command_id}")
        self.used[command_id] += 1
        self.attempt(lambda: self._do(command_id))

    def takes_key(self, key: events.Key) -> bool:
        return self.opening is not None and self.opening.takes_key(key)

    def look_for(self, job: Worker[None]) -> None:
        """Let commands on the selection wait for what a job selects; call `have_selected` then."""
        if self.looked_for is not None:  # it was cancelled, or failed
            self._next_commands.clear()
        self.looked_for = job

    def have_selected(self) -> None:
        """Carry out the commands that came meanwhile."""
        self.looked_for = None
        while self._next_commands and self.looked_for is None:
            self.run_command(self._next_commands.pop(0))

    def leave_for(self, what: Next) -> None:
        """End this viewer, for another one to show something else."""
        self.exit(what)

    def attempt(self, action: Callable[[], object]) -> None:
        """Do something that may be refused; the refusal is said."""
        try:
            action()
        except DamagedIndexError as error:
            self.report_error(error)
        except (Refusal, TracelaneError) as refusal:
            self.say(str(refusal))
        except Exception as error:
            self.report_error(error)

    @on(WidgetMessage)
    def hear(self, message: WidgetMessage) -> None:
        """Hand what a widget says to whom it concerns."""
        if message.is_current:
            for hearer in self.hearers_of(type(message), message.about):
                hearer(message)

    def hearers_of(self, kind: type, about: str = "") -> Sequence[Callable[[WidgetMessage], object]]:
        """Return what hears messages of a class about something; what is closest to that."""
        keys = ((base, topic) for base in kind.__mro__ for topic in (about, ""))
        return next((self.hearers[key] for key in keys if key in self.hearers), ())

    # -- what only the whole App can do: it knows the controllers -------------------------------------------

    def header_notes(self) -> list[HeaderPiece]:
        """Return what stands in the header beside the trace's name."""
        return []

    def header_changed(self) -> None:
        """Show other notes in the header."""

    def hint(self) -> Text:
        """Return what the details say where nothing is selected."""
        return Text()

    def overview(self) -> Sequence[FactBlock]:
        """Return what the details show in its place; nothing as long as it is not known."""
        return ()

    def notices_changed(self) -> None:
        """Show what Esc does, now that another notice is shown, or none."""

    def escape_text(self) -> str:
        """Return what Esc would do now, empty for nothing."""
        return ""

    def search_again(self) -> None:
        """Find anew what the session searches for and filters by."""

    def trace_ready(self) -> None:
        """Begin the background work that needs the whole trace."""

    def _do(self, command_id: str) -> None:
        move = MOVES.get(command_id)
        if move is None:
            self.handlers[command_id]()
        else:
            scene = self.store.scene
            self.store.go(move(scene), TOGETHER.get(command_id, ""))
            if text := lane_change_text(command_id, scene, self.store.session):
                self.say(text)


Heard: TypeAlias = tuple[type[WidgetMessage], str]
"""A class of messages, and what they are about; empty: anything else."""
Commands: TypeAlias = Mapping[str, Callable[..., object]]
"""What carries out each of some commands, by their ids, or fills each of some panels."""
Follows: TypeAlias = Callable[[Trace, Session], object]
"""What of a trace and its session a panel depends on."""


def does(command_id: str, *arguments: object, typed: bool = False) -> Callable[[M], M]:
    """Have a method carry out a command, called with these arguments; where it is `typed`, with what stands
    behind the command's name. What the command does is said in the table of commands.
    """

    def noted(method: M) -> M:
        method.__dict__.setdefault("typed" if typed else "done", {})[command_id] = arguments
        return method

    return noted


def fills(panel: str, follows: Follows | None = None) -> Callable[[M], M]:
    """Have a method fill a panel whenever selection, range, filter, clocks or steps have changed, or what it
    follows beside these.
    """

    def noted(method: M) -> M:
        method.__dict__.setdefault("filled", {})[panel] = ()
        if follows is not None:
            method.__dict__.setdefault("follows", {})[panel] = follows
        return method

    return noted


def hears(message: type[WidgetMessage], about: str = "") -> Callable[[M], M]:
    """Have a method hear what widgets say by a class of messages, or of those about one thing alone; the more
    exact one hears it.
    """

    def noted(method: M) -> M:
        method.__dict__.setdefault("heard", {})[message, about] = ()
        return method

    return noted


class Controller:
    """Carries out the commands of one concern."""

    def __init__(self, app: Stage) -> None:
        """Work on an App's store, and show what comes of it."""
        self.app, self.store = app, app.store

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return self._noted("done")

    def verbs(self) -> Commands:
        """Return what carries out those with an argument."""
        return self._noted("typed")

    def fillers(self) -> Commands:
        """Return what fills each of its panels, by their names."""
        return self._noted("filled")

    def followed(self) -> Mapping[str, Follows]:
        """Return what some of its panels depend on beside what all do."""
        return {
            panel: follows
            for method in vars(type(self)).values()
            for panel, follows in getattr(method, "follows", {}).items()
        }

    def hearers(self) -> Mapping[Heard, Callable[..., object]]:
        """Return what hears each of some messages."""
        return self._noted("heard")

    def _noted(self, how: str) -> dict[Any, Callable[..., object]]:
        return {
            key: partial(getattr(self, name), *arguments)
            for name, method in vars(type(self)).items()
            for key, arguments in getattr(method, how, {}).items()
        }
