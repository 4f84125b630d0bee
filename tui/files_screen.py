"""The screen before the first of several files is indexed: how far each of them is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widget import Widget

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_count
from tracelane.core.index.captures import ranks_text
from tracelane.core.index.gathering import Gathering

from .lanes.look import glyphs
from .main_screen import bindings
from .text.progress import drawn_bar
from .widgets.bars import Bar, Footer

BAR_CELLS = 16
WIDEST_TITLE = 40


def stage_of(gathering: Gathering, place: int) -> str:
    """Return in words how far a file is: "45 %", "building the index"; empty where nobody is at it."""
    doing = gathering.doing(place)
    if doing is None:
        return ""
    return f"{int((doing.share or 0.0) * 100)} %" if doing.stage == "reading" else "building the index"


def failure_of(gathering: Gathering, place: int) -> str:
    """Return in words why a file has no index; empty where it may still get one."""
    error = gathering.failed.get(place)
    if error is None:
        return ""
    return safe(f"cannot be read: {str(error).removeprefix(f'{gathering.members[place].path}: ')}")


def waiting_text(gathering: Gathering) -> str:
    """Return which files nobody is at yet: "10 wait: ranks 5-14"; empty where there are none."""
    over = {*gathering.ready, *gathering.failed}
    waiting = [
        member
        for place, member in enumerate(gathering.members)
        if place not in over and gathering.doing(place) is None
    ]
    if not waiting:
        return ""
    ranks = [member.rank for member in waiting if member.rank is not None]
    which = f": rank{'s' if len(ranks) > 1 else ''} {ranks_text(sorted(ranks))}" if ranks else ""
    return f"{format_count(len(waiting))} wait{'s' if len(waiting) == 1 else ''}{which}"


def file_lines(gathering: Gathering) -> list[Text]:
    """Return a line per file that is there, fails or is being read, and one for those that wait."""
    titles = [safe(member.title) for member in gathering.members]
    width = min(WIDEST_TITLE, max(map(len, titles), default=0))
    full = "#-" if glyphs().ascii else "█░"
    lines = []
    for place, title in enumerate(titles):
        doing = gathering.doing(place)
        if failure := failure_of(gathering, place):
            said = Text(failure, "yellow")
        elif place in gathering.ready:
            said = Text("there")
        elif doing is not None:
            said = Text(f"{drawn_bar(doing.share or 0.0, BAR_CELLS, full)} {stage_of(gathering, place)}")
        else:
            continue
        lines.append(Text.assemble(f" {title[:width]:<{width}}  ", said))
    waiting = waiting_text(gathering)
    return [*lines, Text(f" {waiting}", "dim")] if waiting else lines


class FileList(Widget, can_focus=True):
    """Lines of text; those that do not fit are left out from the end."""

    DEFAULT_CSS = """
    FileList { height: 1fr; width: 1fr; padding: 1 0; }
    """
    _lines: tuple[Text, ...] = ()

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
    FilesScreen { layout: vertical; overflow: hidden; }
    FilesScreen > #header { background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings()
    AUTO_FOCUS = "FileList"

    def __init__(self, keys: list[tuple[str, str]]) -> None:
        """Make the screen; `keys` are what the footer shows."""
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        """Put the parts one below the other."""
        yield Bar(id="header")
        yield FileList()
        yield Footer(self._keys, id="footer")

    def show(self, header: Sequence[Text], lines: Sequence[Text]) -> None:
        """Show how far the work is."""
        self.query_one("#header", Bar).pieces = tuple(header)
        self.query_one(FileList).show(lines)

    def say(self, text: str) -> None:
        """Show a message in the footer until the next command."""
        self.query_one("#footer", Footer).message = safe(text)
