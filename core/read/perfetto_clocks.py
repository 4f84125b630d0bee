"""The clocks of a trace of Perfetto: which stamps mean which time of the trace.

Snapshots say what several clocks showed at one moment; the latest that names a clock carries its stamps over.
Source: https://perfetto.dev/docs/concepts/clock-sync; field packed_numbers of clock_snapshot.proto.
"""

from __future__ import annotations

from dataclasses import dataclass

from .protobuf import fields

BOOTTIME = 6
OWN = range(64, 128)
"""The clocks that belong to one sequence of packets."""


@dataclass
class Clock:
    """A clock as its last snapshot left it."""

    shift: int  # ns to add to its own
    factor: int = 1  # ns of one unit
    is_incremental: bool = False  # each stamp counts from the last
    last: int = 0


class TraceClocks:
    """The clocks of a file."""

    def __init__(self) -> None:
        """Know no clock yet; the first that is met without any snapshot is the trace's own."""
        self._clocks: dict[tuple[int, int], Clock] = {}
        self._main: int | None = None

    def take(self, message: bytes, sequence: int) -> None:
        readings: dict[int, Clock] = {}
        main = None
        for tag, value in fields(message):
            if tag == 2 and isinstance(value, int):
                main = value
            elif tag == 1 and isinstance(value, bytes):
                parts = {part: number for part, number in fields(value) if isinstance(number, int)}
                factor = parts.get(4, 0) or 1
                readings[parts.get(1, 0)] = Clock(0, factor, bool(parts.get(3)), parts.get(2, 0))
        if self._main is None:
            self._main = main or BOOTTIME
        moment = self._moment(readings, sequence)
        for number, clock in readings.items():
            clock.shift = moment - clock.last * clock.factor
            self._clocks[_key(number, sequence)] = clock

    def _moment(self, readings: dict[int, Clock], sequence: int) -> int:
        """Return the time of a snapshot: by the main clock, else by one that is known, else the first."""
        for number in (self._main, *readings):
            if number in readings:
                known = Clock(0) if number == self._main else self._clocks.get(_key(number, sequence))
                if known is not None:
                    return readings[number].last * readings[number].factor + known.shift
        return next((clock.last * clock.factor for clock in readings.values()), 0)

    def ns(self, stamp: int, clock: int, sequence: int) -> int | None:
        """Return the time of a stamp, in ns; None where its clock is not known. Clock 0 is the usual one."""
        number = clock or BOOTTIME
        if self._main is None:
            self._main = number
        known = self._clocks.get(_key(number, sequence))
        if known is None:
            return stamp if number == self._main or not clock else None
        if known.is_incremental:
            known.last += stamp
            stamp = known.last
        return stamp * known.factor + known.shift


def _key(clock: int, sequence: int) -> tuple[int, int]:
    return clock, sequence if clock in OWN else 0
