"""What lies in one lane: its slices and instants, in the order in which they are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..base.ids import NONE
from ..ingest.columns import I64, TIME_LIMIT, U8, U32, AnyArray, EventFlag
from .format import SliceFlag
from .match import match
from .order import order_by, settle_ties

_X, _B, _E = ord("X"), ord("B"), ord("E")
_CLAMPED, _CLAMPED_SLICE = int(EventFlag.CLAMPED), int(SliceFlag.CLAMPED)


@dataclass(frozen=True)
class Slices:
    """Slices of a lane by (start, -duration, ordinal)."""

    start: I64
    duration: I64
    name: U32
    category: U32
    ordinal: U32
    flags: U8  # SliceFlag without OVERLAP
    end_ordinal: U32  # of the end event; NONE

    @classmethod
    def of(
        cls, start: I64, duration: I64, name: U32, category: U32, ordinal: U32, flags: U8 | None = None
    ) -> Self:
        """Return slices of one event each, in any order."""
        n = len(start)
        if flags is None:
            flags = np.broadcast_to(np.uint8(0), n)
        return cls(start, duration, name, category, ordinal, flags, np.broadcast_to(np.uint32(NONE), n))

    def take(self, index: AnyArray) -> Slices:
        """Return some of the slices, or all in another order."""
        return Slices(
            self.start[index], self.duration[index], self.name[index], self.category[index],
            self.ordinal[index], self.flags[index], self.end_ordinal[index],
        )  # fmt: skip

    def sorted(self) -> Slices:
        """Return the slices by (start, -duration, ordinal)."""
        order = drawing_order(self.start, self.duration, self.ordinal)
        return self if order is None else self.take(order)

    @staticmethod
    def joined(*pieces: Slices) -> Slices:
        """Return all pieces' slices, one after the other."""
        return Slices(
            *(
                np.concatenate([getattr(piece, name) for piece in pieces])
                for name in Slices.__dataclass_fields__
            )
        )


@dataclass(frozen=True)
class Instants:
    """Instants of a lane by (start, ordinal)."""

    start: I64
    name: U32
    category: U32
    ordinal: U32
    phase: U8

    @classmethod
    def of(cls, events: Mapping[str, AnyArray], index: AnyArray) -> Instants:
        """Return some of a lane's events, which stand in file or drawing order, as instants."""
        start = events["start"][index]
        if len(start) > 1 and bool((start[1:] < start[:-1]).any()):
            index = index[np.argsort(start, kind="stable")]
        return cls(*(events[name][index] for name in cls.__dataclass_fields__))


def drawing_order(start: I64, duration: I64, ordinal: U32) -> I64 | None:
    """Return the order by (start, -duration, ordinal); None if it is that already."""
    if len(start) < 2:
        return None
    if bool((start[1:] >= start[:-1]).all()):
        return settle_ties(start, -duration, ordinal)
    return order_by(start, -duration, ordinal)


def put_in_order(events: Mapping[str, AnyArray]) -> None:
    """Put a thread's events where they lie in drawing order, if none is a begin or an end, else in file
    order.
    """
    order: I64 | None
    if not _has_pairs(events["phase"]):
        order = drawing_order(events["start"], events["duration"], events["ordinal"])
    else:
        ordinal = events["ordinal"]
        order = None if bool((ordinal[1:] > ordinal[:-1]).all()) else order_by(ordinal)
    if order is None:
        return
    room = np.empty(len(order), np.int64)  # one for all: fresh memory costs as much as the work itself
    for values in events.values():
        if values.itemsize > 1 or bool((values != values[0]).any()):
            moved = room.view(values.dtype)[: len(order)]
            values.take(order, out=moved, mode="clip")
            values[:] = moved


def _has_pairs(phase: U8) -> bool:
    return bool(((phase == _B) | (phase == _E)).any())


def within_limit(start: I64, duration: I64) -> I64:
    """Return durations such that no slice ends beyond TIME_LIMIT."""
    return np.asarray(np.minimum(duration, TIME_LIMIT - start), np.int64)


def of_thread(events: Mapping[str, AnyArray]) -> tuple[Slices, Instants, int]:
    """Return (slices, instants, number of ends without a begin) of a thread's events, which have been put
    in order.

    These ends become instants; begins without an end reach to the end of the lane.
    """
    phase = events["phase"]
    complete = phase == _X
    if bool(complete.all()):
        return _complete(events, slice(None)), Instants.of(events, np.zeros(0, np.int64)), 0
    if not _has_pairs(phase):
        return _complete(events, complete), Instants.of(events, np.flatnonzero(~complete)), 0
    stacked = np.flatnonzero((phase == _B) | (phase == _E))
    stacked = stacked[np.argsort(events["start"][stacked], kind="stable")]
    found = match(phase[stacked] == _B)
    begin, end = stacked[found.begin], stacked[found.end]
    unclosed, unmatched = stacked[found.unclosed], stacked[found.unmatched]
    whole = _complete(events, np.flatnonzero(complete))
    last = int(events["start"].max())
    if len(whole.start):
        last = max(last, int((whole.start + whole.duration).max()))
    slices = Slices.joined(whole, paired(events, begin, end), reaching(events, unclosed, np.int64(last)))
    loose = ~complete & (phase != _B) & (phase != _E)
    loose[unmatched] = True
    return slices.sorted(), Instants.of(events, np.flatnonzero(loose)), len(unmatched)


def _complete(events: Mapping[str, AnyArray], index: AnyArray | slice) -> Slices:
    start, duration = events["start"][index], events["duration"][index]
    flags = None
    clamped = (events["flags"][index] & _CLAMPED) != 0
    if bool(clamped.any()):
        flags = np.where(clamped, _CLAMPED_SLICE, 0).astype(np.uint8)
        duration = within_limit(start, duration)
    return Slices.of(
        start, duration, events["name"][index], events["category"][index], events["ordinal"][index], flags
    )


def paired(events: Mapping[str, AnyArray], begin: I64, end: I64) -> Slices:
    """Return the slices of begins and their ends; a begin without name or category takes those of its end."""
    start = events["start"][begin]
    names = {}
    for key in ("name", "category"):
        own = events[key][begin]
        names[key] = np.where(own == 0, events[key][end], own).astype(np.uint32)
    clamped = ((events["flags"][begin] | events["flags"][end]) & _CLAMPED) != 0
    return Slices(
        start, within_limit(start, events["start"][end] - start), names["name"], names["category"],
        events["ordinal"][begin],
        np.where(clamped, SliceFlag.PAIR | SliceFlag.CLAMPED, SliceFlag.PAIR).astype(np.uint8),
        events["ordinal"][end],
    )  # fmt: skip


def reaching(events: Mapping[str, AnyArray], begin: I64, until: AnyArray | np.int64) -> Slices:
    """Return the slices of begins without an end, drawn until a time that is not before their start."""
    start = events["start"][begin]
    return Slices.of(
        start,
        np.asarray(until - start, np.int64),
        events["name"][begin],
        events["category"][begin],
        events["ordinal"][begin],
        np.full(len(begin), SliceFlag.UNCLOSED, np.uint8),
    )
