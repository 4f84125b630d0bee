"""Ideal cycles of an AIU's kernels as its compiler counts them, with the share of the PT array that they are,
and the cycles that its own stamps count (`core/trace/cycle_stamps.py`).

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
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...base.arrays import I64, AnyArray
from ...base.errors import UnreadableError, UsageError
from ...base.numbers import json_value, whole_number
from ...base.private import open_regular, reason_of, stays_in
from ...base.units import count_of
from ...trace.cycle_stamps import SPANS, work_stamps
from ..frame.frame import Frame
from ..frame.shape import Aggregate, flagged, n, ratio_of, total
from ..registry import IDEAL

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


def ideal_aggregates(
    work: Frame, ideal: IdealCycles
) -> tuple[dict[str, tuple[str, Aggregate]], tuple[str, ...]]:
    """Return two columns, the ideal cycles of a call and the share of the PT array, and notes on them."""
    names = [name.removesuffix(EXECUTION) for name in work.name.texts]
    known = [ideal.of_call.get(name, set()) for name in names]
    each = np.array([next(iter(one)) if len(one) == 1 else np.nan for one in known], np.float64)
    values = each[work.name.codes]
    has = ~np.isnan(values)
    sums = total(lambda _: np.where(has, values, 0).astype(np.int64))
    mean = ratio_of(sums, n(lambda _: has))
    per_ns = ratio_of(sums, total(lambda frame: np.where(has, frame.dur, 0)))
    share = Aggregate(lambda groups: np.asarray(per_ns.of(groups)) * 1000 / ideal.mhz)
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


def _mean(values: I64) -> Aggregate:
    """Take the mean of the values that are known: those below 0 are not."""
    has = values >= 0
    return ratio_of(total(lambda _: np.where(has, values, 0)), n(lambda _: has))


def stamp_aggregates(work: Frame) -> tuple[dict[str, tuple[str, Aggregate]], tuple[str, ...]]:
    """Return a column for each phase, its mean cycles over the calls that recorded it, and notes on them.
    Raises UsageError where no slice has stamps.
    """
    stamps = {part.source_number: work_stamps(part.index, part.position) for part in work.by("source")}

    def cycles_in(phase: str, part: Frame) -> AnyArray:
        own = stamps[part.source_number]
        order = np.argsort(part.position, kind="stable")
        cycles = np.full(len(part), -1, np.int64)
        cycles[order[np.searchsorted(part.position[order], own.positions)]] = own.of_phase(phase)
        return cycles

    cycles = {phase: work.from_parts(partial(cycles_in, phase)) for phase in SPANS}
    if not any((values >= 0).any() for values in cycles.values()):
        raise UsageError("no kernel has the stamps of an AIU's cycles (TS1 to TS5, cycles_ts)")
    columns = {
        f"{phase}_cycles": (f"{phase} cycles", flagged(_mean(values), "statistic"))
        for phase, values in cycles.items()
    }
    clocks = {one.mhz for one in stamps.values() if one.mhz is not None}
    speeds = ", ".join(f"{mhz:,.0f} MHz" for mhz in sorted(clocks))
    note = f"by the slices' own times the device's clock runs at {speeds}" if speeds else ""
    return columns, (note,) if note else ()


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
