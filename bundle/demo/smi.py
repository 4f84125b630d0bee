"""A log as `aiu-smi dmon -d 0.1` 1.3.1 prints it, whose power follows the demo's kernels.

A row is the average over the 100 ms that end at its stamp; stamps are local time in whole seconds (here UTC),
so that ten rows of a device share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeAlias

from .noise import Noise
from .rank import MS

INTERVAL = 100 * MS
SAMPLE = 10 * MS
"""aiu-smi looks every 10 ms; `busy` is the share of looks that saw any traffic."""
LEAD, TAIL = 1_700 * MS, 1_400 * MS
NOT_READY = 3
"""Rows before the counters are there."""
IDLE_WATTS = 206  # tenths
GIB = 1 << 30
BUSES = ("0000:13:00.0", "0000:12:00.0")
HEADER = (
    "#ID Date      Time      hostcpu hostmem    pwr  tempr   busy    rdmem    wrmem    rxpci    txpci   "
    "rdrdma   wrrdma   pt_act\n"
    "#   YYYYMMDD  HH:MM:SS        %       %      W      C      %    GiB/s    GiB/s    GiB/s    GiB/s    "
    "GiB/s    GiB/s        %\n"
)

Busy: TypeAlias = Sequence[tuple[int, int, int]]
"""Kernels: start and end in ns since the demo's start, tenths of a watt above idle."""
Transfers: TypeAlias = Sequence[tuple[int, int, int, bool]]
"""Copies: start, end, bytes, whether towards the device."""


def smi_log(devices: Sequence[tuple[Busy, Transfers]], start_ns: int, duration: int, seed: int) -> str:
    """Return the log of all devices from before the run until after it; `start_ns` is UTC since the epoch."""
    noise = Noise(seed ^ 0xA1)
    lines = ["#MetricFiles\n"]
    lines += [f"#{number:>2} /tmp/metrics.{bus}\n" for number, bus in zip(range(len(devices)), BUSES)]
    lines.append(HEADER)
    ticks = (LEAD + duration + TAIL) // INTERVAL
    for tick in range(ticks):
        end = (tick + 1) * INTERVAL - LEAD
        stamp = datetime.fromtimestamp((start_ns + end) // (1000 * MS), UTC).strftime("%Y%m%d  %H:%M:%S")
        host = noise.around(1380 if 0 < end < duration else 240, 5)
        for number, (busy, transfers) in enumerate(devices):
            head = f"{number:>3} {stamp} {_tenths(host):>8} {'3.4':>7}"
            if tick < NOT_READY:
                lines.append(head + f" {'-':>6}" * 3 + f" {'-':>8}" * 7 + "\n")
            else:
                lines.append(head + _device_row(number, busy, transfers, end, tick, noise) + "\n")
    return "".join(lines)


def _device_row(number: int, busy: Busy, transfers: Transfers, end: int, tick: int, noise: Noise) -> str:
    begin = end - INTERVAL
    energy = sum(_overlap(a, b, begin, end) * watts for a, b, watts in busy)
    share = sum(_overlap(a, b, begin, end) for a, b, _ in busy) * 1000 // INTERVAL
    looks = range(begin + SAMPLE, end + 1, SAMPLE)
    busy_share = sum(any(a <= look < b for a, b, _ in busy) for look in looks) * 100 // len(looks)
    watts = IDLE_WATTS + 9 * number + energy // INTERVAL + noise.below(5) - 2
    if tick == NOT_READY:
        watts = 4  # the first row averages over looks that saw nothing yet
    heat = 418 + 6 * number + min(tick, 60) // 6 + share // 250
    reading, writing = share * 24, share * 7  # thousandths of a GiB/s at full load: 24 and 7
    towards, back = (_rate(transfers, begin, end, inwards) for inwards in (True, False))
    activity = energy * 100 // (INTERVAL * 4)
    columns = [f" {_tenths(watts):>6} {_tenths(heat):>6} {busy_share:>6}"]
    rates = (reading, writing, towards, back, 0, 0)
    columns += [f" {rate // 1000}.{rate % 1000:03d}".rjust(9) for rate in rates]
    columns.append(f" {activity // 100}.{activity % 100:02d}".rjust(9))
    return "".join(columns)


def _overlap(a: int, b: int, begin: int, end: int) -> int:
    return max(0, min(b, end) - max(a, begin))


def _rate(transfers: Transfers, begin: int, end: int, inwards: bool) -> int:
    """Return thousandths of a GiB/s moved one way in the interval."""
    total = sum(
        size * _overlap(a, b, begin, end) // (b - a) for a, b, size, way in transfers if way is inwards
    )
    return total * 1000 * (1000 * MS) // (INTERVAL * GIB)


def _tenths(value: int) -> str:
    return f"{value // 10}.{value % 10}"
