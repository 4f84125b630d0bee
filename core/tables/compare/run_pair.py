"""Two runs as one trace: B moved in time so that one of its steps begins where the same step of A does."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...base.arrays import I64, Bools
from ...base.clock import Clocks
from ...index.member import Member
from ...trace import Trace
from ...trace.step_spans import StepSpans

if TYPE_CHECKING:  # what only a pair needs is loaded when there is one
    from ...trace.alignment import Alignment
    from ..frame.scope import Scope
    from .run_changes import RunChanges

SIDES = ("A", "B")


class PairedSteps(NamedTuple):
    """The n >= 1 steps that both runs have, in A's order; without any, both runs from start to end.

    Times are ns on the clocks that each run opens with; `rows` are places among all steps of each run. How
    long a step takes stands in step_length.py; where the host of one run is ahead, that of both is the
    cadence of their devices.
    """

    labels: tuple[str, ...]
    a: I64  # n x 2: starts, ends of the marks
    b: I64  # n x 2
    rows: I64  # n x 2: of A, of B
    lengths: I64  # n x 2: of A, of B, ns
    are_noise: Bools  # n: whether the change is within what steps of the two runs scatter by
    without: tuple[int, int] = (0, 0)  # steps of A and of B that the other run lacks
    by_cadence: bool = False  # whether lengths are the device's cadence

    @property
    def deltas(self) -> I64:
        """How much longer each step of B is, ns."""
        longer: I64 = self.lengths[:, 1] - self.lengths[:, 0]
        return longer

    def title(self, at: int) -> str:
        """Return what a step is called: "step 3"."""
        return f"step {self.labels[at]}" if self.labels[at] else "all"

    @property
    def most_changed(self) -> I64:
        """The steps, the most changed first."""
        return np.argsort(-np.abs(self.deltas), kind="stable")

    def at(self, time: int) -> int:
        """Return the last step that A has begun at a time, the first before all."""
        return max(0, int(np.searchsorted(self.a[:, 0], time, "right")) - 1)


class RunPair(Trace):
    """Two runs as one trace: the sources of `a`, then those of `b`, each titled with its side and its run."""

    def __init__(self, a: Trace, b: Trace) -> None:
        from .run_names import run_names

        names = run_names([_path_of(run) for run in (a, b)])
        members = [one for side, run, name in zip(SIDES, (a, b), names) for one in _members(run, side, name)]
        super().__init__([*a.indexes, *b.indexes], members)
        self.a, self.b = a, b
        self.names = names[0], names[1]
        """What the runs are called: by what differs in the names of their files."""
        self.first = a.source_count
        """The number of B's first source."""
        self.changes: RunChanges | None = None
        """What changed from A to B; None until that is counted."""
        self._steps: dict[str, PairedSteps] = {}

    @property
    def spoken_names(self) -> tuple[str, str]:
        """What sentences call the runs: A and B where nothing tells their names apart."""
        return self.names if self.names[0] != self.names[1] else (SIDES[0], SIDES[1])

    @property
    def alignment(self) -> Alignment:
        """None: runs have no collective in common, and each has aligned its own ranks."""
        from ...trace.alignment import NONE

        return NONE

    @cached_property
    def clocks(self) -> Clocks:
        """The clocks of both runs, B moved so that the first common step begins where A's does."""
        of_b = {(source + self.first, pid): ns for (source, pid), ns in self.b.clocks.offsets.items()}
        both = Clocks(MappingProxyType({**self.a.clocks.offsets, **of_b}))
        return self.clocks_at(int(self.common_steps().a[0, 0]), both)

    def clocks_at(self, time: int, clocks: Clocks, name: str = "") -> Clocks:
        """Return the clocks with B moved so that the step that A does at a time begins together."""
        steps = self.common_steps(name)
        at = steps.at(time)
        move = int(steps.a[at, 0] - steps.b[at, 0])
        for source in range(self.b.source_count):
            clocks = clocks.shifted((source + self.first, ""), self.b.clocks.offset(source) + move)
        return clocks

    def move(self, clocks: Clocks) -> int:
        """Return by how much clocks move B, ns."""
        return clocks.offset(self.first) - self.b.clocks.offset(0)

    def side(self, source: int, clocks: Clocks) -> tuple[Trace, Clocks]:
        """Return the run that a source is of, and its part of some clocks."""
        low, high = (self.first, self.source_count) if source >= self.first else (0, self.first)
        own = {(at - low, pid): ns for (at, pid), ns in clocks.offsets.items() if low <= at < high}
        return self.b if low else self.a, Clocks(MappingProxyType(own))

    def common_steps(self, name: str = "") -> PairedSteps:
        """Return the common steps, found once: those of a name, else as the analyses find them."""
        if name not in self._steps:
            from ..frame.scope import Scope

            scopes = [Scope(run, clocks=run.clocks, steps=name) for run in (self.a, self.b)]
            self._steps[name] = _paired(*scopes)
        return self._steps[name]


def _path_of(run: Trace) -> str:
    """Return the path of a run's file, of several that of their folder."""
    path = str(run.indexes[0].path)
    return path if len(run.indexes) == 1 else path.rpartition("/")[0]


def _members(run: Trace, side: str, name: str) -> list[Member]:
    """Return the files of a run as they are called beside the other run."""
    if len(run.members) == 1:
        return [run.members[0]._replace(side=f"{side} {name}")]
    return [one._replace(side=f"{side} {one.title} · {name}") for one in run.members]


def _paired(a: Scope, b: Scope) -> PairedSteps:
    """Pair the k-th steps of one label; where no label is in both runs, steps by their order."""
    from ...trace.step_spans import step_spans
    from ..steps.step_length import span_lengths
    from .compare import are_within_scatter

    first, second = (step_spans(one.trace, one.clocks, one.steps or None) for one in (a, b))
    if first is None or second is None:
        whole = np.array([a.trace.opening_span, b.trace.opening_span], np.int64)
        lengths = (whole[:, 1] - whole[:, 0])[None]
        rows, unknown = np.full((1, 2), -1), np.zeros(1, np.bool_)
        return PairedSteps(("",), whole[:1], whole[1:], rows, lengths, unknown)
    keys, other = _keys(first), _keys(second)
    of_key = {key: at for at, key in enumerate(other)}
    pairs = [(at, of_key[key]) for at, key in enumerate(keys) if key in of_key]
    rows = np.array(pairs or list(zip(range(len(keys)), range(len(other)))), np.int64)
    of_a, of_b = (np.stack([one.starts, one.ends], 1) for one in (first, second))
    sides = [span_lengths(a, first), span_lengths(b, second)]
    by_cadence = any(one.ahead for one in sides) and not any(np.isnan(one.cadence).any() for one in sides)
    each = [one.cadence.astype(np.int64) if by_cadence else one.length for one in sides]
    lengths = np.stack([one[rows[:, n]] for n, one in enumerate(each)], 1)
    labels = tuple(first.titles[at] for at in rows[:, 0].tolist())
    without = len(keys) - len(rows), len(other) - len(rows)
    are_noise = are_within_scatter(lengths[:, 0], lengths[:, 1])
    marks = of_a[rows[:, 0]], of_b[rows[:, 1]]
    return PairedSteps(labels, *marks, rows, lengths, are_noise, without, by_cadence)


def _keys(spans: StepSpans) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    keys = []
    for label in spans.labels:
        keys.append((label, counts[label]))
        counts[label] += 1
    return keys


def title_of_pair(pair: RunPair) -> str:
    """Return what the pair is called: "A eager · B compiled"."""
    return " · ".join(f"{side} {name}" for side, name in zip(SIDES, pair.names))
