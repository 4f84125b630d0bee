"""Events to columns: a part is built block by block, by whole columns of a block at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from .columns import I64, TABLES, TIME_LIMIT, U8, U32, AnyArray, EventFlag, Metadata, Part, Problem, Table
from .columns_ids import id_columns
from .columns_lifted import Lifter, Piece, arguments_of
from .columns_time import BlockTexts, Times, columns_of_keys, durations, exact_times, values_of
from .decode import decode_exact
from .interning import NeedsExact, StringTable, TrackTable, json_text
from .repair import repair_array

OTHER = ord("?")
"""The phase of events whose `ph` is no single ASCII letter, and of X whose duration is unusable."""
X = ord("X")
WIDE_TIME = 1 << 60
"""Below this, a start plus a duration cannot pass TIME_LIMIT."""

_TIMED, _FLOW, _ASYNC, _COUNTER, _METADATA = range(5)
_KIND = np.zeros(256, np.uint8)
for _letters, _kind in (("stf", _FLOW), ("bneSTpF", _ASYNC), ("C", _COUNTER), ("M", _METADATA)):
    for _letter in _letters:
        _KIND[ord(_letter)] = _kind
_COMMON = ("ts", "pid", "tid", "cat", "name")
_INSTANT = np.zeros(256, np.bool_)
_INSTANT[[ord(letter) for letter in "iIR"]] = True
_SCOPES = {"p": EventFlag.SCOPE_PROCESS, "g": EventFlag.SCOPE_GLOBAL}

Events = Sequence[dict[str, Any]]
Mask = npt.NDArray[np.bool_]


@dataclass
class _Chunk:
    """What one block adds to a part; applied whole or not at all."""

    tables: list[tuple[str, Table]] = field(default_factory=list)
    lifted: list[Piece] = field(default_factory=list)
    metadata: list[Metadata] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    clamped: int = 0
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


class PartBuilder:
    """Accumulates the blocks of one slice of the file and finishes as a `Part`."""

    def __init__(self, number: int) -> None:
        """Begin an empty part."""
        self.number = number
        self.events = 0
        self.bytes = 0
        self._strings = StringTable()
        self._tracks = TrackTable()
        self._lifter = Lifter()
        self._chunks: dict[str, list[Table]] = {name: [] for name in TABLES}
        self._blocks: list[tuple[int, int, int, int, bool]] = []
        self._metadata: dict[tuple[str, str, str], Metadata] = {}
        self._counts: Counter[str] = Counter()
        self._problems: list[Problem] = []
        self._first_clamped: int | None = None
        self._clamped = 0
        self._starts: list[int] = []
        self._ends: list[int] = []

    @property
    def weight(self) -> int:
        """Roughly the bytes of memory that strings and metadata take, beside the columns."""
        return self._strings.size + 100 * len(self._strings) + 600 * len(self._metadata)

    def add(
        self, offset: int, data: bytes, events: Sequence[object], *, repaired: bool = False, length: int = 0
    ) -> None:
        """Add one block: where it lies, its bytes, and its events as a decoder (or repair) yields them.

        `length` is given where the block covers more of the text than `data` holds.
        """
        strings, tracks = len(self._strings.strings), len(self._tracks.tracks)
        try:
            chunk = self._chunk(data, events, exact=False)
        except NeedsExact:
            self._strings.forget(strings)
            self._tracks.forget(tracks)
            chunk = self._chunk(data, _decoded_again(data, events, repaired), exact=True)
        for name, table in chunk.tables:
            self._chunks[name].append(table)
        self._lifter.keep(chunk.lifted)
        for metadata in chunk.metadata:
            key = (metadata.pid, metadata.tid, metadata.name)
            self._metadata.pop(key, None)
            self._metadata[key] = metadata
        self._counts.update(chunk.counts)
        if chunk.clamped:
            if self._first_clamped is None:
                self._first_clamped = offset
            self._clamped += chunk.clamped
        self._starts += chunk.starts
        self._ends += chunk.ends
        if events:
            self._blocks.append((offset, length or len(data), self.events, len(events), repaired))
        self.events += len(events)
        self.bytes += length or len(data)

    def report(self, problem: Problem) -> None:
        """Add a problem that reading met within this part; it counts in the ledger under its kind."""
        self._problems.append(problem)
        self._counts[problem.kind] += problem.count

    def finish(self) -> Part:
        """Return the part; the builder is not to be used again."""
        problems = list(self._problems)
        if self._clamped:
            text = "times beyond 146 years, drawn at the edge"
            problems.append(Problem("clamped time", self._clamped, self._first_clamped, text))
        tables = {name: _joined(name, chunks) for name, chunks in self._chunks.items()}
        if self._blocks:
            for column, values in zip(tables["blocks"], zip(*self._blocks)):
                tables["blocks"][column] = np.array(values, TABLES["blocks"][column])
        return Part(
            number=self.number,
            events=self.events,
            tables=tables,
            lifted=self._lifter.finish(),
            strings=self._strings.strings,
            tracks=self._tracks.tracks,
            metadata=list(self._metadata.values()),
            counts={key: number for key, number in sorted(self._counts.items()) if number},
            problems=problems,
            exact_start=min(self._starts, default=None),
            exact_end=max(self._ends, default=None),
        )

    def _chunk(self, data: bytes, elements: Sequence[object], exact: bool) -> _Chunk:
        """Return the columns of one block; NeedsExact where the decoder's values are not proof enough."""
        chunk = _Chunk()
        ordinals = np.arange(self.events, self.events + len(elements), dtype=np.uint32)
        events: Events = elements  # type: ignore[assignment]
        try:
            letters = values_of(events, "ph")
        except (TypeError, AttributeError):  # elements that are no objects have no keys
            objects = [type(element) is dict for element in elements]
            events = [element for element in elements if type(element) is dict]
            ordinals = ordinals[objects]
            chunk.counts["not_object"] = len(elements) - len(events)
            letters = values_of(events, "ph")
        if not events:
            return chunk
        phases = _phases(letters, chunk.counts, exact)
        kinds = _KIND[phases]
        texts = BlockTexts(data, events, guess=exact)
        told = kinds == _METADATA
        if told.any():
            chunk.metadata = _metadata(_chosen(events, told), ordinals[told], exact)
            keep = ~told
            events, ordinals, phases, kinds = (
                _chosen(events, keep),
                ordinals[keep],
                phases[keep],
                kinds[keep],
            )
            if not events:
                return chunk

        stamps, pids, tids, categories, names = columns_of_keys(events, _COMMON)
        times = exact_times("ts", events, stamps, texts)
        if times.usable is not None:
            for phase in phases[~times.usable].tolist():
                chunk.counts["no_usable_time"] += 1
                chunk.counts[f"no_usable_time.{chr(phase)}"] += 1
            keep = times.usable
            moved = dict(zip(np.flatnonzero(keep).tolist(), range(len(events))))
            times = Times(times.ns[keep], None, {moved[i]: exact for i, exact in times.clamped.items()})
            events, ordinals, phases, kinds = (
                _chosen(events, keep),
                ordinals[keep],
                phases[keep],
                kinds[keep],
            )
            if not events:
                return chunk
            _, pids, tids, categories, names = columns_of_keys(events, _COMMON)

        common: Table = {
            "phase": phases,
            "flags": np.zeros(len(events), np.uint8),
            "ordinal": ordinals,
            "track": self._tracks.numbers(pids, tids, exact),
            "category": self._strings.numbers(categories, exact),
            "name": self._strings.numbers(names, exact),
            "start": times.ns,
        }
        for place in times.clamped:
            common["flags"][place] |= EventFlag.CLAMPED
        chunk.clamped += len(times.clamped)

        numbers = np.bincount(kinds, minlength=4).tolist()
        for kind in (_TIMED, _FLOW, _ASYNC, _COUNTER):
            if not numbers[kind]:
                continue
            if numbers[kind] == len(events):
                here, own, clamped = events, common, times.clamped
            else:
                chosen = kinds == kind
                here = _chosen(events, chosen)
                own = {name: values[chosen] for name, values in common.items()}
                clamped = {}
                if times.clamped:
                    moved = dict(zip(np.flatnonzero(chosen).tolist(), range(len(here))))
                    clamped = {moved[i]: at for i, at in times.clamped.items() if i in moved}
            if kind == _TIMED:
                self._timed(chunk, here, own, clamped, texts)
                chunk.lifted = self._lifter.pieces(
                    here, own["ordinal"], own["category"], self._strings, exact
                )
            elif kind == _COUNTER:
                self._counters(chunk, here, own, exact)
            else:
                self._identified(chunk, "flows" if kind == _FLOW else "asyncs", here, own, exact)
        return chunk

    def _timed(
        self, chunk: _Chunk, events: Events, table: Table, clamped: dict[int, int], texts: BlockTexts
    ) -> None:
        """Add slices, begins, ends and instants: durations of X, scopes of instants."""
        phases: U8 = table["phase"]
        duration: I64 = np.zeros(len(events), np.int64)
        complete = phases == X
        phases = table["phase"] = phases.copy()
        long: dict[int, int] = {}
        if complete.any():
            every = bool(complete.all())
            slices = events if every else _chosen(events, complete)
            places = np.flatnonzero(complete)
            times, missing = durations(slices, texts)
            chunk.counts["missing_dur"] += missing
            duration[places] = times.ns
            if times.usable is not None:
                bad = places[~times.usable]
                phases[bad] = OTHER
                duration[bad] = 0
                chunk.counts["no_usable_time"] += len(bad)
                chunk.counts["no_usable_time.X"] += len(bad)
            negative = duration < 0
            if negative.any():
                chunk.counts["negative_dur"] += int(negative.sum())
                duration[negative] = 0
            long = {int(places[i]): max(0, value) for i, value in times.clamped.items()}
        table["duration"] = duration
        wide = set(clamped) | set(long)
        wide.update(np.flatnonzero((abs(table["start"]) > WIDE_TIME) & (duration > 0)).tolist())
        wide.update(np.flatnonzero(duration > WIDE_TIME).tolist())
        for place in sorted(wide):
            self._clamp_slice(chunk, table, place, clamped, long)
        _scope(events, phases, table["flags"])
        chunk.tables.append(("timed", table))

    @staticmethod
    def _clamp_slice(
        chunk: _Chunk, table: Table, place: int, clamped: dict[int, int], long: dict[int, int]
    ) -> None:
        """Keep one slice's end within TIME_LIMIT, and its exact bounds where anything was cut."""
        begin = clamped.get(place, int(table["start"][place]))
        end = begin + long.get(place, int(table["duration"][place]))
        start = int(table["start"][place])
        drawn = max(start, min(end, TIME_LIMIT)) - start
        if place not in clamped and end <= TIME_LIMIT:
            return
        table["duration"][place] = min(drawn, 2 * TIME_LIMIT - 1)
        table["flags"][place] |= EventFlag.CLAMPED
        if place not in clamped:
            chunk.clamped += 1
        if table["phase"][place] in b"XB":
            chunk.starts.append(begin)
        if table["phase"][place] in b"XE":
            chunk.ends.append(end)

    def _identified(self, chunk: _Chunk, name: str, events: Events, table: Table, exact: bool) -> None:
        """Add flow or async events: their ids, and which flow ends bind to the enclosing slice."""
        if name == "flows":
            binding = [value == "e" for value in values_of(events, "bp")]
            table["flags"] |= np.array(binding, np.uint8) * np.uint8(EventFlag.BIND_ENCLOSING)
        table["id_kind"], table["id_value"] = id_columns(events, self._strings, exact)
        chunk.tables.append((name, table))

    def _counters(self, chunk: _Chunk, events: Events, table: Table, exact: bool) -> None:
        """Add counter events: a sample per finite number among their arguments."""
        kinds, values = id_columns(events, self._strings, exact)
        rows: list[int] = []
        series: list[int] = []
        samples: list[float] = []
        for place, event in enumerate(events):
            for key, value in arguments_of(event).items():
                if type(value) is not float and type(value) is not int:
                    continue
                try:
                    number = float(value)
                except OverflowError:
                    continue
                if number - number == 0.0:  # neither infinite nor NaN
                    rows.append(place)
                    series.append(self._strings[key])
                    samples.append(number)
        at = np.array(rows, np.intp)
        columns: Table = {
            **{column: table[column][at] for column in ("ordinal", "track", "name", "start")},
            "series": np.array(series, np.uint32),
            "id_kind": kinds[at],
            "id_value": values[at],
            "value": np.array(samples, np.float64),
        }
        chunk.tables.append(("counters", columns))


def _decoded_again(data: bytes, events: Sequence[object], repaired: bool) -> Sequence[object]:
    """Return the events of a block by the reference decoder; what it cannot better stays as it was."""
    if not repaired:
        return decode_exact(data)
    again = [item.value for item in repair_array(data, decode_exact, 0, at_end=True)[0].events]
    return again if len(again) == len(events) else events


def _chosen(events: Events, mask: Mask) -> Events:
    """Return the events where `mask` is true; bytes are what `compress` goes through fastest."""
    return list(compress(events, mask.tobytes()))


def _joined(name: str, chunks: Sequence[Table]) -> Table:
    """Return one table of all chunks, its columns in the order and of the types of `TABLES`."""
    columns: dict[str, AnyArray] = {}
    for column, dtype in TABLES[name].items():
        pieces = [chunk[column] for chunk in chunks]
        columns[column] = np.concatenate(pieces).astype(dtype, copy=False) if pieces else np.zeros(0, dtype)
    return columns


def _phases(values: list[Any], counts: Counter[str], exact: bool) -> U8:
    """Return the phase letter per event and count the phases."""
    try:
        letters = "".join(values).encode("latin-1")
    except (TypeError, UnicodeEncodeError):
        letters = b""
    if len(letters) != len(values) or "" in values:
        named = ["(missing)" if v is None else v if type(v) is str else json_text(v, exact) for v in values]
        counts.update(f"phase.{name}" for name in named)
        single = [type(v) is str and len(v) == 1 and v.isascii() for v in values]
        return np.array([ord(v) if ok else OTHER for v, ok in zip(values, single)], np.uint8)
    codes = np.frombuffer(letters, np.uint8)
    totals = np.bincount(codes)
    for code in np.flatnonzero(totals).tolist():
        counts[f"phase.{chr(code)}"] += int(totals[code])
    return codes if codes.max() < 128 else np.where(codes < 128, codes, np.uint8(OTHER)).astype(np.uint8)


def _scope(events: Events, phases: U8, flags: U8) -> None:
    """Set the scope flags of instants."""
    for place in np.flatnonzero(_INSTANT[phases]).tolist():
        scope = events[place].get("s")
        if scope == "p" or scope == "g":
            flags[place] |= _SCOPES[scope]


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
