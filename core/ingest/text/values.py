"""The values in the slots of events that are written alike, as columns."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..columns import F64, I64, U32, AnyArray
from ..columns_block import TIMED
from ..columns_settle import LONGEST
from ..columns_time import LARGEST_INTEGER
from .cells import Cells, Joined
from .digits import are_digits, floats, integers, nanoseconds
from .hashing import SpanHash
from .spans import Spans
from .spellings import Numbering, Spellings
from .stretch import Mask, Words
from .template import Form, Slot, Template

TEXTS = {Form.TEXT: np.uint64(0), Form.VALUE: np.uint64(0x9E3779B97F4A7C15)}
"""Forms that are spelled, and what tells the hashes of equal texts apart."""
WORTH_IT = 16
"""Fewer events without anything unusual are left to the decoder."""
MOST_WEIGHT = 16 << 20
MOST_FLOATS = 1 << 16
"""So many that have many digits are remembered."""
LONGEST_NUMBER = 64
TRACK = ("pid", "tid")
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

    def read(self, groups: Sequence[Cells]) -> list[Alike]:
        """Return what is in the cells of each group as columns; events with something unusual in one are
        left out, and groups of which little would be left. Raises UnsoundError.
        """
        if not groups:
            return []
        numbers, sound = self._numbers(groups)
        texts, tracks = self._texts(groups), self._tracks(groups)
        found = map(self._alike, groups, sound, numbers, texts, tracks)
        return [alike for alike in found if alike is not None]

    def _alike(
        self,
        cells: Cells,
        sound: Mask,
        numbers: dict[str, AnyArray],
        texts: dict[str, U32],
        tracks: U32,
    ) -> Alike | None:
        """Return the sound events of a group; None where these are few."""
        template = cells.template
        if template.phase == "X":
            sound &= numbers["dur"] < LONGEST
        count = np.count_nonzero(sound)
        if count < WORTH_IT:
            return None
        kept = slice(None) if count == len(sound) else sound
        values: dict[str, AnyArray] = {key: found[kept] for key, found in (*numbers.items(), *texts.items())}
        for fixed in template.fixed:
            key, form = fixed.slot.key, fixed.slot.form
            if form is Form.INTEGER:
                values[key] = np.full(count, int(fixed.text), np.int64)
            elif form is Form.FLOAT:
                values[key] = np.full(count, float(fixed.text), np.float64)
            elif form in TEXTS:
                number = self._spellings.number(fixed.text, form is Form.TEXT)
                values[key] = np.full(count, number, np.uint32)
        slots = (*template.slots, *(fixed.slot for fixed in template.fixed))
        return Alike(
            template,
            cells.events[kept].astype(np.uint32),
            tracks[kept],
            values["ts"],
            values["name"] if "name" in values else np.zeros(count, np.uint32),
            values["dur"] if template.phase == "X" else None,
            values["id"] if template.kind != TIMED else None,
            {slot.lifted.key: values[slot.key] for slot in slots if slot.lifted is not None},
        )

    def _numbers(self, groups: Sequence[Cells]) -> tuple[list[dict[str, AnyArray]], list[Mask]]:
        """Return per group the numbers in its slots that hold some (ns for times), and which events have
        them all.
        """
        numbers: list[dict[str, AnyArray]] = [{} for _ in groups]
        sound = [np.ones(len(cells.events), np.bool_) for cells in groups]

        def keep(joined: Joined, values: AnyArray, plain: Mask) -> None:
            for (group, slot, found), (*_, good) in zip(joined.each(values), joined.each(plain)):
                numbers[group][slot.key] = found
                sound[group] &= good

        for key in ("ts", "dur"):
            if times := Joined.of(groups, _is_under(key)):
                keep(times, *nanoseconds(times.spans, _LATEST))
        if joined := Joined.of(groups, lambda slot: slot.form is Form.INTEGER):
            keep(joined, *integers(joined.spans))
        if joined := Joined.of(groups, lambda slot: slot.form is Form.FLOAT):
            keep(joined, *self._floats(joined.spans))
        if joined := Joined.of(groups, lambda slot: slot.form is Form.NUMBER):
            for group, _, good in joined.each(self._are_numbers(joined.spans)):
                sound[group] &= good
        return numbers, sound

    def _are_numbers(self, spans: Spans) -> Mask:
        """Tell which texts are JSON numbers."""
        sound = are_digits(spans)
        left = np.flatnonzero(~sound)
        if left.size:
            sound[left] = self._floats(spans.only(left))[1]
        return sound

    def _floats(self, spans: Spans) -> tuple[F64, Mask]:
        """Return the floats nearest to what is written, and what of it is a number."""
        whole, sound = integers(spans)
        values = whole.astype(np.float64)
        left = np.flatnonzero(~sound)
        if left.size:
            values[left], sound[left] = floats(spans := spans.only(left))
            long = ~sound[left]
            if long.any():
                values[left[long]], sound[left[long]] = self._long_floats(spans.only(long))
        return values, sound

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

    def _texts(self, groups: Sequence[Cells]) -> list[dict[str, U32]]:
        """Return per group the spellings of all slots that hold texts or other values."""
        texts: list[dict[str, U32]] = [{} for _ in groups]
        joined = Joined.of(groups, lambda slot: slot.form in TEXTS and slot.key not in TRACK)
        if joined is None:
            return texts
        spans = joined.spans

        def raw(places: I64) -> tuple[list[bytes], list[bool]]:
            new = places.tolist()
            return list(map(spans.text, new)), [joined.slot(place).form is Form.TEXT for place in new]

        salts = joined.told(lambda slot: TEXTS[slot.form])
        numbers = self._spellings.numbers(self._hash.mixed(self._hash.of(spans) ^ salts), raw)
        for group, slot, found in joined.each(numbers):
            texts[group][slot.key] = found
        return texts

    def _tracks(self, groups: Sequence[Cells]) -> list[U32]:
        """Return per group the track of each event."""
        edges = np.cumsum([0, *(len(cells.events) for cells in groups)])

        def hashes(key: str) -> Words:
            found = [
                np.full(len(cells.events), self._hash.of_text(cells.fixed(key) or NOTHING))
                for cells in groups
            ]
            if joined := Joined.of(groups, _is_under(key)):
                for group, _, own in joined.each(self._hash.of(joined.spans)):
                    found[group] = own
            return np.concatenate(found)

        def raw(place: int) -> tuple[bytes, bytes]:
            group = int(np.searchsorted(edges, place, "right")) - 1
            cells, event = groups[group], place - int(edges[group])
            return cells.text("pid", event) or NOTHING, cells.text("tid", event) or NOTHING

        tracks = self._spellings.track_numbers(self._hash.joined(hashes("pid"), hashes("tid")), raw)
        return np.split(tracks, edges[1:-1])


def _is_under(key: str) -> Callable[[Slot], bool]:
    return lambda slot: slot.key == key


def float_of(text: bytes) -> float:
    """Return the float nearest to a JSON number; not a number where it is none."""
    return float(text) if len(text) <= LONGEST_NUMBER and _NUMBER.fullmatch(text) else math.nan
