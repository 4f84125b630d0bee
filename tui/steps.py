"""The steps that the viewer knows: those that are spans in the trace, or all slices of a chosen name."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

from tracelane.core.base.cached_per_object import cached_per_object
from tracelane.core.base.clock import ClockKey, Clocks
from tracelane.core.logs.more_sources import own_trace
from tracelane.core.tables.compare.run_pair import RunPair
from tracelane.core.tables.frame.cached import cached_step_spans
from tracelane.core.trace import Trace
from tracelane.core.trace.step_spans import step_spans

MANY_NAMES = 200_000
"""Distinct names of a trace from which on only the profiler's own steps are looked for before it is drawn."""


class StepMark(NamedTuple):
    """An iteration, trace time in ns."""

    label: str  # as in its name, mostly a number
    start: int
    end: int

    @property
    def title(self) -> str:
        """What it is called where nothing else tells that it is a step."""
        return self.label if self.label[:1].isalpha() else f"step {self.label}"


def pair_of(trace: Trace) -> RunPair | None:
    """Return the two runs that a trace with its logs shows, None where it is one."""
    own = own_trace(trace)
    return own if isinstance(own, RunPair) else None


def step_marks(trace: Trace, clocks: Clocks, name: str = "", source: int = 0) -> Sequence[StepMark]:
    """Return a trace's steps in time order, made once: those of a name, else as the analyses find them; of
    two runs those of the run that a source is of.
    """
    pair = pair_of(trace)
    if pair is not None:
        trace, clocks = pair.side(source, clocks)
    return _step_marks(trace, frozenset(clocks.offsets.items()), name)


@cached_per_object(4)
def _step_marks(trace: Trace, offsets: frozenset[tuple[ClockKey, int]], name: str) -> tuple[StepMark, ...]:
    clocks = Clocks(MappingProxyType(dict(offsets)))
    many = any(trace.text_count(source) > MANY_NAMES for source in range(trace.source_count))
    if many and not name and not trace.steps:
        return ()
    spans = step_spans(trace, clocks, name) if name else cached_step_spans(trace, clocks)
    if spans is None:
        return ()
    return tuple(map(StepMark, spans.labels, spans.starts.tolist(), spans.ends.tolist()))


def usual_length(steps: Sequence[StepMark]) -> int:
    """Return the length of the median step, ns."""
    return sorted(step.end - step.start for step in steps)[len(steps) // 2]


def deviation_levels(lengths: Sequence[int], usual: int) -> tuple[int, ...]:
    """Return how high steps of these lengths are drawn, 1 to 8: the usual length in the middle, at the top
    what deviates most from it. What deviates by less than a fifth of it never reaches that far, and where a
    step takes more than twice as long it is at the top, so that the others still differ.
    """
    most = max((abs(length - usual) for length in lengths), default=0)
    scale = max(1, usual // 5, min(usual, most))
    return tuple(max(1, min(8, 4 + round(4 * (length - usual) / scale))) for length in lengths)


def step_at(steps: Sequence[StepMark], time: int) -> StepMark | None:
    """Return the step that a time lies in, the latest begun of several."""
    return max((step for step in steps if step.start <= time < step.end), default=None, key=_start)


def _start(step: StepMark) -> int:
    return step.start
