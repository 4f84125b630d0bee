"""The screen while files are read and none is there yet: how far each of them is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from ..commands.command import key_text
from ..commands.table import COMMANDS, command
from ..keys import keys_of
from ..widgets.bars import Bar, Footer, MessageLine
from .answer import AnswerScreen
from .main import bindings

QUESTION = "stop indexing and quit? y/n"
WITHOUT_TRACE: Final = frozenset(
    {"palette", "help", "theme", "redraw", "suspend", "quit", "close-or-quit", "stop-indexing"}
)
"""Commands of the viewer that need no trace."""


def opening_keys(remapped: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (first key, short title) of those commands that the footer shows while nothing is there."""
    titles = {entry.id: entry.footer for entry in COMMANDS if entry.id in WITHOUT_TRACE}
    titles["stop-indexing"] = "stop"
    keys = {name: keys_of(command(name), remapped) for name, title in titles.items() if title}
    return [(key_text(own[0]), titles[name]) for name, own in keys.items() if own]


class StopQuestion(AnswerScreen[bool]):
    """One line that asks; y says yes, every other key no."""

    DEFAULT_CSS = """
    StopQuestion { align: left bottom; background: transparent; }
    StopQuestion > Static { width: 1fr; height: 1; background: $footer-background; color: $text-warning; }
    """

    def compose(self) -> ComposeResult:
        """Show the question in the footer's place."""
        yield Static(QUESTION, markup=False)

    def on_key(self, event: events.Key) -> None:
        """Take the answer."""
        event.stop()
        self.dismiss(event.key in ("y", "Y"))


class FileList(Widget, can_focus=True):
    """Lines of text; those that do not fit are left out from the end."""

    DEFAULT_CSS = """
    FileList { height: 1fr; width: 1fr; padding: 1 0; }
    """

    def __init__(self, lines: Sequence[Text]) -> None:
        super().__init__()
        self._lines = tuple(lines)

    def show(self, lines: Sequence[Text]) -> None:
        """Show these lines, if they are others than before."""
        if list(self._lines) != list(lines):
            self._lines = tuple(lines)
            self.refresh()

    def render(self) -> Text:
        """Put the lines one below the other."""
        return Text("\n", no_wrap=True, overflow="ellipsis", end="").join(self._lines[: self.size.height])


class FilesScreen(Screen[None]):
    """Header with progress, the files, footer."""

    DEFAULT_CSS = """
    FilesScreen { layout: vertical; overflow: hidden; layers: base above; }
    FilesScreen > #header { background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings()
    AUTO_FOCUS = "FileList"

    def __init__(self, keys: list[tuple[str, str]], header: Sequence[Text], lines: Sequence[Text]) -> None:
        """Make the screen; `keys` are what the footer shows."""
        super().__init__()
        self._keys = keys
        self._first = header, lines

    def compose(self) -> ComposeResult:
        """Put the parts one below the other."""
        header, lines = self._first
        yield Bar(header, id="header")
        yield FileList(lines)
        yield Footer(self._keys, id="footer")
        yield MessageLine()

    def show(self, header: Sequence[Text], lines: Sequence[Text]) -> None:
        """Show these lines: at once, or when the screen is put together."""
        self._first = header, lines
        if not self.query("#header"):  # it is shown before it is mounted, or after its end
            return
        self.query_one("#header", Bar).pieces = tuple(header)
        self.query_one(FileList).show(lines)
