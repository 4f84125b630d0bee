"""Rules about gaps in the work of devices: between launches, before the first kernel, in few steps."""

from __future__ import annotations

import numpy as np

from ...base.arrays import I64, U32, sum_of
from ...base.intervals import merge
from ...base.units import count_of, format_ns, format_share
from ..frame_columns import GAP_CLASSES
from ..idle import gap_rows
from ..rule_threshold import OWN, Limits, RuleThreshold
from ..step_choice import Steps
from .facts import NO_LAUNCHES, SourceFacts, share
from .finding import NotJudged, Observation, Outcome
from .rule import GUIDE, HTA, rule

HOST_WAIT = GAP_CLASSES.index("host_wait")


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
    if not (facts.work.launch >= 0).any():
        return NO_LAUNCHES
    gaps = gap_rows(facts.work)
    late = gaps[gaps.gap_class == HOST_WAIT]
    claim = merge(late.reach, late.start).intersection(facts.idle).without(facts.transferring)
    idle_ns, late_ns = sum_of(gaps.gap), sum_of(late.gap)
    too_few = late_ns < limits["class_share"] * idle_ns or claim.length < limits["share"] * facts.window_ns
    if too_few or not len(late):
        return None
    worst = late.top("gap", 1)
    launch, start, ns = (int(column[0]) for column in (worst.launch, worst.call_start, worst.gap))
    text = (
        f"In {count_of(len(late), 'gap')}, {format_ns(claim.length)} altogether, the device waits for a "
        f"launch made after the work before was done: {format_share(share(late_ns, idle_ns))} of the "
        "streams' idle time"
    )
    label = f"the launch that ended the longest gap of a stream ({format_ns(ns)}): {facts.name(launch)}"
    last = facts.slice(label, launch, start, start + int(worst.call_ns[0]))
    evidence = (*facts.longest_windows("longest wait", claim), last)
    return Observation(text, evidence, claim, work=np.unique(late.position))


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
    work = facts.work[facts.work.launch >= 0]
    if len(work) < 2:
        return None if len(work) else NO_LAUNCHES
    first = int(np.argmin(work.call_start))
    late, median = int(work.latency[first]), float(np.median(np.delete(work.latency, first)))
    call = float(np.median(facts.index.duration(np.unique(work.launch))))
    if late < limits["delay_ns"] or late < limits["times"] * max(median, call):
        return None
    work = work[first : first + 1]
    start, launch, begun = (int(column[0]) for column in (work.start, work.launch, work.call_start))
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
        facts.slice("the first launch", launch, begun, start - late),
        facts.on_device("what it launched", work),
    )
    return Observation(text, evidence, claim, work=work.position)


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
    gaps, next_work = facts.idle, facts.work_after(facts.idle)
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
