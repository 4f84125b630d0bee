"""Ideal cycles of an AIU's kernels, as its compiler counts them, and the share of the PT array that they are.

Read are a log of DeepRT, whose tables begin with "Ideal/Total Cycles", end with "Perf Summary End" and have
lines such as

    convolution_1-opCatConv_fp16                 12544

and a cache folder of Inductor with inductor-spyre/KERNEL/perf/ideal_cycles.json, a list of entries with
`ideal_cycles` (SENPERFORMANCE=2). The forms and the formula are those of IBM's aiu-trace-analyzer
(pipeline/rcu_utilization.py): pt_share = ideal cycles / core MHz / the kernel's µs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..base.errors import UnreadableError, UsageError
from ..base.units import count_of
from .frame import Frame
from .shape import Ask, flagged, n, ratio_of, total

CORE_MHZ = 1100.0
"""The clock for which the compiler counts, unless said otherwise; no file tells it."""
BEGINS, ENDS = " Ideal/Total Cycles ", "====== Perf Summary End ======"
LINE = re.compile(r"([-\w]+?)(?:-opCat\w+|-NA)?\s+(\d{1,12})\s*$")
LEFT_OUT = re.compile(r"Precompute|-LxPreload|^Total$")
EXECUTION = " Cmpt Exec"
"""What FLEX adds to the name of a kernel where it runs."""
CLOCK = re.compile(r"\d{1,6}(\.\d{1,6})?")
MOST_FILES, MOST_CYCLES = 5000, 10**12
"""More cycles of a call, a quarter of an hour, are no number of a compiler."""


class IdealCycles(NamedTuple):
    """What a call of each kernel needs, several numbers where tables disagree, and the cores' clock."""

    of_call: Mapping[str, set[int]]
    mhz: float = CORE_MHZ


NO_CYCLES = IdealCycles({})


def parse_ideal(text: str) -> IdealCycles:
    """Return what "PATH" or "PATH@MHZ" means; UsageError and UnreadableError as `read_ideal_cycles`."""
    path, _, clock = text.rpartition("@")
    if not path or not CLOCK.fullmatch(clock):
        return IdealCycles(read_ideal_cycles(Path(text)))
    if not float(clock):
        raise UsageError("a clock of 0 MHz is none")
    return IdealCycles(read_ideal_cycles(Path(path)), float(clock))


def read_ideal_cycles(path: Path) -> dict[str, set[int]]:
    """Return the ideal cycles of each kernel: several where tables disagree (prefill and decoding, say).

    UsageError for a path that is not there, UnreadableError for one without such cycles.
    """
    if not path.exists():
        raise UsageError(f"there is no file or folder {path}")
    try:
        cycles = _of_folder(path) if path.is_dir() else _of_log(path)
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableError(f"{path}: cannot be read: {error}") from None
    if not cycles:
        what = (
            "no inductor-spyre/KERNEL/perf/ideal_cycles.json" if path.is_dir() else "no table of ideal cycles"
        )
        raise UnreadableError(f"{path}: {what} in it")
    return cycles


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
    notes = [f"PT share is for cores of {ideal.mhz:g} MHz"]
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
                cycles.setdefault(match[1], set()).add(int(match[2]))
    return cycles


def _of_folder(path: Path) -> dict[str, set[int]]:
    cycles: dict[str, set[int]] = {}
    files = sorted(path.glob("inductor-spyre/*/perf/ideal_cycles.json"))[:MOST_FILES]
    for file in files:
        entries = json.loads(file.read_bytes())
        numbers = [
            (str(entry.get("op_category")), entry["ideal_cycles"])
            for entry in (entries if isinstance(entries, list) else [entries])
            if isinstance(entry, dict)
            and type(entry.get("ideal_cycles")) is int
            and 0 <= entry["ideal_cycles"] < MOST_CYCLES
        ]
        whole = [number for category, number in numbers if category.upper() == "TOTAL"]
        if numbers:
            cycles[file.parent.parent.name] = {whole[0] if whole else sum(number for _, number in numbers)}
    return cycles
