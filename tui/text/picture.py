"""The static picture: what the viewer would show, drawn once, for pipes, files and dumb terminals."""

from __future__ import annotations

from dataclasses import replace

from rich.segment import Segment
from rich.text import Text

from tracelane.core.trace import Trace

from ..draw.glyphs import Glyphs, glyphs_for
from ..draw.layout import Layout
from ..draw.lines import Look, title_cells
from ..draw.opening import with_devices_in_view
from ..draw.overview import minimap_lines
from ..draw.palette import Depth, palette_for
from ..draw.rows import RowReader
from ..draw.ruler import origin_of, ruler_lines, step_marks
from ..draw.weave import Weaver
from ..session import Session

LEAST_WIDTH = 20
LEAST_HEIGHT = 4
LOW = 8
"""Lower pictures spend one line on the ruler."""


def picture(
    trace: Trace,
    session: Session,
    width: int = 120,
    height: int = 40,
    colour: bool = True,
    depth: Depth | None = None,
    glyphs: Glyphs | None = None,
    seen: RowReader | None = None,
) -> Text:
    """Return minimap, ruler and lanes as text of at most `height` lines of `width` cells.

    Fewer lanes make a shorter picture; lanes that do not fit are counted in its last line. Without `colour`
    it is plain text: brackets and textures tell slices apart. `depth` defaults to truecolor.
    `seen` draws the lanes as a viewer with this reader shows them, folded and marked as they are there.
    """
    width, height = max(LEAST_WIDTH, width), max(LEAST_HEIGHT, height)
    titles = title_cells(width)
    used = (depth or Depth.TRUECOLOR) if colour else Depth.NONE
    look = Look(palette_for(used, True, None, False), glyphs or glyphs_for(), titles, width - titles)
    session = replace(session, viewport=session.viewport.resized(look.area))
    lines: list[list[Segment]] = minimap_lines(trace, session, look, 1)
    steps = step_marks(trace, session.clocks)
    lines += ruler_lines(
        session, origin_of(trace, session), steps, look, 2 if height > LOW and (steps or session.range) else 1
    )
    room = height - len(lines)
    if seen is None:
        session = with_devices_in_view(trace, session, room)
    layout = Layout(trace, session)
    total = layout.height + len(layout.pinned)
    shown = min(total, room if total <= room else room - 1)
    reader = seen or RowReader(trace)
    lines += Weaver(reader).lines(layout.visible(session.scroll, shown), layout, session, look)
    below = layout.height - layout.scrolled(session.scroll, shown) - (shown - layout.pinned_height(shown))
    if below > 0:
        more = f"  {below:,} more lines below"
        lines.append([Segment(more, look.palette.dim)])
    text = Text(no_wrap=True, overflow="crop", end="")
    for number, line in enumerate(lines):
        if number:
            text.append("\n")
        for segment in line:
            text.append(segment.text, segment.style)
    return text


def plain_picture(
    trace: Trace, session: Session, width: int = 120, height: int = 40, seen: RowReader | None = None
) -> str:
    """Return the picture without colours, without blanks at line ends."""
    drawn = picture(trace, session, width, height, colour=False, seen=seen)
    return "\n".join(line.rstrip() for line in drawn.plain.split("\n"))
