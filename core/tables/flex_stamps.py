"""What the cycle stamps of a FLEX job trace say: how fast the device's clock runs, how long each phase of a
slice took there, and what the device drew.

Each slice of a device carries TS1 to TS5, readings of its 32 bit counter of cycles: data comes in between TS1
and TS2, work is prepared to TS3 and done to TS4, data goes out to TS5 (`FlexEventMapToTS` of IBM's
aiu-trace-analyzer). Of what receives (`SenRdmaRecv`) the peer has sent at TS2: the device waits until then.
`Power` is a 32 bit counter as well: the charge so far, in 1/512 A times cycles, at 12 V (`compute_delta`).

Worked example, from a public sample: `convolution_1 Cmpt Exec` has TS3 0xc0732073 and TS4 0xc0736e0e, 19,867
cycles, and lasts 35.664 µs: the clock runs at 557 MHz.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ..base.arrays import F64, I64, AnyArray
from ..base.intervals import EMPTY, Intervals, merge
from ..index.flex import flex_work, is_flex
from ..index.store import Index
from ..query.promoted_terms import arguments_read

STAMPS = ("TS1", "TS2", "TS3", "TS4", "TS5")
COUNTERS = (*STAMPS, "Power")
PHASES = (
    (re.compile(r"\bDmaI\b"), 0),
    (re.compile(r"\bCmpt Prep\b"), 1),
    (re.compile(r"\bCmpt Exec\b"), 2),
    (re.compile(r"\bDmaO\b"), 3),
)
"""Names of slices that are one phase, and the stamp at which it begins; it ends at the next."""
RECEIVES = re.compile(r"\bSenRdmaRec")
WRAP = 1 << 32
LEAST_SLICES, ALIKE_SHARE, ALIKE_MHZ = 3, 0.5, 0.05
"""So many slices must tell the clock, and this share of them within this part of the median."""
VOLTS, LSB, MOST_WATTS = 12, 512, 100
"""What no card draws is a broken stamp; the analyzer has the same limit."""


@dataclass(frozen=True, eq=False)
class FlexStamps:
    """The n stamped slices of a FLEX job trace, by position."""

    positions: I64
    names: list[str]
    counters: I64  # n x COUNTERS; -1 where there is none
    durations: I64  # ns, as the file has them

    def cycles(self, begin: AnyArray | int, end: AnyArray | int) -> I64:
        """Return the cycles from one stamp to another of each slice, -1 where one is missing."""
        rows = np.arange(len(self.positions))
        low, high = self.counters[rows, begin], self.counters[rows, end]
        # A difference is right also where the counter has wrapped between the two.
        later = np.where(high >= low, high - low, (high - low) % WRAP)
        return np.where((low < 0) | (high < 0), -1, later)

    @property
    def phases(self) -> I64:
        """The stamp at which the phase of each slice begins, -1 of those that are more than one."""
        return np.array(
            [next((at for pattern, at in PHASES if pattern.search(name)), -1) for name in self.names],
            np.int64,
        )

    @property
    def phase_cycles(self) -> I64:
        """The cycles that the phase of each slice took, -1 where that is not known."""
        phases = self.phases
        return np.where(phases < 0, -1, self.cycles(np.maximum(phases, 0), np.maximum(phases, 0) + 1))

    @property
    def mhz(self) -> float | None:
        """How fast the device's clock runs, as most slices agree; None where they do not."""
        cycles = self.phase_cycles
        known = (cycles > 0) & (self.durations > 0)
        speeds = cycles[known] * 1000 / self.durations[known]
        if len(speeds) < LEAST_SLICES:
            return None
        usual = float(np.median(speeds))
        near = np.count_nonzero(np.abs(speeds - usual) <= ALIKE_MHZ * usual)
        return usual if near >= ALIKE_SHARE * len(speeds) else None

    def stated_ns(self, mhz: float) -> F64:
        """Return how long the phase of each slice took by its stamps, NaN where that is not known."""
        cycles = self.phase_cycles
        return np.where(cycles < 0, np.nan, cycles * 1000 / mhz)

    def waits(self, starts: I64) -> Intervals:
        """Return the time in which the device waits for a peer to send; `starts` are those of the slices."""
        mhz = self.mhz
        rows = np.flatnonzero([RECEIVES.search(name) is not None for name in self.names])
        if mhz is None or not len(rows):
            return EMPTY
        cycles = self.cycles(0, 1)[rows]
        ns = np.minimum(np.where(cycles < 0, 0, cycles * 1000 / mhz).astype(np.int64), self.durations[rows])
        return merge(starts[rows], starts[rows] + ns)

    def watts(self, starts: I64) -> tuple[I64, I64, F64]:
        """Return (rows, moments, W) of what the device drew from one TS4 to the next; `starts` are those of
        the slices. Left out is what took so long that the charge may have wrapped, and what no card draws.
        """
        done, charge = self.counters[:, STAMPS.index("TS4")], self.counters[:, COUNTERS.index("Power")]
        moments = np.where(self.phases == STAMPS.index("TS4"), starts, starts + self.durations)
        rows = np.flatnonzero((done >= 0) & (charge > 0))
        rows = rows[np.argsort(moments[rows], kind="stable")]
        cycles, drawn = np.diff(done[rows]) % WRAP, np.diff(charge[rows]) % WRAP
        watts = VOLTS * drawn / LSB / np.maximum(1, cycles)
        sound = (cycles > 0) & (cycles * MOST_WATTS * LSB / VOLTS < WRAP) & (watts < MOST_WATTS)
        return rows[1:][sound], moments[rows[1:]][sound], watts[sound]


def flex_stamps(index: Index, positions: AnyArray | None = None) -> FlexStamps | None:
    """Return the stamps of the device's slices (of these) in a FLEX job trace, None of other traces. Raises
    UnreadableError where the source has gone or changed.
    """
    if not is_flex(index):
        return None
    if positions is None:
        names = index.column("slices.name")
        positions = np.flatnonzero(np.isin(names, flex_work(index)))
    positions = np.asarray(positions, np.int64)
    counters = np.full((len(positions), len(COUNTERS)), -1, np.int64)
    for row, arguments in arguments_read(index, positions, needle=STAMPS[0].encode()):
        counters[row] = [_counter(arguments.get(key)) for key in COUNTERS]
    stamped = (counters[:, : len(STAMPS)] >= 0).any(axis=1)
    positions, counters = positions[stamped], counters[stamped]
    texts = index.strings(index.column("slices.name")[positions])
    return FlexStamps(positions, texts, counters, index.duration(positions))


def _counter(value: object) -> int:
    """Return a counter, which stands as a number or as decimal or hexadecimal text; -1 for anything else."""
    if isinstance(value, str):
        try:
            value = int(value, 0)
        except ValueError:
            return -1
    return value if type(value) is int and 0 <= value < 1 << 63 else -1
