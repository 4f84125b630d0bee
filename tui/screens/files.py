"""The screen while files are read and none is there yet: how far each of them is, in words and bars."""

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

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_bytes, format_count
from tracelane.core.index.captures import ranks_text
from tracelane.core.index.opening import Gathering

from ..commands.table import COMMANDS, command, key_text, keys_of
from ..draw.glyphs import fit_middle
from ..keys import remapped_in
from ..lanes.look import glyphs
from ..text.progress import StagePace, drawn_bar
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
    """One line that asks; y says yes, every other key no, but that to draw anew."""

    DEFAULT_CSS = """
    StopQuestion { align: left bottom; background: transparent; }
    StopQuestion > Static { width: 1fr; height: 1; background: $footer-background; color: $text-warning; }
    """

    def compose(self) -> ComposeResult:
        yield Static(QUESTION, markup=False)

    def on_key(self, event: events.Key) -> None:
        if event.key not in keys_of(command("redraw"), remapped_in(self)):
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
        if list(self._lines) != list(lines):
            self._lines = tuple(lines)
            self.refresh()

    def render(self) -> Text:
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


BAR_CELLS = 16
WIDEST_TITLE = 40
MIN_TITLE = 12


def header_pieces(
    gathering: Gathering, pace: StagePace, now: float, title: str, width: int, is_over: bool
) -> tuple[Text, ...]:
    """Return what the header says: how many of several files are there, how far all are, what fails;
    `is_over` once no other will come.
    """
    progress = gathering.progress
    pace.begins(progress, now)
    share, *rates = pace.words(progress, now)
    failed, count = len(gathering.failed), len(gathering.members)
    what = "ranks" if all(member.rank is not None for member in gathering.members) else "files"
    there = f"{format_count(len(gathering.ready))} of {format_count(count)} {what}"
    name = fit_middle(safe(title), max(MIN_TITLE, width // 4), glyphs().ellipsis).rstrip()
    return (
        Text(f" {name}", "bold"),
        *([Text(f" {there} ", "bold reverse")] if count > 1 else []),
        Text("opening" if is_over else f"indexing {_bar(progress.share)} {share}"),
        *([Text(f"{failed} cannot be read", "bold yellow")] if failed else []),
        *map(Text, rates),
    )


def file_lines(gathering: Gathering) -> list[Text]:
    """Return a line per file that fails or is being read, and one for those that wait."""
    titles = [safe(member.title) for member in gathering.members]
    width = min(WIDEST_TITLE, max(map(len, titles), default=0))
    lines = []
    for position, title in enumerate(titles):
        doing = gathering.doing(position)
        if failure := failure_of(gathering, position):
            state = Text(failure, "yellow")
        elif doing is not None:
            size = f" of {format_bytes(doing.total or 0)}" if doing.stage == "reading" else ""
            state = Text(f"{_bar(doing.share)} {_stage(gathering, position)}{size}")
        else:
            continue
        lines.append(Text.assemble(f" {title[:width]:<{width}}  ", state))
    waiting = _waiting(gathering)
    return [*lines, Text(f" {waiting}", "dim")] if waiting else lines


def one_line(gathering: Gathering) -> Text:
    """Return the same in one line."""
    members = [safe(member.title) for member in gathering.members]
    at = [
        f"{title}: {stage}"
        for position, title in enumerate(members)
        if (stage := _stage(gathering, position))
    ]
    failed = [
        f"{members[position]}: {failure_of(gathering, position)}" for position in sorted(gathering.failed)
    ]
    parts = [", ".join(at), _waiting(gathering), *failed]
    return Text("; ".join(part for part in parts if part), "dim")


def failure_of(gathering: Gathering, position: int) -> str:
    """Return in words why a file has no index; empty where it may still get one."""
    error = gathering.failed.get(position)
    if error is None:
        return ""
    return safe(f"cannot be read: {str(error).removeprefix(f'{gathering.members[position].path}: ')}")


def _stage(gathering: Gathering, position: int) -> str:
    """Return how far a file is: "45 %", "building the index"; empty where nobody is at it."""
    doing = gathering.doing(position)
    if doing is None:
        return ""
    return f"{int((doing.share or 0.0) * 100)} %" if doing.stage == "reading" else "building the index"


def _waiting(gathering: Gathering) -> str:
    """Return which files nobody is at yet: "10 wait: ranks 5-14"; empty where there are none."""
    finished = {*gathering.ready, *gathering.failed}
    waiting = [
        member
        for position, member in enumerate(gathering.members)
        if position not in finished and gathering.doing(position) is None
    ]
    if not waiting:
        return ""
    ranks = sorted({member.rank for member in waiting if member.rank is not None})
    which = f": rank{'s' if len(ranks) > 1 else ''} {ranks_text(ranks)}" if ranks else ""
    return f"{format_count(len(waiting))} wait{'s' if len(waiting) == 1 else ''}{which}"


def _bar(share: float | None) -> str:
    return drawn_bar(share or 0.0, BAR_CELLS, "#-" if glyphs().ascii else "█░")
