"""Which slices are the steps of a trace: found in it, never assumed, with the reason for the choice."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import I64, AnyArray, sum_of
from ..base.clock import Clocks
from ..base.kineto import GROUPS
from ..index.flex import is_flex, round_trips
from ..index.store import SCAN_CHUNK, Index
from ..query.steps import STEP_NAME, steps_of
from .groups import category_mask
from .op_events import HOST, slice_lanes

if TYPE_CHECKING:
    from ..trace import Trace

_GRANITE = r"granite\.iteration\.(?P<label>\d+\.(?P<group>prefill|decode)\.\d+)"
_VLLM = r"(?P<label>execute_.*context_(?P<context>\d+).*generation_(?P<tokens>\d+).*)"
_SGLANG = r"step\[(?P<label>(?P<group>\w+)(?:.*?\bbs=(?P<bs>\d+))?.*)\]"
KNOWN = (
    ("iteration_N", re.compile(r"iteration_(?P<label>\d+)")),
    ("granite.iteration.N", re.compile(_GRANITE)),
    ("vLLM's execute_…", re.compile(_VLLM)),
    ("SGLang's step[…]", re.compile(_SGLANG)),
)
"""(what it is called, the names) that engines are known to mark their iterations with."""
LONGEST = 1000
"""The longest name that is looked at: on longer ones these patterns would be slow."""
GRAPHS = re.compile(
    r"^(Torch-Compiled Region|## Call CompiledFxGraph|(cuda|hip|cu)GraphLaunch|aiu\w*GraphLaunch)"
)
NUMBERS = re.compile(r"\d+")
COMPILING = re.compile(r"\(dynamo_timed\)$|_data: compile_id=|^(?>(?s:.*?)_data: ).*, compile_id=")
"""Names of torch.compile's own phases: they repeat, but are no iterations."""
COMPILATION = re.compile(r"(Torch-Compiled Region: \d+/)\d+")
HIDDEN = GROUPS["device"] | GROUPS["python"]
"""Categories that hold no steps of the host: a device's twin of a step is the same step."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The n steps of one source in time order; trace time in ns.

    Marks of one process with the same name that overlap (one on each thread, or one inside the other) are one
    step: from the first start to the last end.
    """

    source: int
    choice: str  # what they are called
    reason: str  # why these
    positions: I64  # of the longest mark of each
    starts: I64
    ends: I64
    labels: tuple[str, ...]
    groups: tuple[str, ...]  # "" where the name tells of none
    processes: I64  # numbers in the source's process table; each process counts its own steps

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.positions)

    def within(self, span: tuple[int, int] | None) -> I64:
        """Return the places of the steps that lie in a range of trace time wholly; all without one."""
        if span is None:
            return np.arange(len(self))
        return np.flatnonzero((self.starts >= span[0]) & (self.ends <= span[1]))

    def holding(self, times: I64) -> I64:
        """Return which step holds each time, of several the latest begun; -1 for none."""
        if not len(self):
            return np.full(len(times), -1, np.int64)
        reach = np.maximum.accumulate(self.ends)
        at = np.searchsorted(self.starts, times, "right") - 1
        # Steps may overlap: an earlier one that still lasts holds what the latest does not.
        while True:
            begun = np.maximum(at, 0)
            back = np.flatnonzero((at >= 0) & (times >= self.ends[begun]) & (times < reach[begun]))
            if not len(back):
                break
            at[back] -= 1
        return np.where((at >= 0) & (times < self.ends[begun]), at, -1)

    def take(self, rows: I64) -> Steps:
        """Return some of the steps."""
        return replace(
            self,
            positions=self.positions[rows],
            starts=self.starts[rows],
            ends=self.ends[rows],
            labels=tuple(self.labels[at] for at in rows.tolist()),
            groups=tuple(self.groups[at] for at in rows.tolist()),
            processes=self.processes[rows],
        )


def find_steps(
    trace: Trace, source: int, clocks: Clocks | None = None, name: str | None = None
) -> Steps | None:
    """Return the steps of a source: those of a name (numbers in it aside), else the profiler's, else names
    that engines are known to use, else the outermost annotation, compiled region or graph launch that
    repeats; None where there is nothing of the kind.
    """
    index, clocks = trace.indexes[source], clocks or Clocks()
    if name is not None:
        alike = _alike(name)
        named = _named(index, _texts(index), lambda text: _alike(text) == alike)
        return _steps_at(trace, source, clocks, name, "chosen by name", named)
    marked = steps_of(index, source)
    if marked:
        positions = np.array([step.position for step in marked], np.int64)
        return _steps_at(trace, source, clocks, f"{STEP_NAME}N", "the profiler marked them", positions)
    texts = _texts(index)
    for what, pattern in KNOWN:
        named = _named(index, texts, partial(_is, pattern))
        if len(named):
            return _steps_at(trace, source, clocks, what, "a name that engines mark steps with", named)
    positions = _repeating(index, texts)
    if not len(positions):
        return None
    names = index.strings(_distinct(index.column("slices.name")[positions]))
    what = names[0] if len(names) == 1 else re.sub("#", "N", _alike(names[0]))
    return _steps_at(trace, source, clocks, what, "the outermost that repeats", positions)


def _texts(index: Index) -> dict[int, str]:
    """Return the names that slices have, by string number."""
    numbers = _distinct(index.column("slices.name"))
    return dict(zip(numbers, index.strings(numbers)))


def _named(index: Index, texts: Mapping[int, str], fits: Callable[[str], bool]) -> I64:
    """Return the positions of the host's slices whose name fits; of others only where there are none."""
    names, categories = index.column("slices.name"), index.column("slices.category")
    numbers = [number for number, text in texts.items() if fits(text)]
    if not numbers:
        return np.empty(0, np.int64)
    number_array = np.array(numbers, names.dtype)
    matching = [
        low + np.flatnonzero(np.isin(names[low : low + SCAN_CHUNK], number_array))
        for low in range(0, len(names), SCAN_CHUNK)
    ]
    positions: I64 = np.concatenate(matching).astype(np.int64)
    hidden = category_mask(index, HIDDEN)
    host = positions[~hidden[categories[positions]]]
    return host if len(host) else positions


def _alike(name: str) -> str:
    """Return a name without what changes from step to step: its numbers; of a compiled region, which of its
    compilations ran (another frame is another region).
    """
    return COMPILATION.sub(r"\1#", name) if COMPILATION.match(name) else NUMBERS.sub("#", name)


def _is(pattern: re.Pattern[str], text: str) -> bool:
    return len(text) <= LONGEST and pattern.fullmatch(text) is not None


def _distinct(numbers: AnyArray) -> list[int]:
    if not len(numbers):
        return []
    present = np.zeros(int(numbers.max()) + 1, np.bool_)
    for low in range(0, len(numbers), SCAN_CHUNK):
        present[numbers[low : low + SCAN_CHUNK]] = True
    return [int(number) for number in np.flatnonzero(present)]


def _repeating(index: Index, texts: Mapping[int, str]) -> I64:
    """Return the slices of the name (numbers aside) that takes most time of those that repeat on a lane; of
    each process those on the lane where it takes most.
    """
    names, categories = index.column("slices.name"), index.column("slices.category")
    notes, hosts = category_mask(index, {"user_annotation"}), category_mask(index, HOST)
    graphs = [number for number, text in texts.items() if GRAPHS.match(text)]
    jobs = round_trips(index) if is_flex(index) else np.empty(0, np.uint32)
    pieces = []
    for low in range(0, len(names), SCAN_CHUNK):
        kinds = categories[low : low + SCAN_CHUNK]
        hit = notes[kinds]
        if graphs:
            hit |= hosts[kinds] & np.isin(names[low : low + SCAN_CHUNK], np.array(graphs, names.dtype))
        if len(jobs):
            hit |= np.isin(names[low : low + SCAN_CHUNK], jobs)
        pieces.append(low + np.flatnonzero(hit))
    positions: I64 = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
    compiling = [n for n in _distinct(names[positions]) if COMPILING.search(texts[n])]
    positions = positions[~np.isin(names[positions], np.array(compiling, names.dtype))]
    keys: dict[str, int] = {}
    table = {n: keys.setdefault(_alike(texts[n]), len(keys)) for n in _distinct(names[positions])}
    key = np.array([table[number] for number in names[positions].tolist()], np.int64)
    lane = slice_lanes(index, positions)
    order = np.lexsort((-index.duration(positions), index.column("slices.start")[positions], lane, key))
    process = index.lanes["process"]
    repeats: dict[int, dict[int, tuple[int, I64]]] = {}  # by key and process: (time, slices) of the best lane
    bounds = np.flatnonzero((np.diff(key[order], prepend=-1) != 0) | (np.diff(lane[order], prepend=-1) != 0))
    for begin, end in zip(bounds.tolist(), [*bounds[1:].tolist(), len(order)]):
        outer = _outermost(index, positions[order[begin:end]])
        total = sum_of(index.duration(outer))
        of_key = repeats.setdefault(int(key[order[begin]]), {})
        owner = int(process[lane[order[begin]]])
        if len(outer) > 1 and total > of_key.get(owner, (0, outer))[0]:
            of_key[owner] = (total, outer)
    # The name that takes most time on one lane; each process has its own steps of it.
    best = max(
        repeats.values(), key=lambda lanes: max((ns for ns, _ in lanes.values()), default=0), default={}
    )
    return np.concatenate([np.empty(0, np.int64), *(outer for _, outer in best.values())])


def _outermost(index: Index, positions: I64) -> I64:
    """Return the positions, of one lane and in order of start, that do not begin inside an earlier one."""
    start = index.column("slices.start")[positions].astype(np.int64)
    reach = np.maximum.accumulate(start + index.duration(positions))
    return positions[np.concatenate([[True], start[1:] >= reach[:-1]])] if len(positions) else positions


def _steps_at(
    trace: Trace, source: int, clocks: Clocks, choice: str, reason: str, positions: I64
) -> Steps | None:
    if not len(positions):
        return None
    index = trace.indexes[source]
    process = index.lanes["process"][slice_lanes(index, positions)].astype(np.int64)
    pids = {process.number: process.pid for process in trace.processes if process.source == source}
    offsets = np.array([clocks.offset(source, pids[number]) for number in process.tolist()], np.int64)
    starts = index.column("slices.start")[positions].astype(np.int64) + offsets
    ends = starts + index.duration(positions)
    names = index.column("slices.name")[positions]
    first, low, high, longest = _united(process, names.astype(np.int64), starts, ends)
    order = np.lexsort((process[first], high, low))
    low, high, first, longest = low[order], high[order], first[order], longest[order]
    labels, groups = [], []
    counted: dict[int, int] = {}
    for number, text in zip(process[first].tolist(), index.strings(names[first])):
        at = counted.get(number, 0)
        counted[number] = at + 1
        label, group = _label(text)
        labels.append(label if label else str(at))
        groups.append(group)
    return Steps(
        source, choice, reason, positions[longest], low, high, tuple(labels), tuple(groups), process[first]
    )


def _united(processes: I64, names: I64, starts: I64, ends: I64) -> tuple[I64, I64, I64, I64]:
    """Return (first mark, start, end, longest mark) of each step, marks as places in these columns: those of
    one process and name that overlap are one step.
    """
    order = np.lexsort((-ends, starts, names, processes)).tolist()
    lengths = ends - starts
    first: list[int] = []
    high: list[int] = []
    longest: list[int] = []
    for at in order:
        if first:
            last = first[-1]
            alike = processes[last] == processes[at] and names[last] == names[at]
            if alike and starts[at] < high[-1]:
                high[-1] = max(high[-1], int(ends[at]))
                if lengths[at] > lengths[longest[-1]]:
                    longest[-1] = at
                continue
        first.append(at)
        high.append(int(ends[at]))
        longest.append(at)
    return np.array(first, np.int64), starts[first], np.array(high, np.int64), np.array(longest, np.int64)


def _label(name: str) -> tuple[str, str]:
    """Return the label and the group of a step's name; "" for what the name does not say."""
    if name.startswith(STEP_NAME):
        return name[len(STEP_NAME) :], ""
    for _, pattern in KNOWN:
        match = pattern.fullmatch(name) if len(name) <= LONGEST else None
        if match:
            facts = match.groupdict()
            if facts.get("context") is not None:
                context, tokens = int(facts["context"]), int(facts["tokens"])
                phase = ("mixed" if tokens else "prefill") if context else "decode"
                return facts["label"], f"{phase} bs={context + tokens}"
            group = (facts.get("group") or "").lower()
            return facts["label"], f"{group} bs={facts['bs']}" if facts.get("bs") else group
    return "", ""


def step_kind(name: str, chosen: str = "") -> str:
    """Return a step's name without what tells it from the next one, "" of a name that is no step's; `chosen`
    is the name of other steps than the profiler and engines mark, numbers in it aside.
    """
    if name.startswith(STEP_NAME):
        return STEP_NAME
    is_step = any(_is(pattern, name) for _, pattern in KNOWN) or (chosen and _alike(name) == _alike(chosen))
    return _alike(name) if is_step else ""


def step_order(name: str) -> tuple[int, ...]:
    """Return what steps of a kind are sorted by: the numbers in their names."""
    return tuple(int(number[:18]) for number in NUMBERS.findall(name[:LONGEST]))
