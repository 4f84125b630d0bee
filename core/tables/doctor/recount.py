"""An independent recount: every event of a file, as ijson reads it, held against its index.

Memory is bounded, and the index is not asked where events stand in the file: the recount counts the elements
itself, and the number of an element is what ties it to the index, which says of every slice, end, instant,
sample and arrow of which element it was made. For WINDOW elements at a time the index's columns are put in
the order of these numbers (`OrdinalColumn`: a pass over a column of numbers per REACH elements) and
compared with what the file says, all at once; an element that may differ is then looked at by itself. What
the index has of elements that the file does not have shows as columns that are longer than what was met.
An order-independent checksum would need no order, but could not say which event differs.

What equal means, by phase:

- X: a slice of this start, duration, name and category. A negative or missing `dur` counts as 0, one that
  means no number makes an instant of phase "?".
- B, b, S: a slice of this start, marked as begun. Which end closes it the index says; that end must stand at
  the slice's end. A begin without name or category has those of its end. Where no end closes it the duration
  is the index's own, up to the end of the lane.
- E, e, F: the end of such a slice, or an instant of this phase.
- C: a sample for each number among the arguments, at this time, of this value, in a counter of this name.
- s, t, f: the index keeps no time of them: each arrow begins and ends at one, or at a slice with a
  `bind_id`, and starts and ends are counted by category.
- M, events without a usable time, `{}` and elements that are no objects: nothing lies in the index, and the
  read report counts them.
- all others: an instant of this phase ("?" where it is no ASCII letter), time, name and category.

Times are rounded to ns half to even and exactly, then count from the index's origin, and are clamped to
±TIME_LIMIT. Events that are repeated are events. Of an event of more than 16 MB the index has a note of the
size in place of a name of more than 4 KB. Those that only a repair makes readable are behind the place
where ijson stops. A name with half a surrogate pair has "?" or the half in ijson and U+FFFD in the index.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import I64, AnyArray, distinct
from ...base.progress import CancelledCallback, ProgressCallback, never, no_progress
from ...base.units import TIME_LIMIT, count_of, format_count
from ...index.store import Index
from ...read.source import TIME_DIGITS, Source
from .file_values import SharedText, indexed_text, is_same_text, ns_of, samples_of
from .index_order import (
    ABSENT,
    REACH,
    SOURCE,
    TARGET,
    IndexOrder,
    IndexWindow,
    Sample,
    add_exactly,
    index_sums,
)
from .json_elements import Element, ElementReader, ReadingEnd

WINDOW = 1 << 17
"""Elements that are compared at once, fewer where their names are long."""
MAX_CHARACTERS = 1 << 25
"""Characters of the names of a window."""
MAX_SHOWN = 60
"""Characters that are shown of a text in which file and index differ."""
BEGINS, ENDS, FLOWS = frozenset("BbS"), frozenset("EeF"), frozenset("stf")
ASYNCS = frozenset("bneSTpF")
NOTHING = "\0"
"""The phase of what nothing is made of."""
REPORTED: Mapping[str, str] = {
    "metadata": "metadata",
    "counter_events": "counter events",
    "counter_values": "values of counters",
    "empty_counters": "counter events without a number",
    "flow_events": "flow events",
    "async_events": "async events",
    "without_time": "events without a usable time",
    "empty": "empty objects",
    "not_objects": "elements that are no objects",
    "negative_durations": "negative durations",
    "missing_durations": "missing durations",
}
"""Counts of the read report that are counted here by the same name, and what they count."""
NO_TEXT = -2
"""In place of the number of a text that the index does not have."""
XS = ord("X")
FLOW_SIDES: Mapping[str, int] = {"s": SOURCE, "t": SOURCE | TARGET, "f": TARGET}
SLICE_FLOW = {(False, True): "s", (True, True): "t", (True, False): "f"}
"""What a slice with a `bind_id` is to its flow, by `flow_in` and `flow_out`."""


class EventDifference(NamedTuple):
    """The first thing in which file and index are not equal."""

    event: int | None  # the number of the element, from 0; None: of the file as a whole
    what: str
    in_file: str
    in_index: str

    @property
    def text(self) -> str:
        where = "all events" if self.event is None else f"event {format_count(self.event)}"
        return f"{where}: {self.what} is {self.in_file} in the file, {self.in_index} in the index"


@dataclass(frozen=True)
class CategorySum:
    """The slices of a category: how many, and their time, as the file says and as the index does."""

    category: str
    slices: int
    duration_ns: int
    index_slices: int
    index_duration_ns: int

    @property
    def texts(self) -> tuple[str, str]:
        """The same as words: of the file, of the index."""
        both = ((self.slices, self.duration_ns), (self.index_slices, self.index_duration_ns))
        here, there = (f"{count_of(slices, 'slice')} of {format_count(ns)} ns" for slices, ns in both)
        return here, there


@dataclass(frozen=True)
class Recounted:
    """What came of a file: `difference` where there is one, `stop` where ijson could not read on."""

    events: int  # that are equal
    stop: ReadingEnd | None
    difference: EventDifference | None
    categories: tuple[CategorySum, ...] = ()  # once all of the file was equal

    @property
    def text(self) -> str:
        count = format_count(self.events)
        if self.difference is not None:
            return f"not equal: {self.difference.text}"
        if self.stop is not None:
            byte = format_count(self.stop.offset)
            return f"compared up to byte {byte}, {count} events equal; {self.stop.why}"
        return f"{count} events, equal to the nanosecond"


class Sizes(NamedTuple):
    """How much is compared at once; what comes of it does not depend on this."""

    window: int = WINDOW
    characters: int = MAX_CHARACTERS
    reach: int = REACH


USUAL_SIZES = Sizes()


def recount(
    index: Index,
    source: Source,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
    *,
    backend: str = "",
    sizes: Sizes = USUAL_SIZES,
) -> Recounted:
    """Compare all events of a file with its index, up to the first difference. `backend`: that of ijson which
    reads; else the fastest there is. Raises Cancelled.
    """
    reader = ElementReader(source, progress, cancelled, backend)
    comparison = EventComparison(index, sizes)
    difference = None
    for elements in reader.read():
        for element in elements:
            comparison.add(element)
            if comparison.is_full and (difference := comparison.flush()):
                break
        if difference is not None:
            break
    else:
        difference = comparison.flush()
        if difference is None and reader.stop is None:
            difference = comparison.whole()
    is_whole = difference is None and reader.stop is None
    events = comparison.events if difference is None or difference.event is None else difference.event
    return Recounted(events, reader.stop, difference, comparison.categories() if is_whole else ())


# -- what a value of the file means --------------------------------------------------------------------------


class FileEvent(NamedTuple):
    """What the file says of an element."""

    phase: int  # as IndexWindow.phase, or NOTHING; F as it is
    start: int = 0
    duration: int = ABSENT
    name: Any = None
    category: Any = None


NO_EVENT = FileEvent(0)


@dataclass(eq=False)
class FileWindow:
    """What the file says of elements that follow one another."""

    events: list[FileEvent] = field(default_factory=list)
    sides: dict[int, int] = field(default_factory=dict)  # by entry, of those that may be an end of an arrow
    counters: dict[int, tuple[int, Any, dict[str, float]]] = field(default_factory=dict)  # by entry
    characters: int = 0  # of names

    def add(self, event: FileEvent) -> None:
        self.events.append(event)
        if type(event[3]) is str:
            self.characters += len(event[3])


class EventComparison:
    """Takes the elements of a file in their order and compares them with an index, a window at a time."""

    def __init__(self, index: Index, sizes: Sizes) -> None:
        self._sizes = sizes
        self._order = IndexOrder(index, sizes.reach)
        self._index, self._origin = index, index.origin_ns
        self._unit = 10 ** TIME_DIGITS[index.ts_unit]
        self._file = FileWindow()
        self._name = SharedText("name", index.string)
        self._category = SharedText("category", index.categories.__getitem__)
        self._by_phase = np.zeros(256, np.int64)
        self.events = 0
        """How many have been compared."""
        self._counts: Counter[str] = Counter()
        self._phases: Counter[str] = Counter()
        self._flows: dict[str, Counter[str]] = defaultdict(Counter)
        self._slices = np.zeros(len(index.categories), np.int64)
        self._sums = [0] * len(index.categories)

    @property
    def is_full(self) -> bool:
        return len(self._file.events) >= self._sizes.window or self._file.characters >= self._sizes.characters

    # -- elements of the file ------------------------------------------------------------------------------

    def add(self, element: Element) -> None:
        file = self._file
        if not element:
            self._counts["not_objects" if element is None else "empty"] += 1
            file.events.append(NO_EVENT)
            return
        phase = element.get("ph")
        kind = phase if isinstance(phase, str) and len(phase) == 1 and phase.isascii() else "?"
        self._phases[kind] += 1
        start = None if kind == "M" else ns_of(element.get("ts"), self._unit)
        if start is None:
            self._counts["metadata" if kind == "M" else "without_time"] += 1
            file.events.append(NO_EVENT)
            return
        duration = 0
        if kind == "X":
            value = element.get("dur")
            exact = ns_of(value, self._unit)
            if exact is None:
                self._counts["missing_durations"] += 1
                kind = "X" if value is None else "?"
            elif exact < 0:
                self._counts["negative_durations"] += 1
            duration = max(0, exact or 0)
        start -= self._origin
        if start > TIME_LIMIT or start < -TIME_LIMIT or start + duration > TIME_LIMIT:
            end = min(start + duration, TIME_LIMIT)
            start = max(-TIME_LIMIT, min(start, TIME_LIMIT))
            duration = max(start, end) - start
        self._add_timed(element, kind, start, duration)

    def _add_timed(self, element: dict[str, Any], kind: str, start: int, duration: int) -> None:
        file, counts = self._file, self._counts
        name, category = element.get("name"), element.get("cat")
        if kind == "X":
            file.add(FileEvent(XS, start, duration, name, category))
        elif kind == "C":
            counts["counter_events"] += 1
            samples = samples_of(element)
            counts["counter_values"] += len(samples)
            counts["empty_counters"] += not samples
            file.counters[len(file.events)] = (start, name, samples)
            file.events.append(NO_EVENT)
        elif kind in FLOWS:
            counts["flow_events"] += 1
            self._flows[indexed_text(category)][kind] += 1
            file.sides[len(file.events)] = FLOW_SIDES[kind]
            file.events.append(NO_EVENT)
        else:
            counts["async_events"] += kind in ASYNCS
            file.add(FileEvent(ord("b" if kind == "S" else kind), start, ABSENT, name, category))
        if kind in "XBE" and element.get("bind_id") is not None:
            way = SLICE_FLOW.get((element.get("flow_in") is True, element.get("flow_out") is True))
            if way is not None:
                self._flows["bind_id"][way] += 1
                file.sides[len(file.events) - 1] = FLOW_SIDES[way]

    # -- the comparison ------------------------------------------------------------------------------------

    def flush(self) -> EventDifference | None:
        """Compare the elements that have been added since; return the first difference."""
        file, self._file = self._file, FileWindow()
        first, size = self.events, len(file.events)
        known = self._order.window(first, first + size)
        phases, starts, durations, names, categories = zip(*file.events) if size else [()] * 5
        phase, sides = np.array(phases, np.uint8), np.zeros(size, np.uint8)
        sides[list(file.sides)] = list(file.sides.values())
        duration = np.array(durations, np.int64)
        is_begin, is_closing = _is_one_of(phase, BEGINS), _is_one_of(phase, ENDS) & (known.position >= 0)
        suspect = (phase != known.phase) | known.is_double | ((known.sides & ~sides) != 0)
        suspect |= (phase != 0) & (np.array(starts, np.int64) != known.start)
        suspect |= (phase == XS) & (duration != known.duration)
        suspect |= is_closing & (known.begin > np.arange(first, first + size))
        for values, numbers, text in (
            (names, known.names, self._name), (categories, known.categories, self._category)
        ):  # fmt: skip
            is_unlike = (phase != 0) & ~_are_same(values, numbers, text.text)
            if is_begin.any() or is_closing.any():
                is_empty = np.array([not value for value in values], np.bool_)
                is_left = is_closing & np.isin(known.position, np.fromiter(text.without, np.int64))
                is_unlike &= ~(is_closing & is_empty)
                is_unlike |= (is_begin & is_empty) | is_left
            suspect |= is_unlike
        suspects = [*np.flatnonzero(suspect).tolist(), *file.counters, *(at - first for at in known.samples)]
        for at in sorted(set(suspects)):
            if (difference := self._difference(file, known, at, first + at)) is not None:
                return difference
        self._add_up(phase, duration, known, is_closing)
        self._by_phase += np.bincount(phase, minlength=len(self._by_phase))
        self.events += size
        return None

    def _difference(
        self, file: FileWindow, known: IndexWindow, at: int, number: int
    ) -> EventDifference | None:
        """Return in what an element differs, None where it is equal after all."""
        event = file.events[at]
        in_file, in_index = chr(event.phase), chr(known.phase[at])
        if known.is_double[at]:
            return EventDifference(number, "what it is", "one event", "more than one")
        if at in file.counters or number in known.samples:
            return _difference_of_samples(number, file.counters.get(at), known.samples.get(number, []))
        is_closing = in_file in ENDS and known.position[at] >= 0
        if in_file != in_index and not (is_closing and in_file == "F" and in_index == "e"):
            return EventDifference(number, "phase", _phase_text(in_file), _phase_text(in_index))
        if int(known.sides[at]) & ~file.sides.get(at, 0):
            return EventDifference(number, "arrow", "none, or its other end", "an end of one")
        if in_file == NOTHING:
            return None
        times = [("ts", event.start, known.start[at])]
        times += [("dur", event.duration, known.duration[at])] if in_file == "X" else []
        for what, here, there in times:
            if here != there:
                return EventDifference(number, what, *(f"{format_count(int(ns))} ns" for ns in (here, there)))
        for value, text, stored in (
            (event.name, self._name, known.names), (event.category, self._category, known.categories)
        ):  # fmt: skip
            own, position = text.text(int(stored[at])), int(known.position[at])
            if is_closing:
                is_wrong = text.is_wrong_at_end(value, own, position, bool(known.begin[at] < number))
            elif in_file in BEGINS and known.end[at] != ABSENT:
                is_wrong = text.is_wrong_at_begin(value, own, position, bool(known.end[at] < number))
            else:
                is_wrong = not is_same_text(value, own)
            if is_wrong:
                return EventDifference(number, text.what, *_where_unlike(indexed_text(value), own))
        return None

    def _add_up(self, phase: AnyArray, duration: I64, known: IndexWindow, is_closing: AnyArray) -> None:
        """Add the slices of a window, which is equal, to the sums of their categories."""
        is_complete, is_begin = phase == XS, _is_one_of(phase, BEGINS)
        self._slices += np.bincount(known.categories[is_complete | is_begin], minlength=len(self._slices))
        is_unclosed = is_begin & (known.end == ABSENT)
        lengths = np.where(is_complete, duration, known.duration)
        lengths[is_closing] = self._index.duration(known.position[is_closing])
        for some in (is_complete, is_unclosed, is_closing):
            add_exactly(self._sums, known.categories[some], lengths[some])

    # -- all of a file -------------------------------------------------------------------------------------

    def whole(self) -> EventDifference | None:
        """Compare what holds of all elements together, once each is equal: that the index has no more, its
        counts, and the sums that it draws.
        """
        report, order, own = self._index.read_report, self._order, self._counts
        by_phase = {chr(code): int(self._by_phase[code]) for code in range(1, len(self._by_phase))}
        begins, ends = (sum(by_phase[one] for one in some) for some in (BEGINS, ENDS))
        others = sum(by_phase.values()) - by_phase["X"] - begins
        instants = others - ends - sum(by_phase[one] for one in ASYNCS - BEGINS - ENDS)
        pairs = [
            ("elements", self.events, report["events"]),
            ("slices", by_phase["X"] + begins, len(order.slices)),
            ("ends and instants", others, len(order.ends) + len(order.instants)),
            ("samples", own["counter_values"], len(order.samples)),
            ("complete events and begins", by_phase["X"] + by_phase["B"],
             report["slices"] + report["unmatched_begin"]),
            ("ends", by_phase["E"], report["pairs"] + report["unmatched_end"]),
            ("instants and others", instants, report["instant_events"]),
            *((words, own[key], report[key]) for key, words in REPORTED.items()),
            *((f"events of phase {kind}", count, self._index_phases(kind))
              for kind, count in sorted(self._phases.items())),
            *self._flow_counts(),
        ]  # fmt: skip
        for what, here, there in pairs:
            if here != there:
                return EventDifference(None, f"the number of {what}", format_count(here), format_count(there))
        for one in self.categories():
            if one.slices != one.index_slices or (one.duration_ns - one.index_duration_ns) % (1 << 64):
                return EventDifference(None, f"what category {one.category!r} comes to", *one.texts)
        return None

    def _index_phases(self, kind: str) -> int:
        """Return how many events of a phase the read report counts; "?" are all that have no letter."""
        counts = self._index.read_report["counts"]
        phases = {key.partition(".")[2]: count for key, count in counts.items() if key.startswith("phase.")}
        if kind != "?":
            return int(phases.get(kind, 0))
        return sum(count for key, count in phases.items() if key == "?" or len(key) != 1 or not key.isascii())

    def _flow_counts(self) -> Iterator[tuple[str, int, int]]:
        reported = self._index.read_report["flows"]
        for category in sorted(self._flows.keys() | reported.keys()):
            own, its = self._flows[category], reported.get(category, {})
            yield f"flow starts of category {category!r}", own["s"], its.get("starts", 0)
            ends = its.get("steps", 0) + its.get("ends", 0)
            yield f"flow steps and ends of category {category!r}", own["t"] + own["f"], ends

    def categories(self) -> tuple[CategorySum, ...]:
        """Return the slices by category, those that take longest first."""
        counts, sums = index_sums(self._index)
        every = [
            CategorySum(category, slices, self._sums[number], counts[number], sums[number])
            for number, (category, slices) in enumerate(zip(self._index.categories, self._slices.tolist()))
            if slices or counts[number]
        ]
        return tuple(sorted(every, key=lambda one: (-one.duration_ns, one.category)))


def _is_one_of(phase: AnyArray, some: frozenset[str]) -> AnyArray:
    return np.isin(phase, np.frombuffer("".join(some).encode(), np.uint8))


def _are_same(values: Sequence[Any], numbers: I64, text: Callable[[int], str]) -> AnyArray:
    """Tell which texts are those that the index numbers; of values that are no texts none are."""
    known: dict[Any, int] = {
        text(number): number for number in distinct(numbers).tolist() if number != ABSENT
    }
    known[None] = known.get("", NO_TEXT)
    try:
        own = [known.get(value, NO_TEXT) for value in values]
    except TypeError:  # a list or an object
        own = [known.get(value, NO_TEXT) if type(value) is str else NO_TEXT for value in values]
    same: AnyArray = np.array(own, np.int64) == numbers
    return same


def _phase_text(phase: str) -> str:
    return "none that is drawn" if phase == NOTHING else phase


def _where_unlike(*texts: str) -> Iterator[str]:
    """Yield what is to be seen of texts that differ: of long ones what stands around the first difference."""
    same = next((at for at, (here, there) in enumerate(zip(*texts)) if here != there), min(map(len, texts)))
    begin = max(0, same - MAX_SHOWN // 2)
    for text in texts:
        end = begin + MAX_SHOWN
        yield ("…" if begin else "") + repr(text[begin:end]) + ("…" if end < len(text) else "")


def _difference_of_samples(
    number: int, event: tuple[int, Any, dict[str, float]] | None, samples: list[Sample]
) -> EventDifference | None:
    """Return in what a counter event differs from its samples."""
    if event is None:
        return EventDifference(number, "phase", "no counter's", "C")
    start, name, values = event
    for sample in samples:
        if sample.start != start:
            return EventDifference(number, "ts", *(f"{format_count(ns)} ns" for ns in (start, sample.start)))
        if not is_same_text(name, sample.counter):
            return EventDifference(number, "name", *_where_unlike(indexed_text(name), sample.counter))
    known = {sample.series: sample.value for sample in samples}
    if known != values or len(known) != len(samples):
        unlike = sorted(key for key in values.keys() | known.keys() if values.get(key) != known.get(key))
        what = f"what it counts of {unlike[0][:MAX_SHOWN]!r}" if unlike else "the number of its samples"
        pair = (values.get(unlike[0]), known.get(unlike[0])) if unlike else (len(values), len(samples))
        return EventDifference(number, what, *("none" if one is None else f"{one}" for one in pair))
    return None
