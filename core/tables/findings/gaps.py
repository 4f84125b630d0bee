"""Rules about gaps in the work of devices: between launches, before the first kernel, in few steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...base.arrays import EMPTY, I64, Intervals, distinct, merge, sum_of
from ...base.units import about_ns, count_of, format_ns
from ...query.groups import Groups
from ...trace.step_choice import Steps
from ..frame.frame import Frame
from ..host.op_events import OP, RUNTIME
from ..rule_threshold import OWN, Limits
from .facts import NO_LAUNCHES, SourceFacts
from .finding import NotJudged, Observation, Outcome, short_wait
from .rule import GUIDE, HTA, Rule, effects_of

FEW_GAPS = 8
"""Without steps a device with fewer gaps does not tell which of them is usual."""


@Rule(
    "launch-gaps",
    "Gaps while the host launches",
    "the time in which no device works because the call that launches the next work was not done "
    "before is at least {class_share} of the idle time, and, where the host does not wait for a copy "
    "meanwhile, {share} of the time looked at",
    f"{HTA}'s idle breakdown; the limits are {OWN}",
    {"class_share": 0.5, "share": 0.1},
    helps=(
        "Launch ahead of the device: no synchronisation in the loop, less work between launches, graphs, "
        "fusion."
    ),
    needs=("device",),
    explains=effects_of("launch-gaps"),
)
def launch_gaps(facts: SourceFacts, limits: Limits) -> Outcome:
    if not (facts.work.launch >= 0).any():
        return NO_LAUNCHES
    late = facts.held_up.clipped(*facts.working_span)
    ended, work = facts.work_after(late)
    ended = ended[work.launch >= 0]  # when other work was launched is not known
    late = Intervals(late.starts[ended], late.ends[ended])
    claim = late.without(facts.transferring)
    if (
        late.length < limits["class_share"] * facts.idle.clipped(*facts.working_span).length
        or claim.length < limits["share"] * facts.span_ns
    ):
        return None
    ended, work = facts.work_after(claim)
    text = (
        f"For {about_ns(claim.length)} in {count_of(len(claim), 'gap')} {facts.device_title} sat idle "
        "because the next work was launched too late"
    )
    longest = work.plus(wait=(claim.ends - claim.starts)[ended], until=claim.ends[ended]).top("wait")
    launch, until, wait = (int(column[0]) for column in (longest.launch, longest.until, longest.wait))
    doing = facts.doing_in(until - wait, until, launch)
    text += f"; at the longest the host is in {doing}" if doing else ""
    evidence = facts.longest_windows("longest wait", claim)
    if launch >= 0:  # who launched the work after the longest gap may not be known
        label = f"the launch that ended the longest gap ({format_ns(wait)}): {facts.name(launch)}"
        evidence = (*evidence, facts.slice(label, launch))
    short = short_wait(facts.device_title, about_ns(claim.length), doing)
    return Observation(text, evidence, claim, work=distinct(work.position), short=short)


@Rule(
    "first-kernel",
    "The first launch waits",
    "the work of the first launch starts at least {delay_ns} after its call, {times} times as "
    "late as the median of the others (waiting for earlier work aside), and {times} times a "
    "median call",
    f"{GUIDE} (about 2.5 ms there: the profiler's first buffer, or a cold device); the limits are {OWN}",
    {"delay_ns": 1_000_000, "times": 10},
    helps=(
        "Nothing, if it is the profiler: warm up before recording (schedule with wait and warmup) and do not "
        "count this step."
    ),
    always=True,
    needs=("device",),
    explains=effects_of("first-kernel"),
)
def first_kernel(facts: SourceFacts, limits: Limits) -> Outcome:
    work = facts.work[(facts.work.launch >= 0) & facts.work.is_begun]
    if len(work) < 2:
        return None if len(work) else NO_LAUNCHES
    if not any(name or labels for _, name, labels, *_ in facts.index.processes.tolist()):
        return NotJudged("the file is cut out of a longer one: what the device did before is not in it")
    first = int(np.argmin(work.call_start))
    late = int(work.latency[first])
    if late < limits["delay_ns"]:
        return None
    median = float(np.median(np.delete(work.latency, first)))
    call = float(np.median(facts.index.duration(distinct(work.launch))))
    if late < limits["times"] * max(median, call):
        return None
    work = work[first : first + 1]
    start, launch, begun = (int(column[0]) for column in (work.start, work.launch, work.call_start))
    offset = merge(np.array([start - late], np.int64), np.array([start], np.int64))
    claim = offset.without(facts.profiling)
    why = "the profiler's first buffer, or a cold device"
    if claim.length < offset.length:
        why = f"for {about_ns(offset.length - claim.length)} of it the profiler itself is at work"
    text = (
        f"The first work starts {about_ns(late)} after its launch, the rest {about_ns(median)} "
        f"(median) after theirs or the work before: {why}"
    )
    evidence = (
        facts.slice("the first launch", launch, (begun, start - late)),
        facts.on_device("what it launched", work),
    )
    short = f"The first work starts {about_ns(late)} after its launch"
    return Observation(text, evidence, claim, work=work.position, short=short)


@Rule(
    "step-gap",
    "An unusually long gap",
    "in at most one of {count} steps (of at least three) the device is idle at a stretch for at "
    "least {times} times as long as in the others (median of their longest) and for {share} of "
    "a step; without steps one or two gaps are {times} times as long as all others, and take "
    "{span_share} of the time looked at",
    f"{GUIDE} (what occurs once is not the model); the limits are {OWN}",
    {"count": 4, "times": 5, "share": 0.1, "span_share": 0.04},
    helps=(
        "Look at what the host did in this step and not in the others: garbage collection, a lock, a "
        "checkpoint, logging, evaluation, input, the profiler."
    ),
    needs=("device",),
    explains=effects_of("step-gap"),
)
def step_gap(facts: SourceFacts, limits: Limits) -> Outcome:
    steps, gaps = facts.steps, facts.idle.clipped(*facts.working_span)
    if len(facts.work) < 3:
        return NotJudged("the trace has less than three pieces of device work")
    if not len(facts.host) and not (facts.work.launch >= 0).any():
        return facts.no_host  # or what was left out of the file looks like a gap
    ended, next_work = facts.work_after(gaps)
    gaps = Intervals(gaps.starts[ended], gaps.ends[ended])
    length = gaps.ends - gaps.starts
    if steps is None or len(steps) < 3:
        of_steps: StepGaps | None = None
        long = _long_ones(length, limits, facts.span_ns)
    else:
        of_steps = StepGaps.of(facts, steps, length, next_work)
        long = of_steps.long_ones(limits)
        outside = _long_ones(length, limits, facts.span_ns)
        if not len(long) and (of_steps.at[outside] < 0).all():  # not in the steps at all
            long, of_steps = outside, None
    if not len(long):
        return None
    claim = merge(gaps.starts[long], gaps.ends[long])
    worst = int(long[np.argmax(length[long])])
    doing = facts.doing_in(int(gaps.starts[worst]), int(gaps.ends[worst]), int(next_work.launch[worst]))
    text = _gap_text(facts, length, long) if of_steps is None else of_steps.text(facts, long)
    text += f"; meanwhile the host is in {doing}{facts.waited_for(doing, claim)}" if doing else ""
    evidence = facts.longest_windows("the gap", claim)
    if of_steps is not None:
        at = int(of_steps.at[worst])
        name = facts.name(int(of_steps.steps.positions[at]))
        evidence = (*evidence, facts.step(f"the step: {name}", of_steps.steps, at))
    short = short_wait(facts.device_title, about_ns(claim.length), doing)
    return Observation(text, evidence, claim, work=distinct(next_work.position[long]), short=short)


@Rule(
    "host-pause",
    "The host pauses",
    "in at least two steps (or three times without steps) no thread of the host runs an operator, a "
    "call, a data loader or a collective for {least_ns} at a stretch, or an operator by itself takes as long "
    "and {times} times its median, while the device waits for it, and these stretches take {share} of the "
    "time looked at",
    OWN,
    {"least_ns": 1_000_000, "share": 0.1, "times": 8},
    helps=(
        "See what the program does there: preparing data, checkpoints, logging, garbage collection, locks. "
        "record_function names a part of it, with_stack=True shows the Python functions."
    ),
    needs=("device", "host"),
    explains=effects_of("host-pause"),
    meanwhile=("nothing", "operator"),
)
def host_pause(facts: SourceFacts, limits: Limits) -> Outcome:
    host, steps = facts.host, facts.steps
    if not (host.kinds == OP).any():
        return NotJudged("no operators run on the host in the time that is looked at")
    held_up = facts.held_up.clipped(*facts.working_span)
    stalled = _stalled(facts, limits)
    quiet = held_up.without(facts.running.union(facts.loading)).union(held_up.intersection(stalled))
    long = quiet.ends - quiet.starts >= limits["least_ns"]
    pauses = Intervals(quiet.starts[long], quiet.ends[long])
    step = np.arange(len(pauses)) if steps is None else np.searchsorted(steps.starts, pauses.starts, "right")
    if len(distinct(step)) < (3 if steps is None else 2) or pauses.length < limits["share"] * facts.span_ns:
        return None
    name = facts.doing_at_longest(pauses)
    inside = pauses.intersection(stalled).length
    still = "is held up in operators that are quick else"
    does = still if 2 * inside > pauses.length else "runs no operator"
    text = (
        f"For {about_ns(pauses.length)} in {count_of(len(pauses), 'pause')} {facts.device_title} waits while "
        f"the host {does}{f'; at the longest it is in {name}' if name else ''}"
    )
    short = short_wait(facts.device_title, about_ns(pauses.length), name)
    return Observation(text, facts.longest_windows("longest pause", pauses), pauses, short=short)


def _stalled(facts: SourceFacts, limits: Limits) -> Intervals:
    """Return when operators that are quick else stand still: longer by themselves than `times` their median,
    and without a call in which they would wait or work.
    """
    host = facts.host
    ops = (host.kinds == OP) & facts.active
    ops &= (host.counts(ops & (host.self_ns >= limits["least_ns"])) > 0)[host.name]
    if not ops.any():
        return EMPTY
    names, own = Groups(host.name[ops], len(host.texts)), host.self_ns[ops]
    usual = limits["times"] * names.quantiles(own, 0.5)[0][names.codes]
    is_long = (own >= np.maximum(usual, limits["least_ns"])) & (names.counts[names.codes] > 2)
    return host.union(host.narrow(ops, is_long)).without(host.union(host.kinds == RUNTIME))


@dataclass(frozen=True, eq=False)
class StepGaps:
    """The gaps of a device, the step that launched the work which ends each, and the longest of each step."""

    steps: Steps
    length: I64
    at: I64  # row of the step, -1 for none
    longest: I64
    span_ns: int

    @classmethod
    def of(cls, facts: SourceFacts, steps: Steps, length: I64, next_work: Frame) -> StepGaps:
        """Assign gaps to steps: to that in which the host was for most of a gap until it launched what ends
        it, else to that which launched this.
        """
        ascending, which = np.unique(next_work.position, return_inverse=True)
        begins = next_work.start - length
        host = np.where(next_work.launch < 0, begins, np.minimum(next_work.start, next_work.call_start))
        holding = steps.holding(begins + length // 2)  # what covers more than half holds the middle
        overlap = np.minimum(host, steps.ends[holding]) - np.maximum(begins, steps.starts[holding])
        is_there = (holding >= 0) & (2 * overlap > length)
        at = np.where(is_there, holding, facts.steps_of(ascending)[which])
        longest = np.zeros(len(steps), np.int64)
        np.maximum.at(longest, at[at >= 0], length[at >= 0])
        return cls(steps, length, at, longest, facts.span_ns)

    def long_ones(self, limits: Limits) -> I64:
        """Return which gaps are far longer than those of most steps, if they are in few of them."""
        step_ns = max(float(np.median(self.steps.ends - self.steps.starts)), self.span_ns / len(self.steps))
        floor = max(limits["times"] * float(np.median(self.longest)), limits["share"] * step_ns, 1)
        steps = np.flatnonzero(self.longest >= floor)
        if len(steps) * limits["count"] > max(len(self.steps), limits["count"]):
            return np.empty(0, np.int64)
        long: I64 = np.flatnonzero(np.isin(self.at, steps) & (self.length >= floor))
        return long

    def text(self, facts: SourceFacts, long: I64) -> str:
        those = distinct(self.at[long])
        several = len(those) > 1
        labels = ", ".join(self.steps.labels[at] for at in those[:5].tolist())
        labels += ", …" if len(those) > 5 else ""
        rest = np.delete(self.longest, those)
        return (
            f"In step{'s' if several else ''} {labels} {facts.device_title} sits idle for "
            f"{'up to ' if several else ''}{about_ns(int(self.length[long].max()))} at a stretch, "
            f"in the other {len(rest):,} for {about_ns(int(rest.max()))} at most"
        )


def _long_ones(length: I64, limits: Limits, span_ns: int) -> I64:
    """Return the one or two gaps that are far longer than all others."""
    if len(length) < FEW_GAPS:
        return np.empty(0, np.int64)
    order = np.argsort(-length, kind="stable")
    for count in (1, 2):
        rest = length[order[count:]]
        least = int(length[order[count - 1]])
        is_far = least >= limits["times"] * max(int(rest.max(initial=0)), 1)
        if is_far and sum_of(length[order[:count]]) >= limits["span_share"] * span_ns:
            return order[:count]
    return np.empty(0, np.int64)


def _gap_text(facts: SourceFacts, length: I64, long: I64) -> str:
    times, longest = "once" if len(long) == 1 else "twice", about_ns(int(length[long].max()))
    longest = longest if len(long) == 1 else f"up to {longest}"
    rest = int(np.delete(length, long).max(initial=0))
    others = f"its other gaps take {about_ns(rest)} at most"
    text = f"{facts.device_title} sits idle {times} for {longest}; {others}"
    return text[0].upper() + text[1:]
