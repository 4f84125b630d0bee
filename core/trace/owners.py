"""Who owns a piece of device work: the call on the host whose op, module, shapes and stack it has.

That is the call that launched it, or the operator from which an arrow of its own comes (torch_npu). Of what a
graph replays one call starts all kernels: each is owned by the call that launched it into the graph while
that was captured. Where the trace of the capture lies beside the trace (`core/index/graph_folder.py`), its
graphs are joined to the replays:

1. the graph is the one of the least batch that holds the step's, by the names of steps and captures; where a
   capture has several graphs, those of a step are its graphs in order;
2. node ids join kernels, where both files have them;
3. else names and order do: a replay has the names of the graph's launches, of each stream in their order. A
   capture may have some more at its head or its end, where just one part of it fits;
4. where the launches say no names (CUDA), all of a graph's replays must have as many kernels as it has
   launches, copies and fills at the same places: what is joined so is inferred.

A replay that fits no graph, or several that differ in what they say, is not joined; `unjoined` says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..base.arrays import I64, U32, AnyArray, distinct, places_in, sum_of
from ..base.errors import CacheError, TracelaneError
from ..base.kineto import GROUPS, MODULE, OPS
from ..base.short_names import short_name
from ..index.format import NONE
from ..index.graph_folder import GraphFile, GraphFolder
from ..index.store import Index
from ..query.launches import Launches, operators_by_arrow
from ..query.lookup import category_mask, nearest_around, promoted_of
from .captured_graphs import (
    COPY,
    FILL,
    CapturedGraphs,
    GraphCapture,
    captured_graphs,
    captured_stack,
)
from .graph_replays import GraphReplays, graph_replays

PIECEWISE = "PIECEWISE"
"""The mode of a capture whose step has several graphs."""
OWN = 0
"""The number of a source's own index among those of its owners."""
NO_OWNER = "no owner"
"""The heading of why no capture says who owns a replayed kernel."""
MAX_NAME = 60
"""Characters of a kernel's name in a sentence."""


class Unjoined(NamedTuple):
    """Replays of graphs that are not joined to a capture for one reason, in a sentence."""

    reason: str
    replays: int
    kernels: int
    ns: int  # of these kernels


@dataclass(frozen=True, eq=False)
class Owners:
    """The owner of each piece of device work of a source, ascending by position.

    `indexes` are the source's own and those of captures; `book` says in which of them an owner lies.
    """

    indexes: tuple[Index, ...]
    kernels: U32  # positions
    book: I64
    owner: I64  # positions in the index of the book, -1 where the trace does not say
    capture: I64  # number in `labels`, -1 for what the trace itself tells
    labels: tuple[str, ...] = ()
    is_inferred: AnyArray = field(default_factory=lambda: np.empty(0, np.bool_))
    """Which were joined by count and order alone."""
    reason: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    """The number in `unjoined` of why no capture fits the graph that replayed it, though there are captures;
    -1 of all else.
    """
    unjoined: tuple[Unjoined, ...] = ()
    problems: tuple[str, ...] = ()
    """Why files of captures could not be read."""

    def rows_of(self, positions: AnyArray) -> I64:
        """Return where each slice stands in `kernels`, -1 for what is no device work."""
        return places_in(self.kernels, positions)

    def labels_of(self, positions: AnyArray) -> list[str]:
        """Return the captures that say who owns some of these slices, each once."""
        captures = np.append(self.capture, -1)[self.rows_of(positions)]
        return [self.labels[at] for at in distinct(captures[captures >= 0]).tolist()]

    @cached_property
    def by_capture(self) -> AnyArray:
        """Tell of each piece of work whether a capture says who owns it; bool."""
        return np.asarray(self.capture >= 0)

    @property
    def is_unjoined(self) -> AnyArray:
        """Tell of each piece of work whether a graph replayed it that no capture fits; bool."""
        return np.asarray(self.reason >= 0)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what a capture says, and on what is not joined."""
        count = int(np.count_nonzero(self.by_capture))
        labels = ", ".join(self.labels[at] for at in distinct(self.capture[self.by_capture]).tolist())
        joined = (f"{count:,} replayed kernels and copies have their owners by capture ({labels})",)
        guessed = int(np.count_nonzero(self.is_inferred))
        inferred = (f"of these {guessed:,} by count and order alone, as their capture says no names",)
        return (
            *(joined if count else ()),
            *(inferred if guessed else ()),
            *(sentence_of(one) for one in self.unjoined),
            *self.problems,
        )


def captured_facts(owners: Owners, position: int) -> dict[str, str]:
    """Return what a capture says of a kernel: op, module, shapes, the frames of Python around it (outermost
    first), and how that is known; of one whose replay fits no capture why it does not; nothing of others.
    """
    (row,) = owners.rows_of(np.array([position])).tolist()
    if row >= 0 and owners.reason[row] >= 0:
        return {NO_OWNER: owners.unjoined[int(owners.reason[row])].reason}
    if row < 0 or owners.capture[row] < 0:
        return {}
    index, launch = owners.indexes[int(owners.book[row])], int(owners.owner[row])
    names, starts = index.column("slices.name"), index.column("slices.start")
    stack = captured_stack(index, np.array([launch], np.int64))
    stack = stack[np.lexsort((-index.duration(stack), starts[stack]))]
    texts, kinds = index.strings(names[stack]), index.column("slices.category")[stack]
    is_op, is_frame = (category_mask(index, group)[kinds] for group in (OPS, GROUPS["python"]))
    ops = np.flatnonzero(is_op)
    frames = [text for text, is_one in zip(texts, is_frame.tolist()) if is_one]
    modules = [text for text in frames if text.startswith(MODULE)]
    facts = {"module": modules[-1].removeprefix(MODULE) if modules else ""}
    if len(ops):
        dims = int(promoted_of(index, "input_dims", stack[ops[-1:]], -1)[0])
        facts = {"op": texts[int(ops[-1])], **facts, "shapes": "" if dims < 0 else index.string(dims)}
    facts["stack"] = " > ".join(text for text in frames if not text.startswith(MODULE))
    facts["graph"] = owners.labels[int(owners.capture[row])]
    if owners.is_inferred[row]:
        facts["graph"] += ", inferred from count and order"
    return {key: text for key, text in facts.items() if text}


def sentence_of(one: Unjoined) -> str:
    """Return why replays have no owner as a sentence."""
    replays = "1 replay" if one.replays == 1 else f"{one.replays:,} replays"
    return f"{replays} of a graph ({one.kernels:,} kernels) not joined to a capture: {one.reason}"


def owners_of(index: Index, launches: Launches, rank: int | None) -> Owners:
    """Return who owns the device work of a source by the rules of this file. Captures that cannot be read are
    named in the answer.
    """
    count = len(launches.kernels)
    owner = np.where(launches.launch == NONE, -1, launches.launch.astype(np.int64))
    operators = operators_by_arrow(index, launches.kernels)
    owner = np.where(operators >= 0, operators, owner)
    nothing = np.full(count, -1, np.int64)
    none = np.zeros(count, np.bool_)
    books = np.zeros(count, np.int64)
    plain = Owners((index,), launches.kernels, books, owner, nothing, (), none, nothing)
    if index.graph_folder is None:
        return plain
    replays = graph_replays(index, launches)
    if not len(replays.calls):
        return plain
    captures, problems = _read_captures(index.graph_folder, replays, rank)
    return _Join(plain, replays, captures, problems).owners()


# -- replays ------------------------------------------------------------------------------------------------


# -- captures -----------------------------------------------------------------------------------------------


def _read_captures(
    folder: GraphFolder, replays: GraphReplays, rank: int | None
) -> tuple[list[CapturedGraphs], list[str]]:
    """Return the graphs of the files that may hold what was replayed, and why others cannot be read."""
    from ..index.cached import IndexJob
    from ..index.indexing import find_index, index_all, opened_index
    from ..read.source import Source, open_source

    problems: list[str] = []
    sources: list[tuple[GraphFile, Source]] = []
    for file in _wanted_files(folder.files(), set(replays.batch.tolist()), rank):
        try:
            sources.append((file, open_source(file.path, ts_unit=folder.options.ts_unit)))
        except TracelaneError as error:
            problems.append(f"a capture cannot be read: {error}")
    states = [find_index(source, folder.options) for _, source in sources]
    captures: list[CapturedGraphs] = []
    try:
        done = index_all([one for one in states if isinstance(one, IndexJob)], folder.options)
    except CacheError as error:  # of the captures alone: what the trace itself says stays
        return captures, [*problems, f"captures cannot be indexed: {error}"]
    for (file, source), one in zip(sources, states):
        try:
            if isinstance(one, IndexJob):
                if one.path in done.failed:
                    raise done.failed[one.path]
                one = opened_index(source, one.location, folder.options)
            captures.append(captured_graphs(one, file.name, file.batch, file.mode))
        except TracelaneError as error:
            problems.append(f"a capture cannot be read: {error}")
    return captures, problems


def _wanted_files(files: Sequence[GraphFile], batches: set[int], rank: int | None) -> list[GraphFile]:
    """Return the files of a rank, else those of the first one that has some, that may hold one of the
    batches: of those whose names say it only the ones that a batch is rounded up to.
    """
    ranks = {file.rank for file in files if file.rank is not None}
    if ranks:
        own = rank if rank in ranks else min(ranks)
        files = [file for file in files if file.rank in (None, own)]
    known = sorted({file.batch for file in files if file.batch is not None})
    if -1 in batches:
        return list(files)
    sizes = {next((size for size in known if size >= batch), None) for batch in batches}
    return [file for file in files if file.batch is None or file.batch in sizes]


# -- joining ------------------------------------------------------------------------------------------------


class _Fit(NamedTuple):
    """Which launch of a graph each row of a replay is; `why` there is none."""

    launches: I64 | None  # places in CapturedGraphs.launches
    why: str = ""
    is_inferred: bool = False


class _Choice(NamedTuple):
    """A capture of one file."""

    graphs: CapturedGraphs
    capture: GraphCapture
    book: int
    label: int


class _Join:
    """Joins the replays of a source to the graphs of its captures."""

    def __init__(
        self,
        plain: Owners,
        replays: GraphReplays,
        captures: Sequence[CapturedGraphs],
        problems: Sequence[str],
    ) -> None:
        self.plain, self.replays, self.problems = plain, replays, tuple(problems)
        self.indexes = (plain.indexes[0], *(one.index for one in captures))
        every = [(book, one, capture) for book, one in enumerate(captures, 1) for capture in one.captures]
        self.labels = tuple(dict.fromkeys(capture.label for _, _, capture in every))
        self.choices = [
            _Choice(one, capture, book, self.labels.index(capture.label)) for book, one, capture in every
        ]
        codes, texts = replays.works
        self.codes, self.texts = codes, texts
        self._numbers = {text: at for at, text in enumerate(texts)}
        self._kernels: dict[int, I64] = {}
        self._fits: dict[tuple[int, int, bytes], _Fit] = {}
        self._words: dict[int, tuple[I64, ...]] = {}

    def owners(self) -> Owners:
        """Return the owners, with those of the replays that fit a graph."""
        plain, replays = self.plain, self.replays
        book, owner, capture = plain.book.copy(), plain.owner.copy(), plain.capture.copy()
        is_inferred, reason = plain.is_inferred.copy(), plain.reason.copy()
        fits: list[tuple[_Choice | None, _Fit]] = []
        for calls in self._groups():
            fits += self._joined(calls)
        fits = self._certain(fits)
        unjoined = self._unjoined([fit for _, fit in fits])
        reasons = {one.reason: number for number, one in enumerate(unjoined)}
        for at, (choice, fit) in enumerate(fits):
            rows = replays.rows[replays.part(at)]
            if choice is None or fit.launches is None:
                reason[rows] = reasons[fit.why]
                continue
            owner[rows], book[rows] = choice.graphs.launches[fit.launches], choice.book
            capture[rows], is_inferred[rows] = choice.label, fit.is_inferred
        return Owners(
            self.indexes,
            plain.kernels,
            book,
            owner,
            capture,
            self.labels,
            is_inferred,
            reason,
            unjoined,
            self.problems,
        )

    def _groups(self) -> Iterator[list[int]]:
        """Yield the replays of each step, by number; those outside of steps together, in order."""
        steps = self.replays.step
        edges = np.flatnonzero(np.diff(steps, prepend=-2, append=-2)).tolist()
        for begin, end in pairwise(edges):
            yield list(range(begin, end))

    def _joined(self, calls: list[int]) -> list[tuple[_Choice | None, _Fit]]:
        """Return for each replay of a step the capture that it fits, and how; else why none does."""
        batch = int(self.replays.batch[calls[0]])
        choices = self._of_batch(batch, len(calls))
        if not choices:
            why = "no graph was captured" if batch < 0 or not self.choices else ""
            return [(None, _Fit(None, why or f"no captured graph holds a batch of {batch:,}"))] * len(calls)
        tried = [self._fits_of(choice, calls) for choice in choices]
        return [self._best(choices, [fits[at] for fits in tried]) for at in range(len(calls))]

    def _of_batch(self, batch: int, count: int) -> list[_Choice]:
        """Return the captures of the least batch that holds this one, those of the mode first that a step
        with so many graphs has; where no capture or no step says its batch, all.
        """
        known = [one.capture.batch for one in self.choices if one.capture.batch is not None]
        chosen = self.choices
        if batch >= 0 and known:
            least = min((size for size in known if size >= batch), default=None)
            chosen = [one for one in chosen if one.capture.batch == least] if least is not None else []
        return sorted(chosen, key=lambda one: (PIECEWISE in one.capture.mode.upper()) != (count > 1))

    def _fits_of(self, choice: _Choice, calls: list[int]) -> list[_Fit]:
        """Return how the replays of a step fit the graphs of one capture, in turn."""
        graphs = choice.capture.graphs
        if len(calls) % len(graphs):
            label = choice.capture.label
            why = f"{len(graphs):,} graphs in {label}, and {len(calls):,} replays in the step"
            return [_Fit(None, why)] * len(calls)
        return [self._fit(choice, graphs[at % len(graphs)], call) for at, call in enumerate(calls)]

    def _best(self, choices: Sequence[_Choice], fits: Sequence[_Fit]) -> tuple[_Choice | None, _Fit]:
        """Return the capture that fits a replay; of several that say the same of it the last that was
        written. Else why the likeliest does not.
        """
        fitting = [at for at, fit in enumerate(fits) if fit.launches is not None]
        if not fitting:
            return choices[0], fits[0]
        said = {self._said(choices[at], fits[at]) for at in fitting}
        if len(said) > 1:
            labels = ", ".join(dict.fromkeys(choices[at].capture.label for at in fitting))
            why = f"{len(fitting):,} captured graphs fit it and name different owners ({labels})"
            return None, _Fit(None, why)
        return choices[fitting[-1]], fits[fitting[-1]]

    def _said(self, choice: _Choice, fit: _Fit) -> bytes:
        """Return what a capture says of a replay's owners, to be compared: ops and shapes in order."""
        index, launches = choice.graphs.index, fit.launches
        if launches is None:
            return b""
        ops = _ops_of(index)
        at = nearest_around(index, choice.graphs.launches[launches], ops, itself=True)
        names = [index.string(int(number)) for number in index.column("slices.name")[np.maximum(at, 0)]]
        dims = promoted_of(index, "input_dims", np.maximum(at, 0), -1).tolist()
        texts = ["" if number < 0 else index.string(number) for number in dims]
        return repr([(one, text) if own >= 0 else () for own, one, text in zip(at, names, texts)]).encode()

    def _fit(self, choice: _Choice, graph: tuple[int, int], call: int) -> _Fit:
        """Return how a replay fits a graph; of equal replays it is found once."""
        part = self.replays.part(call)
        codes, lanes = self.codes[part], self.replays.lanes[part]
        nodes = self._nodes(choice, part)
        key = codes.tobytes() + lanes.tobytes() + (b"" if nodes is None else nodes.tobytes())
        where = (choice.book, graph[0], key)
        if where not in self._fits:
            self._fits[where] = self._aligned(choice, graph, codes, lanes, nodes)
        return self._fits[where]

    def _nodes(self, choice: _Choice, part: slice) -> I64 | None:
        """Return the nodes of a replay's rows, None where these or the capture's are not known."""
        if not (choice.graphs.nodes >= 0).any():
            return None
        nodes = self.replays.nodes[part]
        return nodes if (nodes >= 0).all() else None

    def _kernels_of(self, choice: _Choice) -> I64:
        """Return what each launch of a file starts as a place in `texts`; -1 unknown there, -2 not said."""
        if choice.book not in self._kernels:
            numbers = [self._numbers.get(name, -1) if name else -2 for name in choice.graphs.kernels]
            self._kernels[choice.book] = np.array(numbers, np.int64)
        return self._kernels[choice.book]

    def _aligned(
        self, choice: _Choice, graph: tuple[int, int], codes: I64, lanes: I64, nodes: I64 | None
    ) -> _Fit:
        begin, end = graph
        label, captured = choice.capture.label, self._kernels_of(choice)[begin:end]
        if nodes is not None:
            return self._by_nodes(choice, graph, codes, nodes)
        if (captured == -2).any():
            return self._by_order(label, begin, captured, codes, lanes)
        extra = len(captured) - len(codes)
        if extra < 0 or extra >= len(codes):
            why = f"{label} has {len(captured):,} launches and the replay {len(codes):,} kernels"
            return _Fit(None, why)
        parts = ((at, _in_order(captured[at : at + len(codes)], codes, lanes)) for at in range(extra + 1))
        fitting = [at + launches for at, launches in parts if launches is not None]
        if len(fitting) == 1:
            return _Fit(fitting[0] + begin)
        if fitting:
            return _Fit(None, f"{label} has {extra:,} more launches, and several parts of it fit")
        return _Fit(None, self._other_names(label, choice, begin + extra, codes))

    def _by_nodes(self, choice: _Choice, graph: tuple[int, int], codes: I64, nodes: I64) -> _Fit:
        """Join by the ids of nodes, which also have the same names where the capture says them."""
        begin, end = graph
        own = choice.graphs.nodes[begin:end] & 0xFFFFFFFF
        order = np.argsort(own, kind="stable")
        at = places_in(own[order], nodes)
        if (at < 0).any() or len(distinct(at)) < len(at):
            return _Fit(None, f"{choice.capture.label} has other nodes than the replay")
        launches = order[at] + begin
        captured = self._kernels_of(choice)[launches]
        if ((captured != codes) & (captured != -2)).any():
            return _Fit(None, f"nodes of {choice.capture.label} launch other kernels than the replay's")
        return _Fit(launches)

    def _by_order(self, label: str, begin: int, captured: I64, codes: I64, lanes: I64) -> _Fit:
        """Join by count and order alone where launches say no names; copies and fills at the same places."""
        if len(captured) != len(codes):
            counts = f"{len(captured):,} launches and the replay {len(codes):,} kernels"
            return _Fit(None, f"{label} says no kernels' names, and has {counts}")
        if len(distinct(lanes)) > 1:
            why = f"{label} says no kernels' names, and the replay ran on several streams"
            return _Fit(None, why)
        copies = [self._numbers[kind] for kind in (COPY, FILL) if kind in self._numbers]
        named = captured != -2
        if (captured[named] != codes[named]).any() or np.isin(codes[~named], copies).any():
            return _Fit(None, f"{label} says no kernels' names, and has copies at other places")
        return _Fit(np.arange(len(codes)) + begin, is_inferred=True)

    def _other_names(self, label: str, choice: _Choice, begin: int, codes: I64) -> str:
        """Return where the names of a replay and of a graph differ first."""
        captured = self._kernels_of(choice)[begin : begin + len(codes)]
        at = int(np.flatnonzero(captured != codes)[0])
        names = self.texts[int(codes[at])], choice.graphs.kernels[begin + at]
        mine, theirs = (_cut(short_name(name)) for name in names)
        return f"kernel {at + 1:,} is {mine}, and {theirs} in {label}"

    def _certain(self, fits: list[tuple[_Choice | None, _Fit]]) -> list[tuple[_Choice | None, _Fit]]:
        """Return the fits without those by count alone of a capture whose counts do not fit every replay."""
        broken = {choice.label for choice, fit in fits if choice is not None and fit.launches is None}
        for at, (choice, fit) in enumerate(fits):
            if fit.is_inferred and choice is not None and choice.label in broken:
                label = choice.capture.label
                fits[at] = choice, _Fit(None, f"{label} says no kernels' names, and not every replay fits it")
        return fits

    def _unjoined(self, fits: Sequence[_Fit]) -> tuple[Unjoined, ...]:
        """Return the replays that are not joined, by reason, those with most kernels first."""
        index, by_reason = self.replays.index, dict[str, list[int]]()
        for at, fit in enumerate(fits):
            if fit.launches is None:
                by_reason.setdefault(fit.why, []).append(at)
        result = []
        for why, calls in by_reason.items():
            rows = [self.replays.positions[self.replays.part(at)] for at in calls]
            positions = np.concatenate(rows)
            result.append(Unjoined(why, len(calls), len(positions), sum_of(index.duration(positions))))
        return tuple(sorted(result, key=lambda one: -one.kernels))


def _in_order(captured: I64, codes: I64, lanes: I64) -> I64 | None:
    """Return which of equally many launches each kernel of a replay is: the n-th of a name is the n-th launch
    of it. None where other kernels are launched, or some of a stream in another order.
    """
    mine, theirs = np.argsort(codes, kind="stable"), np.argsort(captured, kind="stable")
    if not np.array_equal(codes[mine], captured[theirs]):
        return None
    launches = np.empty(len(codes), np.int64)
    launches[mine] = theirs
    by_lane = np.argsort(lanes, kind="stable")
    later, lane = launches[by_lane], lanes[by_lane]
    return None if (np.diff(later)[lane[1:] == lane[:-1]] < 0).any() else launches


def _ops_of(index: Index) -> I64:
    ops: I64 = np.flatnonzero(category_mask(index, OPS)[index.column("slices.category")])
    return ops


def _cut(name: str) -> str:
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"
