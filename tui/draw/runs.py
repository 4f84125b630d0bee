"""What a row shows, as plain tuples: runs of cells for slices, marks for instants, levels for counters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tracelane.core.query.cells import Span

LABEL_CELLS = 3
"""Runs of fewer cells have no label."""

# Bits of Run.flags.
WHOLE = 1  # one slice alone; otherwise the run stands for several
RAGGED = 2  # unclosed: its end is not known
OVERLAP = 4  # overlaps another slice without nesting in it
OPEN_LEFT = 8  # begins left of the view
OPEN_RIGHT = 16  # ends right of the view
OTHER = 32  # drawn a shade apart from the neighbour of the same colour
TOUCH = 64  # begins where a run of the same colour ends
HIT = 128  # what is searched for, or some of it, lies in the run


class Run(NamedTuple):
    """Cells [left, right) of a row that are drawn alike."""

    left: int
    right: int
    key: str  # colour key
    label: str  # safe to print; empty where the run is too narrow
    place: int  # index within the row of the slice, or of the longest it stands for
    slices: int  # how many it stands for
    flags: int
    left_eighths: int = 0  # eighths of the first cell that are empty, 0..7
    right_eighths: int = 8  # eighths of the last cell that are filled, 1..8


class InstantCell(NamedTuple):
    """One cell of an instants row."""

    cell: int
    key: str
    instants: int
    place: int  # index within the row of the first one


class Facts(NamedTuple):
    """What drawing needs to know of a slice."""

    key: str
    label: str
    start: int  # ns, on the clock of the edges it is drawn between
    end: int
    flags: int  # RAGGED, OVERLAP


def slice_runs(
    spans: Sequence[Span],
    facts: Sequence[Facts],
    edges: Sequence[int],
    counts: Sequence[int] | None = None,
    eighths: bool = False,
) -> tuple[Run, ...]:
    """Return the runs of a row of slices.

    `facts` and `counts` (slices a span stands for) go with the spans, `edges` are the cells' edges.
    """
    width = len(edges) - 1
    runs: list[Run] = []
    previous_right = -1
    previous_key = ""
    previous_other = False
    for number, (span, fact) in enumerate(zip(spans, facts)):
        left, right = span.left, span.right
        flags = fact.flags
        left_eighths, right_eighths = 0, 8
        if span.whole:
            flags |= WHOLE
            if fact.start < edges[0]:
                flags |= OPEN_LEFT
            elif eighths and left > previous_right:
                left_eighths = _eighths(fact.start, edges[left], edges[left + 1], 0, 7)
            if fact.end > edges[width]:
                flags |= OPEN_RIGHT
            elif eighths and right < width and right - left > 1:
                right_eighths = _eighths(fact.end, edges[right - 1], edges[right], 1, 8)
        else:
            flags &= ~RAGGED
        touching = left == previous_right and fact.key == previous_key
        other = touching and not previous_other
        flags |= (TOUCH if touching else 0) | (OTHER if other else 0)
        count = span.slices if counts is None else counts[number]
        label = fact.label if right - left >= LABEL_CELLS else ""
        runs.append(Run(left, right, fact.key, label, span.place, count, flags, left_eighths, right_eighths))
        previous_right, previous_key, previous_other = right, fact.key, other
    if eighths:
        _square_touching(runs)
    return tuple(runs)


def _eighths(time: int, left: int, right: int, least: int, most: int) -> int:
    return min(most, max(least, round(8 * (time - left) / (right - left))))


def _square_touching(runs: list[Run]) -> None:
    """Fill the last cell of runs whose right neighbour begins at once: a cell cannot show three colours."""
    for number in range(len(runs) - 1):
        if runs[number].right_eighths < 8 and runs[number].right == runs[number + 1].left:
            runs[number] = runs[number]._replace(right_eighths=8)


def run_at(runs: Iterable[Run], cell: int) -> Run | None:
    """Return the run that covers a cell."""
    for run in runs:
        if run.left <= cell < run.right:
            return run
        if run.left > cell:
            break
    return None
