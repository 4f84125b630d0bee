"""The first picture of an indexed trace, drawn before Textual is loaded, which takes longer than the picture.

It stands where the viewer draws the same: header, verdict, minimap, ruler and lanes by the same code at the
same places. Panel and footer stay empty. The viewer then draws over it without clearing the screen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style

from tracelane.core.base.numbers import whole_number
from tracelane.core.export.marks import nearest_mark
from tracelane.core.trace import Trace

from ..actions.view import first_session
from ..config import Config
from ..device_facts import stored_knowledge
from ..draw.arrows import Weaver
from ..draw.colour import SURFACES, Surface
from ..draw.glyphs import Glyphs, eighths, glyphs_for
from ..draw.header import GAP, WARNING, HeaderPiece, header_of
from ..draw.line_context import LineContext, title_cells
from ..draw.overview import minimap_lines
from ..draw.palette import SYSTEMS, Depth, depth_of, palette_for
from ..draw.room import Room
from ..draw.rows import RowReader
from ..draw.ruler import RulerMarks, origin_of, ruler_lines
from ..draw.segments import ascii_segments
from ..draw.verdict import VerdictFacts, verdict_lines
from ..fitting import fit_to_screen
from ..session import Session
from ..steps import step_marks
from ..times import kept_marks
from .taken_screen import TERMINAL

FIRST_WIDTH = 80
"""Cells of a view that nothing is known of yet; it is fitted to the screen."""
TEXT = "x"
"""Any text that is no part of an escape sequence."""
HOLD, SHOW = "\x1b[?2026h", "\x1b[?2026l"
_COLOURS = {"kitty": "256", "256color": "256"}
"""How the name of a terminal ends that has 256 colours, and says nothing of more."""


class Screen(NamedTuple):
    """What a terminal can show, and the colours of the viewer's theme."""

    width: int
    height: int
    depth: Depth
    surface: Surface
    glyphs: Glyphs
    eighths: bool  # slice edges in eighths of a cell

    @property
    def look(self) -> LineContext:
        titles = title_cells(self.width)
        background = whole_number(self.surface.background[1:], 16).to_bytes(3, "big")
        rgb = (background[0], background[1], background[2])
        palette = palette_for(self.depth, self.surface.dark, rgb)
        return LineContext(palette, self.glyphs, titles, max(1, self.width - titles))


def screen_of(descriptor: int, config: Config, environment: Mapping[str, str]) -> Screen | None:
    """Return what a terminal can show; None where only Textual knows how the viewer will look there: with a
    theme that is not the viewer's own, or without colours.
    """
    surface = SURFACES.get(config.theme)
    if surface is None or "NO_COLOR" in environment:
        return None
    try:
        width, height = os.get_terminal_size(descriptor)
    except OSError:
        return None
    colours = "truecolor"  # as rich calls them
    if environment.get("COLORTERM", "").strip().lower() not in ("truecolor", "24bit"):
        colours = _COLOURS.get(environment.get("TERM", "").strip().lower().rpartition("-")[2], "standard")
    depth = depth_of(colours, no_color=False)
    return Screen(width, height, depth, surface, glyphs_for(), eighths(config.eighths, environment))


def first_picture(trace: Trace, session: Session | None, screen: Screen) -> str:
    """Return the text that draws a trace in its saved or first view on a screen that was taken."""
    session = session or first_session(trace, FIRST_WIDTH)
    marks, look = kept_marks(trace, session.clocks), screen.look
    fit = fit_to_screen(trace, session, screen.width, screen.height, bool(marks))
    session, room = fit.session, fit.room
    known = stored_knowledge(trace, session.clocks)
    look = look._replace(ranks=known.notes)
    verdict = known.verdict or VerdictFacts()
    lines = verdict_lines(verdict, room.verdict, look) if room.verdict else []
    if room.minimap:
        lines += minimap_lines(trace, session, look, states=known.states)[: room.minimap]
    if room.ruler:
        steps = step_marks(trace, session.clocks, session.steps)
        near = nearest_mark(marks, session.cursor)
        lines += ruler_lines(
            session, origin_of(trace, session), steps, look, room.ruler, RulerMarks(marks, near)
        )
    layout = fit.layout
    scroll = layout.scrolled(session.scroll, fit.lanes)
    reader = RowReader(trace, screen.eighths)
    reader.know(known.states)
    weaver = Weaver(reader)
    lines += weaver.lines(layout.visible(scroll, fit.lanes), layout, session, look)
    if room.header:  # last: it says whether columns that are drawn have not been checked yet
        lines.insert(0, _header(trace, session, screen, known.busy))
    return _written([ascii_segments(line, screen.glyphs) for line in lines], screen, room)


def _header(trace: Trace, session: Session, screen: Screen, busy: Sequence[str]) -> list[Segment]:
    panel = Style(bgcolor=screen.surface.panel)
    line: list[Segment] = []
    pending = trace.defer_checks().pending
    notes = [HeaderPiece("unverified", WARNING)] if pending else []
    for piece in header_of(trace, session, screen.width, screen.glyphs.ellipsis, busy, notes):
        line += [Segment(" " * GAP, panel)] if line else []
        line.append(Segment(piece.text, panel + Style.parse(piece.style)))
    used = sum(segment.cell_length for segment in line)
    return [*line, Segment(" " * max(0, screen.width - used), panel)]


def _written(lines: Sequence[Sequence[Segment]], screen: Screen, room: Room) -> str:
    """Return the lines from the top; below them panel and footer, empty."""
    surface, system = screen.surface, SYSTEMS[screen.depth]
    base = Style(color=surface.foreground, bgcolor=surface.background)
    blank = [Segment(" " * screen.width)]
    bar = [Segment(" " * screen.width, Style(bgcolor=surface.panel))]
    panel = [bar, *([blank] * (room.panel - 1))] if room.panel else []
    texts = [HOLD]
    before = ""
    codes: dict[Style | None, str] = {}
    for number, line in enumerate(
        [*lines, *panel, *([blank] * room.message), *([bar] * room.footer)][: screen.height], 1
    ):
        texts.append(f"\x1b[{number}H")
        for segment in line:
            if (code := codes.get(segment.style)) is None:
                style = base if segment.style is None else base + segment.style
                code = f"\x1b[0m{style.render(TEXT, color_system=system).partition(TEXT)[0]}"
                codes[segment.style] = code
            if code != before:
                texts.append(code)
                before = code
            texts.append(segment.text)
    texts.append(f"\x1b[0m{SHOW}")
    return "".join(texts)


def picture_now(trace: Trace, session: Session | None, config: Config) -> str:
    """Return the first picture of a trace on this terminal, empty where only Textual can draw it."""
    screen = screen_of(TERMINAL, config, os.environ)
    if screen is None or (session and (session.search or session.filter)):
        return ""
    return first_picture(trace, session, screen)
