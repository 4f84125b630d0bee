"""How far files are that are being read, in words and bars, and the question whether to stop."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.widgets import Static

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_bytes, format_count
from tracelane.core.index.captures import ranks_text
from tracelane.core.index.opening import Gathering

from ..commands.table import command, keys_of
from ..draw.glyphs import fit_middle
from ..keys import remapped_in
from ..lanes.look import glyphs
from ..text.progress import StagePace, drawn_bar
from .answer import AnswerScreen

QUESTION = "stop indexing and quit? y/n"


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


BAR_CELLS = 16
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


def file_texts(gathering: Gathering) -> dict[int, str]:
    """Return how far each file is that is not there, and why some never will be: "███░░░ 50 % of 8 MB"."""
    return {position: _file_text(gathering, position) for position in sorted(gathering.missing)}


def _file_text(gathering: Gathering, position: int) -> str:
    if failure := failure_of(gathering, position):
        return failure
    doing = gathering.doing(position)
    if doing is None:
        return "waits"
    size = f" of {format_bytes(doing.total or 0)}" if doing.stage == "reading" else ""
    return f"{_bar(doing.share)} {_stage(gathering, position)}{size}"


def one_line(gathering: Gathering) -> Text:
    """Return how far the files are that somebody is at, which wait and which fail, in one line."""
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
