"""The critical path of a window as a line above the lanes shows it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np
from rich.segment import Segment

from tracelane.core.base.arrays import I64, distinct
from tracelane.core.base.safe_text import safe
from tracelane.core.base.short_names import short_name
from tracelane.core.base.units import format_ns
from tracelane.core.query.views import SliceId
from tracelane.core.tables.frame.text_column import TextColumn
from tracelane.core.tables.path.critical_path import CriticalPath
from tracelane.core.tables.path.path_points import VIA
from tracelane.core.tables.path.path_walk import KINDS
from tracelane.core.trace import Trace

from ..session import Session
from .line_context import LineContext, gutter
from .runs import HATCH, WHOLE, Run
from .segments import SelectedCells, slice_segments

KEYS = {
    "host": "cpu_op",
    "host_idle": "quiet",
    "launch_delay": "runtime",
    "queue_wait": "kernel",
    "kernel": "kernel",
    "copy": "memcpy",
    "communication": "collective",
    "wait_for_rank": "collective",
    "sync_return": "sync",
}
"""The colour of each kind of segment."""
WORKS = frozenset({"host", "kernel", "copy", "communication"})
"""Kinds in which something is done; the others are hatched."""
RELEASED = {
    "": "nothing before it",
    "stream": "its stream, after {}",
    "event": "an event, after {}",
    "launch": "its launch",
    "graph": "its graph, after {}",
    "sync": "the end of {}",
    "flow": "an arrow from {}",
    "thread": "its thread, after {}",
    "collective": "the last rank, after {}",
    "device": "its device, after {}",
}
"""What released the start of a segment, as people say it; with the name of the segment before."""


@dataclass(frozen=True, eq=False)
class DrawnPath:
    """The segments of a critical path, to be drawn and walked along; times are trace time in ns."""

    trace: Trace
    title: str
    path: CriticalPath
    names: TextColumn

    @property
    def starts(self) -> I64:
        return self.path.segments.starts

    @property
    def ends(self) -> I64:
        return self.path.segments.ends

    def __len__(self) -> int:
        return len(self.path.segments)

    def name(self, number: int) -> str:
        """Return the name of a segment's slice."""
        return self.names.texts[int(self.names.codes[number])]

    def holds(self, time: int) -> bool:
        return len(self) > 0 and bool(self.starts[0] <= time < self.ends[-1])

    def at(self, time: int) -> int:
        """Return the number of the segment at a time, the nearest of times beside the path."""
        return max(0, int(np.searchsorted(self.starts, time, "right")) - 1)

    def next_from(self, time: int, direction: int, least: int) -> int | None:
        """Return the number of the next (+1) or previous (-1) segment of at least so many ns."""
        wide = np.flatnonzero(self.ends - self.starts >= least)
        here = self.at(time) if self.holds(time) else -1 if time < self.starts[0] else len(self)
        further = wide[wide > here] if direction > 0 else wide[wide < here][::-1]
        return int(further[0]) if len(further) else None

    def slice_at(self, number: int) -> SliceId | None:
        """Return the slice that a segment is part of, None where nothing runs."""
        source, position = (int(one[0]) for one in self.path.segments.jumps(np.array([number])))
        return None if position < 0 else self.trace.slice_id_of(source, position)

    def text(self, number: int) -> str:
        """Return what a segment is, and its release: "kernel 3 ms, released by its stream, after gemm"."""
        one = self.path.segments
        duration = format_ns(int(one.durations[number]))
        guess = " (inferred)" if one.inferred[number] else ""
        kind = KINDS[one.kinds[number]].replace("_", " ")
        return f"{kind} {duration}, released by {self._released(number)}{guess}"

    def _released(self, number: int) -> str:
        one = self.path.segments
        before = number - 1
        while before >= 0 and (
            KINDS[one.kinds[before]] not in WORKS or one.positions[before] == one.positions[number]
        ):
            before -= 1
        name = safe(short_name(self.name(before))) if before >= 0 else "what was before the window"
        return RELEASED[VIA[one.via[number]]].format(name)

    def of_slice(self, source: int, position: int) -> str:
        """Return what the path has of a slice, "" for nothing; of several segments the first is named."""
        one = self.path.segments
        own = np.flatnonzero((one.sources == source) & (one.positions == position))
        if len(own) < 2:
            return self.text(int(own[0])) if len(own) else ""
        total = format_ns(int(one.durations[own].sum()))
        return f"{total} in {len(own):,} segments; the first: {self.text(int(own[0]))}"

    def runs(self, edges: I64) -> tuple[Run, ...]:
        """Return runs between edges of cells: of the segment that takes most of a cell, else of those of its
        kind and lane.
        """
        lanes = self.path.segments.lanes
        runs: list[Run] = []
        cell = 0
        for (owner, kind, lane), cells in groupby(self._cells(edges)):
            left, cell = cell, cell + len(list(cells))
            if kind < 0:
                continue
            label, flags, count = KINDS[kind].replace("_", " "), 0, 1
            if KINDS[kind] not in WORKS:
                flags = HATCH
            elif owner >= 0:
                label, flags = safe(short_name(self.name(owner))), WHOLE
            else:
                first, last = np.searchsorted(self.starts, edges[[left, cell]])
                count = max(1, int((lanes[first:last] == lane).sum()))
                label = f"{label} {safe(self.trace.lanes[lane].title)}"
            runs.append(Run(left, cell, KEYS[KINDS[kind]], label, owner, count, flags))
        return tuple(runs)

    def _cells(self, edges: I64) -> list[tuple[int, int, int]]:
        """Return of each cell the segment that takes more than half of it (-1: none), and kind and lane of
        what takes most (-1: nothing).
        """
        cells, one = len(edges) - 1, self.path.segments
        low, high = max(int(edges[0]), int(self.starts[0])), min(int(edges[-1]), int(self.ends[-1]))
        owners, kinds, lanes = (np.full(cells, -1, np.int64) for _ in range(3))
        if low < high:
            times = np.concatenate([edges, self.starts])
            times = distinct(np.append(times[(times > low) & (times < high)], low))
            lengths = np.diff(times, append=high)
            segment = np.searchsorted(self.starts, times, "right") - 1
            cell = np.searchsorted(edges, times, "right") - 1
            of = len(self.trace.lanes)
            alike, number = np.unique(
                (cell * len(KINDS) + one.kinds[segment]) * of + one.lanes[segment], return_inverse=True
            )
            order = np.argsort(np.bincount(number, lengths), kind="stable")
            most = alike[order]  # of each cell the last one stays
            kinds[most // of // len(KINDS)], lanes[most // of // len(KINDS)] = (
                most // of % len(KINDS),
                most % of,
            )
            half = lengths * 2 > np.diff(edges)[cell]
            owners[cell[half]] = segment[half]
            kinds[cell[half]], lanes[cell[half]] = one.kinds[segment[half]], one.lanes[segment[half]]
        return list(zip(owners.tolist(), kinds.tolist(), lanes.tolist()))


def path_line(path: DrawnPath, session: Session, look: LineContext) -> list[Segment]:
    """Return the line of a path, with the segment at the cursor set off."""
    view = session.viewport.resized(look.area) if session.viewport.width != look.area else session.viewport
    chosen = None
    if path.holds(session.cursor):
        number = path.at(session.cursor)
        left, right = view.cell(int(path.starts[number])), view.cell(int(path.ends[number]) - 1) + 1
        if right > 0 and left < look.area:
            chosen = SelectedCells(number, max(0, left), min(look.area, right))
    runs = path.runs(np.array(view.edges(), np.int64)) if len(path) else ()
    area = slice_segments(runs, look.area, look.palette, look.glyphs, chosen)
    return [*gutter(safe(path.title), look, look.palette.accent), *area]
