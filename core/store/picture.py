"""All ranks of a store as one trace: a lane each, aligned by collectives, those waited for marked."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.errors import UnreadableError
from ..base.progress import ProgressCallback, no_progress
from ..base.units import format_ns
from ..index.ingest import ingest_index
from ..index.options import DEFAULT_OPTIONS, IndexOptions
from ..read.source import spooled_source
from ..remote.files import is_url, url_in
from ..tables.findings.finding import Findings
from ..tables.kinds import KERNEL_TYPES
from ..tables.rank_groups import HOST, rank_groups
from ..tables.table import Tables
from ..trace import Trace, trace_of
from .findings import findings_of_store
from .indexes import stored_index
from .opened import CaptureStore, StoredRank
from .summary import IDLE, LINE_CELLS, OTHER
from .tables import store_tables

WAITING = OTHER + 1
"""Instead of what runs: the rank waits in a collective for another one."""
NAMES = {
    **{number + 1: name for number, name in enumerate(KERNEL_TYPES)},
    OTHER: "other work",
    WAITING: "waits for another rank",
}
MOST_CELLS = 1 << 17
"""Cells of all ranks together; of many ranks each is drawn in fewer."""
LEAST_CELLS = 64
MARKED_SHARE = 0.1
"""A rank for which at least such a part of all waiting is done is marked."""
MARK = "◀"
NO_HOST = "ranks"


def picture_of_store(
    store: CaptureStore,
    options: IndexOptions = DEFAULT_OPTIONS,
    progress: ProgressCallback = no_progress,
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
    index = ingest_index(store.title, options, source=source, progress=progress)
    trace = trace_of(store.title, index)
    trace.opens = MappingProxyType({str(number + 1): number for number in range(len(store.ranks))})
    trace.answers = StoreAnswers(store)
    index.notes += tuple(
        note
        for note in (
            f"one line per rank of {len(store.ranks):,}: Enter opens the rank at the cursor",
            *_marked_notes(store),
            *store.compared.notes,
            *store.notes,
        )
    )
    return trace


@dataclass(frozen=True)
class StoreAnswers:
    """What a picture is asked, answered from the summaries of all its ranks."""

    store: CaptureStore

    def tables(self, name: str, options: Mapping[str, Any]) -> Tables:
        """Return the tables of an analysis over all ranks. Raises UsageError for one that needs traces."""
        return store_tables(self.store, name, options)

    def findings(self) -> Findings:
        """Return the findings of all ranks; evidence is times, as slices are those of the ranks' traces."""
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
    index = stored_index(store.location, rank.record, folder)
    if index is not None:
        return trace_of(index.path, index)
    path = trace_path(store, rank, traces)
    return trace_of(path, ingest_index(path, options, progress=progress))


def trace_path(store: CaptureStore, rank: StoredRank, traces: str = "") -> str:
    """Return where the trace of a rank lies. Raises UnreadableError where nothing says so."""
    parts = rank.name.split("/")
    if not rank.name or ".." in parts or rank.name.startswith("/") or "\0" in rank.name:
        raise UnreadableError(f"{store.title}: {rank.title} has no name that a trace may have")
    if not traces and not store.traces:
        raise UnreadableError(
            f"the store has no index of {rank.title} and does not say where its trace lies: name it with "
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
    if not path.is_file():
        raise UnreadableError(f"{path}: the trace of {rank.title} is not there: name --traces FOLDER")
    return str(path)


def _group_titles(store: CaptureStore, by: str) -> Sequence[str]:
    """Return what the group of each rank is called. Raises UsageError where no file tells groups."""
    if by == HOST:
        return [rank.host or NO_HOST for rank in store.ranks]
    groups = rank_groups({number: rank.origin for number, rank in enumerate(store.ranks)}, by, store.skew)
    return [f"{by.upper()} {groups[number]}" for number in range(len(store.ranks))]


def _pieces(store: CaptureStore, groups: Sequence[str]) -> Iterator[str]:
    """Yield the picture as the text of a trace."""
    yield '{"displayTimeUnit":"ns","traceEvents":[\n{"ph":"M","name":"trace","pid":0}'
    processes: dict[str, int] = {}
    marked = marked_ranks(store)
    first = {groups[number] for number in marked}
    cells = max(LEAST_CELLS, min(LINE_CELLS, MOST_CELLS // max(1, len(store.ranks))))
    yield from _steps(store)
    columns = store.skew.columns
    for number, rank in enumerate(store.ranks):
        group = groups[number]
        if group not in processes:
            pid = processes[group] = len(processes) + 1
            yield _metadata("process_name", pid, 0, name=group)
            order = pid if group in first else len(store.ranks) + pid
            yield _metadata("process_sort_index", pid, 0, sort_index=order)
        pid = processes[group]
        title = f"{rank.title} {MARK}" if number in marked else rank.title
        yield _metadata("thread_name", pid, number + 1, name=title)
        yield _metadata("thread_sort_index", pid, number + 1, sort_index=number)
        yield from _runs(store, number, columns.get(number), pid, cells)
    yield "\n]}\n"


def marked_ranks(store: CaptureStore) -> frozenset[int]:
    """Return the places of the ranks that the others wait for most."""
    caused = store.skew.caused
    total = int(caused.sum())
    return frozenset(
        store.skew.sources[column]
        for column, ns in enumerate(caused.tolist())
        if total and ns >= MARKED_SHARE * total
    )


def _marked_notes(store: CaptureStore) -> Iterator[str]:
    """Yield what is said of the ranks that are marked."""
    for number in sorted(marked_ranks(store)):
        waited = format_ns(int(store.skew.caused[store.skew.columns[number]]))
        yield f"{store.ranks[number].title} {MARK}: the others wait {waited} for it, added up"


def _steps(store: CaptureStore) -> Iterator[str]:
    """Yield the steps of the first rank that has any, in a process of their own above all ranks."""
    for number, rank in enumerate(store.ranks):
        steps = rank.steps(number, int(store.offsets[number]))
        if steps is not None:
            yield _metadata("process_name", 0, 0, name=f"steps of {rank.title}")
            yield _metadata("process_sort_index", 0, 0, sort_index=-1)
            yield _metadata("thread_name", 0, 0, name="steps")
            for label, start, end in zip(steps.labels, steps.starts.tolist(), steps.ends.tolist()):
                yield _slice(f"ProfilerStep#{label}", "user_annotation", 0, 0, start, end)
            return


def _runs(store: CaptureStore, number: int, column: int | None, pid: int, cells: int) -> Iterator[str]:
    """Yield what a rank does, cells that are alike as one slice."""
    rank = store.ranks[number]
    start, end = rank.span
    kinds, busy = rank.column("line.kind"), rank.column("line.busy")
    if len(kinds) != LINE_CELLS or len(busy) != LINE_CELLS or end <= start:
        return
    kinds = np.minimum(np.where(busy > 0, kinds, IDLE), OTHER).astype(np.int64)
    kinds = _fewer(kinds, cells)
    offset = int(store.offsets[number])
    edges = np.array([start + (end - start) * cell // cells + offset for cell in range(cells + 1)], np.int64)
    if column is not None:
        waited = store.skew.waiting(column).covered(edges[:-1], edges[1:])
        kinds = np.where(2 * waited > np.diff(edges), WAITING, kinds)
    bounds = np.flatnonzero(np.diff(kinds, prepend=-1))
    for first, last in zip(bounds.tolist(), [*bounds[1:].tolist(), cells]):
        kind = int(kinds[first])
        if kind != IDLE and edges[last] > edges[first]:
            name = NAMES[kind]
            yield _slice(name, name, pid, number + 1, int(edges[first]), int(edges[last]))


def _fewer(kinds: I64, cells: int) -> AnyArray:
    """Return the kinds in fewer cells: of each what most of its cells hold, idle where all of them are."""
    if cells >= len(kinds):
        return kinds
    which = np.arange(len(kinds)) * cells // len(kinds)
    counts = np.zeros((cells, WAITING), np.int64)
    np.add.at(counts, (which, kinds), 1)
    working = counts[:, 1:]
    fewer: AnyArray = np.where(working.any(axis=1), working.argmax(axis=1) + 1, IDLE)
    return fewer


def _metadata(event: str, pid: int, tid: int, **values: str | int) -> str:
    return f',\n{{"ph":"M","name":"{event}","pid":{pid},"tid":{tid},"args":{json.dumps(values)}}}'


def _slice(name: str, category: str, pid: int, tid: int, start: int, end: int) -> str:
    words = f'"name":{json.dumps(name)},"cat":"{category}","pid":{pid},"tid":{tid}'
    return f',\n{{"ph":"X",{words},"ts":{_micros(start)},"dur":{_micros(end - start)}}}'


def _micros(ns: int) -> str:
    """Return ns as µs with three decimals, exactly."""
    sign, whole = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{whole // 1000}.{whole % 1000:03}"
