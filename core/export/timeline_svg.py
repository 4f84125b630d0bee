"""The timeline as an SVG picture: lanes below each other, what their slices are by colour and label.

Neighbouring slices that are too narrow to be told apart are drawn as one box that is as dark as they fill it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import F64, I64, sum_of
from ..base.clock import Clocks
from ..base.picture import Picture
from ..base.safe_text import safe
from ..base.short_names import short_name
from ..base.units import format_ns
from ..index.format import RowKind
from ..query.titles import rank_titles
from ..query.views import Lane, Row

if TYPE_CHECKING:
    from ..trace import Trace

ROW = 15
"""Height of a row in pixels."""
TITLES = 190
"""Width of the lanes' titles in pixels."""
CHARACTER_WIDTH = 6.1
"""Width of a character of a label in pixels."""
LEAST_LABEL = 22
DEPTH = 8
"""The most rows of one lane that are drawn."""
TICKS = 8
PALETTE = ("#4477aa", "#228833", "#aa7733", "#66aacc", "#aa3377", "#888833", "#7766aa", "#cc6677", "#449988")
"""Colours that people with red-green blindness can tell apart."""
DARKEST, LIGHTEST = 1.0, 0.25
STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#222}"
    ".s{font-size:10px;fill:#fff;pointer-events:none}.m{fill:#666}.p{font-weight:600}"
)


@dataclass(frozen=True, eq=False)
class PictureFrame:
    """The window [begin, end) of trace time on a width in pixels, with a cell for each pixel."""

    begin: int
    end: int
    width: int
    edges: I64

    @classmethod
    def of(cls, begin: int, end: int, width: int) -> PictureFrame:
        """Return the frame of a window; one shorter than its pixels is drawn a ns per cell."""
        cells = max(1, min(width, end - begin))
        edges = begin + (np.arange(cells + 1, dtype=object) * (end - begin) // cells).astype(np.int64)
        return cls(begin, end, width, edges)

    def x(self, time: float) -> float:
        return TITLES + (time - self.begin) / max(1, self.end - self.begin) * self.width


def timeline_svg(
    trace: Trace,
    window: tuple[int, int] | None = None,
    lanes: list[int] | None = None,
    clocks: Clocks | None = None,
    width: int = 1000,
    rows: int = 60,
) -> Picture:
    """Return a picture of a window of trace time; `lanes` are places in Trace.lanes, all without them."""
    begin, end = window or trace.opening_span
    frame = PictureFrame.of(begin, max(end, begin + 1), width - TITLES)
    clocks_drawn = trace.clocks if clocks is None else clocks
    drawn: list[str] = []
    height, left, heading_above, ranks = 2 * ROW, 0, "", rank_titles(trace.members)
    for lane in (trace.lanes[at] for at in (range(len(trace.lanes)) if lanes is None else lanes)):
        lines = [row for row in trace.rows(lane) if row.kind is not RowKind.INSTANTS][:DEPTH]
        if not lines:
            continue
        heading = " · ".join(filter(None, (ranks.get(lane.source), lane.process.title)))
        needed = len(lines) + (heading != heading_above)
        if height // ROW + needed > rows + 2:
            left += 1
            continue
        if heading != heading_above:
            heading_above = heading
            drawn.append(_text(2, height + 11, heading, "p", TITLES + frame.width))
            height += ROW
        drawn.append(_text(10, height + 11, lane.title, "t", TITLES - 14))
        for row in lines:
            drawn.extend(_row(trace, row, lane, frame, height, clocks_drawn))
            height += ROW
    if left:
        drawn.append(_text(2, height + 11, f"{left:,} more lanes", "m", TITLES + frame.width))
        height += ROW
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + 4}" '
        f'viewBox="0 0 {width} {height + 4}"><style>{STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>'
    )
    origin = trace.opening_span[0]
    return Picture(head + "".join([*_ruler(frame, origin, height), *drawn]) + "</svg>")


def _ruler(frame: PictureFrame, origin: int, height: int) -> Iterator[str]:
    span = frame.end - frame.begin
    rough = max(1, span // TICKS)
    power = 10 ** (len(str(rough)) - 1)
    tick = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    time = -((origin - frame.begin) // tick) * tick + origin
    while time < frame.end:
        if time >= frame.begin:
            x = frame.x(time)
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{ROW + 2}" y2="{height}" stroke="#ddd"/>'
            yield _text(x, ROW - 2, f"+{format_ns(time - origin)}" if time > origin else "0", "m", 120)
        time += tick


def _row(trace: Trace, row: Row, lane: Lane, frame: PictureFrame, y: int, clocks: Clocks) -> Iterator[str]:
    if row.kind is RowKind.SAMPLES:
        yield from _counter(trace, row, frame, y, clocks)
        return
    cells = trace.cells(row, frame.edges, clocks)
    widths = np.diff(frame.edges)
    for span in trace.spans(row, cells):
        name = trace.name(row, span.at)
        category = trace.category(row, span.category) if span.category >= 0 else ""
        if span.whole:
            start, end = trace.bounds(row, span.at, clocks)
            left, right = frame.x(max(start, frame.begin)), frame.x(min(end, frame.end))
            title, opacity = f"{name} · {format_ns(end - start)}", DARKEST
        else:
            left, right = (frame.x(int(frame.edges[at])) for at in (span.left, span.right))
            busy, of = (sum_of(values[span.left : span.right]) for values in (cells.busy, widths))
            title = f"up to {span.slices:,} slices per pixel, the longest: {name}"
            opacity = LIGHTEST + (DARKEST - LIGHTEST) * busy / max(1, of)
        wide = max(0.6, right - left)
        yield (
            f'<rect x="{left:.1f}" y="{y + 1}" width="{wide:.1f}" height="{ROW - 2}" '
            f'fill="{_colour(category or name)}" fill-opacity="{opacity:.2f}">'
            f"<title>{escape(safe(title))}</title></rect>"
        )
        if span.whole and wide >= LEAST_LABEL:
            yield _text(left + 2, y + 11, short_name(name), "s", wide - 3)


def _counter(trace: Trace, row: Row, frame: PictureFrame, y: int, clocks: Clocks) -> Iterator[str]:
    cells = trace.sample_cells(row, frame.edges, clocks)
    known = np.flatnonzero(np.isfinite(cells.high))
    if not len(known):
        return
    low, high = float(np.nanmin(cells.low)), float(np.nanmax(cells.high))
    low = min(low, 0.0)
    heights: F64 = (cells.high[known] - low) / ((high - low) or 1) * (ROW - 3)
    points = [f"{frame.x(int(frame.edges[known[0]])):.1f},{y + ROW - 1}"]
    for cell, tall in zip(known.tolist(), heights.tolist()):
        points += [f"{frame.x(int(frame.edges[at])):.1f},{y + ROW - 1 - tall:.1f}" for at in (cell, cell + 1)]
    points.append(f"{frame.x(int(frame.edges[known[-1] + 1])):.1f},{y + ROW - 1}")
    title = escape(safe(f"{row.series}: {low:g} to {high:g}"))
    yield f'<polygon points="{" ".join(points)}" fill="#bbb"><title>{title}</title></polygon>'


def _text(x: float, y: float, text: str, kind: str, room: float) -> str:
    words = safe(text)
    most = max(1, int(room / CHARACTER_WIDTH))
    words = words if len(words) <= most else words[: most - 1] + "…"
    return f'<text x="{x:.1f}" y="{y}" class="{kind}">{escape(words)}</text>'


def _colour(text: str) -> str:
    return PALETTE[zlib.crc32(text.encode("utf-8", "replace")) % len(PALETTE)]
