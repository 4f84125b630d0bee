"""A metric of one device over time, as numpy columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..base.arrays import F64, I64, Bools
from .columns import LogColumn


@dataclass(frozen=True, eq=False)
class Series:
    """The samples of one metric of one device, by time; each is the mean over its interval [start, end).

    Times are ns in the log's own time (its local stamps read as if they were UTC) unless `shifted`;
    intervals do not overlap. `value` is NaN where `missing`. `line` is the line of the log that a sample
    was read from, from 1.
    """

    device: str
    column: LogColumn
    start_ns: I64
    end_ns: I64
    value: F64
    missing: Bools
    line: I64

    def __len__(self) -> int:
        return len(self.value)

    def shifted(self, offset_ns: int) -> Series:
        """Return the series with `offset_ns` added to its times."""
        return replace(self, start_ns=self.start_ns + offset_ns, end_ns=self.end_ns + offset_ns)

    def at(self, time_ns: int) -> int | None:
        """Return which sample's interval holds a time, or None where there is no sample."""
        position = int(np.searchsorted(self.end_ns, time_ns, side="right"))
        if position == len(self) or self.start_ns[position] > time_ns:
            return None
        return position

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Return the least and the greatest value, or None where all are missing."""
        present = self.value[~self.missing]
        return (float(present.min()), float(present.max())) if len(present) else None


@dataclass(frozen=True, eq=False)
class DeviceLog:
    """Everything a log says of one device: the shared times of its rows and a value column per metric."""

    device: str
    start_ns: I64
    end_ns: I64
    line: I64
    values: Mapping[LogColumn, F64]
    file: str = ""
    """The metric file that the log names for it (its last part is the card's bus id), or empty."""

    def series(self, column: LogColumn) -> Series:
        """Return one metric; raises KeyError where the device has no such column."""
        value = self.values[column]
        return Series(self.device, column, self.start_ns, self.end_ns, value, np.isnan(value), self.line)
