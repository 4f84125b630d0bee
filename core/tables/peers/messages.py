"""How much collectives move, of which type, in how large a group, and how fast that is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ...base.arrays import I64, distinct
from ...base.kineto import ANNOTATIONS, COLLECTIVE_CALL, COLLECTIVE_STEP
from ...base.numbers import whole_number
from ...index.flex import BYTES, is_flex, sync_groups
from ...index.format import NONE
from ...index.store import Index
from ...query.lookup import category_mask, lanes_of, nearest_around, promoted_of
from ...trace.collectives import collective_word, world_size
from ..frame.table_rows import Values
from .skew import Skew

if TYPE_CHECKING:
    from ...trace import Trace

SIZES = {
    "c10::BFloat16": 2, "c10::Half": 2, "float": 4, "double": 8, "long int": 8, "long": 8, "int": 4,
    "short": 2, "short int": 2, "bool": 1, "signed char": 1, "unsigned char": 1, "char": 1,
    "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1, "c10::Float8_e4m3fnuz": 1,
    "c10::complex<float>": 8, "c10::complex<double>": 16,
}  # fmt: skip
"""Bytes of an element, by the words of PyTorch."""
ELEMENT_BYTES = {name.removeprefix("c10::").lower(): size for name, size in SIZES.items()} | {
    "byte": 1, "half": 2, "complexhalf": 4, "complexfloat": 8, "complexdouble": 16,
}  # fmt: skip
"""Bytes of an element by the names of types in kernels' and annotations' arguments, in lower case."""
BUS_FACTORS: Mapping[str, Callable[[int], float]] = {
    **dict.fromkeys(("all_reduce",), lambda n: 2 * (n - 1) / n),
    **dict.fromkeys(("reduce_scatter", "all_gather", "all_to_all"), lambda n: (n - 1) / n),
    **dict.fromkeys(("broadcast", "reduce", "send_recv", "send", "recv"), lambda n: 1.0),
}
"""Kind of collective -> bus bandwidth by algorithm bandwidth among n ranks. Source: NVIDIA/nccl-tests,
doc/PERFORMANCE.md, section "Bus bandwidth"; the size there is that of the whole message (`Message.size`).
"""
WIRE = "wire"
"""The kind of messages of which is known what went over the wire: their bus bandwidth is that."""


class Message(NamedTuple):
    """What one rank contributes to a collective; what is not known is "", or None."""

    kind: str
    dtype: str
    size: int | None  # bytes: of an all-gather what it returns, else what goes in
    group_size: int | None


NO_MESSAGE = Message("", "", None, None)
MessagesOf: TypeAlias = Callable[[int, I64], Sequence[Message]]
"""(source as a Skew has it, positions) -> their messages."""
KEYS = ("collective", "collective_type", "collective_in", "collective_out", "collective_size")


def bus_factor(kind: str, ranks: int | None) -> float | None:
    """Return bus bandwidth by algorithm bandwidth of a kind of collective among so many ranks."""
    if kind == WIRE:
        return 1.0
    factor = BUS_FACTORS.get(kind)
    return factor(ranks) if factor is not None and ranks else None


def messages_of(trace: Trace, source: int, positions: I64) -> list[Message]:
    """Return what slices of collectives move: by their own arguments, else by those of the annotation
    ("nccl:all_reduce") around what launched them, or that they are; where names say it by these, as in a FLEX
    job trace.
    """
    index = trace.indexes[source]
    messages = (
        _wire_messages(index, positions) if is_flex(index) else _noted_messages(trace, source, positions)
    )
    names = index.column("slices.name")[positions]
    stated = {number: COLLECTIVE_STEP.match(index.string(number)) for number in distinct(names).tolist()}
    for row, number in enumerate(names.tolist()):
        if step := stated[number]:
            size = whole_number(step["bytes"]) if step["bytes"] else None
            messages[row] = Message(collective_word(step["type"]), "", size, messages[row].group_size)
    return messages


def _noted_messages(trace: Trace, source: int, positions: I64) -> list[Message]:
    index = trace.indexes[source]
    at = np.argsort(positions, kind="stable")
    positions = positions[at]
    columns = [promoted_of(index, key, positions, -1) for key in KEYS]
    if (columns[2] < 0).any():
        notes = _annotations_around(trace, source, positions)
        columns += [_of_some(index, key, notes) for key in ("input_dims", "input_type")]
        columns.append(np.where(notes < 0, -1, index.column("slices.name")[notes].astype(np.int64)))
    calls, which = np.unique(np.stack(columns), axis=1, return_inverse=True)
    read = partial(_message, index, world_size(index) or None)
    values = [read(*numbers) for numbers in calls.T.tolist()]
    messages = [NO_MESSAGE] * len(positions)
    for row, of in zip(at.tolist(), np.ravel(which).tolist()):
        messages[row] = values[of]
    return messages


def _message(
    index: Index, world: int | None, kind: int, dtype: int, into: int, out: int, *more: int
) -> Message:
    size, *noted = more
    group = size if size > 0 else world
    if into >= 0 and dtype >= 0:
        name, form = collective_word(index.string(kind)) if kind >= 0 else "", index.string(dtype)
        count = out if name == "all_gather" else into
        each = ELEMENT_BYTES.get(form.lower())
        return Message(name, form, None if each is None or count < 0 else count * each, group)
    if len(noted) < 3 or noted[2] < 0:
        return NO_MESSAGE._replace(group_size=group)
    dims, types, title = (index.string(number) if number >= 0 else "" for number in noted)
    match = COLLECTIVE_CALL.match(title)
    name = collective_word(match[1]) if match else ""
    form, size_in = _first_input(dims, types)
    if name == "all_gather" and size_in is not None:
        size_in = size_in * group if group else None
    return Message(name, form, size_in, group)


def _first_input(dims: str, types: str) -> tuple[str, int | None]:
    """Return (type, bytes) of the first input of an annotation, as its arguments tell."""
    try:
        shape, form = json.loads(dims)[0], str(json.loads(types)[0])
        each = ELEMENT_BYTES.get(form.removeprefix("c10::").lower())
        return form, None if each is None else each * prod(int(size) for size in shape)
    except (ValueError, TypeError, LookupError):
        return "", None


def _annotations_around(trace: Trace, source: int, positions: I64) -> I64:
    """Return for each slice the innermost annotation of a collective around its launch, or that it is; -1."""
    index = trace.indexes[source]
    launched = trace.launches(source).launches_at(positions)
    launched = np.where(launched == NONE, positions, launched).astype(np.uint32)
    notes = np.flatnonzero(category_mask(index, ANNOTATIONS)[index.column("slices.category")])
    names = index.column("slices.name")[notes]
    numbers = distinct(names)
    fits = [bool(COLLECTIVE_CALL.match(text)) for text in index.strings(numbers)]
    notes = notes[np.isin(names, numbers[np.array(fits, np.bool_)])]
    return nearest_around(index, launched, notes, itself=True)


def _of_some(index: Index, key: str, positions: I64) -> I64:
    values: I64 = np.full(len(positions), -1, np.int64)
    some = np.flatnonzero(positions >= 0)
    order = some[np.argsort(positions[some], kind="stable")]
    values[order] = promoted_of(index, key, positions[order], -1)
    return values


def _wire_messages(index: Index, positions: I64) -> list[Message]:
    """Return what FLEX ranks send or receive, whichever is more, until the sync group's next collective."""
    groups = sync_groups(index)
    names = index.column("slices.name")
    members = np.flatnonzero(np.isin(names, np.array(list(groups), names.dtype)))
    process = index.lanes["process"][lanes_of(index, members)]
    tags = list(dict.fromkeys(groups.values()))
    tag = np.array([tags.index(groups[number]) for number in names[members].tolist()], np.int64)
    order = np.lexsort((members, index.column("slices.start")[members], tag, process))
    begins = (np.diff(process[order], prepend=-1) != 0) | (np.diff(tag[order], prepend=-1) != 0)
    moved = {at: [0, 0] for at in positions.tolist()}
    head = -1
    numbers = names[members[order]].tolist()
    for position, number, is_new in zip(members[order].tolist(), numbers, begins.tolist()):
        head = position if position in moved else -1 if is_new else head
        text = index.string(number)
        match = BYTES.search(text)
        if match and head >= 0:
            moved[head]["Rec" in text] += whole_number(match[1])
    return [Message(WIRE, "", max(moved[at]) or None, None) for at in positions.tolist()]


def bandwidths(skew: Skew, messages: MessagesOf) -> dict[str, Values]:
    """Return columns of each collective: what it is and moves, its shortest time on any rank (`pure_ns`), and
    bandwidths (bytes/ns, which are 10^9 bytes/s) by that.
    """
    entries = [NO_MESSAGE] * len(skew.who)
    for column, source in enumerate(skew.sources):
        own = skew.who.of_rank(column)
        for entry, message in zip(own.tolist(), messages(source, skew.positions[own])):
            entries[entry] = message
    sizes = np.array([-1 if one.size is None else one.size for one in entries], np.int64)
    largest = np.lexsort((-sizes, skew.who.collective))[skew.who.bounds[:-1]]
    of = [entries[entry] for entry in largest.tolist()]
    here = skew.who.sizes.tolist()
    pure = skew.who.least(skew.ends - skew.starts).tolist()
    algbw = [one.size / ns if one.size is not None and ns > 0 else None for one, ns in zip(of, pure)]
    families = [skew.families[row][1] for row in skew.family.tolist()]
    kinds = [one.kind if one.kind not in ("", WIRE) else name for one, name in zip(of, families)]
    factors = [bus_factor(one.kind or kind, one.group_size) for one, kind in zip(of, kinds)]
    waits = zip(skew.waited.tolist(), here)
    missing = [None if one.group_size is None else max(0, one.group_size - n) for one, n in zip(of, here)]
    return {
        "name": kinds,
        "bytes": [one.size for one in of],
        "dtype": [one.dtype for one in of],
        "group_size": [one.group_size for one in of],
        "algbw": algbw,
        "busbw": [a * b if a is not None and b is not None else None for a, b in zip(algbw, factors)],
        "pure_ns": pure,
        "wait_ns": [waited if n > 1 else None for waited, n in waits],
        "ranks_missing": missing,
    }
