"""Lifted arguments from events to slices and instants: sparse columns by position, in the smallest dtype.

Arguments that the same events have, such as those of a kernel's launch, are put in order of positions
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..base.ids import NONE
from ..ingest.columns import U32, AnyArray, LiftedColumn
from ..ingest.lifted import LIFTED, Kind, Lifted
from .columns_out import Columns, smallest_integer
from .merge import Merged
from .order import order_by
from .scratch import Scratch

CHUNK = 1 << 18
"""Values written at once."""
_NO_ONE = np.uint32(NONE)


class _Slots:
    """Which entry belongs to each position; of two for one position the later holds."""

    def __init__(self, size: int, scratch: Scratch) -> None:
        self._entry_at = scratch.array(size, "u4", NONE)

    def put(self, positions: AnyArray, entries: AnyArray) -> None:
        self._entry_at[positions.astype(np.intp)] = entries

    def take(self) -> Iterator[tuple[AnyArray, U32]]:
        """Yield (positions, their entries), ascending by position, and forget them."""
        for at in range(0, len(self._entry_at), CHUNK):
            some = self._entry_at[at : at + CHUNK]
            found = np.flatnonzero(some != _NO_ONE)
            if len(found):
                entries = some.take(found)
                some.fill(NONE)
                yield (found + at).astype(np.uint32), entries


class _LiftedOut:
    """Writes arguments; entries are numbered part by part."""

    def __init__(
        self,
        merged: Merged,
        place_of: U32,
        sizes: tuple[int, int],
        paired: bool,
        columns: Columns,
        scratch: Scratch,
    ) -> None:
        self._merged, self._place_of, self._columns, self._scratch = merged, place_of, columns, scratch
        self._slices, self._paired = sizes[0], paired
        self._slots = [_Slots(size, scratch) for size in sizes]
        most = max((sum(map(len, _ordinals(merged, lifted).values())) for lifted in LIFTED), default=0)
        self._entries = scratch.array(most, "u4")
        self._values = scratch.array(most, "i8")

    def write(self, family: Sequence[Lifted]) -> None:
        """Write arguments that the same events have."""
        lost = self._place(family[0])
        if lost is None:
            return
        names = [f"lifted.{lifted.key}" for lifted in family]
        sides = (("position", "value"), ("instant", "instant_value"))
        counts = []
        at = 0
        for slots, (position, _) in zip(self._slots, sides):
            before = at
            for positions, entries in slots.take():
                for name in names:
                    self._columns.writer(f"{name}.{position}", "u4").append(positions)
                self._entries[at : at + len(entries)] = entries
                at += len(entries)
            counts.append(at - before)
        for lifted, name in zip(family, names):
            values, dtype = self._read(lifted, lost)
            at = 0
            for count, (_, side) in zip(counts, sides):
                for begin in range(at, at + count, CHUNK):
                    entries = self._entries[begin : min(begin + CHUNK, at + count)]
                    self._columns.writer(f"{name}.{side}", dtype).append(values.take(entries))
                at += count

    def _place(self, lifted: Lifted) -> list[AnyArray] | None:
        """Number the entries of an argument at their positions; return those that have none, None if there
        are no others.
        """
        lost: list[AnyArray] = []
        at = 0
        for part, ordinals in _ordinals(self._merged, lifted).items():
            first = self._merged.first_ordinal[part]
            place = self._place_of[first : first + self._merged.parts[part].events].take(ordinals)
            entries = np.arange(at, at + len(place), dtype=np.uint32)
            at += len(place)
            if self._paired and bool((ordinals[1:] < ordinals[:-1]).any()):
                order = order_by(ordinals)
                place, entries = place[order], entries[order]
            if bool((place < self._slices).all()):
                self._slots[0].put(place, entries)
                continue
            is_slice, is_lost = place < self._slices, place == _NO_ONE
            is_instant = ~(is_slice | is_lost)
            self._slots[0].put(place[is_slice], entries[is_slice])
            self._slots[1].put(NONE - 1 - place[is_instant].astype(np.int64), entries[is_instant])
            lost.append(entries[is_lost])
        self._merged.let_go_all()
        self._scratch.let_go()
        return None if sum(map(len, lost)) == at else lost

    def _read(self, lifted: Lifted, lost: Sequence[AnyArray]) -> tuple[AnyArray, str]:
        """Return the values of all entries, and the dtype in which they are to be written."""
        dtype = {Kind.TEXT: "u4", Kind.FLOAT: "f8", Kind.INTEGER: "i8"}[lifted.kind]
        values = self._values.view(dtype)
        at = 0
        for part, column in _columns(self._merged, lifted).items():
            texts = lifted.kind is Kind.TEXT
            some = self._merged.strings.maps[part].take(column.values) if texts else column.values
            values[at : at + len(some)] = some
            at += len(some)
        self._merged.let_go_all()
        values = values[:at]
        if lifted.kind is Kind.INTEGER:
            kept = np.delete(values, np.concatenate(lost)) if lost else values
            dtype = smallest_integer(int(kept.min()), int(kept.max()))
        return values, dtype


def write_lifted(
    merged: Merged, written: Columns, slices: int, instants: int, columns: Columns, scratch: Scratch
) -> None:
    """Write every lifted argument that occurs.

    `written`: the finished columns of all lanes, of so many slices and instants; what is written is added to
    `columns`.
    """
    paired = "ends.ordinal" in written.entries
    place_of = _places(merged.events, written, scratch)
    out = _LiftedOut(merged, place_of, (slices, instants), paired, columns, scratch)
    for family in _families(merged):
        out.write(family)
        scratch.let_go()


def _places(events: int, written: Columns, scratch: Scratch) -> U32:
    """Return per ordinal the position of its slice, NONE - 1 - the index of its instant, or NONE."""
    place_of: U32 = scratch.array(events, "u4", NONE)
    for name, first, step in (("slices", 0, 1), ("instants", NONE - 1, -1)):
        if f"{name}.ordinal" in written.entries:
            ordinal = written.read(f"{name}.ordinal")
            for at in range(0, len(ordinal), CHUNK):
                some = ordinal[at : at + CHUNK]
                begin = first + step * at
                place_of[some.astype(np.intp)] = np.arange(begin, begin + step * len(some), step)
    if "ends.ordinal" in written.entries:
        place_of[written.read("ends.ordinal")] = written.read("ends.position")
    return place_of


def _families(merged: Merged) -> list[list[Lifted]]:
    """Return the arguments that occur, those together that the same events have."""
    families: list[list[Lifted]] = []
    for lifted in LIFTED:
        own = _ordinals(merged, lifted)
        if not own:
            continue
        for family in families:
            other = _ordinals(merged, family[0])
            if own.keys() == other.keys() and all(np.array_equal(own[part], other[part]) for part in own):
                family.append(lifted)
                break
        else:
            families.append([lifted])
    merged.let_go_all()
    return families


def _columns(merged: Merged, lifted: Lifted) -> dict[int, LiftedColumn]:
    """Return an argument's columns by the numbers of the parts that have any."""
    found = ((number, part.lifted.get(lifted.key)) for number, part in enumerate(merged.parts))
    return {number: column for number, column in found if column is not None and len(column.ordinals)}


def _ordinals(merged: Merged, lifted: Lifted) -> dict[int, U32]:
    return {number: column.ordinals for number, column in _columns(merged, lifted).items()}
