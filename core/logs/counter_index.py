"""Lanes computed from a trace, as an index in memory that stands for no file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..base.arrays import F64, I64
from .series_index import SeriesIndex, SeriesLane

FORM = "computed"
"""What such a source calls its form: it is no file."""


@dataclass(frozen=True)
class Counter:
    """A series below a process of the trace; `starts` are lane times of that process, ascending, in ns.

    `events` are the ordinals of the events that the samples come from, in the process's source.
    """

    kind: str  # which lanes are shown and hidden together
    source: int
    process: int  # number in the source's process table
    heading: str
    title: str
    starts: I64
    values: F64
    events: I64 | None = None


class CounterIndex(SeriesIndex):
    """Computed lanes, a process for each process that they stand below, a lane per series."""

    def __init__(self, counters: Sequence[Counter], path: str) -> None:
        """Lay out the series; those of one process stand together, in the order given."""
        self.owners = list(dict.fromkeys((one.source, one.process) for one in counters))
        self.counters = sorted(counters, key=lambda one: self.owners.index((one.source, one.process)))
        headings = {(one.source, one.process): one.heading for one in reversed(counters)}
        lanes = [
            SeriesLane(
                self.owners.index((one.source, one.process)),
                one.title,
                one.starts,
                one.values,
                int(one.starts[0]),
                int(one.starts[-1]),
                len(one.starts),
            )
            for one in self.counters
        ]
        processes = [(headings[owner], headings[owner]) for owner in self.owners]
        super().__init__(_manifest(path, sum(lane.samples for lane in lanes)), processes, lanes)

    def event_of(self, ordinal: int) -> tuple[int, int] | None:
        """Return (source, ordinal) of the event that a sample comes from, None where it is no single one."""
        for number, one in enumerate(self.counters):
            first, count = int(self.rows[number]["first"]), int(self.rows[number]["count"])
            if first <= ordinal < first + count and one.events is not None:
                return one.source, int(one.events[ordinal - first])
        return None


def _manifest(path: str, samples: int) -> dict[str, Any]:
    return {"path": path, "form": FORM, "columns": {}, "problems": [], "read_report": {}, "samples": samples}
