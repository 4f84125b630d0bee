"""Cycles of an AIU: what the stamps of a FLEX job trace say of its clock, phases and power, and the ideal
cycles of kernels as its compiler counts them, with the share of the PT array that they are.

Each slice of a device carries TS1 to TS5, readings of its 32 bit counter of cycles: data comes in between TS1
and TS2, work is prepared to TS3 and done to TS4, data goes out to TS5 (`FlexEventMapToTS` of IBM's
aiu-trace-analyzer). Of what receives (`SenRdmaRecv`) the peer has sent at TS2: the device waits until then.
`Power` is a 32 bit counter as well: the charge so far, in 1/512 A times cycles, at 12 V (`compute_delta`).

Worked example, from a public sample: `convolution_1 Cmpt Exec` has TS3 0xc0732073 and TS4 0xc0736e0e, 19,867
cycles, and lasts 35.664 µs: the clock runs at 557 MHz.

Ideal cycles are read from a log of DeepRT, whose tables begin with "Ideal/Total Cycles", end with "Perf
Summary End" and have lines such as

    convolution_1-opCatConv_fp16                 12544

and from a cache folder of Inductor with inductor-spyre/KERNEL/perf/ideal_cycles.json, a list of entries with
`ideal_cycles` (SENPERFORMANCE=2). The forms and the formula are those of aiu-trace-analyzer
(pipeline/rcu_utilization.py): pt_share = ideal cycles / core MHz / the kernel's µs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...base.arrays import EMPTY, F64, I64, AnyArray, Intervals, merge
from ...base.errors import UnreadableError, UsageError
from ...base.numbers import json_value, whole_number
from ...base.private import open_regular, reason_of, stays_in
from ...base.units import count_of
from ...index.flex import flex_work, is_flex
from ...index.store import Index
from ...query.args import arguments_read
from ..frame.frame import Frame
from ..frame.shape import Ask, flagged, n, ratio_of, total
from ..registry import IDEAL

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
MIN_SLICES, ALIKE_SHARE, ALIKE_MHZ = 3, 0.5, 0.05
"""So many slices must tell the clock, and this share of them within this part of the median."""
VOLTS, LSB, MAX_WATTS = 12, 512, 100
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
        if len(speeds) < MIN_SLICES:
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
        sound = (cycles > 0) & (cycles * MAX_WATTS * LSB / VOLTS < WRAP) & (watts < MAX_WATTS)
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
            value = whole_number(value, 0)
        except ValueError:
            return -1
    return value if type(value) is int and 0 <= value < 1 << 63 else -1


CORE_MHZ = 1100.0
"""The clock for which the compiler counts, unless said otherwise; no file tells it."""
BEGINS, ENDS = " Ideal/Total Cycles ", "====== Perf Summary End ======"
LINE = re.compile(r"([-\w]+?)(?:-opCat\w+|-NA)?\s+(\d{1,12})\s*$")
LEFT_OUT = re.compile(r"Precompute|-LxPreload|^Total$")
EXECUTION = " Cmpt Exec"
"""What FLEX adds to the name of a kernel where it runs."""
MAX_FILES, MAX_CYCLES, MAX_BYTES = 5000, 10**12, 16 << 20
"""More cycles of a call, a quarter of an hour, are no number of a compiler."""


class IdealCycles(NamedTuple):
    """What a call of each kernel needs, several numbers where tables disagree, and the cores' clock."""

    of_call: Mapping[str, set[int]]
    mhz: float = CORE_MHZ
    notes: tuple[str, ...] = ()


NO_CYCLES = IdealCycles({})


def parse_ideal(text: str) -> IdealCycles:
    """Return what "ideal:PATH" or "ideal:PATH@MHZ" means; UsageError and UnreadableError as
    `read_ideal_cycles`.
    """
    match = re.fullmatch(IDEAL, text, re.DOTALL)
    if match is None or not match["path"]:
        raise UsageError(f"{text!r} names no file of ideal cycles: ideal:PATH, or ideal:PATH@MHZ")
    mhz = CORE_MHZ if match["mhz"] is None else float(match["mhz"])
    if not mhz:
        raise UsageError("a clock of 0 MHz is none")
    return read_ideal_cycles(Path(match["path"]))._replace(mhz=mhz)


def read_ideal_cycles(path: Path) -> IdealCycles:
    """Return the ideal cycles of each kernel: several where tables disagree (prefill and decoding, say). The
    notes name the files of a folder that cannot be read, or lead out of it.

    UsageError for a path that is not there, UnreadableError for one without such cycles.
    """
    if not path.exists():
        raise UsageError(f"there is no file or folder {path}")
    try:
        ideal = _of_folder(path) if path.is_dir() else IdealCycles(_of_log(path))
    except (OSError, ValueError) as error:
        raise UnreadableError(f"{path}: cannot be read: {error}") from None
    if not ideal.of_call:
        what = (
            "no inductor-spyre/KERNEL/perf/ideal_cycles.json" if path.is_dir() else "no table of ideal cycles"
        )
        raise UnreadableError("; ".join([f"{path}: {what} in it", *ideal.notes]))
    return ideal


def ideal_asks(work: Frame, ideal: IdealCycles) -> tuple[dict[str, tuple[str, Ask]], tuple[str, ...]]:
    """Return two columns, the ideal cycles of a call and the share of the PT array, and notes on them."""
    names = [name.removesuffix(EXECUTION) for name in work.name.texts]
    known = [ideal.of_call.get(name, set()) for name in names]
    each = np.array([next(iter(one)) if len(one) == 1 else np.nan for one in known], np.float64)
    values = each[work.name.codes]
    has = ~np.isnan(values)
    sums = total(lambda _: np.where(has, values, 0).astype(np.int64))
    mean = ratio_of(sums, n(lambda _: has))
    per_ns = ratio_of(sums, total(lambda frame: np.where(has, frame.dur, 0)))
    share = Ask(lambda groups: np.asarray(per_ns.of(groups)) * 1000 / ideal.mhz)
    several = sum(len(one) > 1 for one in known)
    notes = [*ideal.notes, f"PT share is for cores of {ideal.mhz:g} MHz"]
    if several:
        notes.append(f"{count_of(several, 'kernel')} left out: tables of the compiler disagree on the cycles")
    if (values[has] * 1000 / ideal.mhz > work.dur[has]).any():
        notes.append("a share above 100 %: the cores' clock is higher, or the log is of another program")
    columns = {
        "pt_share": ("PT share", flagged(share, "statistic")),
        "ideal_cycles": ("Ideal cycles", flagged(mean, "statistic")),
    }
    return columns, tuple(notes)


def _of_log(path: Path) -> dict[str, set[int]]:
    cycles: dict[str, set[int]] = {}
    is_inside = False
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if BEGINS in line or ENDS in line:
                is_inside = BEGINS in line
            elif is_inside and (match := LINE.match(line)) and not LEFT_OUT.search(line.split()[0]):
                cycles.setdefault(match[1], set()).add(whole_number(match[2]))
    return cycles


def _of_folder(path: Path) -> IdealCycles:
    cycles: dict[str, set[int]] = {}
    notes = []
    files = sorted(path.glob("inductor-spyre/*/perf/ideal_cycles.json"))[:MAX_FILES]
    for file in files:
        kernel = file.parent.parent.name
        try:
            if not stays_in(file, path):
                raise ValueError("a link that leads out of the folder")
            with open(open_regular(file), "rb") as stream:
                entries = json_value(stream.read(MAX_BYTES))
        except OSError as error:
            notes.append(f"ideal cycles of {kernel}: not read: {reason_of(error)}")
            continue
        except ValueError as error:
            notes.append(f"ideal cycles of {kernel}: not read: {error}")
            continue
        numbers = [
            (str(entry.get("op_category")), entry["ideal_cycles"])
            for entry in (entries if isinstance(entries, list) else [entries])
            if isinstance(entry, dict)
            and type(entry.get("ideal_cycles")) is int
            and 0 <= entry["ideal_cycles"] < MAX_CYCLES
        ]
        whole = [number for category, number in numbers if category.upper() == "TOTAL"]
        if numbers:
            cycles[kernel] = {whole[0] if whole else sum(number for _, number in numbers)}
    return IdealCycles(cycles, notes=tuple(notes))
