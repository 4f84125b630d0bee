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
from .digits import floats, integers, nanoseconds
from .spans import SpanHash
from .spellings import Spellings, UnsoundError
from .stretch import Mask, Stretch
from .template import Form, Template

TEXTS = {Form.TEXT: np.uint64(0), Form.VALUE: np.uint64(0x9E3779B97F4A7C15)}
"""Forms that are spelled, and what tells the hashes of equal texts apart."""
WORTH_IT = 16
"""Fewer events without anything unusual are left to the decoder."""
MOST_WEIGHT = 16 << 20
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

    @property
    def spellings(self) -> Spellings:
        """What the numbers of texts and tracks mean."""
        return self._spellings

    def forget(self) -> None:
        """Begin anew with texts and tracks if there are many."""
        if self._spellings.weight > MOST_WEIGHT:
            self._spellings = Spellings()

    def read(self, stretch: Stretch, template: Template, events: I64, starts: I64, ends: I64) -> Alike | None:
        """Return the columns of events that agree with a template outside of their slots; those with
        something unusual in a slot are left out. Raises UnsoundError.
        """
        sound = np.ones(len(events), np.bool_)
        numbers: dict[str, AnyArray] = {}
        for form in (Form.TIME, Form.INTEGER, Form.FLOAT, Form.NUMBER):
            rows = [row for row, slot in enumerate(template.slots) if slot.form is form]
            if rows:
                values, plain = self._numbers(stretch, form, starts[rows], ends[rows])
                sound &= plain.all(axis=0)
                numbers.update((template.slots[row].key, values[i]) for i, row in enumerate(rows))
        durations = numbers.get("dur")
        if durations is not None and template.phase == "X":
            sound &= durations < LONGEST
        if not sound.all():
            if int(sound.sum()) < WORTH_IT:
                return None
            return self.read(stretch, template, events[sound], starts[:, sound], ends[:, sound])
        texts = self._texts(stretch, template, starts, ends)
        count = len(events)
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
            events.astype(np.uint32),
            self._tracks(stretch, template, starts, ends),
            numbers["ts"],
            texts.get("name", zeros),
            durations if template.phase == "X" else None,
            numbers["id"] if template.kind != TIMED else None,
            lifted,
        )

    def _numbers(self, stretch: Stretch, form: Form, starts: I64, ends: I64) -> tuple[AnyArray, Mask]:
        """Return the numbers in slots of one form (ns for times), and which are such; a row per slot."""
        shape, low, high = starts.shape, starts.ravel(), ends.ravel()
        values: AnyArray
        if form is Form.TIME:
            values, sound = nanoseconds(stretch, low, high, _LATEST)
        else:
            values, sound = integers(stretch, low, high)
        if form is Form.FLOAT:
            values = values.astype(np.float64)
        if form in (Form.FLOAT, Form.NUMBER) and not sound.all():
            values = values.astype(np.float64, copy=False)
            left = np.flatnonzero(~sound)
            values[left], sound[left] = floats(stretch, low[left], high[left])
            left = left[~sound[left]]
            if left.size:
                values[left], sound[left] = self._long_floats(stretch, low[left], high[left])
        return values.reshape(shape), sound.reshape(shape)

    def _long_floats(self, stretch: Stretch, starts: I64, ends: I64) -> tuple[F64, Mask]:
        """Return the floats nearest to texts of any make, and which of them are JSON numbers."""
        hashes = self._hash.of(stretch, starts, np.maximum(ends - starts, 0))
        _, first, each = np.unique(hashes, return_index=True, return_inverse=True)
        numbers = np.array([float_of(stretch.text[starts[place] : ends[place]]) for place in first.tolist()])
        return numbers[each], np.isfinite(numbers)[each]

    def _texts(self, stretch: Stretch, template: Template, starts: I64, ends: I64) -> dict[str, U32]:
        """Return the spellings of all slots that hold texts or other values."""
        rows = [
            row
            for row, slot in enumerate(template.slots)
            if slot.form in TEXTS and slot.key not in ("pid", "tid")
        ]
        if not rows:
            return {}
        low, high = starts[rows], ends[rows]
        if (high < low).any():
            raise UnsoundError("a text that ends before it begins")
        salts = np.array([TEXTS[template.slots[row].form] for row in rows])
        hashes = self._hash.of(stretch, low.ravel(), (high - low).ravel()).reshape(low.shape)
        hashes = self._hash.mixed(hashes ^ salts[:, None])
        inside = np.array([template.slots[row].form is Form.TEXT for row in rows])
        count = low.shape[1]

        def raw(places: I64) -> tuple[list[bytes], list[bool]]:
            bounds = zip(low.ravel()[places].tolist(), high.ravel()[places].tolist())
            return [stretch.text[a:b] for a, b in bounds], inside[places // count].tolist()

        numbers = self._spellings.numbers(hashes.ravel(), raw).reshape(low.shape)
        return {template.slots[row].key: numbers[i] for i, row in enumerate(rows)}

    def _tracks(self, stretch: Stretch, template: Template, starts: I64, ends: I64) -> U32:
        """Return the track of each event."""
        count = starts.shape[1]
        texts = {fixed.slot.key: fixed.text for fixed in template.fixed}
        rows = {slot.key: row for row, slot in enumerate(template.slots)}
        hashes = {}
        for key in ("pid", "tid"):
            row = rows.get(key)
            if row is None:
                hashes[key] = np.full(count, self._hash.of_text(texts.get(key, NOTHING)), np.uint64)
            elif (ends[row] < starts[row]).any():
                raise UnsoundError("a text that ends before it begins")
            else:
                hashes[key] = self._hash.of(stretch, starts[row], ends[row] - starts[row])

        def raw(key: str, place: int) -> bytes:
            row = rows.get(key)
            return (
                texts.get(key, NOTHING)
                if row is None
                else stretch.text[starts[row, place] : ends[row, place]]
            )

        joined = self._hash.joined(hashes["pid"], hashes["tid"])
        return self._spellings.track_numbers(joined, lambda place: (raw("pid", place), raw("tid", place)))


def float_of(text: bytes) -> float:
    """Return the float nearest to a JSON number; not a number where it is none."""
    return float(text) if len(text) <= LONGEST_NUMBER and _NUMBER.fullmatch(text) else math.nan
