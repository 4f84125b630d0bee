"""Rules about gaps in the work of devices: between launches, before the first kernel, in few steps."""

from __future__ import annotations

import numpy as np

from ...base.arrays import I64, U32
from ...base.intervals import Intervals, merge
from ...base.units import count_of, format_ns, format_share
from ...index.format import NONE
from ..host import LaunchSide
from ..idle import CLASSES, stream_gaps
from ..rule_threshold import OWN, Limits, RuleThreshold
from ..step_choice import Steps
from ..work import Work
from .facts import NO_LAUNCHES, SourceFacts, share, union_of
from .finding import NotJudged, Observation, Outcome
from .rule import GUIDE, HTA, rule

HOST_WAIT = CLASSES.index("host_wait")


@rule(
    "launch-gaps",
    "Gaps while the host launches",
    RuleThreshold(
        (
            "gaps that end with a launch made after the work before was done (host waits) are at least "
            "{class_share} of the streams' idle time, and, where the host does not wait for a copy "
            "meanwhile, {share} of the time from first to last work"
        ),
        f"{HTA}'s idle breakdown; the limits are {OWN}",
        {"class_share": 0.5, "share": 0.1},
    ),
    helps=(
        "Launch ahead of the device: no synchronisation in the loop, less work between launches, graphs, "
        "fusion."
    ),
    needs=("device",),
)
def launch_gaps(facts: SourceFacts, limits: Limits) -> Outcome:
    """Streams stand still because the next launch comes late."""
    if not any((side.launches != NONE).any() for side in facts.sides):
        return NO_LAUNCHES
    waits: list[Intervals] = []
    after: list[U32] = []
    longest: tuple[int, int, int] = (0, 0, 0)  # ns, launch, its start
    idle = late = count = 0
    for work, side in zip(facts.works, facts.sides):
        for stream, rows in work.by_stream():
            gaps = stream_gaps(work, side, stream, rows)
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
        f"In {count_of(count, 'gap')}, {format_ns(claim.length)} altogether, the device waits for a launch "
        f"made after the work before was done: {format_share(share(late, idle))} of the streams' idle time"
    )
    end = start + int(facts.index.duration([launch])[0])
    label = f"the launch that ended the longest gap of a stream ({format_ns(ns)}): {facts.name(launch)}"
    last = facts.slice(label, launch, start, end)
    evidence = (*facts.longest_windows("longest wait", claim), last)
    return Observation(text, evidence, claim, work=np.unique(np.concatenate(after)))


@rule(
    "first-kernel",
    "The first launch waits",
    RuleThreshold(
        (
            "the work of the first launch starts at least {delay_ns} after its call, {times} times as "
            "late as the median of the others (waiting for earlier work aside), and {times} times a "
            "median call"
        ),
        f"{GUIDE} (about 2.5 ms there: the profiler's first buffer, or a cold device); the limits are {OWN}",
        {"delay_ns": 1_000_000, "times": 10},
    ),
    helps=(
        "Nothing, if it is the profiler: warm up before recording (schedule with wait and warmup) and do not "
        "count this step."
    ),
    always=True,
    needs=("device",),
)
def first_kernel(facts: SourceFacts, limits: Limits) -> Outcome:
    """The work of the first launch starts late."""
    launched = [_delays(facts, work, side) for work, side in zip(facts.works, facts.sides)]
    begun = np.concatenate([side.starts[known] for side, (known, _) in zip(facts.sides, launched)])
    delay = np.concatenate([own for _, own in launched])
    if len(begun) < 2:
        return NO_LAUNCHES if not len(begun) else None
    first = int(np.argmin(begun))
    late, median = int(delay[first]), float(np.median(np.delete(delay, first)))
    calls = np.concatenate([side.launches[known] for side, (known, _) in zip(facts.sides, launched)])
    call = float(np.median(facts.index.duration(np.unique(calls))))
    if late < limits["delay_ns"] or late < limits["times"] * max(median, call):
        return None
    number = int(np.searchsorted(np.cumsum([len(known) for known, _ in launched]), first, "right"))
    work = facts.works[number]
    at = int(launched[number][0][first - sum(len(known) for known, _ in launched[:number])])
    start = int(work.starts[at])
    offset = merge(np.array([start - late], np.int64), np.array([start], np.int64))
    claim = offset.without(facts.profiling)
    why = "the profiler's first buffer, or a cold device"
    if claim.length < offset.length:
        why = f"for {format_ns(offset.length - claim.length)} of it the profiler itself is at work"
    text = (
        f"The first work starts {format_ns(late)} after its launch, all other work {format_ns(median)} "
        f"(median) after its own or what ran before: {why}"
    )
    evidence = (
        facts.slice("the first launch", int(calls[first]), int(begun[first]), start - late),
        facts.on_device("what it launched", work, at),
    )
    return Observation(text, evidence, claim, work=work.positions[[at]])


def _delays(facts: SourceFacts, work: Work, side: LaunchSide) -> tuple[I64, I64]:
    """Return the rows of the work whose launch is known, and how late each begins after the end of its call
    and of what ran before it on its stream, ns.
    """
    free = np.full(len(work), np.iinfo(np.int64).min)  # when what runs before it on its stream is done
    for _, rows in work.by_stream():
        free[rows[1:]] = np.maximum.accumulate(work.ends[rows])[:-1]
    known = np.flatnonzero(side.launches != NONE)
    ends = side.starts[known] + facts.index.duration(side.launches[known])
    return known, np.maximum(0, work.starts[known] - np.maximum(ends, free[known]))


@rule(
    "step-gap",
    "A gap in few steps",
    RuleThreshold(
        (
            "in at most one of {count} steps (of at least three) the device stands still at once for at "
            "least {times} times as long as in the others (median of their longest) and for {share} of "
            "the median step"
        ),
        f"{GUIDE} (what occurs once is not the model); the limits are {OWN}",
        {"count": 4, "times": 5, "share": 0.1},
    ),
    helps=(
        "Look at what the host did in this step and not in the others: garbage collection, a checkpoint, "
        "logging, evaluation, input, the profiler."
    ),
    needs=("device",),
)
def step_gap(facts: SourceFacts, limits: Limits) -> Outcome:
    """The device stands still for long in one step, or in few of them."""
    steps = facts.steps
    if steps is None or len(steps) < 3:
        return NotJudged("the trace has less than three steps")
    gaps, next_work, at = _step_gaps(facts)
    length = gaps[:, 1] - gaps[:, 0]
    longest = np.zeros(len(steps), np.int64)
    np.maximum.at(longest, at[at >= 0], length[at >= 0])
    share_ns = limits["share"] * float(np.median(steps.ends - steps.starts))
    floor = max(limits["times"] * float(np.median(longest)), share_ns, 1)
    long = np.flatnonzero(longest >= floor)
    if not len(long) or len(long) * limits["count"] > max(len(steps), limits["count"]):
        return None
    own = np.flatnonzero(np.isin(at, long) & (length >= floor))
    claim = merge(gaps[own, 0], gaps[own, 1])
    worst = int(long[np.argmax(longest[long])])
    position = int(steps.positions[worst])
    step = facts.slice(
        f"the step: {facts.name(position)}", position, int(steps.starts[worst]), int(steps.ends[worst])
    )
    return Observation(
        _gap_text(steps, longest, long),
        (*facts.longest_windows("the gap", claim), step),
        claim,
        work=np.unique(next_work[own]),
    )


def _step_gaps(facts: SourceFacts) -> tuple[I64, U32, I64]:
    """Return the gaps of the devices: (start, end) of each, the work that ends it, and the row of the step
    that launched this work, -1 for none.
    """
    if len(facts.busy) < 2:
        return np.empty((0, 2), np.int64), np.empty(0, np.uint32), np.empty(0, np.int64)
    gaps = facts.idle
    starts = np.concatenate([work.starts for work in facts.works])
    positions = np.concatenate([work.positions for work in facts.works])
    order = np.argsort(starts, kind="stable")
    next_work = positions[order[np.minimum(np.searchsorted(starts[order], gaps.ends), len(order) - 1)]]
    ascending, which = np.unique(next_work, return_inverse=True)
    return np.stack([gaps.starts, gaps.ends], axis=1), next_work, facts.steps_of(ascending)[which]


def _gap_text(steps: Steps, longest: I64, long: I64) -> str:
    """Return the sentence about the longest gap of each step and the steps in which it is long."""
    several = len(long) > 1
    labels = ", ".join(steps.labels[at] for at in long[:5].tolist()) + (", …" if len(long) > 5 else "")
    worst = format_ns(int(longest[long].max()))
    rest = np.delete(longest, long)
    return (
        f"Only in step{'s' if several else ''} {labels} does the device stand still, for "
        f"{'up to ' if several else ''}{worst} at once; in the other {len(rest):,} for "
        f"{format_ns(int(rest.max()))} at most"
    )
