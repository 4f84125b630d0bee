"""The rule about devices whose clocks cannot be right."""

from __future__ import annotations

import numpy as np

from ..device_clocks import DeviceClock, device_clocks
from ..rule_threshold import OWN, Limits, RuleThreshold
from .facts import SourceFacts
from .finding import Evidence, Observation, Outcome
from .rule import rule


@rule(
    "device-clock",
    "The device's clock cannot be right",
    RuleThreshold(
        (
            "device work begins before the call that launched it began, or all of it lies further from the "
            "host's time than both last (after it: by over a second, too)"
        ),
        OWN,
    ),
    helps=(
        "What combines both sides (launch delays, gaps, steps) is wrong by as much. --device-offset auto, or "
        "“Estimate the device's clock” in the viewer, moves the device; times that are lost stay so."
    ),
    always=True,
)
def device_clock(facts: SourceFacts, limits: Limits) -> Outcome:
    """Device work begins before it was launched, has no time, or lies far from the host's."""
    facts.scope.check()
    devices = device_clocks(facts.scope.trace, facts.scope.clocks, facts.source)
    lanes = None if facts.scope.lanes is None else set(facts.scope.lanes)
    own = [clock for clock in devices if lanes is None or not lanes.isdisjoint(clock.device.lanes)]
    clocks = [clock for clock in own if clock.trouble]
    if not clocks:
        return None
    text = "; ".join(_sentence(clock) for clock in clocks)
    return Observation(text, tuple(evidence for one in clocks for evidence in _evidence(facts, one)))


def _sentence(one: DeviceClock) -> str:
    movable = one.proposed_ns is not None and one.needs_shift and one.alone
    return f"{one.trouble} ({one.proposal})" if movable else one.trouble


def _evidence(facts: SourceFacts, one: DeviceClock) -> tuple[Evidence, ...]:
    """Return the work that begins too early by most and its launch, else where all of the work lies."""
    if one.earliest is None:
        return (Evidence("all work of the device", *one.extent),)
    rows = np.array(one.earliest, np.int64)
    starts = facts.starts_of(rows)
    ends = starts + facts.index.duration(rows)
    labels = (f"before its launch: {facts.name(one.earliest[0])}", "its launch")
    spans = zip(labels, one.earliest, starts.tolist(), ends.tolist())
    return tuple(facts.slice(label, position, start, end) for label, position, start, end in spans)
