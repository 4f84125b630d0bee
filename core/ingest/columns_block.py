"""One block's events to raw columns, by whole columns at a time; a part puts them together at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress, repeat
from operator import eq
from typing import Any

import numpy as np

from .columns import TIME_LIMIT, U32, AnyArray, EventFlag, Metadata
from .columns_ids import Ids, ids_of
from .columns_lifted import LiftedPieces, Lifter, arguments_of
from .columns_time import BlockTexts, Times, columns_of_keys, durations, exact_times, values_of
from .interning import StringTable, TrackTable, json_text
from .packed import packed_floats, packed_numbers

TIMED, FLOW, ASYNC, COUNTER, METADATA = range(5)
"""Kinds of events, by phase."""
OTHER = ord("?")
"""The phase of events whose `ph` is no single ASCII letter, and of X whose duration is unusable."""
X = ord("X")


def _table(letters: Iterable[tuple[int, str]], default: int) -> bytes:
    """Return a table for `bytes.translate`."""
    table = bytearray([default]) * 256
    for value, group in letters:
        for letter in group.encode():
            table[letter] = value
    return bytes(table)


KINDS = _table([(FLOW, "stf"), (ASYNC, "bneSTpF"), (COUNTER, "C"), (METADATA, "M")], TIMED)
"""Phase -> kind, for `bytes.translate`."""
_IS = [bytes(code == kind for code in range(256)) for kind in range(METADATA + 1)]
_IS_COMPLETE = _table([(1, "X")], 0)
_INSTANTS = frozenset(b"iIR")
_WITHOUT_SCOPE = bytes(set(range(256)) - _INSTANTS)
_ONLY_ASCII = bytes(code if code < 128 else OTHER for code in range(256))
_KEYS = ("ph", "pid", "tid", "ts", "cat", "name")
_SCOPES = {"p": EventFlag.SCOPE_PROCESS, "g": EventFlag.SCOPE_GLOBAL}

Events = Sequence[dict[str, Any]]


@dataclass
class BlockColumns:
    """What one block adds to a part; applied whole or not at all. `bytes` are raw native values."""

    elements: int
    letters: bytes = b""  # all phases that are a single latin-1 letter, those of metadata too
    ordinals: U32 | None = None  # None: all elements are events with a time
    phases: bytearray = field(default_factory=bytearray)  # from here on of events with a time, no metadata
    flags: bytearray = field(default_factory=bytearray)
    tracks: bytes = b""  # uint32
    categories: bytes = b""
    names: bytes = b""
    starts: bytes = b""  # int64
    durations: bytes = b""  # int64, of slices
    micros: bytes | None = None  # float64: starts and durations are still to be made of these
    lasting: bytes = b""
    binding: bytes = b""  # of flow events: whether they bind to the enclosing slice
    ids: dict[int, Ids] = field(default_factory=dict)  # of flow, async and counter events
    samples: dict[str, bytes] = field(default_factory=dict)
    """Of counters: `row` (uint32, the number of the counter event in the part), `series`, `value`."""
    lifted: LiftedPieces = field(default_factory=LiftedPieces)
    metadata: list[Metadata] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    clamped: int = 0
    first_starts: list[int] = field(default_factory=list)  # exact, of slices whose time was clamped
    last_ends: list[int] = field(default_factory=list)


class BlockReader:
    """Turns blocks into raw columns with the tables of one part."""

    def __init__(self, strings: StringTable, tracks: TrackTable, lifter: Lifter) -> None:
        """Take the part's tables, to which every block adds."""
        self._strings = strings
        self._tracks = tracks
        self._lifter = lifter

    def read(
        self,
        first: int,
        counters: int,
        data: bytes,
        elements: Sequence[object],
        *,
        exact: bool = False,
        defer: bool = False,
    ) -> BlockColumns:
        """Return the columns of a block behind `first` elements, of which `counters` were counter events.

        With `defer`, times that are plain numbers are left in µs. Raises NeedsExact where the decoder's
        values are not proof enough.
        """
        block = BlockColumns(len(elements))
        ordinals: U32 | None = None
        events: Events = elements  # type: ignore[assignment]
        try:
            columns = columns_of_keys(events, _KEYS)
        except (TypeError, AttributeError):  # elements that are no objects have no keys
            objects = bytes(type(element) is dict for element in elements)
            events = list(compress(events, objects))
            ordinals = np.arange(first, first + len(elements), dtype=np.uint32)
            ordinals = ordinals[np.frombuffer(objects, np.bool_)]
            block.ordinals = ordinals[:0]
            block.counts["not_object"] = len(elements) - len(events)
            columns = columns_of_keys(events, _KEYS)
        if not events:
            return block
        letters, pids, tids, stamps, categories, names = columns
        texts = BlockTexts(data, events, guess=exact)
        phases = _phases(letters, block, exact)
        kinds = phases.translate(KINDS)
        if METADATA in kinds:
            if ordinals is None:
                ordinals = np.arange(first, first + len(elements), dtype=np.uint32)
                block.ordinals = ordinals[:0]
            told = kinds.translate(_IS[METADATA])
            rest = ~np.frombuffer(told, np.bool_)
            block.metadata = _metadata(list(compress(events, told)), ordinals[~rest], exact)
            ordinals = ordinals[rest]
            phases = phases.translate(None, b"M")
            events, pids, tids, stamps, categories, names = _kept(
                rest.tobytes(), events, pids, tids, stamps, categories, names
            )
            if not events:
                return block

        if defer:
            defer = _deferred(block, phases, events, stamps)
        if not defer:
            times = exact_times("ts", events, stamps, texts)
            if times.usable is not None:
                if ordinals is None:
                    ordinals = np.arange(first, first + len(elements), dtype=np.uint32)
                    block.ordinals = ordinals[:0]
                keep = times.usable.tobytes()
                for phase in compress(phases, (~times.usable).tobytes()):
                    block.counts["no_usable_time"] += 1
                    block.counts[f"no_usable_time.{chr(phase)}"] += 1
                phases = bytes(compress(phases, keep))
                events, pids, tids, categories, names = _kept(keep, events, pids, tids, categories, names)
                ordinals = ordinals[times.usable]
                times = Times(times.ns[times.usable], None, _among(times.clamped, times.usable))
                if not events:
                    return block

        block.ordinals = ordinals
        block.phases = bytearray(phases)
        block.flags = bytearray(len(events))
        block.tracks = self._tracks.numbers(pids, tids, exact)
        block.categories = self._strings.numbers(categories, exact)
        block.names = self._strings.numbers(names, exact)
        kinds = phases.translate(KINDS)
        if not defer:
            _add_times(block, kinds, events, times, texts)
        if phases.translate(None, _WITHOUT_SCOPE):
            _scopes(block, events)

        for kind in (TIMED, FLOW, ASYNC, COUNTER):
            count = kinds.count(kind)
            if not count:
                continue
            mask = kinds.translate(_IS[kind])
            here = events if count == len(events) else list(compress(events, mask))
            if kind == TIMED:
                named = categories if here is events else list(compress(categories, mask))
                block.lifted = self._lifter.pieces(here, named, self._strings, exact)
                continue
            block.ids[kind] = ids_of(here, self._strings, exact)
            if kind == FLOW:
                block.binding = bytes(map(eq, map(dict.get, here, repeat("bp")), repeat("e")))
            elif kind == COUNTER:
                block.samples = self._samples(counters, here)
        return block

    def _samples(self, first: int, events: Events) -> dict[str, bytes]:
        """Return the samples of counter events: one per finite number among their arguments."""
        rows: list[int] = []
        series: list[int] = []
        samples: list[float] = []
        for row, event in enumerate(events, first):
            for key, value in arguments_of(event).items():
                if type(value) is not float and type(value) is not int:
                    continue
                try:
                    number = float(value)
                except OverflowError:
                    continue
                if number - number == 0.0:  # neither infinite nor NaN
                    rows.append(row)
                    series.append(self._strings[key])
                    samples.append(number)
        return {
            "row": packed_numbers(rows),
            "series": packed_numbers(series),
            "value": packed_floats(samples) or b"",
        }


def _kept(mask: bytes, *columns: Sequence[Any]) -> list[list[Any]]:
    """Return the entries of columns where `mask` is 1."""
    return [list(compress(column, mask)) for column in columns]


def _phases(values: Sequence[Any], block: BlockColumns, exact: bool) -> bytes:
    """Return the phase letter per event; phases that are no single letter are counted here."""
    try:
        letters = "".join(values).encode("latin-1")
    except (TypeError, UnicodeEncodeError):
        letters = b""
    if len(letters) == len(values) and "" not in values:
        block.letters = letters
        return letters if letters.isascii() else letters.translate(_ONLY_ASCII)
    named = ["(missing)" if v is None else v if type(v) is str else json_text(v, exact) for v in values]
    block.counts.update(f"phase.{name}" for name in named)
    single = [type(v) is str and len(v) == 1 and v.isascii() for v in values]
    return bytes(ord(v) if ok else OTHER for v, ok in zip(values, single))


def _scopes(block: BlockColumns, events: Events) -> None:
    """Set the scope flags of instants."""
    for place, (phase, event) in enumerate(zip(block.phases, events)):
        if phase in _INSTANTS:
            scope = event.get("s")
            if scope == "p" or scope == "g":
                block.flags[place] |= _SCOPES[scope]


def _deferred(block: BlockColumns, phases: bytes, events: Events, stamps: Sequence[Any]) -> bool:
    """Leave the times in µs where all are numbers; False where one is something else."""
    micros = packed_floats(stamps)
    if micros is None:
        return False
    complete = phases.translate(_IS_COMPLETE)
    slices = events if 0 not in complete else list(compress(events, complete))
    lasting = packed_floats(values_of(slices, "dur"))
    if lasting is None:
        return False
    block.micros, block.lasting = micros, lasting
    return True


def _add_times(block: BlockColumns, kinds: bytes, events: Events, times: Times, texts: BlockTexts) -> None:
    """Add the starts of all events and the durations of slices; moments end when they begin."""
    phases = np.frombuffer(block.phases, np.uint8)
    complete = np.flatnonzero(phases == X)
    slices = [events[place] for place in complete.tolist()]
    lasting, missing = durations(slices, texts) if slices else (Times(np.zeros(0, np.int64)), 0)
    block.counts["missing_dur"] += missing
    duration = np.zeros(len(events), np.int64)
    duration[complete] = lasting.ns
    if lasting.usable is not None:
        bad = complete[~lasting.usable]
        phases[bad] = OTHER
        block.counts["no_usable_time"] += len(bad)
        block.counts["no_usable_time.X"] += len(bad)
    negative = duration < 0
    if negative.any():
        block.counts["negative_dur"] += int(negative.sum())
        duration[negative] = 0
    for place in times.clamped:
        block.flags[place] |= EventFlag.CLAMPED
    block.clamped += len(times.clamped)
    timed = np.frombuffer(kinds, np.uint8) == TIMED
    begins = {place: exact for place, exact in times.clamped.items() if timed[place]}
    long = {int(complete[i]): max(0, value) for i, value in lasting.clamped.items()}
    wide = set(np.flatnonzero(duration > TIME_LIMIT - np.maximum(times.ns, 0)).tolist())
    for place in sorted(wide | set(begins) | set(long)):
        start = int(times.ns[place])
        begin = begins.get(place, start)
        end = begin + long.get(place, int(duration[place]))
        if place not in begins and end <= TIME_LIMIT:
            continue
        duration[place] = min(max(start, min(end, TIME_LIMIT)) - start, 2 * TIME_LIMIT - 1)
        block.flags[place] |= EventFlag.CLAMPED
        block.clamped += place not in begins
        if phases[place] in b"XB":
            block.first_starts.append(begin)
        if phases[place] in b"XE":
            block.last_ends.append(end)
    block.starts = times.ns.tobytes()
    block.durations = duration[phases == X].tobytes()


def _among(clamped: dict[int, int], kept: AnyArray) -> dict[int, int]:
    """Return the exact times of the events that are kept, by their new places."""
    moved = np.cumsum(kept) - 1
    return {int(moved[place]): exact for place, exact in clamped.items() if kept[place]}


def _metadata(events: Events, ordinals: U32, exact: bool) -> list[Metadata]:
    """Return M events as texts."""
    kept: list[Metadata] = []
    for event, ordinal in zip(events, ordinals.tolist()):
        name = event.get("name")
        kept.append(
            Metadata(
                ordinal,
                name if type(name) is str else "" if name is None else json_text(name, exact),
                json_text(event.get("pid"), exact),
                json_text(event.get("tid"), exact),
                json_text(arguments_of(event), exact),
            )
        )
    return kept
