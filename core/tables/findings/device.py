"""Rules about how busy the devices are, and what they wait for."""

from __future__ import annotations

import re

import numpy as np

from ...base.arrays import U32, AnyArray
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
        "in the time in which the host gives the device work (waits and blocking copies aside) the host "
        "works at least {ratio} times as long as the device, during at least {host_share} of the device's "
        "idle time; the device for less than {busy_share} of it"
    ),
    origin=f"{GUIDE}; utilisation below 50 %: {TENSORBOARD}",
    helps=(
        "Fewer and larger kernels: a larger batch, fusion (torch.compile), graphs (CUDA graphs, whole-graph "
        "launches); less Python between launches."
    ),
    limits={"busy_share": 0.5, "ratio": 2, "host_share": 0.5},
)
def overhead_bound(facts: SourceFacts, limits: Limits) -> Outcome:
    """The host takes longer to give the work than the device to do it."""
    if not facts.works:
        return facts.no_device
    if not len(facts.host):
        return NO_HOST
    low, high = facts.host_window
    host, busy = facts.host_working.clipped(low, high), facts.busy.length
    blamed, idle_ns = host.without(facts.busy), facts.busy.gaps(low, high).length
    if (
        busy >= limits["busy_share"] * (high - low)
        or host.length < limits["ratio"] * busy
        or blamed.length < limits["host_share"] * idle_ns
    ):
        return None
    times = f", {host.length / busy:.1f} times as long" if busy else ""
    used = share(busy, facts.span_ns)
    text = (
        f"The host works {format_ns(host.length)} to give the device {format_ns(busy)} of work{times}; "
        f"{facts.device_is} busy in only {format_share(used)} of {format_ns(facts.span_ns)}, "
        f"and idle in {format_share(1 - used)}"
    )
    return Observation(text, facts.longest_windows("longest idle gap", facts.all_idle), blamed)


@rule(
    "transfer-bound",
    "Bound by copies that block the host",
    (
        "copies to and from the device that the host waits for, while no kernel runs, take at least {share} "
        "of the time in which the host works or waits"
    ),
    origin=f"{GUIDE} (blocking copies); the limit is {OWN}",
    helps=(
        "Copy once, before the loop; keep data on the device; copy from pinned memory with "
        "non_blocking=True, beside compute; leave out .item(), .cpu() and prints."
    ),
    limits={"share": 0.5},
)
def transfer_bound(facts: SourceFacts, limits: Limits) -> Outcome:
    """The host spends its time in copies."""
    if not facts.works:
        return facts.no_device
    claim = facts.transferring
    if not claim.length:
        return None
    whole = facts.host.union(np.flatnonzero(facts.active)).length
    part = share(claim.length, whole)
    if part < limits["share"]:
        return None
    host, places = facts.host, facts.transfers
    longest = int(places[np.argmax((host.ends - host.starts)[places])])
    name = host.label(int(host.name[longest]))
    text = (
        f"{format_share(part)} of the host's time goes into copies that it waits for: "
        f"{format_ns(claim.length)} of {format_ns(whole)}, while no kernel runs"
    )
    return Observation(text, (facts.on_host(f"the longest: {name}", longest),), claim)


@rule(
    "device-idle",
    "Device idle",
    (
        "the device is busy less than {busy_share} of the time looked at, and neither the host's work nor "
        "blocking copies account for the idle time (else it is overhead-bound or transfer-bound)"
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
    if busy >= limits["busy_share"] * facts.span_ns:
        return None
    if any(isinstance(other(facts), Observation) for other in (overhead_bound, transfer_bound)):
        return None
    text = (
        f"{facts.device_is} busy in only {format_share(share(busy, facts.span_ns))} of "
        f"{format_ns(facts.span_ns)}"
    )
    profiling = facts.busy.gaps(*facts.span).length - facts.all_idle.length
    if profiling:
        text += f"; of the idle time {format_ns(profiling)} are the profiler's own and not counted"
    idle = facts.all_idle
    return Observation(
        text, facts.longest_windows("longest idle gap", idle), idle, work=facts.work_after(idle)
    )


@rule(
    "device-bound",
    "Device-bound",
    "the device is busy at least {busy_share} of the time looked at",
    origin=f"{GUIDE} (compute-bound); the limit is {OWN}",
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
    if not facts.span_ns or busy < limits["busy_share"] * facts.span_ns:
        return None
    kind = max(facts.types, key=lambda name: facts.types[name].length)
    text = (
        f"{facts.device_is} busy in {format_share(share(busy, facts.span_ns))} of "
        f"{format_ns(facts.span_ns)}, mostly {kind}: the device is the limit"
    )
    return Observation(
        text,
        facts.longest_windows("longest stretch of work", facts.busy),
        facts.busy,
        work=facts.all_work,
    )


@rule(
    "launch-gaps",
    "Gaps while the host launches",
    (
        "gaps that end with a launch made after the work before was done (host waits) are at least "
        "{class_share} of the streams' idle time, and, where the host does not wait for a copy meanwhile, "
        "{share} of the time from first to last work"
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
    after: list[U32] = []
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
            after.append(gaps.after[of_host])
            if of_host.any():
                at = int(np.argmax(np.where(of_host, length, -1)))
                longest = max(longest, (int(length[at]), int(gaps.launches[at]), int(gaps.launch_starts[at])))
    claim = union_of(waits).intersection(facts.idle).without(facts.transferring)
    if late < limits["class_share"] * idle or claim.length < limits["share"] * facts.window_ns or not count:
        return None
    ns, launch, start = longest
    text = (
        f"In {counted(count, 'gap')}, {format_ns(claim.length)} altogether, the device waits for a launch "
        f"made after the work before was done: {format_share(share(late, idle))} of the streams' idle time"
    )
    end = start + int(facts.index.duration([launch])[0])
    label = f"the launch that ended the longest gap of a stream ({format_ns(ns)}): {facts.name(launch)}"
    last = facts.slice(label, launch, start, end)
    evidence = (*facts.longest_windows("longest wait", claim), last)
    return Observation(text, evidence, claim, work=np.unique(np.concatenate(after)))


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
        "the work of the first launch starts at least {delay_ns} after its call, with nothing before it on "
        "its stream, and {times} times as late as the median of the others (waiting for earlier work aside)"
    ),
    origin=(
        f"{GUIDE} (about 2.5 ms there: the profiler's first buffer, or a cold device); the limits are {OWN}"
    ),
    helps=(
        "Nothing, if it is the profiler: warm up before recording (schedule with wait and warmup) and do not "
        "count this step."
    ),
    limits={"delay_ns": 1_000_000, "times": 10},
    always=True,
)
def first_kernel(facts: SourceFacts, limits: Limits) -> Outcome:
    """The work of the first launch starts late."""
    if not facts.works:
        return facts.no_device
    calls, kernels, delays = [np.empty(0, np.int64)], [np.empty((2, 0), np.int64)], [np.empty(0, np.int64)]
    for number, (work, side) in enumerate(zip(facts.works, facts.sides)):
        free = np.full(len(work), np.iinfo(np.int64).min)  # when what runs before it on its stream is done
        for _, places in work.by_stream():
            free[places[1:]] = np.maximum.accumulate(work.ends[places])[:-1]
        known = np.flatnonzero(side.launches != NONE)
        ends = side.starts[known] + facts.index.duration(side.launches[known])
        delays.append(np.maximum(0, work.starts[known] - np.maximum(ends, free[known])))
        calls.append(side.starts[known])
        kernels.append(np.stack([np.full(len(known), number), known]))
    start, delay = np.concatenate(calls), np.concatenate(delays)
    if len(start) < 2:
        return NO_LAUNCHES if not len(start) else None
    at = int(np.argmin(start))
    late, median = int(delay[at]), float(np.median(np.delete(delay, at)))
    if late < limits["delay_ns"] or late < limits["times"] * median:
        return None
    number, place = (int(value) for value in np.concatenate(kernels, axis=1)[:, at])
    work, launch = facts.works[number], int(facts.sides[number].launches[place])
    begun = int(work.starts[place])
    offset = _between(begun - late, begun)
    claim = offset.without(facts.profiling)
    requested = offset.length - claim.length
    why = "the profiler's first buffer, or a cold device"
    if requested:
        why = f"for {format_ns(requested)} of it the profiler itself is at work"
    text = (
        f"The first work starts {format_ns(late)} after its launch, all other work {format_ns(median)} "
        f"(median) after its own or what ran before: {why}"
    )
    evidence = (
        facts.slice("the first launch", launch, int(start[at]), begun - late),
        facts.on_device("what it launched", work, place),
    )
    return Observation(text, evidence, claim, work=work.positions[[place]])


@rule(
    "step-gap",
    "A gap in few steps",
    (
        "in at most one of {count} steps (of at least three) the device stands still at once for at least "
        "{times} times as long as in the others (median of their longest) and for {share} of the median step"
    ),
    origin=f"{GUIDE} (what occurs once is not the model); the limits are {OWN}",
    helps=(
        "Look at what the host did in this step and not in the others: garbage collection, a checkpoint, "
        "logging, evaluation, input, the profiler."
    ),
    limits={"count": 4, "times": 5, "share": 0.1},
)
def step_gap(facts: SourceFacts, limits: Limits) -> Outcome:
    """The device stands still for long in one step, or in few of them."""
    if not facts.works:
        return facts.no_device
    steps = facts.steps
    if steps is None or len(steps) < 3:
        return NotJudged("the trace has less than three steps")
    gaps = facts.idle
    if not len(gaps):
        return None
    order = np.argsort(np.concatenate([work.starts for work in facts.works]), kind="stable")
    starts = np.concatenate([work.starts for work in facts.works])[order]
    positions = np.concatenate([work.positions for work in facts.works])[order]
    next_work = positions[np.minimum(np.searchsorted(starts, gaps.ends), len(starts) - 1)]
    sorted_work, which = np.unique(next_work, return_inverse=True)
    place = facts.steps_of(sorted_work)[which]  # a gap belongs to the step that launched what ends it
    length = gaps.ends - gaps.starts
    longest = np.zeros(len(steps), np.int64)
    np.maximum.at(longest, place[place >= 0], length[place >= 0])
    typical = float(np.median(longest))
    floor = max(limits["times"] * typical, limits["share"] * float(np.median(steps.ends - steps.starts)))
    long = np.flatnonzero(longest >= max(floor, 1))
    if not len(long) or len(long) * limits["count"] > max(len(steps), limits["count"]):
        return None
    own = np.flatnonzero(np.isin(place, long) & (length >= max(floor, 1)))
    claim = merge(gaps.starts[own], gaps.ends[own])
    worst = int(long[np.argmax(longest[long])])
    rest = np.delete(longest, long)
    others = f"the other {len(rest):,} by {format_ns(int(rest.max()))} at most"
    if len(long) == 1:
        text = (
            f"Only in step {steps.labels[worst]} does the device stand still, for {format_ns(claim.length)}"
        )
    else:
        labels = ", ".join(steps.labels[at] for at in long[:5].tolist()) + (", …" if len(long) > 5 else "")
        text = (
            f"Only in steps {labels} does the device stand still, for up to {format_ns(int(longest[worst]))}"
        )
    position = int(steps.positions[worst])
    step = facts.slice(
        f"the step: {facts.name(position)}", position, int(steps.starts[worst]), int(steps.ends[worst])
    )
    return Observation(
        f"{text} at once; {others}",
        (*facts.longest_windows("the gap", claim), step),
        claim,
        work=np.unique(next_work[own]),
    )


def _copies(facts: SourceFacts, names: AnyArray, categories: AnyArray) -> AnyArray:
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


def _of(facts: SourceFacts) -> str:
    return "the step time" if facts.steps is not None else "the time looked at"
