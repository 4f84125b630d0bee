"""Lanes computed from a trace: series as the counter rows of an index that lies in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..base.arrays import F64, I64, AnyArray
from ..index.format import LANE, PROCESS, ROW, LaneKind, RowKind
from ..index.pyramid import extremes, pyramid_sizes
from ..index.store import Index

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


class CounterIndex(Index):
    """Computed lanes, a process for each that they stand below, a lane per series."""

    def __init__(self, counters: Sequence[Counter], path: str) -> None:
        """Lay out the series; those of one process stand together, in the order given."""
        self.owners = list(dict.fromkeys((one.source, one.process) for one in counters))
        self.counters = [
            one for owner in self.owners for one in counters if (one.source, one.process) == owner
        ]
        self._texts = ["", "null"]
        self._memory: dict[str, AnyArray] = {}
        processes = np.zeros(len(self.owners), PROCESS)
        first = 0
        for number, owner in enumerate(self.owners):
            own = [one for one in self.counters if (one.source, one.process) == owner]
            heading = own[0].heading
            pid, name = self._text(json.dumps(heading, ensure_ascii=False)), self._text(heading)
            processes[number] = (pid, name, 0, number, first, len(own), 0)
            first += len(own)
        rows = self._rows()
        lanes = self._lanes(rows, processes)
        super().__init__(
            Path(path),
            _manifest(path, len(self._memory["samples.start"])),
            {"lanes": lanes, "processes": processes, "rows": rows},
        )

    def _text(self, text: str) -> int:
        self._texts.append(text)
        return len(self._texts) - 1

    def _rows(self) -> AnyArray:
        count = np.array([len(one.starts) for one in self.counters], np.int64)
        value = np.concatenate([np.empty(0), *(one.values for one in self.counters)])
        low, high = extremes(count, value)
        self._memory = {
            "samples.start": np.concatenate([np.empty(0, np.int64), *(one.starts for one in self.counters)]),
            "samples.value": value,
            "samples.ordinal": np.arange(len(value), dtype=np.uint32),
            "pyramid.low": low,
            "pyramid.high": high,
        }
        rows = np.zeros(len(count), ROW)
        rows["lane"] = np.arange(len(count))
        rows["kind"] = RowKind.SAMPLES
        rows["first"] = np.cumsum(count) - count
        rows["count"] = count
        rows["start"] = [int(one.starts[0]) for one in self.counters]
        rows["end"] = [int(one.starts[-1]) for one in self.counters]
        sizes = pyramid_sizes(count)
        rows["pyramid"] = np.cumsum(sizes) - sizes
        return rows

    def _lanes(self, rows: AnyArray, processes: AnyArray) -> AnyArray:
        lanes = np.zeros(len(rows), LANE)
        lanes["kind"] = LaneKind.COUNTER
        lanes["process"] = np.repeat(np.arange(len(processes)), processes["lanes"])
        lanes["tid"] = 1
        lanes["name"] = [self._text(one.title) for one in self.counters]
        lanes["first_row"] = np.arange(len(lanes))
        lanes["rows"] = 1
        lanes["samples"] = rows["count"]
        lanes["start"], lanes["end"] = rows["start"], rows["end"]
        return lanes

    def _map(self, name: str) -> AnyArray:
        column = self._memory.get(name)
        return super()._map(name) if column is None else column

    def _read_string(self, number: int) -> str:
        return self._texts[number]

    def event_of(self, ordinal: int) -> tuple[int, int] | None:
        """Return (source, ordinal) of the event that a sample comes from, None where it is no single one."""
        for number, one in enumerate(self.counters):
            first, count = int(self.rows[number]["first"]), int(self.rows[number]["count"])
            if first <= ordinal < first + count and one.events is not None:
                return one.source, int(one.events[ordinal - first])
        return None

    def close(self) -> None:
        """Nothing is mapped: what is in memory stays."""


def _manifest(path: str, samples: int) -> dict[str, Any]:
    return {"path": path, "form": FORM, "columns": {}, "problems": [], "read_report": {}, "samples": samples}
