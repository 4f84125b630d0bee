"""Rules about how busy the devices are, and what they wait for."""

from __future__ import annotations

import re

import numpy as np

from ...base.arrays import AnyArray
from ...base.intervals import Intervals, merge
from ...base.units import format_ns, format_share
from ...index.format import NONE
from ..idle import CLASSES, stream_gaps
from ..kinds import COPY_CATEGORIES
from ..op_events import OP
from ..steps import COLLECTIVE_OPS
from .facts import SourceFacts, counted, share, union_of
from .finding import NotJudged, Observation, Outcome
from .rule import GUIDE, HTA, OWN, TENSORBOARD, Limits, rule

NO_HOST = NotJudged("the trace holds no host slices")
NO_LAUNCHES = NotJudged("the trace does not say which call launched the device work")
COPY = re.compile(r"memcpy|^dma|\bDma[IO]\b|^Copy(Host|Device|Buffer)", re.IGNORECASE)
HOST_WAIT = CLASSES.index("host_wait")
COLLECTIVE = re.compile("^(" + "|".join(COLLECTIVE_OPS) + ")")


@rule(
    "overhead-bound",
    "Overhead-bound",
    (
        "the device is busy less than {busy_share} of the time from its first to its last work, the host at "
        "least {ratio} times as long, and during at least {host_share} of the idle time"
    ),
    origin=f"{GUIDE}; utilisation below 50 %: {TENSORBOARD}",
    helps=(
        "Fewer and larger kernels: a larger batch, fusion (torch.compile), graphs (CUDA graphs, whole-graph "
        "launches); less Python between launches."
    ),
    limits={"busy_share": 0.5, "ratio": 2, "host_share": 0.5},
)
def overhead_bound(facts: SourceFacts, limits: Limits) -> Outcome:
    """The host keeps the device waiting, and is busy meanwhile."""
    if not facts.works:
        return facts.no_device
    if not len(facts.host):
        return NO_HOST
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
    return Observation(text, facts.longest_windows("longest idle gap", facts.idle), blamed)


@rule(
    "device-idle",
    "Device idle",
    (
        "the device is busy less than {busy_share} of the time from its first to its last work, and the host "
        "does not account for the idle time (else it is overhead-bound)"
    ),
    origin=TENSORBOARD,
    helps=(
        "Look at what the longest gaps wait for: input, another rank, a synchronisation, work that is not "
        "traced."
    ),
    limits={"busy_share": 0.5},
)
def device_idle(facts: SourceFacts, limits: Limits) -> Outcome:
    """The device does little, and the trace does not show that the host is to blame."""
    if not facts.works:
        return facts.no_device
    busy = facts.busy.length
    if busy >= limits["busy_share"] * facts.window_ns:
        return None
    if isinstance(overhead_bound(facts), Observation):
        return None
    text = (
        f"{facts.device_is} busy in only {format_share(share(busy, facts.window_ns))} of the "
        f"{format_ns(facts.window_ns)} from first to last work"
    )
    return Observation(text, facts.longest_windows("longest idle gap", facts.idle), facts.idle)


@rule(
    "device-bound",
    "Device-bound",
    "the device is busy at least {busy_share} of the time from its first to its last work",
    origin=f"{GUIDE}; the limit is {OWN}",
    helps=(
        "The host keeps up: faster kernels are what helps. Start with those that take most time; lower "
        "precision, better tiling, fusion of what only moves memory; where it is communication, less of it."
    ),
    limits={"busy_share": 0.8},
)
def device_bound(facts: SourceFacts, limits: Limits) -> Outcome:
    """The device is the limit."""
    if not facts.works:
        return facts.no_device
    busy = facts.busy.length
    if not facts.window_ns or busy < limits["busy_share"] * facts.window_ns:
        return None
    kind = max(facts.types, key=lambda name: facts.types[name].length)
    text = (
        f"{facts.device_is} busy in {format_share(share(busy, facts.window_ns))} of the "
        f"{format_ns(facts.window_ns)} from first to last work, mostly {kind}: the device is the limit"
    )
    return Observation(text, facts.longest_windows("longest stretch of work", facts.busy), facts.busy)


@rule(
    "launch-gaps",
    "Gaps while the host launches",
    (
        "gaps that end with a launch made after the work before was done (host waits) are at least "
        "{class_share} of the streams' idle time and {share} of the time from first to last work"
    ),
    origin=f"{HTA}'s idle breakdown; the limits are {OWN}",
    helps=(
        "Launch ahead of the device: no synchronisation in the loop, less work between launches, graphs, "
        "fusion."
    ),
    limits={"class_share": 0.5, "share": 0.1},
)
def launch_gaps(facts: SourceFacts, limits: Limits) -> Outcome:
    """Streams stand still because the next launch comes late."""
    if not facts.works:
        return facts.no_device
    if not any((side.launches != NONE).any() for side in facts.sides):
        return NO_LAUNCHES
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
    return Observation(text, (*facts.longest_windows("longest wait", claim), shown), claim)


@rule(
    "communication",
    "Exposed communication",
    (
        "communication that no compute hides takes more than {share} of the step time (without steps: of the "
        "time looked at)"
    ),
    origin=f"{TENSORBOARD}, which counts hidden communication too",
    helps=(
        "Overlap it with compute (larger or earlier buckets), communicate less often (gradient "
        "accumulation) or less (compression, sharding)."
    ),
    limits={"share": 0.1},
)
def exposed_communication(facts: SourceFacts, limits: Limits) -> Outcome:
    """Communication that nothing hides."""
    limit = limits["share"]
    if facts.works:
        claim = facts.types["communication"].without(facts.types["compute"])
        what = "communication that no compute hides"
    else:
        places = facts.host.places(COLLECTIVE, OP)
        claim = facts.host.union(places)
        what = "collective operators on the host"
    whole = facts.judged.length
    inside = claim.intersection(facts.judged)
    if not inside.length or inside.length <= limit * whole:
        return None
    text = (
        f"{format_ns(inside.length)}, {format_share(share(inside.length, whole))} of {_of(facts)}, is {what}"
    )
    return Observation(text, facts.longest_windows("longest", inside), inside)


@rule(
    "copies",
    "Copies (DMA)",
    "copies that no compute hides take at least {share} of the device's busy time",
    origin=f"analyses of AIU traces (DMA share); the limit is {OWN}",
    helps=(
        "Keep data on the device between steps, copy in larger pieces, from pinned memory, asynchronously "
        "beside compute."
    ),
    limits={"share": 0.2},
)
def exposed_copies(facts: SourceFacts, limits: Limits) -> Outcome:
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
    if not claim.length or part < limits["share"]:
        return None
    text = (
        f"{count:,} copies take {format_ns(claim.length)} that no compute hides: {format_share(part)} of the "
        "time in which the device works"
    )
    return Observation(text, facts.longest_windows("longest copying", claim), claim)


@rule(
    "first-kernel",
    "The first launch waits",
    (
        "the work of the first launch starts at least {delay_ns} after its call and {times} times as late as "
        "the median"
    ),
    origin=(
        f"{GUIDE} (about 2.5 ms there: the profiler's first buffer, or a cold device); the limits are {OWN}"
    ),
    helps=(
        "Nothing, if it is the profiler: warm up before recording (schedule with wait and warmup) and do not "
        "count this step."
    ),
    limits={"delay_ns": 1_000_000, "times": 10},
)
def first_kernel(facts: SourceFacts, limits: Limits) -> Outcome:
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
    return Observation(text, evidence, claim)


def _copies(facts: SourceFacts, names: AnyArray, categories: AnyArray) -> AnyArray:
    """Return which pieces of work are copies; allocations, which AIU writes as memsets, are none."""
    pairs, which = np.unique(names.astype(np.int64) << 32 | categories.astype(np.int64), return_inverse=True)
    good = []
    for pair in pairs.tolist():
        text, category = facts.index.string(pair >> 32), facts.index.categories[pair & 0xFFFF_FFFF]
        copying = category in COPY_CATEGORIES and "emset" not in category
        good.append(copying or COPY.search(text) is not None)
    exposed_copies: AnyArray = np.array(good, np.bool_)[which]
    return exposed_copies


def _between(start: int, end: int) -> Intervals:
    return merge(np.array([start], np.int64), np.array([end], np.int64))


def _of(facts: SourceFacts) -> str:
    return "the step time" if facts.steps is not None else "the time looked at"
