"""The view's state: immutable values that are changed by replacement, saved, and walked back and forth."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tracelane.core.base.clock import NO_CLOCKS, Clocks
from tracelane.core.query.views import EventId, SliceId

ZOOM_STEP = 1.5
ZOOM_LEAP = 10.0
PAN_STEP = 0.3
MIN_CELL_NS = 1
FOLD_ROWS = 24
"""Lanes deeper than this open folded to so many rows, with one line that counts the rest."""


class Viewport(NamedTuple):
    """The visible time [start, start + span) over `width` cells, in integer ns: the only place where time and
    cells meet. Cell i covers [edge(i), edge(i + 1)).
    """

    start: int
    span: int
    width: int

    @property
    def end(self) -> int:
        """First ns to the right of the view."""
        return self.start + self.span

    def edge(self, cell: int) -> int:
        """Time of a cell's left edge; cells outside 0..width are fine."""
        return self.start + cell * self.span // self.width

    def edges(self) -> list[int]:
        """Return the width + 1 cell edges, exact at any magnitude (Python integers)."""
        start, span, width = self.start, self.span, self.width
        return [start + i * span // width for i in range(width + 1)]

    def cell(self, time: int) -> int:
        """Cell that holds a time; outside 0..width-1 for times outside the view."""
        cell = (time - self.start) * self.width // self.span
        while self.edge(cell + 1) <= time:
            cell += 1
        while self.edge(cell) > time:
            cell -= 1
        return cell

    def zoomed(self, factor: float, about: int, limits: tuple[int, int]) -> Viewport:
        """Return the view with 1/factor of the span, keeping the time `about` in its cell."""
        span = max(self.width * MIN_CELL_NS, round(self.span / factor))
        span = min(span, max(self.width * MIN_CELL_NS, limits[1] - limits[0]))
        start = about - (about - self.start) * span // self.span
        return Viewport(start, span, self.width).kept_within(limits)

    def panned(self, share: float, limits: tuple[int, int]) -> Viewport:
        """Return the view moved by a share of its span (at least one cell)."""
        step = round(self.span * share) or (1 if share > 0 else -1)
        return self._replace(start=self.start + step).kept_within(limits)

    def resized(self, width: int) -> Viewport:
        """Return the same time window over another number of cells, never below 1 ns a cell."""
        width = max(1, width)
        return Viewport(self.start, max(self.span, width * MIN_CELL_NS), width)

    def kept_within(self, limits: tuple[int, int]) -> Viewport:
        """Return the view moved, if need be, so that it does not leave the limits further than it must."""
        low, high = limits
        if self.span >= high - low:
            return self._replace(start=low - (self.span - (high - low)) // 2)
        return self._replace(start=min(max(self.start, low), high - self.span))


class LaneKey(NamedTuple):
    """Names a lane so that it is found again in another run: source, pid and tid as JSON text, kind."""

    source: int
    pid: str
    tid: str
    kind: int = 0
    name: str = ""


class RowKey(NamedTuple):
    """Names a row: its lane and its depth in the lane."""

    lane: LaneKey
    depth: int


class InstantId(EventId):
    """An instant or a counter sample, named by its event."""


class GapId(EventId):
    """The gap that a slice ends, named by that slice's event."""


Selectable: TypeAlias = SliceId | InstantId | GapId


class Session(NamedTuple):
    """What is being looked at; everything a colleague needs to see the same picture."""

    viewport: Viewport
    cursor: int  # time, ns
    focus: RowKey | None = None  # the row that keys act on
    selection: Selectable | None = None
    scroll: int = 0  # first visible line of the lane area
    folded: frozenset[LaneKey | tuple[int, str]] = frozenset()  # lanes, and processes as (source, pid)
    unfolded: frozenset[LaneKey | tuple[int, str]] = frozenset()  # opened against the default
    pinned: tuple[LaneKey, ...] = ()
    hidden_lanes: frozenset[LaneKey] = frozenset()
    hidden_processes: frozenset[tuple[int, str]] = frozenset()
    hidden_alike: tuple[str, ...] = ()  # lane names with digits stripped
    only: str = ""  # regular expression: show only lanes whose title matches
    range: tuple[int, int] | None = None
    anchor: int | None = None  # where a range being drawn began; None: none is being drawn
    baseline: tuple[int, int] | None = None  # what tables hold their numbers against
    clocks: Clocks = NO_CLOCKS
    panel: str = "details"
    panel_size: int = 8
    preset: str = "auto"  # which lanes in which order: everything, devices, launching, file; auto: as opened
    devices_first: bool = False  # what auto means: everything with devices first, or as the file orders it
    device_rows: int = FOLD_ROWS  # rows that device lanes open with
    device_lines: int = 1  # lines of a row in which a device works
    show_quiet: bool = False
    rank_lines: int = 1  # of a folded rank: all in one, or one for each of RANK_PARTS
    map_lines: int = 0  # of many ranks: what those that are folded share; 0: a line or more for each
    rank_order: tuple[int, ...] = ()  # sources of ranks in the order of the map; empty: by number
    host_rows: int = FOLD_ROWS  # rows that host lanes open with; 0: processes without devices open folded
    colour_by: str = "category"
    ruler: str = "relative"  # relative, file, wall
    search: str = ""  # filter language; what matches is marked
    filter: str = ""  # filter language; what does not match is not drawn
    steps: str = ""  # name of the slices that are taken for steps; empty: those that are found
    flows: bool = False  # all flows in view are drawn, not the selection's alone
    aim: str = ""  # what was chosen last, and keys mean: "range", "selection", "step" (at the cursor)
    zone: str = ""  # of wall times: a name, an offset, UTC; empty: this machine's
