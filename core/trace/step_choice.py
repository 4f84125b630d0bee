"""Which slices are the steps of a trace: found in it, never assumed, with the reason for the choice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import I64, AnyArray, distinct, sum_of
from ..base.cached_per_object import cached_per_object
from ..base.clock import Clocks
from ..base.kineto import (
    ANNOTATIONS,
    GROUPS,
    HOST_COLLECTIVE,
    HOST_EVENTS,
    StartedWork,
    started_work,
)
from ..base.units import count_of
from ..index.flex import is_flex, round_trips
from ..index.producers import step_argument, steps_lanes
from ..index.store import SCAN_CHUNK, Index
from ..query.args import argument_values
from ..query.groups import Groups
from ..query.lookup import category_mask, lane_offsets, lanes_of, processes_of, starts_of
from ..query.steps import STEP_NAME, steps_of
from .step_names import (
    KNOWN,
    MAX_LENGTH,
    fits_name,
    label_and_group,
    numbers_that_count,
    step_series,
)

if TYPE_CHECKING:
    from . import Trace

PHASE = re.compile(r"(?<![a-z])(prefill|decode)(?![a-z])", re.IGNORECASE)
PHASE_WORDS = tuple(
    form(word) for word in ("prefill", "decode") for form in (str.lower, str.title, str.upper)
)
"""Annotations around steps that say in which phase of a model's answer they are."""
REPEATED = "the outermost that repeats"
"""Why steps are steps that nothing marks."""
GRAPHS = re.compile(r"^(Torch-Compiled Region|## Call CompiledFxGraph)")
FRAMES = re.compile(
    r"(^|[ .:])(execute_model|(training|train|validation|test|predict|optimizer)_step|step|train_batch"
    r"|run_batch|forward|forward_step|generate_step|decode_step|run_iteration|train_one_batch|compute_loss_and_backward)$"
)
"""Python functions that are called once a step."""
MAX_FOUND = 4096
"""So many answers of `find_steps` are remembered of a trace: four of each of a thousand ranks."""
DOUBTFUL = 0.6
"""Steps in which less of the device's time is launched are said to be doubtful."""
NEARLY, NEARLY_DOUBTFUL = 0.8, 0.5
"""Candidates are nearly as good as the best from this share of its score on; less where that is doubtful."""
MIN_COVERED = 0.25
"""A series that covers a smaller share of what is done from its first to its last is a part of steps."""
MAX_CANDIDATES = 64
FRAME_SIGN = "$"
"""How XLA's profiler begins the names of Python's functions."""
PAUSE_TIMES, ALIKE = 2.5, 0.9
"""Pauses between bursts are at least so many times the median one, and bursts at least so alike by size."""
BURSTS = "bursts of "
# "gc (dynamo_timed)", "compile_file_data: compile_id=0/0", "x_data: a=1, compile_id=0/0". The group in (?>…)
# is not gone back into: the first "_data: " of a name is tried alone, or a long name with many would take its
# square.
COMPILING = re.compile(r"\(dynamo_timed\)$|_data: compile_id=|^(?>(?s:.*?)_data: ).*, compile_id=")
"""Names of torch.compile's own phases: they repeat, but are no iterations."""
HIDDEN = GROUPS["device"] | GROUPS["python"]
"""Categories that hold no steps of the host: a device's twin of a step is the same step."""


def latest_holding(starts: I64, ends: I64, times: I64) -> I64:
    """Return which of some stretches of time, by start, holds each time: the latest begun, -1 for none."""
    if not len(starts):
        return np.full(len(times), -1, np.int64)
    reach = np.maximum.accumulate(ends)
    at = np.searchsorted(starts, times, "right") - 1
    # They may overlap: an earlier one that still lasts holds what the latest does not. Of 0 to 100, 10 to
    # 15 and 20 to 25 the third has begun at 30 and is over, so is the second: two steps back lies the
    # first, which holds it. As all reach to 100, 99 goes back as far; 100 does not, since none that began
    # before reaches beyond it.
    while True:
        begun = np.maximum(at, 0)
        back = np.flatnonzero((at >= 0) & (times >= ends[begun]) & (times < reach[begun]))
        if not len(back):
            break
        at[back] -= 1
    return np.where((at >= 0) & (times < ends[begun]), at, -1)


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
        return len(self.positions)

    def within(self, span: tuple[int, int] | None) -> I64:
        """Return the places of the steps that lie in a range of trace time wholly; all without one."""
        if span is None:
            return np.arange(len(self))
        return np.flatnonzero((self.starts >= span[0]) & (self.ends <= span[1]))

    def holding(self, times: I64) -> I64:
        """Return which step holds each time, of several the latest begun; -1 for none."""
        return latest_holding(self.starts, self.ends, times)

    def take(self, rows: I64) -> Steps:
        columns: dict[str, Any] = {
            key: getattr(self, key)[rows] for key in ("positions", "starts", "ends", "processes")
        }
        for key in ("labels", "groups"):
            columns[key] = tuple(map(getattr(self, key).__getitem__, rows.tolist()))
        return replace(self, **columns)


@cached_per_object(MAX_FOUND)
def find_steps(
    trace: Trace, source: int, clocks: Clocks | None = None, name: str | None = None
) -> Steps | None:
    """Return the steps of a source: those of a name (numbers in it aside; "iter" means those of "iter 17"
    where no slice is called "iter"), else the profiler's, else names that engines are known to use, else, of
    annotations, compiled regions, Python functions called as steps are, graph launches and their bursts those
    that cover most of the device's time most regularly; None where there is nothing of the kind.
    """
    index, clocks = trace.indexes[source], clocks or Clocks()
    if not index.length("slices.name"):
        return None  # as of files that are still read
    if name is not None:
        positions, lengths = _by_name(index, name)
        chosen = _steps_at(trace, source, clocks, name, "chosen by name", positions, lengths)
        more = _more_than_named(index, name, positions, len(chosen or ()))
        return chosen and replace(chosen, reason=chosen.reason + more)
    marked = steps_of(index, source)
    if marked:
        positions = np.array([step.position for step in marked], np.int64)
        return _steps_at(trace, source, clocks, f"{STEP_NAME}N", "the profiler marked them", positions)
    if lanes := steps_lanes(index):
        titles = ", ".join(sorted({index.string(int(index.lanes["name"][lane])) for lane in lanes}))
        positions = np.concatenate([_outer_row(index, lane) for lane in lanes])
        return _steps_at(trace, source, clocks, f"lane {titles}", "the profiler wrote them", positions)
    texts = _texts(index)
    if (argument := step_argument(index)) and len(named := _numbered(index, texts, argument)):
        names = {texts[number] for number in _distinct(index.column("slices.name")[named])}
        called = names.pop() if len(names) == 1 else f"slices with {argument}"
        return _steps_at(trace, source, clocks, called, f"the profiler wrote their {argument}", named)
    for what, pattern in KNOWN:
        named = _named(index, texts, partial(fits_name, pattern))
        if len(named):
            return _steps_at(trace, source, clocks, what, "a name that engines mark steps with", named)
    candidates = _judged(trace, source, _candidates(index, texts))
    if not candidates:
        return None
    best, *others = candidates
    reason = REPEATED
    if 0 < best.coverage < DOUBTFUL:
        reason += f"; doubtful, as only {best.coverage:.0%} of the device's time is launched in them"
        reason += f"; next: --step-name {others[0].text}" if others and others[0].coverage else ""
    return _steps_at(trace, source, clocks, best.name, reason, best.positions, best.lengths)


def _outer_row(index: Index, lane: int) -> I64:
    """Return the positions of the outermost slices of a lane."""
    row = index.rows[int(index.lanes["first_row"][lane])]
    return np.arange(int(row["first"]), int(row["first"]) + int(row["count"]))


def _numbered(index: Index, texts: Mapping[int, str], argument: str) -> I64:
    """Return the positions of the slices that have an argument, by name: of those that repeat and take most
    time the first slice of each is read.
    """
    names = index.column("slices.name")
    is_frame = [number for number, text in texts.items() if text.startswith(FRAME_SIGN)]
    rows = np.flatnonzero(~np.isin(names, is_frame))
    numbers, first, of, counts = np.unique(
        names[rows], return_index=True, return_inverse=True, return_counts=True
    )
    total = Groups(of, len(numbers)).sums(index.duration(rows))
    longest = [at for at in np.argsort(-total, kind="stable").tolist() if counts[at] > 1][:MAX_CANDIDATES]
    values = argument_values(index, argument, rows[first[longest]])
    has_it = [number for number, value in zip(numbers[longest].tolist(), values) if value is not None]
    return np.flatnonzero(np.isin(names, has_it)).astype(np.int64)


def _by_name(index: Index, name: str) -> tuple[I64, I64 | None]:
    """Return the slices of a name, numbers in it aside, and their lengths where those are not their own; also
    by what steps that were found are called. Where there are none, of the names in which it stands as words
    those that take most time: `iter` finds "iter 17", `execute_model` its Python function.
    """
    texts, alike = _texts(index), step_series(name)
    known = dict(KNOWN).get(name)
    fits = (lambda text: step_series(text) == alike) if known is None else partial(fits_name, known)
    named = _named(index, texts, fits)
    if len(named) or not name:
        return named, None
    if name.startswith(BURSTS):
        for candidate in _candidates(index, texts):
            if candidate.name == name:
                return candidate.positions, candidate.lengths
    words = re.compile(rf"(?<![^\W_]){re.escape(name)}(?![^\W\d_])")
    keys: dict[str, int] = {}
    of = {
        n: keys.setdefault(step_series(t), len(keys))
        for n, t in texts.items()
        if words.search(t[:MAX_LENGTH])
    }
    positions = _named(index, {number: texts[number] for number in of}, bool)
    key = np.array([of[number] for number in index.column("slices.name")[positions].tolist()], np.int64)
    times = np.bincount(key, index.duration(positions))
    return (positions[key == int(np.argmax(times))] if len(times) else positions), None


def _more_than_named(index: Index, name: str, positions: I64, steps: int) -> str:
    """Return what a name that was typed leaves open: which others count too, which slices are one step."""
    texts = index.strings(_distinct(index.column("slices.name")[positions]))
    others = count_of(len(texts) - 1, "name that differs", "names that differ")
    text = f", with {others} in numbers only" if name in texts and len(texts) > 1 else ""
    slices = count_of(len(positions), "slice")
    return text + (f"; {slices} that overlap are {count_of(steps, 'step')}" if steps < len(positions) else "")


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


def _distinct(numbers: AnyArray) -> list[int]:
    if not len(numbers):
        return []
    present = np.zeros(int(numbers.max()) + 1, np.bool_)
    for low in range(0, len(numbers), SCAN_CHUNK):
        present[numbers[low : low + SCAN_CHUNK]] = True
    return [int(number) for number in np.flatnonzero(present)]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A series of slices that may be the steps of a source."""

    name: str
    positions: I64
    lengths: I64  # ns, from the start of each
    time: int  # ns that it takes on the lane where it takes most
    is_frame: bool = False  # of Python
    coverage: float = 0.0  # the share of the device's time that is launched in it
    regularity: float = 0.0  # how alike its steps are by the number of pieces of work that they launch

    @property
    def score(self) -> float:
        """How good it is, from 0 to 1."""
        return self.coverage * self.regularity

    @property
    def text(self) -> str:
        """The candidate in words, as another choice."""
        quoted = quote(self.name) if "'" in self.name else f"'{self.name}'"
        return f"{quoted} ({len(self.positions)} steps, {self.coverage:.0%})"


def _candidates(index: Index, texts: Mapping[int, str]) -> list[Candidate]:
    """Return names (numbers aside) that repeat on a lane, by process where most; most time first."""
    names, categories = index.column("slices.name"), index.column("slices.category")
    notes, hosts = category_mask(index, ANNOTATIONS), category_mask(index, HOST_EVENTS)
    graphs = np.array([n for n, text in texts.items() if GRAPHS.match(text) or _is_graph(text)], names.dtype)
    frames = np.array([n for n, text in texts.items() if FRAMES.search(text)], names.dtype)
    is_python = category_mask(index, GROUPS["python"])
    jobs = round_trips(index) if is_flex(index) else np.empty(0, np.uint32)
    pieces = []
    for low in range(0, len(names), SCAN_CHUNK):
        kinds, numbers = categories[low : low + SCAN_CHUNK], names[low : low + SCAN_CHUNK]
        hit = notes[kinds]
        for which, some in ((hosts[kinds], graphs), (is_python[kinds], frames), (True, jobs)):
            if len(some):
                hit |= which & np.isin(numbers, some)
        pieces.append(low + np.flatnonzero(hit))
    positions: I64 = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
    parts = [n for n in _distinct(names[positions]) if _is_part(texts[n])]
    positions = positions[~np.isin(names[positions], np.array(parts, names.dtype))]
    alike = {n: step_series(texts[n]) for n in _distinct(names[positions])}
    result = []
    for series in _series(index, positions, alike):
        time, own = max(ns for ns, _ in series), np.concatenate([outer for _, outer in series])
        numbers_here = _distinct(names[own])
        text = texts[numbers_here[0]]
        name = text if len(numbers_here) == 1 else alike[numbers_here[0]]
        is_frame = bool(is_python[categories[own[0]]])
        result.append(Candidate(name, own, index.duration(own), time, is_frame))
        if _is_graph(text):
            result += _bursts(index, name, [outer for _, outer in series])
    return sorted(result, key=lambda one: -one.time)


def _is_part(text: str) -> bool:
    """Tell whether a name that repeats is of a part of steps: a phase of the compiler, or a collective."""
    return COMPILING.search(text) is not None or HOST_COLLECTIVE.match(text) is not None


def _series(index: Index, positions: I64, alike: Mapping[int, str]) -> Iterator[list[tuple[int, I64]]]:
    """Yield for each name that repeats on a lane, of each process: (time, slices) of the best lane."""
    keys: dict[str, int] = {}
    table = {number: keys.setdefault(text, len(keys)) for number, text in alike.items()}
    numbers = index.column("slices.name")[positions]
    key = np.array([table[number] for number in numbers.tolist()], np.int64)
    lane = lanes_of(index, positions)
    order = np.lexsort((-index.duration(positions), index.column("slices.start")[positions], lane, key))
    process = index.lanes["process"]
    repeats: dict[int, dict[int, tuple[int, I64]]] = {}  # by key and process
    bounds = np.flatnonzero((np.diff(key[order], prepend=-1) != 0) | (np.diff(lane[order], prepend=-1) != 0))
    for begin, end in zip(bounds.tolist(), [*bounds[1:].tolist(), len(order)]):
        outer = _outermost(index, positions[order[begin:end]])
        total = sum_of(index.duration(outer))
        of_key = repeats.setdefault(int(key[order[begin]]), {})
        owner = int(process[lane[order[begin]]])
        if len(outer) > 1 and total > of_key.get(owner, (0, outer))[0]:
            of_key[owner] = (total, outer)
    yield from (list(lanes.values()) for lanes in repeats.values() if lanes)


def _is_graph(text: str) -> bool:
    return started_work(text) is StartedWork.GRAPH


def _bursts(index: Index, name: str, lanes: Sequence[I64]) -> Iterator[Candidate]:
    """Yield the bursts in which graphs are launched, where there are any: an engine that captures a model
    piece by piece launches many for one pass, and waits longer between two passes.
    """
    firsts, lengths = [], []
    for positions in lanes:
        starts = index.column("slices.start")[positions].astype(np.int64)
        ends = starts + index.duration(positions)
        pauses = starts[1:] - ends[:-1]
        long = distinct(pauses[pauses >= PAUSE_TIMES * np.median(pauses)])[-MAX_CANDIDATES:]
        splits = [np.append(0, np.flatnonzero(pauses >= least) + 1) for least in long.tolist()]
        # The split into the most alike bursts, of equal ones that into most: passes, no epochs of them.
        rated = [(_likeness(np.diff(np.append(first, len(starts)))), first) for first in splits]
        likeness, first = max(
            rated, key=lambda one: (one[0], len(one[1])), default=(0.0, np.empty(0, np.int64))
        )
        if likeness >= ALIKE and 1 < len(first) < len(starts):
            firsts.append(positions[first])
            lengths.append(ends[np.append(first[1:], len(starts)) - 1] - starts[first])
    if firsts:
        spans = np.concatenate(lengths)
        yield Candidate(f"{BURSTS}{name}", np.concatenate(firsts), spans, sum_of(spans))


def _likeness(counts: I64) -> float:
    """Return how alike some counts are, from 0 to 1: the mean of each held against the median."""
    usual = max(1, int(np.quantile(counts, 0.5, method="higher")))
    return float((np.minimum(counts, usual) / np.maximum(counts, usual)).mean())


def _judged(trace: Trace, source: int, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates with what they cover of the device's time, the best first: of those that are nearly
    as good as the best the one that takes most time, which is the outermost. Where no launch is known, those
    that are no frames of Python come first. What covers little of the device's time, or where no launch is
    known of the host's, is a part of steps, as an optimizer is: no step.
    """
    index, launches = trace.indexes[source], trace.launches(source)
    known = np.flatnonzero(launches.is_called)
    if not len(known):
        whole = [one for one in candidates[:MAX_CANDIDATES] if _host_share(index, one) >= MIN_COVERED]
        return sorted(whole, key=lambda one: one.is_frame)
    called = index.column("slices.start")[launches.launch[known]].astype(np.int64)
    order = np.argsort(called, kind="stable")
    called, durations = called[order], index.duration(launches.kernels[known])[order]
    process = processes_of(index, launches.launch[known])[order]
    total = max(1, sum_of(durations))
    # Kernels of 10, 30 and 60 ns are launched at 5, 120 and 190. A step of 100 to 200 owns the second and the
    # third: sums of durations in the order of the calls are 0, 10, 40 and 100, and 100 - 10 of 100 is
    # covered. So a step costs two searches, whatever it launches. Threads of other processes launch nothing
    # for it.
    judged = []
    for one in candidates[:MAX_CANDIDATES]:
        owners = processes_of(index, one.positions)
        starts = index.column("slices.start")[one.positions].astype(np.int64)
        ns, pieces = 0, [np.empty(0, np.int64)]
        for owner in distinct(owners).tolist():
            here, mine = process == owner, owners == owner
            sums = np.concatenate([[0], np.cumsum(durations[here])])
            low = np.searchsorted(called[here], starts[mine])
            high = np.searchsorted(called[here], starts[mine] + one.lengths[mine])
            ns += int((sums[high] - sums[low]).sum())
            pieces.append(high - low)
        counts = np.concatenate(pieces)
        judged.append(replace(one, coverage=min(1.0, ns / total), regularity=_likeness(counts)))
    judged = [one for one in judged if one.coverage >= MIN_COVERED]
    best = max((one.score for one in judged), default=0.0)
    least = best * (NEARLY if best >= DOUBTFUL else NEARLY_DOUBTFUL)
    near = sorted(
        (one for one in judged if one.score >= least), key=lambda one: (one.is_frame and not least, -one.time)
    )
    return near + sorted((one for one in judged if one.score < least), key=lambda one: -one.score)


def _host_share(index: Index, candidate: Candidate) -> float:
    """Return what share a series has of all that its lanes do from its first to its last slice; 1 where that
    is not known. A lane does what its outermost slices show.
    """
    starts = index.column("slices.start")
    own = starts[candidate.positions].astype(np.int64)
    low, high = int(own.min()), int((own + candidate.lengths).max())
    busy = 0
    for lane in distinct(lanes_of(index, candidate.positions)).tolist():
        at = _outer_row(index, lane)
        begins = starts[at].astype(np.int64)
        ends = begins + index.duration(at)
        busy += sum_of(np.maximum(np.minimum(ends, high) - np.maximum(begins, low), 0))
    return min(1.0, sum_of(candidate.lengths) / busy) if busy else 1.0


def _outermost(index: Index, positions: I64) -> I64:
    """Return the positions, of one lane and in order of start, that do not begin inside an earlier one."""
    start = index.column("slices.start")[positions].astype(np.int64)
    reach = np.maximum.accumulate(start + index.duration(positions))
    return positions[np.concatenate([[True], start[1:] >= reach[:-1]])] if len(positions) else positions


def _steps_at(
    trace: Trace,
    source: int,
    clocks: Clocks,
    choice: str,
    reason: str,
    positions: I64,
    lengths: I64 | None = None,
) -> Steps | None:
    if not len(positions):
        return None
    index = trace.indexes[source]
    process = index.lanes["process"][lanes_of(index, positions)].astype(np.int64)
    starts = starts_of(index, positions, lane_offsets(index, source, clocks))
    ends = starts + (index.duration(positions) if lengths is None else lengths)
    names = index.column("slices.name")[positions]
    first, low, high, longest = _united(process, names.astype(np.int64), starts, ends)
    order = np.lexsort((process[first], high, low))
    low, high, first, longest = low[order], high[order], first[order], longest[order]
    labels, groups = [], []
    counted: dict[int, int] = {}
    texts = index.strings(names[first])
    for number, text, stated in zip(process[first].tolist(), texts, numbers_that_count(texts)):
        at = counted.get(number, 0)
        counted[number] = at + 1
        label, group = label_and_group(text)
        labels.append(label or stated or str(at))
        groups.append(group)
    if not all(groups):
        phases = _phases(trace, source, clocks, positions[first], low)
        groups = [group or phase for group, phase in zip(groups, phases)]
    return Steps(
        source, choice, reason, positions[longest], low, high, tuple(labels), tuple(groups), process[first]
    )


def _phases(trace: Trace, source: int, clocks: Clocks, positions: I64, starts: I64) -> list[str]:
    """Return the phase in which each step begins, by its own name or that of the annotation of its process
    around it; "" where nothing says it.
    """
    index = trace.indexes[source]
    numbers = distinct(
        np.array([n for word in PHASE_WORDS for n in index.string_numbers(word, inside=True)], np.int64)
    )
    texts = index.strings(numbers)
    named = {n: match[1].lower() for n, text in zip(numbers.tolist(), texts) if (match := PHASE.search(text))}
    phases = [""] * len(positions)
    if not named:
        return phases
    names = index.column("slices.name")
    notes = np.flatnonzero(np.isin(names, np.array(list(named), names.dtype))).astype(np.int64)
    notes = notes[category_mask(index, ANNOTATIONS)[index.column("slices.category")[notes]]]
    begins = starts_of(index, notes, lane_offsets(index, source, clocks))
    owners, own = processes_of(index, notes), processes_of(index, positions)
    for owner in distinct(own).tolist():
        here, mine = np.flatnonzero(owners == owner), np.flatnonzero(own == owner)
        here = here[np.argsort(begins[here], kind="stable")]
        lasts = begins[here] + index.duration(notes[here])
        for row, at in zip(mine.tolist(), latest_holding(begins[here], lasts, starts[mine]).tolist()):
            phases[row] = named[int(names[notes[here[at]]])] if at >= 0 else ""
    return phases


def _united(processes: I64, names: I64, starts: I64, ends: I64) -> tuple[I64, I64, I64, I64]:
    """Return (first mark, start, end, longest mark) of each step: marks of a name that overlap are one."""
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
