"""Rules about what a trace lacks: devices whose clocks cannot be right, device work that is missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base.arrays import distinct
from ...base.units import about_ns, count_of
from ...trace.device_clocks import DeviceClock
from ..device.untrusted import TROUBLES, Untrusted
from ..rule_threshold import OWN, Limits
from .facts import SourceFacts, share
from .finding import Evidence, Observation, Outcome
from .rule import Rule


@Rule(
    "device-clock",
    "The device's clock cannot be right",
    "device work begins before the call that launched it began, or all of it is further from the "
    "host's time than both last (after it: by over a second, too)",
    OWN,
    helps=(
        "What combines both sides (launch delays, gaps, steps) is wrong by as much. --device-offset auto, or "
        "“Estimate the device's clock” in the viewer, moves the device; times that are lost stay so."
    ),
    always=True,
    first=True,
)
def device_clock(facts: SourceFacts, limits: Limits) -> Outcome:
    facts.scope.check()
    lanes = None if facts.scope.lanes is None else set(facts.scope.lanes)
    own = [
        clock for clock in facts.device_clocks if lanes is None or not lanes.isdisjoint(clock.device.lanes)
    ]
    clocks = [clock for clock in own if clock.trouble]
    if not clocks:
        return None
    text = "; ".join(f"{one.trouble} ({one.proposal})" if one.can_be_moved else one.trouble for one in clocks)
    evidence = tuple(one for clock in clocks for one in _evidence(facts, clock))
    short = f"The clock of {clocks[0].device.label} cannot be right"
    return Observation(text, evidence, short=short, of_launches=max(_wrong(facts, one) for one in clocks))


def _wrong(facts: SourceFacts, one: DeviceClock) -> float:
    """Return how much of the time looked at is wrong by a clock: each delay after a launch by as much as work
    begins before one; all of it where that says nothing.
    """
    if one.apart_ns or one.proposed_ns is None or one.early == one.stampless:
        return 1.0
    return min(1.0, share(one.lead_ns * one.pairs, facts.span_ns))


def _evidence(facts: SourceFacts, one: DeviceClock) -> tuple[Evidence, ...]:
    """Return the work that begins too early by most and its launch, else where all of the work lies."""
    if one.earliest is None:
        return (Evidence("all work of the device", *one.extent),)
    labels = (f"before its launch: {facts.name(one.earliest[0])}", "its launch")
    return tuple(facts.slice(*each) for each in zip(labels, one.earliest))


@Rule(
    "lost-kernels",
    "Part of the device's work is missing",
    "calls that start work have none in the trace, or none with times that can be right; this time is "
    "left out, and the rest is judged",
    "what `tracelane doctor` lists as time that cannot be trusted",
    helps=(
        "Record again: fewer steps, larger profiler buffers, and a synchronisation before the profiler "
        "stops. `tracelane doctor` says which calls lack their work."
    ),
    always=True,
    first=True,
)
def missing_work(facts: SourceFacts, limits: Limits) -> Outcome:
    periods = facts.untrusted_periods
    if not periods:
        return None
    claim = facts.untrusted
    parts = []
    for trouble in dict.fromkeys(one.trouble for one in periods):
        of_kind = [one for one in periods if one.trouble == trouble]
        count = sum(one.count for one in of_kind)
        kind = TROUBLES[trouble]
        parts.append(kind.cause.format(count=count_of(count, *kind.words)))
    text = (
        f"For {about_ns(claim.length)} the records of {facts.device_title} cannot be trusted"
        f"{_steps_text(facts, periods)}: {'; '.join(parts)}"
    )
    text += "; the rest is judged" if facts.has_devices else ""
    evidence = facts.longest_windows("left out", claim)
    helps = _helps(facts, periods)
    short = f"{about_ns(claim.length)} of {facts.device_title} without sound records"
    launched = len(distinct(facts.work.launch[facts.work.launch >= 0]))
    lost = sum(one.count - one.fills for one in periods)  # what fills memory is short, and computes nothing
    part = share(lost, lost + launched)
    return Observation(text, evidence, claim, times=claim.starts, helps=helps, short=short, of_launches=part)


def _helps(facts: SourceFacts, periods: Sequence[Untrusted]) -> str:
    """Return what helps where that is no other recording: what is missing was recorded, and cannot be read or
    is in the file that this one was cut out of; "" where it is.
    """
    report = facts.index.read_report
    unread = sum(int(report[term]) for term in ("unreadable", "without_time", "not_objects"))
    if unread:
        return (
            f"{count_of(unread, 'event')} of the file could not be read, and may be what is missing: "
            "`tracelane doctor` says where they are."
        )
    if {one.trouble for one in periods} == {"cut"}:
        return "Open the file that this one was cut out of."
    return ""


def _steps_text(facts: SourceFacts, periods: Sequence[Untrusted]) -> str:
    steps = facts.steps
    called = [one.called for one in periods if one.called is not None]
    if steps is None or not called:
        return ""
    hit = np.zeros(len(steps), np.bool_)
    for first, last in called:
        hit |= (steps.starts <= last) & (steps.ends >= first)
    at = np.flatnonzero(hit)
    if not len(at):
        return ""
    if len(at) == 1:
        return f" (step {steps.labels[at[0]]})"
    if at[-1] - at[0] + 1 == len(at):
        return f" (steps {steps.labels[at[0]]} to {steps.labels[at[-1]]})"
    return f" ({len(at):,} of {len(steps):,} steps)"
