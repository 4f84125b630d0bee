"""Rules about how busy the devices are, and what they wait for."""

from __future__ import annotations

import re

import numpy as np

from ...base.intervals import Intervals, merge
from ...base.units import format_ns, format_share
from ...index.format import NONE
from ...ingest.columns import AnyArray
from ..idle import CLASSES, stream_gaps
from ..kinds import COPY_CATEGORIES
from ..op_events import OP
from ..steps import COLLECTIVE_OPS
from .facts import Facts, counted, share, union_of
from .finding import Found, NotJudged, Verdict
from .rules import RULES

NO_HOST = NotJudged("the trace holds no host slices")
NO_LAUNCHES = NotJudged("the trace does not say which call launched the device work")
COPY = re.compile(r"memcpy|^dma|\bDma[IO]\b|^Copy(Host|Device|Buffer)", re.IGNORECASE)
HOST_WAIT = CLASSES.index("host_wait")
COLLECTIVE = re.compile("^(" + "|".join(COLLECTIVE_OPS) + ")")


def overhead_bound(facts: Facts) -> Verdict:
    """The host keeps the device waiting, and is busy meanwhile."""
    if not facts.works:
        return facts.no_device
    if not len(facts.host):
        return NO_HOST
    limits = RULES["overhead-bound"].limits
    host = facts.host_busy.clipped(*facts.window).length
    blamed = facts.idle.intersection(facts.host_busy)
    busy = facts.busy.length
    if (
        busy >= limits["busy_share"] * facts.window_ns
        or host < limits["ratio"] * busy
        or blamed.length < limits["host_share"] * facts.idle.length
    ):
        return None
    used, during = format_share(share(busy, facts.window_ns)), share(blamed.length, facts.idle.length)
    times = f"{host / busy:.1f} times as long" if busy else "without it"
    text = (
        f"{facts.device_is} busy in only {used} of the {format_ns(facts.window_ns)} from first to last work; "
        f"the host is busy {times}, and during {format_share(during)} of the idle time"
    )
    return Found(text, facts.longest_windows("longest idle gap", facts.idle), blamed)


def device_idle(facts: Facts) -> Verdict:
    """The device does little, and the trace does not show that the host is to blame."""
    if not facts.works:
        return facts.no_device
    busy = facts.busy.length
    if busy >= RULES["device-idle"].limits["busy_share"] * facts.window_ns:
        return None
    if isinstance(overhead_bound(facts), Found):
        return None
    text = (
        f"{facts.device_is} busy in only {format_share(share(busy, facts.window_ns))} of the "
        f"{format_ns(facts.window_ns)} from first to last work"
    )
    return Found(text, facts.longest_windows("longest idle gap", facts.idle), facts.idle)


def device_bound(facts: Facts) -> Verdict:
    """The device is the limit."""
    if not facts.works:
        return facts.no_device
    busy = facts.busy.length
    if not facts.window_ns or busy < RULES["device-bound"].limits["busy_share"] * facts.window_ns:
        return None
    kind = max(facts.types, key=lambda name: facts.types[name].length)
    text = (
        f"{facts.device_is} busy in {format_share(share(busy, facts.window_ns))} of the "
        f"{format_ns(facts.window_ns)} from first to last work, mostly {kind}: the device is the limit"
    )
    return Found(text, facts.longest_windows("longest stretch of work", facts.busy), facts.busy)


def launch_gaps(facts: Facts) -> Verdict:
    """Streams stand still because the next launch comes late."""
    if not facts.works:
        return facts.no_device
    if not any((side.launches != NONE).any() for side in facts.sides):
        return NO_LAUNCHES
    limits = RULES["launch-gaps"].limits
    waits: list[Intervals] = []
    longest: tuple[int, int, int] = (0, 0, 0)  # ns, launch, its start
    idle = late = count = 0
    for work, side in zip(facts.works, facts.sides):
        for stream, places in work.by_stream():
            gaps = stream_gaps(work, side, stream, places)
            of_host = gaps.kinds == HOST_WAIT
            length = gaps.ends - gaps.starts
            idle += gaps.idle_ns
            late += int(length[of_host].sum())
            count += int(of_host.sum())
            waits.append(merge(gaps.starts[of_host], gaps.ends[of_host]))
            if of_host.any():
                at = int(np.argmax(np.where(of_host, length, -1)))
                longest = max(longest, (int(length[at]), int(gaps.launches[at]), int(gaps.launch_starts[at])))
    claim = union_of(waits).intersection(facts.idle)
    if late < limits["class_share"] * idle or claim.length < limits["share"] * facts.window_ns or not count:
        return None
    ns, launch, start = longest
    text = (
        f"In {counted(count, 'gap')}, {format_ns(claim.length)} altogether, the device waits for a launch "
        f"made after the work before was done: {format_share(share(late, idle))} of the streams' idle time"
    )
    end = start + int(facts.index.duration([launch])[0])
    label = f"the launch that ended the longest gap of a stream ({format_ns(ns)}): {facts.name(launch)}"
    shown = facts.slice(label, launch, start, end)
    return Found(text, (*facts.longest_windows("longest wait", claim), shown), claim)


def communication(facts: Facts) -> Verdict:
    """Communication that nothing hides."""
    limit = RULES["communication"].limits["share"]
    if facts.works:
        claim = facts.types["communication"].without(facts.types["compute"])
        what = "communication that no compute hides"
    else:
        places = facts.host.named(COLLECTIVE, OP)
        claim = facts.host.union(places)
        what = "collective operators on the host"
    whole = facts.judged.length
    inside = claim.intersection(facts.judged)
    if not inside.length or inside.length <= limit * whole:
        return None
    text = (
        f"{format_ns(inside.length)}, {format_share(share(inside.length, whole))} of {_of(facts)}, is {what}"
    )
    return Found(text, facts.longest_windows("longest", inside), inside)


def copies(facts: Facts) -> Verdict:
    """Copies that nothing hides."""
    if not facts.works:
        return facts.no_device
    sets, count = [], 0
    for work in facts.works:
        mask = _copies(facts, work.names, work.categories)
        count += int(mask.sum())
        sets.append(merge(work.starts[mask], work.ends[mask]))
    claim = union_of(sets).without(facts.types["compute"])
    part = share(claim.length, facts.busy.length)
    if not claim.length or part < RULES["copies"].limits["share"]:
        return None
    text = (
        f"{count:,} copies take {format_ns(claim.length)} that no compute hides: {format_share(part)} of the "
        "time in which the device works"
    )
    return Found(text, facts.longest_windows("longest copying", claim), claim)


def first_kernel(facts: Facts) -> Verdict:
    """The work of the first launch starts late."""
    if not facts.works:
        return facts.no_device
    calls, kernels, delays = [], [], []
    for number, (work, side) in enumerate(zip(facts.works, facts.sides)):
        known = np.flatnonzero(side.launches != NONE)
        ends = side.starts[known] + facts.index.duration(side.launches[known])
        delays.append(np.maximum(0, work.starts[known] - ends))
        calls.append(side.starts[known])
        kernels.append(np.stack([np.full(len(known), number), known]))
    start, delay = np.concatenate(calls), np.concatenate(delays)
    if len(start) < 2:
        return NO_LAUNCHES if not len(start) else None
    limits = RULES["first-kernel"].limits
    at = int(np.argmin(start))
    late, median = int(delay[at]), float(np.median(delay))
    if late < limits["delay_ns"] or late < limits["times"] * median:
        return None
    number, place = (int(value) for value in np.concatenate(kernels, axis=1)[:, at])
    work, launch = facts.works[number], int(facts.sides[number].launches[place])
    begun = int(work.starts[place])
    claim = _between(begun - late, begun)
    text = (
        f"The first work starts {format_ns(late)} after its launch; the median is {format_ns(median)}: the "
        "profiler's first buffer, or a cold device"
    )
    evidence = (
        facts.slice("the first launch", launch, int(start[at]), begun - late),
        facts.on_device("what it launched", work, place),
    )
    return Found(text, evidence, claim)


def _copies(facts: Facts, names: AnyArray, categories: AnyArray) -> AnyArray:
    """Return which pieces of work are copies; allocations, which AIU writes as memsets, are none."""
    pairs, which = np.unique(names.astype(np.int64) << 32 | categories.astype(np.int64), return_inverse=True)
    good = []
    for pair in pairs.tolist():
        text, category = facts.index.string(pair >> 32), facts.index.categories[pair & 0xFFFF_FFFF]
        copying = category in COPY_CATEGORIES and "emset" not in category
        good.append(copying or COPY.search(text) is not None)
    copies: AnyArray = np.array(good, np.bool_)[which]
    return copies


def _between(start: int, end: int) -> Intervals:
    return merge(np.array([start], np.int64), np.array([end], np.int64))


def _of(facts: Facts) -> str:
    return "the step time" if facts.steps is not None else "the time looked at"
