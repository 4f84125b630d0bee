"""The arguments of an event, read from the source on demand: one block is read and decoded, not the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.errors import TracelaneError, UnreadableError
from ..base.units import format_bytes
from ..index.store import Index

LARGEST = 256 << 20
"""A block of more bytes than this (it holds one huge event) is not read for display."""
MISSING = "no block of the source holds the event"


@dataclass(frozen=True)
class Arguments:
    """The arguments of a slice's begin event and, where there is one, of its end event.

    `event` is the whole (begin) event as it stands in the file. `slow_reason` says why reading took long,
    `problem` why there are no arguments.
    """

    begin: dict[str, Any]
    end: dict[str, Any] | None = None
    slow_reason: str | None = None
    problem: str | None = None
    event: dict[str, Any] | None = None

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
    from ..index.blockstore import (
        block_bytes,
    )  # what reads sources is loaded for the first event that is read

    first = index.column("blocks.ordinal")
    block = int(np.searchsorted(first, np.uint32(ordinal), "right")) - 1
    while block > 0 and int(index.column("blocks.count")[block]) == 0:
        block -= 1
    if block < 0 or ordinal - int(first[block]) >= int(index.column("blocks.count")[block]):
        return None, None
    length = int(index.column("blocks.length")[block])
    if length > LARGEST:
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
