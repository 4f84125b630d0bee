"""What a row shows, as plain values: runs of cells for slices, marks for instants, levels for counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from tracelane.core.query.cells import Span

LABEL_CELLS = 3
"""Runs of fewer cells have no label."""
HATCH_LABEL = 12
"""Hatched stretches of so many cells say what is waited for."""
HATCH_MARGIN = 3
"""Of them the text leaves one before it, and a blank on each side."""
FULL = 8
"""The level of a cell whose whole time is covered."""

# Bits of Run.flags.
WHOLE = 1  # one slice alone; otherwise the run stands for several
RAGGED = 2  # unclosed: its end is not known
OVERLAP = 4  # overlaps another slice without nesting in it
OPEN_LEFT = 8  # begins left of the view
OPEN_RIGHT = 16  # ends right of the view
TOUCH = 32  # begins where a run of the same colour ends
HIT = 64  # what is searched for, or some of it, lies in the run
BRACKET = 128  # annotations: they say what the work belongs to and are none, so that nothing is filled
HATCH = 256  # a device waits: hatched, as it does nothing


class Run(NamedTuple):
    """Cells [left, right) of a row that are drawn alike."""

    left: int
    right: int
    key: str  # colour key
    label: str  # safe to print; empty where the run is too narrow
    at: int  # index within the row of the slice, or of the longest it stands for
    slices: int  # how many it stands for; 0: the label counts hits
    flags: int
    left_eighths: int = 0  # eighths of the first cell that are empty, 0..7
    right_eighths: int = 8  # eighths of the last cell that are filled, 1..8
    share: str = ""  # of the time of several slices that the label's name takes
    levels: bytes = b""  # a byte per cell: the eighths of its time that are covered; empty: all of it


class InstantCell(NamedTuple):
    cell: int
    key: str
    instants: int
    at: int  # index within the row of the first one


class Facts(NamedTuple):
    """What drawing needs to know of a slice."""

    key: str
    label: str
    start: int  # ns, on the clock of the edges it is drawn between
    end: int
    flags: int  # RAGGED, OVERLAP, BRACKET, HATCH


class ManyNames(NamedTuple):
    """What a run of several slices is called."""

    label: str  # of the name with most time
    share: str  # "28 %" of their time; empty where there is no other name
    slices: int


def slice_runs(
    spans: Sequence[Span],
    facts: Sequence[Facts],
    edges: Sequence[int],
    names: Mapping[int, ManyNames] = MappingProxyType({}),
    eighths: bool = False,
    levels: bytes | None = None,
) -> tuple[Run, ...]:
    """Return the runs of a row of slices.

    `facts` go with the spans, `names` says by a span's number what several slices are called; `edges` are the
    cells' edges, `levels` has a byte for each cell: how many eighths of its time slices cover.
    """
    width = len(edges) - 1
    runs: list[Run] = []
    previous_right = -1
    previous_key = ""
    for number, (span, fact) in enumerate(zip(spans, facts)):
        left, right = span.left, span.right
        flags = fact.flags
        left_eighths, right_eighths = 0, 8
        if span.whole:
            # In cells of 80 ns a slice of 90 to 250 begins an eighth into cell 1 and ends an eighth into cell
            # 3: of the one an eighth stays free at the left, of the other an eighth is filled. What the
            # picture cuts off has no edge there, and what lies in one cell fills it.
            flags |= WHOLE
            if fact.start < edges[0]:
                flags |= OPEN_LEFT
            elif eighths and right - left > 1:
                left_eighths = _eighths(fact.start, edges[left], edges[left + 1], 0, 7)
            if fact.end > edges[width]:
                flags |= OPEN_RIGHT
            elif eighths and right - left > 1:
                right_eighths = _eighths(fact.end, edges[right - 1], edges[right], 1, 8)
        else:
            flags &= ~RAGGED
        touching = left == previous_right and fact.key == previous_key
        flags |= TOUCH if touching else 0
        several = names.get(number)
        if several is None:
            label, share, count = fact.label if right - left >= LABEL_CELLS else "", "", span.slices
        else:
            label, share, count = several
        ends = left_eighths, right_eighths
        covered = _covered(levels, left, right, span.whole and eighths)
        runs.append(Run(left, right, fact.key, label, span.at, count, flags, *ends, share, covered))
        previous_right, previous_key = right, fact.key
    return tuple(runs)


def _covered(levels: bytes | None, left: int, right: int, has_edges: bool) -> bytes:
    """Return the levels of a run's cells, empty where all are full or its edges are drawn in eighths."""
    if levels is None or (has_edges and right - left > 1):
        return b""
    covered = levels[left:right]
    return b"" if min(covered) == FULL else covered


def _eighths(time: int, left: int, right: int, least: int, most: int) -> int:
    return min(most, max(least, round(8 * (time - left) / (right - left))))


def run_at(runs: Iterable[Run], cell: int) -> Run | None:
    for run in runs:
        if run.left <= cell < run.right:
            return run
        if run.left > cell:
            break
    return None


class SliceRow(NamedTuple):
    runs: tuple[Run, ...]
    has_bars: bool = False  # what has no label tells how busy it is by its height


_UPPER = bytes(max(0, 2 * level - FULL) for level in range(FULL + 1)).ljust(256)
_LOWER = bytes(min(FULL, 2 * level) for level in range(FULL + 1)).ljust(256)
"""What the upper and the lower line of a row of two show of each level: of 5 eighths two and eight."""


def upper_half(run: Run) -> Run:
    """Return what the upper one of a row's two lines shows of a run: what it is called, and its top."""
    return run._replace(levels=run.levels.translate(_UPPER))


def lower_half(run: Run) -> Run | None:
    """Return what the lower one of a row's two lines shows of a run: its foot; nothing of annotations."""
    if run.flags & BRACKET:
        return None
    return run._replace(label="", levels=run.levels.translate(_LOWER))


class InstantRow(NamedTuple):
    marks: tuple[InstantCell, ...]


class SampleRow(NamedTuple):
    """A counter series: (low, high) levels 0..8 per cell, and the value at each cell's end."""

    levels: tuple[tuple[int, int], ...]
    values: tuple[float, ...]
    series: str
    extent: tuple[float, float] | None = None  # least and greatest value of the series; None: it never varies


class BusyRow(NamedTuple):
    """Busy time of what a folded line stands for: levels 0..8, -1 where nothing lies, and colour keys."""

    levels: tuple[int, ...]
    keys: tuple[str, ...]
    hits: tuple[bool, ...] = ()  # per cell whether what is searched for lies in it; empty: nowhere
    hatched: tuple[bool, ...] = ()  # per cell whether its devices wait for a peer; empty: nowhere
    runs: tuple[Run, ...] = ()  # hatched, over the cells: why a device does nothing, or for whom it waits
    is_outline: bool = False  # it is not known yet what devices do: a line where they have work, never filled


DrawnRow: TypeAlias = SliceRow | InstantRow | SampleRow | BusyRow
