"""The timeline as an SVG picture, as the viewer draws it: the same lanes, colours and states of devices.
Neighbouring slices that are too narrow to be told apart are drawn as one box that is as dark as they fill it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import groupby

import numpy as np

from ..base.arrays import F64, I64, sum_of
from ..base.colours import LIGHT_SURFACE, RGB, blend, colour_of, drawn_kind, hexed, key_of, text_on
from ..base.kineto import SliceKind
from ..base.picture import Picture
from ..base.safe_text import safe
from ..base.short_names import short_name
from ..base.units import format_ns
from ..index.format import LaneRole, RowKind
from ..query.cells import Cells, Span
from ..query.views import Lane, Process, Row, rank_titles
from ..tables.device.device_state import device_states
from ..tables.device.states import STATE_KEYS, DeviceState, state_cells
from ..tables.frame.scope import Scope
from ..trace.lane_order import devices_first, lanes_devices_first, profilers_lanes, quiet_lanes

ROW = 15
"""Height of a row in pixels."""
TITLES = 190
"""Width of the lanes' titles in pixels."""
CHARACTER_WIDTH = 6.1
"""Width of a character of a label in pixels."""
MIN_LABEL = 22
DEPTH = 8
"""The most rows of one lane that are drawn."""
TICKS = 8
LEVELS = 8
"""Heights of the line of a device's states."""
LIGHTEST = 0.25
HATCH = hexed(colour_of("collective", dark=False))
SURFACE = hexed(LIGHT_SURFACE)
STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#22262e}"
    ".s{font-size:10px;pointer-events:none}.m{fill:#666}.p{font-weight:600}.r{font-weight:700}"
    ".b{fill:none;stroke-width:1.2}"
)
WAITS = (
    '<defs><pattern id="waits" width="6" height="6" patternUnits="userSpaceOnUse" '
    f'patternTransform="rotate(45)"><rect width="6" height="6" fill="{SURFACE}"/>'
    f'<rect width="2.5" height="6" fill="{HATCH}"/></pattern></defs>'
)
"""What waiting for a peer is filled with."""


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
    scope: Scope, width: int = 1000, rows: int = 60, window: tuple[int, int] | None = None
) -> Picture:
    """Return a picture of a scope's lanes in a window of trace time, else in the scope's own."""
    trace = scope.trace
    begin, end = window or scope.range or scope.opening_span
    frame = PictureFrame.of(begin, max(end, begin + 1), width - TITLES)
    whole = replace(scope, range=(frame.begin, frame.end), lanes=None, where=None, work=None)
    sheet = _Sheet(scope, frame, rows, device_states(whole))
    sheet.fill()
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{sheet.height + 4}" '
        f'viewBox="0 0 {width} {sheet.height + 4}"><style>{STYLE}</style>{WAITS}'
        f'<rect width="100%" height="100%" fill="{SURFACE}"/>'
    )
    ruler = _ruler(frame, trace.opening_span[0], sheet.height)
    return Picture(head + "".join([*ruler, *sheet.drawn]) + "</svg>")


@dataclass(eq=False)
class _Sheet:
    """The lines of a picture as they are drawn, one below the other."""

    scope: Scope
    frame: PictureFrame
    rows: int
    states: Sequence[DeviceState]
    height: int = 2 * ROW
    left_out: int = 0
    drawn: list[str] = field(default_factory=list)

    def fill(self) -> None:
        """Draw ranks, their processes, devices first, and the lanes of each."""
        trace = self.scope.trace
        titles, count = rank_titles(trace.members), len(trace.members)
        source = 0
        for own, some in groupby(trace.processes, lambda process: process.source):
            source = own if own < count or not count else source  # what is laid over goes with its rank
            for process in devices_first(trace, list(some)):
                lanes = [number for number in lanes_devices_first(trace, process) if self._is_chosen(number)]
                title = titles.get(source, "")
                if self._process(process, [trace.lanes[number] for number in lanes], title) and title:
                    titles = {key: text for key, text in titles.items() if key != source}
        if self.left_out:
            self._title(f"{self.left_out:,} more lanes", "m", 2, self.frame.width)

    def _is_chosen(self, number: int) -> bool:
        """Tell whether a lane is drawn; those that the viewer folds are counted, unless asked for."""
        trace, lanes = self.scope.trace, self.scope.lanes
        if lanes is not None:
            return number in lanes
        is_folded = number in quiet_lanes(trace) or number in profilers_lanes(trace)
        self.left_out += is_folded
        return not is_folded

    def _process(self, process: Process, lanes: Sequence[Lane], rank: str) -> bool:
        """Draw a process with lanes below it; tell whether there was something to draw, and room."""
        has_title = False
        for lane in lanes:
            lines = [row for row in self.scope.trace.rows(lane) if row.kind is not RowKind.INSTANTS][:DEPTH]
            if not lines:
                continue
            needed = len(lines) + (0 if has_title else 1 + bool(rank))
            if self.height // ROW + needed > self.rows + 2:
                self.left_out += 1
                continue
            if not has_title:
                if rank:
                    self._title(rank, "r", 2, self.frame.width)
                self._states(process)
                self._title(process.title, "p", 2, TITLES)
                has_title = True
            self.drawn.append(_text(10, self.height + 11, lane.title, "t", TITLES - 14))
            for row in lines:
                self.drawn.extend(self._row(row, lane))
                self.height += ROW
        return has_title

    def _title(self, text: str, kind: str, x: float, room: float) -> None:
        self.drawn.append(_text(x, self.height + 11, text, kind, room))
        self.height += ROW

    def _states(self, process: Process) -> None:
        """Draw on the line of a process what its devices do: as high as they work, hatched for waiting."""
        lanes = frozenset(process.lanes)
        states = [one for one in self.states if lanes.issuperset(one.device.device.lanes)]
        if not states:
            return
        cells = state_cells(states, self.frame.edges)
        levels = np.where(cells.waits, LEVELS, np.ceil(cells.busy * LEVELS)).astype(np.int64)
        colours = [hexed(colour_of(key, dark=False)) for key in STATE_KEYS]
        at, facts = 0, list(zip(levels.tolist(), cells.kinds.tolist(), cells.waits.tolist()))
        for (level, kind, waits), run in groupby(facts):
            count = sum(1 for _ in run)
            if level:
                tall = level / LEVELS * (ROW - 3)
                fill = "url(#waits)" if waits else colours[kind]
                what = "waits for a peer" if waits else ("compute", "communication", "copies")[kind]
                left, right = (self.frame.x(int(self.frame.edges[edge])) for edge in (at, at + count))
                self.drawn.append(_box(left, right, self.height + ROW - 1 - tall, tall, fill, what))
            at += count

    def _row(self, row: Row, lane: Lane) -> Iterator[str]:
        if row.kind is RowKind.SAMPLES:
            yield from self._counter(row)
            return
        trace, frame = self.scope.trace, self.frame
        besides: Collection[int] = trace.besides_work(row.source) if lane.role is LaneRole.DEVICE else ()
        cells = trace.cells(row, frame.edges, self.scope.clocks, besides)
        for span in trace.spans(row, cells):
            name = trace.name(row, span.at)
            category = trace.categories(row.source)[span.category] if span.category >= 0 else ""
            is_work = lane.role is LaneRole.DEVICE and span.category not in besides
            label = name if category else short_name(name)
            key = key_of(category, label, is_work=is_work)
            if span.whole:
                yield from self._slice(lane, row, span, name, key)
            else:
                yield self._dense(span, cells, name, colour_of(key, dark=False))

    def _slice(self, lane: Lane, row: Row, span: Span, name: str, key: str) -> Iterator[str]:
        """Draw a single slice: work filled, an annotation as a frame, what waits hatched."""
        frame, y = self.frame, self.height
        category = self.scope.trace.categories(row.source)[span.category] if span.category >= 0 else ""
        kind, colour = drawn_kind(category, name), colour_of(key, dark=False)
        start, end = self.scope.trace.bounds(row, span.at, self.scope.clocks)
        left, right = frame.x(max(start, frame.begin)), frame.x(min(end, frame.end))
        wide = max(0.6, right - left)
        title = f"{name} · {format_ns(end - start)}"
        text = text_on(colour)
        if kind is SliceKind.ANNOTATION:
            text = blend(colour, (0, 0, 0), 0.5)
            yield _box(left, right, y + 1.6, ROW - 3.2, "", title, f' class="b" stroke="{hexed(colour)}"')
        elif kind is SliceKind.WAIT:
            yield _box(left, right, y + 1, ROW - 2, "url(#waits)", title)
        else:
            yield _box(left, right, y + 1, ROW - 2, hexed(colour), title)
            if key == "collective":
                yield from self._waits(lane, start, end, title)
        if wide >= MIN_LABEL:
            label = _text(left + 2, y + 11, short_name(name), "s", wide - 3)
            yield label.replace("<text ", f'<text style="fill:{hexed(text)}" ', 1)

    def _waits(self, lane: Lane, start: int, end: int, title: str) -> Iterator[str]:
        """Hatch the parts of a collective in which it waits for a peer."""
        frame, y = self.frame, self.height
        for waits in (one.waits for one in self.states if lane.index in one.device.device.lanes):
            some = slice(
                int(np.searchsorted(waits.ends, start, "right")), int(np.searchsorted(waits.starts, end))
            )
            for begin, stop in zip(waits.starts[some].tolist(), waits.ends[some].tolist()):
                left, right = frame.x(max(begin, start, frame.begin)), frame.x(min(stop, end, frame.end))
                if right - left >= 1:
                    yield _box(left, right, y + 1, ROW - 2, "url(#waits)", f"{title}; waits for a peer")

    def _dense(self, span: Span, cells: Cells, name: str, colour: RGB) -> str:
        """Draw slices that are too narrow for one box each."""
        frame = self.frame
        left, right = (frame.x(int(frame.edges[at])) for at in (span.left, span.right))
        widths = np.diff(frame.edges[span.left : span.right + 1])
        share = sum_of(cells.busy[span.left : span.right]) / max(1, sum_of(widths))
        title = f"up to {span.slices:,} slices per pixel, the longest: {name}"
        fill = blend(LIGHT_SURFACE, colour, LIGHTEST + (1 - LIGHTEST) * min(1.0, share))
        return _box(left, right, self.height + 1, ROW - 2, hexed(fill), title)

    def _counter(self, row: Row) -> Iterator[str]:
        frame, y = self.frame, self.height
        cells = self.scope.trace.sample_cells(row, frame.edges, self.scope.clocks)
        known = np.flatnonzero(np.isfinite(cells.high))
        if not len(known):
            return
        low, high = float(np.nanmin(cells.low)), float(np.nanmax(cells.high))
        low = min(low, 0.0)
        heights: F64 = (cells.high[known] - low) / ((high - low) or 1) * (ROW - 3)
        points = [f"{frame.x(int(frame.edges[known[0]])):.1f},{y + ROW - 1}"]
        for cell, tall in zip(known.tolist(), heights.tolist()):
            points += [
                f"{frame.x(int(frame.edges[at])):.1f},{y + ROW - 1 - tall:.1f}" for at in (cell, cell + 1)
            ]
        points.append(f"{frame.x(int(frame.edges[known[-1] + 1])):.1f},{y + ROW - 1}")
        title = escape(safe(f"{row.series}: {low:g} to {high:g}"))
        fill = hexed(colour_of("counter", dark=False))
        yield f'<polygon points="{" ".join(points)}" fill="{fill}"><title>{title}</title></polygon>'


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


def _box(left: float, right: float, y: float, tall: float, fill: str, title: str, more: str = "") -> str:
    filled = f' fill="{fill}"' if fill else ""
    return (
        f'<rect x="{left:.1f}" y="{y:.1f}" width="{max(0.6, right - left):.1f}" '
        f'height="{tall:.1f}"{filled}{more}>'
        f"<title>{escape(safe(title))}</title></rect>"
    )


def _text(x: float, y: float, text: str, kind: str, room: float) -> str:
    words = beginning(safe(text), max(1, int(room / CHARACTER_WIDTH)))
    return f'<text x="{x:.1f}" y="{y}" class="{kind}">{escape(words)}</text>'


def beginning(text: str, most: int) -> str:
    """Return a text of at most so many characters: of a longer one the beginning and "…"."""
    return text if len(text) <= most else text[: most - 1] + "…"
