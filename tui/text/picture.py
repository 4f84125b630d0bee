"""The static picture: what the viewer would show, drawn once, for pipes, files and dumb terminals."""

from __future__ import annotations

from rich.segment import Segment
from rich.text import Text

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_count
from tracelane.core.query.filter import parse
from tracelane.core.trace import Trace
from tracelane.core.trace.hit_search import matches

from ..device_facts import KnownFacts
from ..draw.arrows import Weaver
from ..draw.glyphs import Glyphs, fit, glyphs_for
from ..draw.layout import Layout
from ..draw.line_context import LineContext, gutter, title_cells
from ..draw.opening import with_devices_in_view
from ..draw.overview import minimap_lines
from ..draw.palette import Depth, palette_for
from ..draw.room import verdict_height
from ..draw.rows import RowReader
from ..draw.ruler import RulerMarks, origin_of, ruler_lines
from ..draw.run_marks import lonely_work
from ..draw.segments import ascii_segments
from ..draw.verdict import verdict_lines
from ..session import Session
from ..steps import step_marks

SIZE = (120, 40)
MIN_WIDTH = 20
MIN_HEIGHT = 4
NOTHING_KNOWN = KnownFacts()
LOW = 8
"""Lower pictures spend one line on the ruler."""


def picture(
    trace: Trace,
    session: Session,
    size: tuple[int, int] = SIZE,
    depth: Depth = Depth.TRUECOLOR,
    glyphs: Glyphs | None = None,
    seen: RowReader | None = None,
    known: KnownFacts = NOTHING_KNOWN,
) -> Text:
    """Return minimap, ruler and lanes as text of a size: cells in a line, and lines at most.

    Fewer lanes make a shorter picture; lanes that do not fit are counted in its last line. Without colours
    (`depth` NONE) it is plain text: brackets and textures tell slices apart.
    `seen` draws the lanes as a viewer with this reader shows them, folded and marked as they are there;
    `known` tells what devices did, without which their lines are outlines, and has the verdict that stands
    above, on as many lines as on a screen of the size.
    """
    width, height = max(MIN_WIDTH, size[0]), max(MIN_HEIGHT, size[1])
    titles = title_cells(width)
    look = LineContext(
        palette_for(depth, True, None, False), glyphs or glyphs_for(), titles, width - titles, known.notes
    )
    session = session._replace(viewport=session.viewport.resized(look.area))
    reader = seen or _reader(trace, session)
    if seen is None:
        reader.know(known.states)
    strips = 0 if known.verdict is None else verdict_height(height, 1 + bool(trace.device_lanes))
    lines = verdict_lines(known.verdict, strips, look) if known.verdict is not None and strips else []
    lines += minimap_lines(trace, session, look, reader.hits, known.states)
    steps = step_marks(trace, session.clocks, session.steps)
    lines += ruler_lines(
        session,
        origin_of(trace, session),
        steps,
        look,
        2 if height > LOW and (steps or session.range) else 1,
        RulerMarks(lonely=lonely_work(trace, session.clocks)),
    )
    lines += _found_lines(reader, session, look) if height > LOW else []
    room = height - len(lines)
    if seen is None:
        session = with_devices_in_view(trace, session, room)
    layout = Layout(trace, session, reader.left)
    total = layout.height + len(layout.pinned)
    drawn_height = min(total, room)
    lines += Weaver(reader).lines(layout.visible(session.scroll, drawn_height), layout, session, look)
    text = Text(no_wrap=True, overflow="crop", end="")
    for number, line in enumerate(lines):
        if number:
            text.append("\n")
        for segment in ascii_segments(line, look.glyphs):
            text.append(segment.text, segment.style)
    return text


def _reader(trace: Trace, session: Session) -> RowReader:
    reader = RowReader(trace)
    hits, left = (
        matches(trace, parse(text), session.clocks) if text else None
        for text in (session.search, session.filter)
    )
    reader.look_for(hits if hits is None or left is None else hits.within(left), left)
    return reader


def _found_lines(reader: RowReader, session: Session, look: LineContext) -> list[list[Segment]]:
    """Return a line on what a search found, marks where it lies, and one on what a filter hides."""
    palette, glyphs = look.palette, look.glyphs
    lines = []
    hits, left = reader.hits, reader.left
    if hits is not None:
        title = f"{format_count(hits.count)} found"
        touched = hits.cells(session.viewport.edges()) > 0
        marks = "".join(glyphs.instant if hit else " " for hit in touched.tolist())
        lines.append([*gutter(title, look), Segment(marks, palette.accent_plain)])
    if left is not None:
        hidden = f"{format_count(left.of - left.count)} of {format_count(left.of)} slices hidden"
        text = fit(f"{safe(session.filter)}: {hidden}", look.titles + look.area, glyphs.ellipsis)
        lines.append([Segment(text, palette.dim)])
    return lines


def plain_picture(
    trace: Trace,
    session: Session,
    size: tuple[int, int] = SIZE,
    seen: RowReader | None = None,
    known: KnownFacts = NOTHING_KNOWN,
) -> str:
    """Return the picture without colours, without blanks at line ends."""
    return without_colours(picture(trace, session, size, Depth.NONE, seen=seen, known=known))


def without_colours(drawn: Text) -> str:
    """Return the text of a picture that was drawn without colours, without blanks at line ends."""
    return "\n".join(line.rstrip() for line in drawn.plain.split("\n"))
