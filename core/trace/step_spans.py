"""The steps of a whole trace: those of all processes together, each from first start to last end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import I64
from ..base.clock import Clocks

if TYPE_CHECKING:
    from . import Trace
    from .step_choice import Steps


@dataclass(frozen=True, eq=False)
class StepSpans:
    """The n steps in order of start; trace time in ns. Labels may repeat: engines name them by kind."""

    choice: str  # how the steps were chosen, in words
    reason: str  # why these
    labels: tuple[str, ...]
    starts: I64
    ends: I64
    of_source: Mapping[int, tuple[Steps, I64]] = field(default_factory=dict, compare=False)
    """By source: its own steps, and the place here of each; empty where they were read from a file."""

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """The labels, those that repeat told apart as --step takes them: "decode (nth:3)"."""
        counts = Counter(self.labels)
        return tuple(
            label if counts[label] == 1 else f"{label} (nth:{at})" for at, label in enumerate(self.labels)
        )

    def holding(self, times: I64) -> I64:
        """Return for each time the index of the latest step that contains it, -1 for none."""
        from .step_choice import latest_holding

        return latest_holding(self.starts, self.ends, times)


def step_spans(
    trace: Trace, clocks: Clocks | None = None, name: str | None = None, source: int | None = None
) -> StepSpans | None:
    """Return the steps of all processes (of one source), None where there are none; `name` as in find_steps.

    The k-th step of a label in one process is the same step as the k-th of that label in another.
    """
    from .step_choice import find_steps  # the viewer reads what was found before

    sources = range(len(trace.indexes)) if source is None else (source,)
    by_source = [steps for at in sources if (steps := find_steps(trace, at, clocks, name)) is not None]
    if not by_source:
        return None
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    keys: list[list[tuple[str, int]]] = []
    for steps in by_source:
        keys.append([])
        met: dict[tuple[int, str], int] = {}
        columns = (steps.processes.tolist(), steps.labels, steps.starts.tolist(), steps.ends.tolist())
        for process, label, start, end in zip(*columns):
            met[process, label] = count = met.get((process, label), 0) + 1
            low, high = spans.get((label, count), (start, end))
            spans[label, count] = min(low, start), max(high, end)
            keys[-1].append((label, count))
    ordered = sorted(spans, key=spans.__getitem__)
    edges = np.array([spans[key] for key in ordered], np.int64)
    labels = tuple(label for label, _ in ordered)
    numbers = {key: row for row, key in enumerate(ordered)}
    of_source = {
        steps.source: (steps, np.array([numbers[key] for key in own], np.int64))
        for steps, own in zip(by_source, keys)
    }
    return StepSpans(by_source[0].choice, by_source[0].reason, labels, edges[:, 0], edges[:, 1], of_source)
