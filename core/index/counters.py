"""Counter samples to lanes: one per process, counter name and id, a row per series."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..base.arrays import F64, I64, U32
from .batches import NumberedBatches
from .order import run_starts, sorted_groups

COLUMNS = ("ordinal", "track", "name", "series", "id_kind", "id_value", "start", "value")


@dataclass(frozen=True)
class Series:
    """The samples of one series by (start, ordinal)."""

    series: int  # string number
    start: I64
    value: F64
    ordinal: U32


@dataclass(frozen=True)
class CounterLane:
    """One counter: bounds of its samples in the order of `Counters`."""

    pid: int  # pid number
    name: int  # string number
    id_kind: int
    id_value: int
    first: int
    last: int


class Counters:
    """All counter samples of a trace, by counter."""

    def __init__(self, batches: NumberedBatches) -> None:
        """Group them; memory is that of the samples."""
        events = batches.all("counters", COLUMNS)
        pid = batches.track_pid[events["track"]] if len(events["track"]) else events["track"]
        keys = (pid, events["name"], events["id_kind"], events["id_value"])
        order, self._group = sorted_groups(keys, (events["series"], events["start"], events["ordinal"]))
        self._events = {name: values[order] for name, values in events.items()}
        self._pid = pid[order]
        self._strings = batches.strings

    def lanes(self) -> Iterator[CounterLane]:
        """Yield the lanes, unordered."""
        events, n = self._events, len(self._group)
        first = run_starts(self._group)
        for a, b in zip(first.tolist(), [*first[1:].tolist(), n]):
            yield CounterLane(
                int(self._pid[a]), int(events["name"][a]), int(events["id_kind"][a]),
                int(events["id_value"][a]), a, b,
            )  # fmt: skip

    def contents(self, lane: CounterLane) -> list[Series]:
        """Return a lane's series in the order in which the file first names them, those of one event by
        text.
        """
        part = {key: values[lane.first : lane.last] for key, values in self._events.items()}
        cuts = np.flatnonzero(np.diff(part["series"])) + 1
        found = []
        for index in np.split(np.arange(lane.last - lane.first), cuts):
            number = int(part["series"][index[0]])
            samples = Series(number, part["start"][index], part["value"][index], part["ordinal"][index])
            found.append((int(samples.ordinal.min()), self._strings.text(number), samples))
        found.sort(key=lambda entry: entry[:2])
        return [samples for _, _, samples in found]
