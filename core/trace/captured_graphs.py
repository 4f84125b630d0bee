"""The graphs that one trace of a capture holds: in which order which kernels were launched into each.

While a stream is captured, launches run nothing: each adds a node to the graph, in order. What is read here
is written down beside the capture's index, so that its text is read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import I64, AnyArray, distinct
from ..base.kineto import (
    ANNOTATIONS,
    CAPTURE_BEGINS,
    CAPTURE_ENDS,
    COPYING,
    FILLING,
    RUNTIME,
    StartedWork,
    started_work,
)
from ..base.numbers import whole_number
from ..base.private import read_sealed_json, write_sealed_json
from ..index.store import Index
from ..index.version import DERIVED
from ..query.args import arguments_read
from ..query.launches import launches_of
from ..query.lookup import category_mask, with_ancestors
from ..query.lost import capture_windows
from .step_choice import latest_holding

CAPTURED = re.compile(r"(?:\w+_)?capture_(\d{1,9})_(\w+)")
"""How engines call the capture of a batch size: capture_32_FULL."""
KERNEL, NODE = "kernel", "graph node id"
"""Arguments of a launch: the name of its kernel (ROCm), the node that it makes."""
COPY, FILL = "(copy)", "(fill)"
"""What copies and fills are compared by: the names of a call and of its work differ."""
FILE = "captured-graphs-1.json"


class GraphCapture(NamedTuple):
    """The capture of one batch size; `graphs` are where the launches of each begin and end, in order."""

    label: str
    batch: int | None
    mode: str
    graphs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class CapturedGraphs:
    """All graphs that one file holds; `launches` are those of all graphs, in order."""

    index: Index
    captures: tuple[GraphCapture, ...]
    launches: I64  # positions
    kernels: tuple[str, ...]  # the name of what each launches, "" where the file does not say
    nodes: I64  # the number of the node that each makes, -1 where the file does not say

    @property
    def is_named(self) -> bool:
        """Whether each launch says what it launches."""
        return all(self.kernels)


def comparable_work(name: str, category: str = "") -> str:
    """Return what a kernel is compared by: its name, copies and fills without theirs."""
    low = category.lower()
    if "memset" in low or FILLING.search(name):
        return FILL
    return COPY if "memcpy" in low or COPYING.search(name) else name


def captured_graphs(index: Index, name: str, batch: int | None, mode: str) -> CapturedGraphs:
    """Return the graphs of a capture's index; `name` is its file's, `batch` and `mode` are what the file's
    name says where no annotation does. Raises UnreadableError where its text cannot be read.
    """
    path = index.folder / DERIVED / FILE
    with suppress(OSError, ValueError, TypeError, KeyError):
        return _labelled(_remembered(index, read_sealed_json(path)), name, batch, mode)
    graphs = _read(index)
    columns = {"launches": graphs.launches.tolist(), "nodes": graphs.nodes.tolist()}
    stored = {**columns, "captures": graphs.captures, "kernels": graphs.kernels}
    with suppress(OSError):
        write_sealed_json(path, stored)
    return _labelled(graphs, name, batch, mode)


def captured_stack(index: Index, launches: I64) -> I64:
    """Return launches of a capture and all slices around them, ascending, without what lies around the
    annotation of the capture: how the program came to capture anything.
    """
    stack = with_ancestors(index, launches)
    notes = _notes(index)
    outside = with_ancestors(index, notes[np.isin(notes, stack)])
    return stack[~np.isin(stack, outside[~np.isin(outside, notes)])]


def _notes(index: Index) -> I64:
    """Return the annotations of captures, by start."""
    notes: I64 = np.flatnonzero(category_mask(index, ANNOTATIONS)[index.column("slices.category")])
    notes = notes[_named(index, notes, CAPTURED.fullmatch)]
    return notes[np.argsort(index.column("slices.start")[notes], kind="stable")]


def _remembered(index: Index, stored: dict[str, Any]) -> CapturedGraphs:
    launches, nodes = (np.array(stored[key], np.int64) for key in ("launches", "nodes"))
    captures = tuple(
        GraphCapture(str(label), batch, str(mode), tuple((begin, end) for begin, end in graphs))
        for label, batch, mode, graphs in stored["captures"]
    )
    kernels = tuple(map(str, stored["kernels"]))
    last = max((end for one in captures for _, end in one.graphs), default=0)
    if not last <= len(launches) == len(nodes) == len(kernels):
        raise ValueError("its columns are not equally long")
    if len(launches) and not 0 <= launches.min() <= launches.max() < index.length("slices.start"):
        raise ValueError("a launch is none of the index")
    return CapturedGraphs(index, captures, launches, kernels, nodes)


def _labelled(graphs: CapturedGraphs, name: str, batch: int | None, mode: str) -> CapturedGraphs:
    """Return the graphs, captures without an annotation called after their file."""
    captures = tuple(
        one if one.label else one._replace(label=name, batch=batch, mode=mode) for one in graphs.captures
    )
    return CapturedGraphs(graphs.index, captures, graphs.launches, graphs.kernels, graphs.nodes)


def _read(index: Index) -> CapturedGraphs:
    """Find the graphs of an index: what was launched between the begin and the end of a capture, in a file
    without these calls within an annotation of a capture.
    """
    starts = index.column("slices.start")
    category = index.column("slices.category")
    calls: I64 = np.flatnonzero(category_mask(index, RUNTIME)[category])
    begins, ends = (calls[_named(index, calls, one.fullmatch)] for one in (CAPTURE_BEGINS, CAPTURE_ENDS))
    notes = _notes(index)
    if len(begins) and len(ends):
        low, high = capture_windows(starts[begins] + index.duration(begins), starts[ends])
    else:
        low, high = starts[notes].astype(np.int64), starts[notes] + index.duration(notes)
    launches = _captured_launches(index, calls)
    graph = latest_holding(low, high, starts[launches].astype(np.int64))
    launches, graph = launches[graph >= 0], graph[graph >= 0]
    order = np.lexsort((starts[launches], graph))
    launches, graph = launches[order], graph[order]
    bounds = np.searchsorted(graph, np.arange(len(low) + 1))
    around = latest_holding(starts[notes].astype(np.int64), starts[notes] + index.duration(notes), low)
    captures = []
    for note in distinct(around).tolist():
        own = np.flatnonzero((around == note) & (np.diff(bounds) > 0))
        if len(own):
            label = "" if note < 0 else index.string(int(index.column("slices.name")[notes[note]]))
            graphs = zip(bounds[own].tolist(), bounds[own + 1].tolist())
            captures.append(_capture(label, tuple(graphs)))
    kernels, nodes = _arguments(index, launches)
    return CapturedGraphs(index, tuple(captures), launches, kernels, nodes)


def _capture(label: str, graphs: tuple[tuple[int, int], ...]) -> GraphCapture:
    match = CAPTURED.fullmatch(label)
    if match is None:
        return GraphCapture(label, None, "", graphs)
    return GraphCapture(label, whole_number(match[1]), match[2], graphs)


def _named(index: Index, positions: I64, fits: Callable[[str], object]) -> AnyArray:
    """Return which slices have a name that fits."""
    numbers, which = np.unique(index.column("slices.name")[positions], return_inverse=True)
    return np.array([bool(fits(text)) for text in index.strings(numbers)], np.bool_)[which]


def _captured_launches(index: Index, calls: I64) -> I64:
    """Return the calls that start work of which none ran, without those that lie in another one."""

    def starts(text: str) -> bool:
        return started_work(text) not in (None, StartedWork.GRAPH)

    launches = calls[_named(index, calls, starts)]
    launches = launches[~np.isin(launches, launches_of(index).starters[0])]
    return launches[~np.isin(index.column("slices.parent")[launches], launches)]


def _arguments(index: Index, launches: I64) -> tuple[tuple[str, ...], I64]:
    """Return (what each launch launches, the node that it makes), as far as the arguments say."""
    names = index.strings(index.column("slices.name")[launches])
    kinds = {StartedWork.COPY: COPY, StartedWork.FILL: FILL}
    kernels = [kinds.get(started_work(name) or StartedWork.KERNEL, "") for name in names]
    nodes = np.full(len(launches), -1, np.int64)
    for at, arguments in arguments_read(index, launches):
        if isinstance(kernel := arguments.get(KERNEL), str) and kernel:
            kernels[at] = comparable_work(kernel)
        if isinstance(node := arguments.get(NODE), int) and 0 <= node < 1 << 63:
            nodes[at] = node
    return tuple(kernels), nodes
