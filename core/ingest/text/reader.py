"""Reads stretches of text as columns: events that are written alike together, the others by the decoder."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import orjson

from ..columns import F64, I64, U32, AnyArray
from ..columns_block import TIMED
from ..columns_settle import LONGEST
from ..columns_time import LARGEST_INTEGER
from ..separator import Separator
from .digits import floats, integers, nanoseconds
from .spans import SpanHash
from .spellings import Spellings, UnsoundError
from .stretch import Mask, Stretch, stretch_of
from .template import Form, Slot, Template, template_of

STRETCH_SIZE = 8 << 20
"""So much text is read at once: a call of numpy costs what hundreds of events do."""
LEAST = 64
"""Fewer events that are written alike cost less by the decoder."""
MOST_TEMPLATES = 64
"""With the same number of quotes: each is compared with all of their events."""
MOST_WEIGHT = 16 << 20
LONGEST_PAUSE = 32
LONGEST_NUMBER = 64
MOST_NARROW = 8
"""Of templates that are alike but for what is the same in all their events."""
SAMPLE = 64
NOTHING = b"null"
"""What stands for an absent pid or tid."""
ATTEMPTS = 4
"""So many kinds of events that make no template are met before the rest of their length is left."""
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,17}")
_SALTS = {Form.TEXT: np.uint64(0), Form.VALUE: np.uint64(0x9E3779B97F4A7C15)}
Group: TypeAlias = tuple[Template, I64, I64, I64]
"""A template, its events, where their slots begin and where they end: a row per slot."""
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


@dataclass(frozen=True)
class ReadText:
    """A stretch that is sound JSON, read."""

    length: int
    begins: I64  # of its events, from its first byte
    ends: I64
    alike: Sequence[Alike]
    others: U32  # events that were decoded
    text: bytes  # of these, joined by commas
    events: Sequence[object]
    spellings: Spellings


class TextReader:
    """Reads stretches, and learns how events are written."""

    def __init__(self) -> None:
        """Begin without templates."""
        self._templates: dict[int, list[Template]] = {}
        self._narrow: Counter[tuple[bytes, ...]] = Counter()  # by their common shape
        self._pause = 0  # so many stretches are left to the decoder
        self._failures = 0
        self._hash = SpanHash()
        self._spellings = Spellings()

    def read(self, text: bytes | memoryview, separator: Separator) -> ReadText | None:
        """Return a stretch of whole events as columns; None where it is not sound, or must be decoded."""
        if self._pause:
            self._pause -= 1
            return None
        read = self._read(text, separator)
        if read is None or 2 * len(read.others) > len(read.begins):
            self._failures += 1
            self._pause = min(1 << self._failures, LONGEST_PAUSE)
        else:
            self._failures = 0
        return read

    def _read(self, text: bytes | memoryview, separator: Separator) -> ReadText | None:
        if self._spellings.weight > MOST_WEIGHT:
            self._spellings = Spellings()
        stretch = stretch_of(text, separator)
        alike: list[Alike] = []
        other = np.ones(len(stretch.begins), np.bool_)
        try:
            for template, events, starts, ends in self._parted(stretch):
                found = self._columns(stretch, template, events, starts, ends)
                if found is not None:
                    alike.append(found)
                    other[found.places] = False
            others = np.flatnonzero(other)
            bounds = zip(stretch.begins[others].tolist(), stretch.ends[others].tolist())
            texts = [stretch.text[a:b] for a, b in bounds]
            decoded = list(map(orjson.loads, texts))  # one by one: what is sound only together is none
        except (ValueError, RecursionError):
            return None
        return ReadText(
            len(text),
            stretch.begins - stretch.begins[0],
            stretch.ends - stretch.begins[0],
            alike,
            others.astype(np.uint32),
            b",".join(texts),
            decoded,
            self._spellings,
        )

    def _parted(self, stretch: Stretch) -> Iterator[Group]:
        """Yield the events of each template, with where their slots begin and end."""
        counts = stretch.counts if stretch.escaped is None else np.where(stretch.escaped, 0, stretch.counts)
        order = np.argsort(counts.astype(np.uint16), kind="stable") if counts.max() < 1 << 16 else None
        if order is None:
            order = np.argsort(counts, kind="stable")
        ordered = counts[order]
        edges = np.flatnonzero(np.diff(ordered, prepend=-1))
        for a, b in zip(edges.tolist(), [*edges[1:].tolist(), len(ordered)]):
            quotes = int(ordered[a])
            if quotes and b - a >= LEAST:
                yield from self._matched(stretch, quotes, order[a:b])

    def _matched(self, stretch: Stretch, quotes: int, events: I64) -> Iterator[Group]:
        templates = self._templates.setdefault(quotes, [])
        for template in templates:
            alike, starts, ends = template.matching(stretch, events)
            if starts.shape[1]:
                yield template, events[alike], starts, ends
                events = events[~alike]
            if len(events) < LEAST:
                return
        for _ in range(ATTEMPTS):
            if len(templates) >= MOST_TEMPLATES:
                return
            sample = int(events[0])
            text = stretch.text[stretch.begins[sample] : stretch.ends[sample]]
            orjson.loads(text)  # a stretch with an unsound event is read otherwise
            new = template_of(text)
            if new is None:
                events = events[1:]
            else:
                new = self._narrowed(stretch, new, events)
                templates.append(new)
                alike, starts, ends = new.matching(stretch, events)
                yield new, events[alike], starts, ends
                events = events[~alike]
            if len(events) < LEAST:
                return

    def _narrowed(self, stretch: Stretch, template: Template, events: I64) -> Template:
        """Return a template for events alike that also have the same text in some of their slots, if they
        often have: fewer slots are less work.
        """
        shape = template.runs
        if self._narrow[shape] >= MOST_NARROW:
            return template
        self._narrow[shape] += 1
        sample = events[:: max(1, len(events) // SAMPLE)]
        _, starts, ends = template.matching(stretch, sample)
        fixed = {}
        for row, slot in enumerate(template.slots):
            if slot.form is not Form.TIME and starts.shape[1] >= SAMPLE // 4:
                texts = {stretch.text[a:b] for a, b in zip(starts[row].tolist(), ends[row].tolist())}
                if len(texts) == 1 and self._is_sound(slot, text := texts.pop()):
                    fixed[row] = text
        return template.narrowed(fixed)

    def _is_sound(self, slot: Slot, text: bytes) -> bool:
        """Tell whether a text in a slot can be taken as the same in all events."""
        if slot.form in _SALTS:
            try:
                self._spellings.number(text, slot.form is Form.TEXT)
            except UnsoundError:
                return False
            return True
        number = _float(text)
        return math.isfinite(number) and (slot.form is not Form.INTEGER or bool(_INTEGER.fullmatch(text)))

    def _columns(
        self, stretch: Stretch, template: Template, events: I64, starts: I64, ends: I64
    ) -> Alike | None:
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
            if int(sound.sum()) < LEAST // 2:
                return None
            return self._columns(stretch, template, events[sound], starts[:, sound], ends[:, sound])
        texts = self._texts(stretch, template, starts, ends)
        count = len(events)
        for fixed in template.fixed:
            if fixed.slot.form is Form.INTEGER:
                numbers[fixed.slot.key] = np.full(count, int(fixed.text), np.int64)
            elif fixed.slot.form is Form.FLOAT:
                numbers[fixed.slot.key] = np.full(count, float(fixed.text), np.float64)
            elif fixed.slot.form in _SALTS:
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
        if form in (Form.FLOAT, Form.NUMBER) and not sound.all():
            values = values.astype(np.float64)
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
        numbers = np.array([_float(stretch.text[starts[place] : ends[place]]) for place in first.tolist()])
        return numbers[each], np.isfinite(numbers)[each]

    def _texts(self, stretch: Stretch, template: Template, starts: I64, ends: I64) -> dict[str, U32]:
        """Return the spellings of all slots that hold texts or other values."""
        rows = [
            row
            for row, slot in enumerate(template.slots)
            if slot.form in _SALTS and slot.key not in ("pid", "tid")
        ]
        if not rows:
            return {}
        low, high = starts[rows], ends[rows]
        if (high < low).any():
            raise UnsoundError("a text that ends before it begins")
        salts = np.array([_SALTS[template.slots[row].form] for row in rows])
        hashes = self._hash.of(stretch, low.ravel(), (high - low).ravel()).reshape(low.shape)
        hashes = self._hash.mixed(hashes ^ salts[:, None])
        inside = [template.slots[row].form is Form.TEXT for row in rows]
        count = low.shape[1]

        def raw(place: int) -> tuple[bytes, bool]:
            row, column = divmod(place, count)
            return stretch.text[low[row, column] : high[row, column]], inside[row]

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


def _float(text: bytes) -> float:
    """Return the float nearest to a JSON number; not a number where it is none."""
    return float(text) if len(text) <= LONGEST_NUMBER and _NUMBER.fullmatch(text) else math.nan
