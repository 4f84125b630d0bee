"""Lines to type in, which show what is pasted into them harmlessly; the one at the bottom of the screen: the
command line, and the question for a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import reactive
from textual.suggester import Suggester
from textual.widgets import Input, Static

from tracelane.core.base.safe_text import safe

from ..commands.table import command, keys_of
from ..keys import remapped_in
from ..textual_inside import binding_of, put_text
from ..widget_message import WidgetMessage

PASSED_ON: Final = ("redraw", "suspend")
"""Commands whose keys a line leaves to the App, as it does textual's own to quit. All others are its own."""
QUITS: Final = "ctrl+q"


def passed_on(remapped: Mapping[str, str]) -> frozenset[str]:
    """Return the keys that a line leaves to the App."""
    return frozenset({QUITS}.union(*(keys_of(command(name), remapped) for name in PASSED_ON)))


def completed_lines(line: str, words: Sequence[str]) -> list[str]:
    """Return what a line may become: words that begin with it, else the line with its last word completed."""
    whole = [word for word in words if word.startswith(line) and word != line]
    head, space, last = line.rpartition(" ")
    if whole or not last:
        return whole
    return [f"{head}{space}{word}" for word in words if word.startswith(last) and word != last]


class LineSuggester(Suggester):
    """Shows the first word that completes a line behind it, greyed."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(case_sensitive=True)
        self._words = words

    async def get_suggestion(self, value: str) -> str | None:
        return next(iter(completed_lines(value, self._words)), None)


class LineInput(Input):
    """An input in which characters that could act on the terminal become visible marks; it takes every key.

    Its cursor does not blink: over a slow line nothing is to be sent while nothing happens.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete(1)", show=False),
        Binding("shift+tab", "complete(-1)", show=False),
        Binding("alt+b", "cursor_left_word", show=False),
        Binding("alt+f", "cursor_right_word", show=False),
    ]
    words: Sequence[str] = ()
    """What Tab completes."""
    _offers: Sequence[str] = ()  # what Tab goes through while nothing else is typed
    cursor_blink: reactive[bool] = reactive(False, init=False)

    async def on_key(self, event: events.Key) -> None:
        """Carry out a key of its own at once: found by its binding it would come after the letters that
        arrived together with it. What is no key of a line does nothing.
        """
        if event.is_printable or event.key in passed_on(remapped_in(self)):
            return
        event.stop()
        event.prevent_default()
        if binding := binding_of(self, event.key):
            await self.run_action(binding.action)

    def action_complete(self, by: int) -> None:
        """Put in what completes the line; again: the next one (1) or the one before (-1)."""
        if self.value not in self._offers:
            self._offers = [self.value, *completed_lines(self.value, self.words)]
        at = self._offers.index(self.value) + by
        self._put(self._offers[at % len(self._offers)])

    def _put(self, line: str) -> None:
        self.value = line
        self.cursor_position = len(line)

    def insert(self, text: str, index: int) -> None:
        super().insert(safe(text), index)

    def replace(self, text: str, start: int, end: int) -> None:
        super().replace(safe(text), start, end)

    def validate_value(self, value: str) -> str:
        return safe(value)


class _Line(LineInput):
    """An input that walks back through what was typed before."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,ctrl+p", "recall(-1)", show=False),
        Binding("down,ctrl+n", "recall(1)", show=False),
        Binding("escape,ctrl+c", "give_up", show=False),
    ]

    @dataclass
    class GivenUp(Message):
        """Escape, or Backspace on an empty line."""

    typed: ClassVar[int] = 100

    def __init__(self) -> None:
        super().__init__(compact=True, select_on_focus=False)
        self.before: list[str] = []
        self.recalled = 0
        self._draft = ""  # what was typed before older lines were walked through
        self.is_done = False
        """Whether it was answered or left: keys that come until somebody else takes them are not for it."""
        self.later: list[events.Key] = []
        """Those keys."""

    async def on_key(self, event: events.Key) -> None:
        """Keep keys that arrived together with Enter or Escape, which come after it."""
        if self.is_done:
            event.stop()
            event.prevent_default()
            self.later.append(event)

    def on_hide(self, event: events.Hide) -> None:
        """Keep the focus where the line, which an answer hid, is open again: Textual tells of hiding late."""
        if isinstance(self.parent, Prompt) and self.parent.is_open:
            event.prevent_default()

    async def action_submit(self) -> None:
        self.is_done = True
        await super().action_submit()

    def action_recall(self, by: int) -> None:
        """Show what was typed before (-1) or after (1); behind the last stands what is being typed."""
        count = len(self.before)
        if self.recalled == count:
            self._draft = self.value
        self.recalled = max(0, min(self.recalled + by, count))
        self._put(self.before[self.recalled] if self.recalled < count else self._draft)

    def action_give_up(self) -> None:
        self.is_done = True
        self.post_message(self.GivenUp())

    def action_delete_left(self) -> None:
        if not self.value:
            self.action_give_up()
        super().action_delete_left()


class Prompt(Horizontal):
    """A sign that says what is asked for, and the line itself; hidden until it is needed."""

    DEFAULT_CSS = """
    Prompt { layer: above; dock: bottom; height: 1; display: none; background: $footer-background; }
    Prompt > Static { width: auto; color: $text-accent; text-style: bold; }
    Prompt > Input { width: 1fr; background: $footer-background; border: none; padding: 0; height: 1; }
    """

    @dataclass
    class Answered(WidgetMessage):
        """Enter was pressed: what was asked for (`purpose`) and what was typed."""

        purpose: str
        text: str

    @dataclass
    class Typed(WidgetMessage):
        """What stands in the line has changed."""

        purpose: str
        text: str

        @property
        def about(self) -> str:
            return self.purpose

    @dataclass
    class Left(WidgetMessage):
        """The line was closed without an answer."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._purpose = ""
        self._before: dict[str, list[str]] = {}

    def compose(self) -> ComposeResult:
        yield Static("", markup=False)
        yield _Line()

    @property
    def is_open(self) -> bool:
        return bool(self.display)

    def ask(self, purpose: str, sign: str, hint: str, words: Sequence[str] = (), proposed: str = "") -> None:
        """Open the line: `sign` stands before it, `hint` in it while it is empty, `words` complete it;
        what is proposed stands in it already.
        """
        self._purpose = purpose
        line = self.query_one(_Line)
        put_text(self.query_one(Static), sign)
        line.value = proposed
        line.cursor_position = len(proposed)
        line.placeholder = hint
        line.words = words
        line.suggester = LineSuggester(words) if words else None
        line.before = self._before.setdefault(purpose, [])
        line.recalled = len(line.before)
        line.is_done = False
        self.display = True
        self.screen.set_class(True, "-asking")
        self.screen.set_focus(line)

    def fill(self, text: str) -> None:
        """Put text behind what stands in the open line."""
        line = self.query_one(_Line)
        line.insert(text, len(line.value))
        line.cursor_position = len(line.value)

    def close(self) -> None:
        self.display = False
        self.screen.set_class(False, "-asking")

    def pass_on(self) -> None:
        """Give the keys that came after the answer to what takes keys now."""
        line = self.query_one(_Line)
        later, line.later = line.later, []
        for key in later:
            self.app.post_message(events.Key(key.key, key.character))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.is_open:
            self.post_message(self.Typed(self._purpose, event.value.strip()))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        self.close()
        if not text:
            self.post_message(self.Left())
            return
        before = self._before[self._purpose]
        if not before or before[-1] != text:
            before.append(text)
        self.post_message(self.Answered(self._purpose, text))

    def on__line_given_up(self, event: _Line.GivenUp) -> None:
        event.stop()
        self.close()
        self.post_message(self.Left())

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        """Close when the mouse went elsewhere; a line that answers a line may be open again by now."""
        if self.is_open and self.screen.focused is not self.query_one(_Line):
            self.close()
            self.post_message(self.Left())
