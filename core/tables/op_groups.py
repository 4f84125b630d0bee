"""Grouping of ops by more than their name: input shapes, the stack they were called from, their module."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np

from ..base.arrays import I64
from ..base.errors import UsageError
from ..query.lookup import promoted_of
from .frame_columns import MODULE
from .op_events import ANNOTATION, OP, PYTHON, OpEvents, climbed, frames_of, joined

EVALUATE = "autograd::engine::evaluate_function: "
FRAMES = ";"
"""Between frames, nearest first, as the profiler itself writes stacks."""
AUTOGRAD_FRAMES = (("autograd/__init__", ("backward", "_make_grads")), ("torch/tensor", ("backward",)))
"""Frames that torch leaves out of every stack: in a file with the first, around one of the second."""


class Grouping(NamedTuple):
    """What rows are grouped by besides the name; `depth` is the number of frames of a stack."""

    by: str = ""  # "", "shape", "stack", "module"
    depth: int = 0
    no_frames: bool = False  # without Python frames, as rows and in self times

    @property
    def column(self) -> tuple[str, str]:
        """The (key, title) of the column that the grouping adds."""
        return {
            "shape": ("input_shapes", "Input Shapes"),
            "stack": ("stack", "Source Location"),
            "module": ("module", "Module"),
        }[self.by]


NO_GROUPING = Grouping()


def parse_grouping(text: str) -> Grouping:
    """Return the grouping that "shape", "stack:5" or "module" means; UsageError for others."""
    by, _, depth = text.partition(":")
    if text in ("shape", "module"):
        return Grouping(text)
    if by == "stack" and depth.isdigit() and int(depth) > 0:
        return Grouping(by, int(depth))
    raise UsageError(f"ops are grouped by shape, stack:N (N frames) or module, not by {text!r}")


def grouped(events: OpEvents, by: Grouping) -> tuple[I64, list[str]]:
    """Return (group of each event, the groups' texts); group 0 is the one with an empty text."""
    if by.by == "shape":
        return _by_shape(events)
    if by.by == "stack":
        return _by_stack(events, by.depth)
    return _by_module(events)


def _by_shape(events: OpEvents) -> tuple[I64, list[str]]:
    numbers, group = np.unique(promoted_of(events.index, "input_dims", events.positions), return_inverse=True)
    shapes = {number: _shapes(events.index.string(number)) for number in numbers.tolist() if number}
    codes = {"[]": 0}
    of = [codes.setdefault(shapes.get(number, "[]"), len(codes)) for number in numbers.tolist()]
    return np.array(of, np.int64)[group], list(codes)


def _shapes(text: str) -> str:
    """Return input dims as torch prints them: what a list of tensors is called with is left out."""
    try:
        dims = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(dims, list):
        return text
    return str([[] if isinstance(d, list) and any(isinstance(x, list) for x in d) else d for d in dims])


def _by_module(events: OpEvents) -> tuple[I64, list[str]]:
    named = np.array([name.startswith(MODULE) for name in events.names], np.bool_)
    is_module = named[events.key] & (events.kind == PYTHON)
    module = climbed(events.parent, ~is_module).astype(np.int64)
    own = np.flatnonzero(is_module)
    module[own] = own
    keys = np.where(module >= 0, events.key[module] + 1, 0)
    distinct, group = np.unique(np.concatenate([[0], keys]), return_inverse=True)
    texts = [events.names[key - 1][len(MODULE) :] if key else "" for key in distinct.tolist()]
    return group[1:].astype(np.int64), texts


def _by_stack(events: OpEvents, depth: int) -> tuple[I64, list[str]]:
    stacks: dict[tuple[str, ...], int] = {(): 0}
    group = np.zeros(len(events), np.int64)
    texts = promoted_of(events.index, "call_stack", events.positions)
    if not texts.any():  # torch has stacks only where the profiler wrote them out
        return group, [""]
    numbers, which = np.unique(texts, return_inverse=True)
    of = [stacks.setdefault(_frames(events.index.string(n), depth), len(stacks)) for n in numbers.tolist()]
    group[:] = np.array(of, np.int64)[which]
    _frames_around(events, depth, group, stacks)
    _stacks_of_backward(events, group)
    return group, [FRAMES.join(frames) for frames in stacks]


def _frames(text: str, depth: int) -> tuple[str, ...]:
    return tuple(frame for frame in text.split(FRAMES) if frame and not _hidden(frame))[:depth]


def _hidden(frame: str) -> bool:
    return any(file in frame and any(f in frame for f in within) for file, within in AUTOGRAD_FRAMES)


def _frames_around(events: OpEvents, depth: int, group: I64, stacks: dict[tuple[str, ...], int]) -> None:
    """Give Python frames the stack of the frames around them."""
    frames = frames_of(events)
    hidden = np.array([_hidden(name) for name in events.names], np.bool_)
    outer = climbed(frames.parent, hidden[frames.key])
    rows = np.zeros((len(frames), depth), np.int32)
    current = outer
    for level in range(depth):
        rows[:, level] = np.where(current >= 0, frames.key[current] + 1, 0)
        current = np.where(current >= 0, outer[current], -1)
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    of = [
        stacks.setdefault(tuple(events.names[key - 1] for key in row if key), len(stacks))
        for row in distinct.tolist()
    ]
    group[events.kind == PYTHON] = np.array(of, np.int64)[which.reshape(-1)]


def _stacks_of_backward(events: OpEvents, group: I64) -> None:
    """Give backward ops, and all below them, the stack of the forward op that they belong to."""
    numbers = {name: number for number, name in enumerate(events.names)}
    evaluated = np.array(
        [numbers.get(n[len(EVALUATE) :], -1) if n.startswith(EVALUATE) else -1 for n in events.names] + [-1],
        np.int64,
    )
    above = np.where(events.parent >= 0, events.key[events.parent], len(events.names))
    is_root = (evaluated[above] == events.key) & (events.kind == OP)
    root = climbed(events.parent, ~is_root).astype(np.int64)
    own = np.flatnonzero(is_root)
    root[own] = own
    forward = np.flatnonzero((root < 0) & (events.kind <= ANNOTATION))
    forward = forward[np.argsort(events.start[forward], kind="stable")]
    sequence = promoted_of(events.index, "sequence", events.positions[forward], -1) + 1
    sequences = promoted_of(events.index, "sequence", events.positions[own], -1) + 1
    sequences[promoted_of(events.index, "fwd_thread", events.positions[own]) == 0] = 0
    source = joined(sequence, forward, sequences)
    stack = np.zeros(len(events), np.int64)
    stack[own] = np.where(source >= 0, group[source], 0)
    below = np.flatnonzero(root >= 0)
    group[below] = stack[root[below]]
