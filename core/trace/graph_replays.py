"""The calls of a source that replayed graphs, what each started, and the batch of the step around it."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.arrays import I64, AnyArray, places_in
from ..base.errors import UnreadableError
from ..base.kineto import ANNOTATIONS, StartedWork, started_work
from ..base.numbers import whole_number
from ..index.store import Index
from ..query.args import argument_values
from ..query.launches import Launches
from ..query.lookup import category_mask, lanes_of, promoted_of
from .captured_graphs import NODE, comparable_work
from .step_choice import latest_holding

BATCHES = (
    re.compile(r"execute_(\d{1,9})_context_\d+\("),  # vLLM, in detail
    re.compile(r"execute_context_\d+\((\d{1,9})\)_generation_\d+\((\d{1,9})\)"),  # vLLM
    re.compile(r"execute_diffusion_(\d{1,9})_"),  # xDiT
    re.compile(r"step\[\w+ bs=(\d{1,9})\b"),  # SGLang
    re.compile(r"(?:prefill|decode)\[bs=\d{1,9}/(\d{1,9})\b"),  # ATOM, padded
    re.compile(r"(?:prefill|decode)\[bs=(\d{1,9})\b"),  # ATOM
)
"""How the names of steps begin that say the size of their batch: the sum of the groups."""


@dataclass(frozen=True, eq=False)
class GraphReplays:
    """The calls of a source that replayed a graph, by start; each one's work by start.

    `rows` are places in `Launches.kernels`; call n has those from bounds[n] on.
    """

    index: Index
    calls: I64
    batch: I64  # of the step around, -1 where none says one
    step: I64  # number of the step around, -1 for none
    rows: I64
    bounds: I64
    positions: AnyArray  # of the rows' work
    lanes: I64  # the stream of each

    def part(self, at: int) -> slice:
        return slice(int(self.bounds[at]), int(self.bounds[at + 1]))

    @cached_property
    def works(self) -> tuple[AnyArray, tuple[str, ...]]:
        """(what each row is compared by, as a place in the texts; the texts)."""
        index = self.index
        width = len(index.categories)
        names = index.column("slices.name")[self.positions].astype(np.int64)
        keys = names * width + index.column("slices.category")[self.positions]
        numbers, which = np.unique(keys, return_inverse=True)
        texts = [
            comparable_work(index.string(key // width), index.categories[key % width])
            for key in numbers.tolist()
        ]
        codes = {text: at for at, text in enumerate(dict.fromkeys(texts))}
        return np.array([codes[text] for text in texts], np.int64)[which], tuple(codes)

    @cached_property
    def nodes(self) -> I64:
        """The graph's node of each row, -1 where the file does not say; read where the first row has one."""
        nodes = np.full(len(self.rows), -1, np.int64)
        with suppress(UnreadableError):  # its file has gone: then names and order decide
            if len(nodes) and _node(argument_values(self.index, NODE, self.positions[:1])[0]) >= 0:
                nodes[:] = [_node(value) for value in argument_values(self.index, NODE, self.positions)]
        return nodes


def _node(value: object) -> int:
    """Return the number of a node in its graph; CUPTI packs the graph's into the upper half."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value & 0xFFFFFFFF if is_number and isinstance(value, int) and value >= 0 else -1


def graph_replays(index: Index, launches: Launches) -> GraphReplays:
    """Return the calls that replayed graphs, and what each started."""
    starters = launches.starters[0].astype(np.int64)
    numbers, which = np.unique(index.column("slices.name")[starters], return_inverse=True)
    is_graph = np.array(
        [started_work(text) is StartedWork.GRAPH for text in index.strings(numbers)], np.bool_
    )
    calls = starters[is_graph[which]] if len(starters) else starters
    starts = index.column("slices.start")
    calls = calls[np.argsort(starts[calls], kind="stable")]
    order = np.argsort(calls, kind="stable")
    called = launches.by_launch[launches.is_called[launches.by_launch]]
    at = places_in(calls[order], launches.launch[called])
    rows, call = called[at >= 0], order[at[at >= 0]]
    positions = launches.kernels[rows]
    ordered = np.lexsort((positions, starts[positions], call))
    rows, call, positions = rows[ordered], call[ordered], positions[ordered]
    bounds = np.searchsorted(call, np.arange(len(calls) + 1)).astype(np.int64)
    batch, step = _batches(index, starts[calls].astype(np.int64))
    stream = promoted_of(index, "stream", positions, -1)
    lanes = np.where(stream >= 0, stream, -1 - lanes_of(index, positions))
    return GraphReplays(index, calls, batch, step, rows, bounds, positions, lanes)


def _batches(index: Index, times: I64) -> tuple[I64, I64]:
    """Return (the batch of the step that holds each time, -1 where none says one; the step's number)."""
    notes: I64 = np.flatnonzero(category_mask(index, ANNOTATIONS)[index.column("slices.category")])
    numbers, which = np.unique(index.column("slices.name")[notes], return_inverse=True)
    sizes = np.array([_batch_in(text) for text in index.strings(numbers)], np.int64)
    batch = sizes[which] if len(notes) else notes
    notes, batch = notes[batch >= 0], batch[batch >= 0]
    starts = index.column("slices.start")[notes].astype(np.int64)
    order = np.argsort(starts, kind="stable")
    notes, batch, starts = notes[order], batch[order], starts[order]
    step = latest_holding(starts, starts + index.duration(notes), times)
    return np.where(step >= 0, np.append(batch, -1)[step], -1), step


def _batch_in(name: str) -> int:
    """Return the size of the batch that the name of a step says, -1 for none."""
    match = next((match for pattern in BATCHES if (match := pattern.match(name))), None)
    return -1 if match is None else sum(map(whole_number, match.groups()))
