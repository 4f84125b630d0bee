"""All ranks of a store as one trace: a lane each, aligned by collectives, those waited for marked."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import I64, merge, sum_of
from ..base.errors import DamagedIndexError, UnreadableError
from ..base.progress import CancelledCallback, ProgressCallback, never, no_progress
from ..base.units import format_ns
from ..index.indexing import ingest_index
from ..index.options import DEFAULT_OPTIONS, IndexOptions
from ..read.source import open_source, spooled_source
from ..read.urls import is_url, url_in
from ..tables.findings.forms import JudgedAnswers
from ..tables.frame.kinds import KERNEL_TYPES
from ..tables.peers.skew import Skew
from ..tables.ranks.rank_groups import HOST, rank_groups
from ..trace import Trace, trace_of
from .groups import IDLE, LINE_CELLS, MAX_TIME, OTHER
from .indexes import stored_index
from .opened import CaptureStore, StoredRank

if TYPE_CHECKING:
    from ..tables.findings.finding import Findings
    from ..tables.frame.scope import Scope
    from ..tables.frame.table import Tables

WAITING = OTHER + 1
"""Instead of what runs: the rank waits in a collective for another one."""
NAMES = {
    **{number + 1: name for number, name in enumerate(KERNEL_TYPES)},
    OTHER: "other work",
    WAITING: "waits for another rank",
}
HEADS = {kind: f'"name":"{name}","cat":"{name}"' for kind, name in NAMES.items()}
"""How the slices of each kind begin."""
MAX_CELLS = 1 << 17
"""Cells of all ranks together; of many ranks each is drawn in fewer."""
MIN_CELLS = 64
AT_A_TIME = 64
"""Ranks whose lines are worked out together."""
MAX_LENGTH = MAX_TIME // AT_A_TIME
"""Ns that a rank may last for its waiting to be drawn: two years."""
MARKED_SHARE = 0.1
"""A rank for which at least such a part of all waiting is done is marked."""
MARK = "◀"
MAX_NAME_LENGTH = 255
"""Characters of a file's name."""
NO_HOST = "ranks"


def picture_of_store(
    store: CaptureStore,
    options: IndexOptions = DEFAULT_OPTIONS,
    by: str = HOST,
) -> Trace:
    """Return a trace in which a lane stands for each rank, grouped by host, tp, pp or dp. Its `opens` says
    which rank that is, its `answers` speaks for all.

    Raises UnreadableError, and UsageError where no file tells groups.
    """
    if not any(rank.unreadable == "" for rank in store.ranks):
        raise UnreadableError(f"{store.title}: no rank of the store could be read: {store.notes[0]}")
    text = "".join(_pieces(store, _group_titles(store, by))).encode()
    source = spooled_source(store.title, io.BytesIO(text))
    index = ingest_index(source, options)
    trace = trace_of(store.title, index)
    trace.opens = MappingProxyType({str(number + 1): number for number in range(len(store.ranks))})
    trace.answers = StoreAnswers(store)
    index.notes += (
        f"one line per rank of {len(store.ranks):,}; to open a rank, show the details of its line",
        *(
            f"{store.ranks[number].title} {MARK}: the others wait "
            f"{format_ns(int(store.skew.caused[store.skew.columns[number]]))} for it in total"
            for number in sorted(marked_ranks(store))
        ),
        *store.rank_notes,
        *store.notes,
    )
    return trace


@dataclass(frozen=True)
class StoreAnswers(JudgedAnswers):
    """What a picture is asked, answered from the summaries of all its ranks."""

    store: CaptureStore

    def tables(self, name: str, options: Mapping[str, Any], scope: Scope) -> Tables:
        """Return the tables of an analysis over all ranks. Raises UsageError for one that needs traces."""
        from .tables import store_tables  # not for the first picture

        return store_tables(self.store, name, options)

    def findings(self, cancelled: CancelledCallback = never) -> Findings:
        """Return the findings of all ranks; evidence is times, as slices are those of the ranks' traces."""
        from .tables import findings_of_store  # with all rules

        judged = findings_of_store(self.store)
        return replace(
            judged,
            findings=tuple(
                replace(finding, evidence=tuple(replace(each, slice=None) for each in finding.evidence))
                for finding in judged.findings
            ),
        )


def opened_rank(
    store: CaptureStore,
    number: int,
    folder: Path,
    traces: str = "",
    options: IndexOptions = DEFAULT_OPTIONS,
    progress: ProgressCallback = no_progress,
) -> Trace:
    """Return the trace of one rank: its index from the store, unpacked into a folder, else built from its
    trace, which lies in `traces`, or where the store says. Raises UnreadableError that says what to name.
    """
    rank = store.ranks[number]
    damage: DamagedIndexError | None = None
    try:
        index = stored_index(store.location, rank.record, folder)
    except DamagedIndexError as error:
        index, damage = None, error
    try:
        path = trace_path(store, rank, traces)
    except UnreadableError:
        if damage is not None:
            raise UnreadableError(
                f"{store.title}: the index of {rank.title} is damaged: {damage.why}"
            ) from None
        if index is None:
            raise
        path = str(folder / "trace")  # only arguments need it, and say that it is not there
    if index is None:
        return trace_of(
            path, ingest_index(open_source(path, ts_unit=options.ts_unit), options, progress=progress)
        )
    index.path = path  # that in the index may be anybody's
    return trace_of(path, index)


def trace_path(store: CaptureStore, rank: StoredRank, traces: str = "") -> str:
    """Return where the trace of a rank lies. Raises UnreadableError where nothing says so."""
    parts = rank.name.split("/")
    is_name = rank.name and "\0" not in rank.name and not rank.name.startswith("/")
    if not is_name or ".." in parts or max(map(len, parts)) > MAX_NAME_LENGTH:
        raise UnreadableError(f"{store.title}: {rank.title} has no name that a trace may have")
    if not traces and not store.traces:
        raise UnreadableError(
            f"the store has no index of {rank.title} and does not say where its trace is: name it with "
            "--traces FOLDER"
        )
    root = traces or store.location.root
    if not traces and store.location.is_remote:
        root, hint = root.rstrip("/").rpartition("/")[0], store.traces.removeprefix("../")
        root = url_in(root, hint)
    elif not traces:
        root = str(Path(root) / store.traces)
    if is_url(root):
        return url_in(root, rank.name)
    path = Path(root) / rank.name
    if not os.path.isfile(path):  # False where it cannot be looked at, too
        raise UnreadableError(f"{path}: the trace of {rank.title} is not there: name --traces FOLDER")
    return str(path)


def _group_titles(store: CaptureStore, by: str) -> Sequence[str]:
    """Return what the group of each rank is called. Raises UsageError where no file tells groups."""
    if by == HOST:
        return [rank.host or NO_HOST for rank in store.ranks]
    groups = rank_groups({number: rank.origin for number, rank in enumerate(store.ranks)}, by, store.skew)
    return [f"{by.upper()} {groups[number]}" for number in range(len(store.ranks))]


def _pieces(store: CaptureStore, groups: Sequence[str]) -> Iterator[str]:
    yield '{"displayTimeUnit":"ns","traceEvents":[\n{"ph":"M","name":"trace","pid":0}'
    processes: dict[str, str] = {}  # a number would stand in the title
    marked = marked_ranks(store)
    first = {groups[number] for number in marked}
    cells = max(MIN_CELLS, min(LINE_CELLS, MAX_CELLS // max(1, len(store.ranks))))
    yield from _steps(store)
    pids = []
    for number, rank in enumerate(store.ranks):
        group = groups[number]
        if group not in processes:
            pid = processes[group] = json.dumps(group)
            yield _metadata("process_name", pid, 0, "name", group)
            order = len(processes) if group in first else len(store.ranks) + len(processes)
            yield _metadata("process_sort_index", pid, 0, "sort_index", order)
        pid = processes[group]
        pids.append(pid)
        title = f"{rank.title} {MARK}" if number in marked else rank.title
        yield _metadata("thread_name", pid, number + 1, "name", title)
        yield _metadata("thread_sort_index", pid, number + 1, "sort_index", number)
    for at in range(0, len(pids), AT_A_TIME):
        numbers = range(at, min(at + AT_A_TIME, len(pids)))
        for number, kind, start, end in Lines.of(store, numbers, cells).with_waiting(store.skew).runs():
            yield _slice(HEADS[kind], pids[number], number + 1, start, end)
    yield "\n]}\n"


def marked_ranks(store: CaptureStore) -> frozenset[int]:
    """Return the places of the ranks that the others wait for most."""
    caused = store.skew.caused
    total = sum_of(caused)
    return frozenset(
        store.skew.sources[column]
        for column, ns in enumerate(caused.tolist())
        if total and ns >= MARKED_SHARE * total
    )


def _steps(store: CaptureStore) -> Iterator[str]:
    """Yield the steps of the first rank that has any, in a process of their own above all ranks."""
    for number, rank in enumerate(store.ranks):
        steps = rank.steps(number, int(store.offsets[number]))
        if steps is not None:
            title = f"steps of {rank.title}"
            pid = json.dumps(title)
            yield _metadata("process_name", pid, 0, "name", title)
            yield _metadata("process_sort_index", pid, 0, "sort_index", -1)
            yield _metadata("thread_name", pid, 0, "name", "steps")
            for label, start, end in zip(steps.labels, steps.starts.tolist(), steps.ends.tolist()):
                head = f'"name":{json.dumps(f"ProfilerStep#{label}")},"cat":"user_annotation"'
                yield _slice(head, pid, 0, start, end)
            return


@dataclass(frozen=True, eq=False)
class Lines:
    """The device lines of some ranks, a row each: what is done in each cell, and the edges of the cells."""

    numbers: Sequence[int]  # places of the ranks in the store
    kinds: I64
    edges: I64  # one more in a row than there are cells

    @classmethod
    def of(cls, store: CaptureStore, numbers: Sequence[int], cells: int) -> Lines:
        """Return the lines of those of these ranks that have one, in so many cells."""
        held = []
        for number in numbers:
            rank = store.ranks[number]
            line = rank.table("line")
            if len(line["kind"]) == LINE_CELLS and rank.span[1] > rank.span[0]:
                held.append((number, *rank.span, np.where(line["busy"] > 0, line["kind"], IDLE)))
        if not held:
            return cls((), np.empty((0, cells), np.int64), np.empty((0, cells + 1), np.int64))
        own, starts, ends, rows = zip(*held)
        begin = np.array(starts, np.int64)
        width, rest = np.divmod(np.array(ends, np.int64) - begin, cells)
        cell = np.arange(cells + 1)
        edges = (
            width[:, None] * cell
            + rest[:, None] * cell // cells
            + (begin + store.offsets[list(own)])[:, None]
        )
        return cls(own, _fewer(np.clip(np.array(rows, np.int64), IDLE, OTHER), cells), edges)

    def with_waiting(self, skew: Skew) -> Lines:
        """Return the lines where cells in which a rank waits for another one most of the time say so."""
        begin, length = self.edges[:, :1], self.edges[:, -1:] - self.edges[:, :1]
        rows = [row for row, number in enumerate(self.numbers) if number in skew.columns]
        rows = [row for row in rows if length[row, 0] < MAX_LENGTH]
        if not rows:
            return self
        # One time axis for all, on which a row lies behind the one before it.
        shift = np.cumsum(length[rows], axis=0) - length[rows] - begin[rows]
        columns = np.array([skew.columns[self.numbers[row]] for row in rows], np.int64)
        entries = skew.who.of_ranks(columns)
        row_of = np.repeat(np.arange(len(rows)), np.diff(skew.who.rank_bounds)[columns])
        starts, ends = skew.starts[entries], skew.starts[entries] + skew.waits[entries]
        low, high = begin[rows, 0][row_of], self.edges[rows, -1][row_of]
        waiting = merge(
            np.clip(starts, low, high) + shift[row_of, 0], np.clip(ends, low, high) + shift[row_of, 0]
        )
        edges = self.edges[rows] + shift
        waited = waiting.covered(edges[:, :-1].ravel(), edges[:, 1:].ravel()).reshape(len(rows), -1)
        kinds = self.kinds.copy()
        kinds[rows] = np.where(2 * waited > np.diff(edges), WAITING, kinds[rows])
        return replace(self, kinds=kinds)

    def runs(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (place of the rank, kind, start, end) of what ranks do: cells that are alike are one run."""
        cells = self.kinds.shape[1]
        changes = np.diff(self.kinds, axis=1, prepend=-1) != 0
        row, first = np.nonzero(changes)
        last = np.append(first[1:], 0)
        last[np.append(row[1:] != row[:-1], True)] = cells
        kind, start, end = self.kinds[row, first], self.edges[row, first], self.edges[row, last]
        drawn = (kind != IDLE) & (end > start)
        number = np.array(self.numbers, np.int64)[row]
        return zip(*(values[drawn].tolist() for values in (number, kind, start, end)))


def _fewer(kinds: I64, cells: int) -> I64:
    """Return rows of kinds in fewer cells: of each what most of its cells hold, idle where all are idle."""
    rows, whole = kinds.shape
    if cells >= whole:
        return kinds
    cell = np.arange(rows)[:, None] * cells + np.arange(whole) * cells // whole
    counts = np.bincount((cell * WAITING + kinds).ravel(), minlength=rows * cells * WAITING)
    working = counts.reshape(rows, cells, WAITING)[:, :, 1:]
    return np.where(working.any(axis=2), working.argmax(axis=2) + 1, IDLE)


def _metadata(event: str, pid: str, tid: int, key: str, value: str | int) -> str:
    args = f'{{"{key}":{json.dumps(value)}}}'
    return f',\n{{"ph":"M","name":"{event}","pid":{pid},"tid":{tid},"args":{args}}}'


def _slice(head: str, pid: str, tid: int, start: int, end: int) -> str:
    """Return a slice as text; `head`: its name and category."""
    return (
        f',\n{{"ph":"X",{head},"pid":{pid},"tid":{tid},"ts":{_micros(start)},"dur":{_micros(end - start)}}}'
    )


def _micros(ns: int) -> str:
    """Return ns as µs with three decimals, exactly."""
    return f"{ns // 1000}.{ns % 1000:03}" if ns >= 0 else f"-{-ns // 1000}.{-ns % 1000:03}"
