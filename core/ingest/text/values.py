"""The values in the slots of events that are written alike, as columns."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np

from ..columns import F64, I64, U32, AnyArray
from ..columns_block import TIMED
from ..columns_settle import LONGEST
from ..columns_time import LARGEST_INTEGER
from .cells import Cells
from .digits import floats, integers, nanoseconds
from .hashing import SpanHash
from .spans import Spans
from .spellings import Numbering, Spellings
from .stretch import Mask, Words
from .template import Form, Template

TEXTS = {Form.TEXT: np.uint64(0), Form.VALUE: np.uint64(0x9E3779B97F4A7C15)}
"""Forms that are spelled, and what tells the hashes of equal texts apart."""
WORTH_IT = 16
"""Fewer events without anything unusual are left to the decoder."""
MOST_WEIGHT = 16 << 20
MOST_FLOATS = 1 << 16
"""So many that have many digits are remembered."""
LONGEST_NUMBER = 64
NOTHING = b"null"
"""What stands for an absent pid or tid."""
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LATEST = LARGEST_INTEGER - LONGEST // 1000


@dataclass(frozen=True)
class Alike:
    """Events of one stretch that are written alike, as columns; texts and tracks by their spellings."""

    template: Template
    places: U32  # which events of the stretch, ascending
    tracks: U32
    starts: I64  # ns
    names: U32
    durations: I64 | None = None  # ns, of slices
    ids: I64 | None = None  # of flow events
    lifted: dict[str, AnyArray] = field(default_factory=dict)  # by lifted key: int64, float64 or spellings


class ValueReader:
    """Reads values, and numbers the texts among them."""

    def __init__(self) -> None:
        """Begin without texts."""
        self._hash = SpanHash()
        self._spellings = Spellings()
        self._of_float = Numbering()
        self._floats_met: F64 = np.zeros(0)

    @property
    def spellings(self) -> Spellings:
        """What the numbers of texts and tracks mean."""
        return self._spellings

    def forget(self) -> None:
        """Begin anew with texts and tracks if there are many."""
        if self._spellings.weight > MOST_WEIGHT:
            self._spellings = Spellings()

    def read(self, cells: Cells) -> Alike | None:
        """Return what is in the cells as columns; events with something unusual in one are left out. Raises
        UnsoundError.
        """
        template, count = cells.template, len(cells.events)
        numbers, sound = self._numbers(cells)
        durations = numbers.get("dur")
        if durations is not None and template.phase == "X":
            sound &= durations < LONGEST
        if not sound.all():
            return self.read(cells.only(sound)) if np.count_nonzero(sound) >= WORTH_IT else None
        texts = self._texts(cells)
        for fixed in template.fixed:
            if fixed.slot.form is Form.INTEGER:
                numbers[fixed.slot.key] = np.full(count, int(fixed.text), np.int64)
            elif fixed.slot.form is Form.FLOAT:
                numbers[fixed.slot.key] = np.full(count, float(fixed.text), np.float64)
            elif fixed.slot.form in TEXTS:
                number = self._spellings.number(fixed.text, fixed.slot.form is Form.TEXT)
                texts[fixed.slot.key] = np.full(count, number, np.uint32)
        lifted = {
            slot.lifted.key: numbers[slot.key] if slot.key in numbers else texts[slot.key]
            for slot in (*template.slots, *(fixed.slot for fixed in template.fixed))
            if slot.lifted is not None
        }
        zeros = np.zeros(count, np.uint32)
        return Alike(
            template,
            cells.events.astype(np.uint32),
            self._tracks(cells),
            numbers["ts"],
            texts.get("name", zeros),
            durations if template.phase == "X" else None,
            numbers["id"] if template.kind != TIMED else None,
            lifted,
        )

    def _numbers(self, cells: Cells) -> tuple[dict[str, AnyArray], Mask]:
        """Return the numbers in the slots that hold some (ns for times), and which have all of them."""
        numbers: dict[str, AnyArray] = {}
        sound = np.ones(len(cells.events), np.bool_)
        others = []
        for slot, spans in zip(cells.template.slots, cells.spans):
            if slot.form is Form.TIME:
                numbers[slot.key], plain = nanoseconds(spans, _LATEST)
                sound &= plain
            elif slot.form not in TEXTS:
                others.append((slot, spans))
        if others:
            count = len(cells.events)
            found, whole = integers(Spans.joined([spans for _, spans in others]))
            for (slot, spans), values, good in zip(
                others, found.reshape(-1, count), whole.reshape(-1, count)
            ):
                numbers[slot.key] = values if slot.form is Form.INTEGER else self._floats(spans, values, good)
                sound &= good
        return numbers, sound

    def _floats(self, spans: Spans, integers: I64, plain: Mask) -> F64:
        """Return the floats nearest to what is written; `plain` tells which are integers, then also which
        are numbers at all.
        """
        values = integers.astype(np.float64)
        left = np.flatnonzero(~plain)
        if left.size:
            spans = spans.only(left)
            values[left], plain[left] = floats(spans)
            long = ~plain[left]
            if long.any():
                values[left[long]], plain[left[long]] = self._long_floats(spans.only(long))
        return values

    def _long_floats(self, spans: Spans) -> tuple[F64, Mask]:
        """Return the floats nearest to texts of any make, and which of them are JSON numbers."""

        def number(places: I64) -> range:
            met = len(self._floats_met)
            self._floats_met = np.append(
                self._floats_met, [float_of(spans.text(place)) for place in places.tolist()]
            )
            return range(met, met + len(places))

        if len(self._floats_met) > MOST_FLOATS:
            self._of_float, self._floats_met = Numbering(), np.zeros(0)
        numbers = self._of_float.of(self._hash.of(spans), number)
        values = self._floats_met[numbers]
        return values, np.isfinite(values)

    def _texts(self, cells: Cells) -> dict[str, U32]:
        """Return the spellings of all slots that hold texts or other values."""
        found = [
            (slot, spans)
            for slot, spans in zip(cells.template.slots, cells.spans)
            if slot.form in TEXTS and slot.key not in ("pid", "tid")
        ]
        if not found:
            return {}
        count = len(cells.events)
        hashes = np.concatenate([self._hash.of(spans) ^ TEXTS[slot.form] for slot, spans in found])

        def raw(places: I64) -> tuple[list[bytes], list[bool]]:
            cells = [(*found[place // count], place % count) for place in places.tolist()]
            return [s.text(place) for _, s, place in cells], [slot.form is Form.TEXT for slot, _, _ in cells]

        numbers = self._spellings.numbers(self._hash.mixed(hashes), raw).reshape(-1, count)
        return {slot.key: row for (slot, _), row in zip(found, numbers)}

    def _tracks(self, cells: Cells) -> U32:
        """Return the track of each event."""
        texts = {fixed.slot.key: fixed.text for fixed in cells.template.fixed}
        found = {slot.key: spans for slot, spans in zip(cells.template.slots, cells.spans)}

        def hashes(key: str) -> Words:
            if key in found:
                return self._hash.of(found[key])
            return np.full(len(cells.events), self._hash.of_text(texts.get(key, NOTHING)))

        def raw(key: str, place: int) -> bytes:
            return found[key].text(place) if key in found else texts.get(key, NOTHING)

        joined = self._hash.joined(hashes("pid"), hashes("tid"))
        return self._spellings.track_numbers(joined, lambda place: (raw("pid", place), raw("tid", place)))


def float_of(text: bytes) -> float:
    """Return the float nearest to a JSON number; not a number where it is none."""
    return float(text) if len(text) <= LONGEST_NUMBER and _NUMBER.fullmatch(text) else math.nan
