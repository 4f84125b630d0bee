"""The screen before the first of several files is indexed: how far each of them is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widget import Widget

from ..widgets.bars import Bar, Footer, MessageLine
from .main import bindings


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
        self.query_one("#header", Bar).pieces = tuple(header)
        self.query_one(FileList).show(lines)
