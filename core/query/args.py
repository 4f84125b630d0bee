"""The arguments of an event, read from the source on demand: one block is read and decoded, not the file; one
argument of many slices, from its column or from the blocks that they lie in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.arrays import I64, AnyArray, distinct
from ..base.errors import TracelaneError, UnreadableError
from ..base.numbers import NUMBER
from ..base.progress import CancelledCallback, Progress, ProgressCallback, never, no_progress
from ..base.units import format_bytes
from ..index.store import Index
from ..read.promoted import PROMOTED, Kind, Promoted

if TYPE_CHECKING:
    from fractions import Fraction

MAX_BLOCK = 256 << 20
"""A block of more bytes than this (it holds one huge event) is not read for display."""
MAX_NUMBER_TEXT = 400
"""A longer text is no number."""
MISSING = "no block of the source holds the event"


def number_of(value: Any) -> int | float | Fraction | None:
    """Return a JSON value as a number; None for what is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and len(value) < MAX_NUMBER_TEXT and NUMBER.fullmatch(value.strip()):
        from fractions import Fraction  # few arguments are numbers in text

        return Fraction(value.strip())
    return None


def json_value_text(value: Any) -> str:
    """Return a JSON value as text: strings as they are, others as compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Arguments(NamedTuple):
    """The arguments of a slice's begin event and, where there is one, of its end event.

    `event` is the whole (begin) event as it stands in the file. `slow_reason` says why reading took long,
    `problem` why there are no arguments. `captured` is what a capture says of a kernel that a graph replays.
    """

    begin: dict[str, Any]
    end: dict[str, Any] | None = None
    slow_reason: str | None = None
    problem: str | None = None
    event: dict[str, Any] | None = None
    captured: Mapping[str, str] = MappingProxyType({})

    @property
    def merged(self) -> dict[str, Any]:
        """Both events' arguments as one, the end event's where both have a key."""
        return {**self.begin, **(self.end or {})}


def arguments(index: Index, ordinal: int, end_ordinal: int | None = None) -> Arguments:
    """Return the arguments of the event with an ordinal (and of its end event). Never raises because
    of the source: `problem` says what went wrong.
    """
    try:
        event, slow = read_event(index, ordinal)
        end = None
        if end_ordinal is not None:
            end_event, slow_end = read_event(index, end_ordinal)
            end, slow = arguments_in(end_event), slow or slow_end
    except TracelaneError as error:
        return Arguments({}, problem=str(error))
    except OSError as error:
        return Arguments({}, problem=f"{index.path} cannot be read: {error.strerror or error}")
    if event is None:
        return Arguments({}, end, slow, problem=MISSING)
    return Arguments(arguments_in(event), end, slow, event=event)


def arguments_in(event: dict[str, Any] | None) -> dict[str, Any]:
    """Return an event's `args` (or `attr`, its synonym); a value that is no object stands under "args"."""
    if event is None:
        return {}
    key = "args" if "args" in event else "attr"
    value = event.get(key)
    return value if isinstance(value, dict) else {} if value is None else {key: value}


def read_event(index: Index, ordinal: int) -> tuple[dict[str, Any] | None, str | None]:
    """Return (the event as it stands in the source or None, why it took long or None)."""
    from ..index.blocks import block_bytes  # loaded for the first event that is read

    first = index.column("blocks.ordinal")
    block = int(np.searchsorted(first, np.uint32(ordinal), "right")) - 1
    while block > 0 and int(index.column("blocks.count")[block]) == 0:
        block -= 1
    if block < 0 or ordinal - int(first[block]) >= int(index.column("blocks.count")[block]):
        return None, None
    length = int(index.column("blocks.length")[block])
    if length > MAX_BLOCK:
        raise UnreadableError(f"the event is too large to be shown ({format_bytes(length)})")
    data, slow = block_bytes(index, block)
    inside = ordinal - int(first[block])
    elements = elements_of(data, bool(index.column("blocks.repaired")[block]))
    if inside >= len(elements):
        return None, slow
    event = elements[inside]
    return (event if isinstance(event, dict) else {"args": event}), slow


def elements_of(data: bytes, repaired: bool) -> list[Any]:
    """Return the elements of a block in the order in which they were counted while indexing."""
    import orjson

    from ..read.repair import RepairedEvent, repair

    try:
        return list(orjson.loads(b"[%b]" % data))  # repaired blocks decode too where only their cut was odd
    except ValueError:  # sound all the same where it is nested deep, or has a number beyond all floats
        items = repair(data)
    events = [item for item in items if isinstance(item, RepairedEvent)]
    if not repaired and (len(events) < len(items) or any(event.why for event in events)):
        raise UnreadableError("the source has changed since it was indexed: open it again")
    return [event.value for event in events]


def promoted_argument(key: str) -> Promoted | None:
    """Return the promoted argument that a key names, by its own name or the file's; None for others."""
    for promoted in PROMOTED:
        if promoted.args != ("",) and (key == promoted.key or key in promoted.args):
            return promoted
    return None


def argument_values(index: Index, key: str, positions: AnyArray) -> list[Any]:
    """Return the value of an argument for each of these slices, None where a slice has none.

    For a slice made of two events it is that of the begin event. Unless the argument is promoted, every block
    with one of the slices is read. Raises UnreadableError when the source has gone or changed.
    """
    result: list[Any] = [None] * len(positions)
    promoted = promoted_argument(key)
    if promoted is not None:
        known = index.column(f"promoted.{promoted.key}.position")
        values = index.column(f"promoted.{promoted.key}.value")
        _, here, there = np.intersect1d(positions, known, return_indices=True)
        for at, value in zip(here.tolist(), values[there].tolist()):
            result[at] = index.string(value) if promoted.kind is Kind.TEXT else value
        return result
    needle = key.encode("utf-8", "replace")
    for at, arguments in arguments_read(index, positions, never, needle):
        result[at] = arguments.get(key)
    return result


def arguments_read(
    index: Index, positions: AnyArray, cancelled: CancelledCallback = never, needle: bytes = b""
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (index in `positions`, arguments of the begin event) of the slices that have some as their blocks
    are read. Blocks in which `needle` cannot stand are passed over. Raises as argument_values does.
    """
    ordinals = index.column("slices.ordinal")[positions].astype(np.int64)
    order = np.argsort(ordinals, kind="stable")
    for begin, events in _blocks_of(index, ordinals[order], no_progress, cancelled, needle):
        for at, event in enumerate(events, begin):
            if isinstance(event, dict) and (arguments := arguments_in(event)):
                yield int(order[at]), arguments


EventArguments = tuple[int, dict[str, Any]]
"""The ordinal of an event, and its arguments."""


def events_with_arguments(
    index: Index,
    ordinals: I64,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Iterator[list[EventArguments]]:
    """Yield, block by block in file order, those of these events (ascending) that have arguments. The end of
    a pair of events counts for its begin. Raises UnreadableError where the source has gone or changed,
    Cancelled.
    """
    pairs = index.column("ends.position").astype(np.int64)
    begins = index.column("slices.ordinal")[pairs].astype(np.int64)
    paired = np.isin(begins, ordinals)
    ends = index.column("ends.ordinal").astype(np.int64)[paired]
    begin_of = dict(zip(ends.tolist(), begins[paired].tolist()))
    chosen = distinct(np.concatenate([ordinals, ends])) if len(ends) else ordinals
    for begin, events in _blocks_of(index, chosen, progress, cancelled):
        own = chosen[begin : begin + len(events)].tolist()
        some = [
            (ordinal, arguments)
            for ordinal, event in zip(own, events)
            if isinstance(event, dict) and (arguments := arguments_in(event))
        ]
        yield (
            [(begin_of.get(ordinal, ordinal), arguments) for ordinal, arguments in some] if begin_of else some
        )


def _blocks_of(
    index: Index, ordinals: I64, progress: ProgressCallback, cancelled: CancelledCallback, needle: bytes = b""
) -> Iterator[tuple[int, list[Any]]]:
    """Yield, block by block, the index of the first of its `ordinals`, which ascend, and their events."""
    from ..index.blocks import read_blocks

    firsts = index.column("blocks.ordinal").astype(np.int64)
    begins = np.searchsorted(ordinals, firsts)
    ends = np.searchsorted(ordinals, firsts + index.column("blocks.count").astype(np.int64))
    lengths = index.column("blocks.length")
    blocks = np.flatnonzero((ends > begins) & (lengths <= MAX_BLOCK))
    total, done = int(lengths[blocks].sum()), 0
    for block, data in read_blocks(index, blocks.tolist(), cancelled):
        progress(Progress("reading arguments", done, total))
        done += len(data)
        repaired = bool(index.column("blocks.repaired")[block])
        if not repaired and needle not in data and b"\\" not in data:
            continue
        elements, begin = elements_of(data, repaired), int(begins[block])
        inside = ordinals[begin : ends[block]] - firsts[block]
        yield begin, [elements[at] for at in inside[inside < len(elements)].tolist()]
