"""Cycle stamps of an AIU: what a device's own counter says of its clock, phases and power.

Each slice of a device in a FLEX job trace carries TS1 to TS5, readings of its 32 bit counter of cycles: data
comes in between TS1 and TS2, work is prepared to TS3 and done to TS4, data goes out to TS5
(`FlexEventMapToTS` of IBM's aiu-trace-analyzer). Of what receives (`SenRdmaRecv`) the peer has sent at TS2:
the device waits until then. `Power` is a 32 bit counter as well: the charge so far, in 1/512 A times cycles,
at 12 V (`compute_delta`). Kernels of torch-spyre have the five as a list, `cycles_ts`. A stamp of 0 was not
recorded.

Worked example, from a public sample: `convolution_1 Cmpt Exec` has TS3 0xc0732073 and TS4 0xc0736e0e, 19,867
cycles, and lasts 35.664 µs: the clock runs at 557 MHz.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ..base.arrays import EMPTY, F64, I64, AnyArray, Intervals, distinct, merge
from ..base.cached_per_object import cached_per_object
from ..base.numbers import whole_number
from ..index.flex import PREPARES, flex_work, is_flex, preparations
from ..index.store import Index
from ..query.args import arguments_read

STAMPS = ("TS1", "TS2", "TS3", "TS4", "TS5")
LIST = "cycles_ts"
"""The argument of torch-spyre's kernels that has them all."""
COUNTERS = (*STAMPS, "Power")
PHASES = (
    (re.compile(r"\bDmaI\b"), 0),
    (PREPARES, 1),
    (re.compile(r"\bCmpt Exec\b"), 2),
    (re.compile(r"\bDmaO\b"), 3),
)
"""Names of slices that are one phase, and the stamp at which it begins; it ends at the next."""
SPANS = {"wait": 0, "in": 0, "prepare": 1, "compute": 2, "out": 3}
"""What a device does between two stamps, and the first of them."""
RECEIVES = re.compile(r"\bSenRdmaRec")
WRAP = 1 << 32
MIN_SLICES, ALIKE_SHARE, ALIKE_MHZ = 3, 0.5, 0.05
"""So many slices must tell the clock, and this share of them within this part of the median."""
LOOKED_AT = 256
"""The stamps of so many slices are read to tell whose doing they are."""
VOLTS, LSB, MAX_WATTS = 12, 512, 100
"""What no card draws is a broken stamp; the analyzer has the same limit."""


@dataclass(frozen=True, eq=False)
class FlexStamps:
    """The n stamped slices of a trace of an AIU, by position."""

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
        if len(speeds) < MIN_SLICES:
            return None
        usual = float(np.median(speeds))
        near = np.count_nonzero(np.abs(speeds - usual) <= ALIKE_MHZ * usual)
        return usual if near >= ALIKE_SHARE * len(speeds) else None

    def of_phase(self, phase: str) -> I64:
        """Return the cycles of each slice in one of SPANS, -1 where they were not recorded: what receives
        waits for its peer in the time in which data comes in.
        """
        begin = SPANS[phase]
        cycles = self.cycles(begin, begin + 1)
        if phase not in ("wait", "in"):
            return cycles
        receives = np.array([RECEIVES.search(name) is not None for name in self.names], np.bool_)
        return np.where(receives == (phase == "wait"), cycles, -1)

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
        # Both counters begin again at 2^32, and a difference modulo 2^32 is right over one such turn: from
        # 4,294,967,000 to 704 are 1,000. The charge turns over after a million cycles at MAX_WATTS, 1.8 ms at
        # 557 MHz: over longer distances nobody knows how often.
        cycles, drawn = np.diff(done[rows]) % WRAP, np.diff(charge[rows]) % WRAP
        watts = VOLTS * drawn / LSB / np.maximum(1, cycles)
        sound = (cycles > 0) & (cycles * MAX_WATTS * LSB / VOLTS < WRAP) & (watts < MAX_WATTS)
        return rows[1:][sound], moments[rows[1:]][sound], watts[sound]


@cached_per_object()
def preparing_slices(index: Index) -> I64:
    """Return the slices in which a device prepares kernels: those of `Cmpt Prep`, where most of LOOKED_AT of
    them last as long as from TS2 to TS3 at the clock that all of these slices or the device's work tell; none
    where they do not, as the host prepares then. Raises UnreadableError where the source has gone.
    """
    none = np.empty(0, np.int64)
    if not is_flex(index):
        return none
    names = index.column("slices.name")
    positions = np.flatnonzero(np.isin(names, preparations(index))).astype(np.int64)
    if not len(positions):
        return none
    work = np.flatnonzero(np.isin(names, flex_work(index))).astype(np.int64)
    known = [flex_stamps(index, _spread(some)) for some in (work, positions)]
    mhz = next((one.mhz for one in known if one is not None and one.mhz is not None), None)
    own = known[1]
    if mhz is None or own is None:
        return none
    stated = own.stated_ns(mhz)
    alike = np.abs(own.durations - stated) <= ALIKE_MHZ * stated
    return positions if np.count_nonzero(alike) >= ALIKE_SHARE * min(LOOKED_AT, len(positions)) else none


def _spread(positions: I64) -> I64:
    """Return LOOKED_AT of some positions at most, from all over the file."""
    return positions[
        distinct(np.linspace(0, len(positions) - 1, LOOKED_AT).astype(np.int64))[: len(positions)]
    ]


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
    return _stamps_at(index, positions, STAMPS[0])


def work_stamps(index: Index, positions: AnyArray) -> FlexStamps:
    """Return the stamps of slices of a device, in either spelling; those without any are left out. Raises
    UnreadableError where the source has gone or changed.
    """
    return _stamps_at(index, np.asarray(positions, np.int64), STAMPS[0] if is_flex(index) else LIST)


def _stamps_at(index: Index, positions: I64, needle: str) -> FlexStamps:
    counters = np.full((len(positions), len(COUNTERS)), -1, np.int64)
    for row, arguments in arguments_read(index, positions, needle=needle.encode()):
        listed = arguments.get(LIST)
        if isinstance(listed, list) and len(listed) == len(STAMPS):
            arguments = {**dict(zip(STAMPS, listed)), "Power": arguments.get("Power")}
        counters[row] = [_counter(arguments.get(key)) for key in COUNTERS]
    counters[:, : len(STAMPS)][counters[:, : len(STAMPS)] == 0] = -1  # not recorded
    stamped = (counters[:, : len(STAMPS)] >= 0).any(axis=1)
    positions, counters = positions[stamped], counters[stamped]
    texts = index.strings(index.column("slices.name")[positions])
    return FlexStamps(positions, texts, counters, index.duration(positions))


def _counter(value: object) -> int:
    """Return a counter, which stands as a number or as decimal or hexadecimal text; -1 for anything else."""
    if isinstance(value, str):
        try:
            value = whole_number(value, 0)
        except ValueError:
            return -1
    return value if type(value) is int and 0 <= value < 1 << 63 else -1
