"""Events to columns: a part is built block by block, by whole columns of a block at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from .columns import TABLES, U8, U32, EventFlag, Metadata, Part, Table
from .columns_alike import AlikeReader
from .columns_block import ASYNC, COUNTER, FLOW, KINDS, TIMED, BlockColumns, BlockReader, X
from .columns_lifted import Lifter
from .columns_settle import settled
from .cutter import BLOCK_SIZE
from .decode import decode_exact, decode_fast
from .interning import NeedsExact, StringTable, TrackTable
from .problem import Problem
from .repair import repair_array
from .text.reader import ReadText

_COMMON = ("phase", "flags", "ordinal", "track", "category", "name", "start")
"""Columns that all events with a time have, metadata aside."""


SETTLE_BYTES = 1 << 20
"""So much text waits until its times are made exact at once: a call of numpy costs what twenty events do."""


@dataclass
class _Read:
    """A block that has been read, and where it stands: offset, elements and counter events before it."""

    offset: int
    first: int
    counters: int
    data: bytes
    block: BlockColumns
    ordinals: U32 | None = None  # of its elements, where they do not follow one another


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
        self._reader = BlockReader(self._strings, self._tracks, self._lifter)
        self._alike = AlikeReader(self._strings, self._tracks, self._lifter)
        self._letters = bytearray()
        self._common = {column: bytearray() for column in _COMMON}
        self._durations = bytearray()  # of slices
        self._binding = bytearray()  # of flow events
        self._ids = {kind: (bytearray(), bytearray()) for kind in (FLOW, ASYNC, COUNTER)}
        self._samples = {"row": bytearray(), "series": bytearray(), "value": bytearray()}
        self._counters = 0
        self._waiting: list[_Read] = []
        self._settled = 0
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
        return self._strings.size + 200 * len(self._strings) + 600 * len(self._metadata)

    def add(
        self, offset: int, data: bytes, events: Sequence[object], *, repaired: bool = False, length: int = 0
    ) -> None:
        """Add one block: where it lies, its bytes, and its events as a decoder (or repair) yields them.

        `length` is given where the block covers more of the text than `data` holds.
        """
        self._read(_Read(offset, self.events, self._counters, data, BlockColumns(0)), events, repaired)
        if events:
            self._blocks.append((offset, length or len(data), self.events, len(events), repaired))
        self.events += len(events)
        self.bytes += length or len(data)
        if self.bytes - self._settled >= SETTLE_BYTES:
            self._settle()

    def add_text(self, offset: int, read: ReadText) -> None:
        """Add a stretch that was read from its text, from `offset` on."""
        first = self.events
        if read.events:  # first, as tables may have to forget what these added
            others = _Read(
                offset, first, self._counters, read.text, BlockColumns(0), read.others + np.uint32(first)
            )
            self._read(others, read.events, False)
        for block in self._alike.read(read, first):
            self._keep(_Read(offset, first, self._counters, b"", block))
        edges = [0, *np.searchsorted(read.begins, np.arange(BLOCK_SIZE, read.length, BLOCK_SIZE)).tolist()]
        for a, b in pairwise([*dict.fromkeys(edges), len(read.begins)]):
            if b > a:
                begin, end = int(read.begins[a]), int(read.ends[b - 1])
                self._blocks.append((offset + begin, end - begin, first + a, b - a, False))
        self.events += len(read.begins)
        self.bytes += read.length
        self._settle()

    def _read(self, read: _Read, events: Sequence[object], repaired: bool) -> None:
        """Read a block's events, and let them wait for their times."""
        strings, tracks = len(self._strings.strings), len(self._tracks.tracks)
        try:
            read.block = self._reader.read(read.first, read.counters, read.data, events, defer=not repaired)
        except NeedsExact:
            self._strings.forget(strings)
            self._tracks.forget(tracks)
            again = _decoded_again(read.data, events, repaired)
            read.block = self._reader.read(read.first, read.counters, read.data, again, exact=True)
        if COUNTER in read.block.ids:
            self._counters += len(read.block.ids[COUNTER].kinds)
        self._waiting.append(read)

    def _settle(self) -> None:
        """Make exact times of all blocks that wait for it, at once, and keep the blocks."""
        waiting = [read for read in self._waiting if read.block.micros is not None]
        times = settled(
            [read.data for read in waiting],
            [read.block.micros or b"" for read in waiting],
            [read.block.lasting for read in waiting],
        )
        for read, found in zip(waiting, times):
            if found is None:
                read.block = self._read_again(read)
            else:
                read.block.starts, read.block.durations = (values.tobytes() for values in found)
        for read in self._waiting:
            self._keep(read)
        self._waiting.clear()
        self._settled = self.bytes

    def _read_again(self, read: _Read) -> BlockColumns:
        """Return the columns of a block whose times must be looked at one by one."""
        try:
            return self._reader.read(read.first, read.counters, read.data, decode_fast(read.data))
        except NeedsExact:
            again = decode_exact(read.data)
            return self._reader.read(read.first, read.counters, read.data, again, exact=True)

    def _keep(self, read: _Read) -> None:
        """Add a block's columns to those of the part."""
        block = read.block
        ordinals = block.ordinals
        if ordinals is None:
            ordinals = np.arange(read.first, read.first + block.elements, dtype=np.uint32)
        metadata = block.metadata
        if read.ordinals is not None:
            ordinals = read.ordinals[ordinals - np.uint32(read.first)]
            metadata = [replace(m, ordinal=int(read.ordinals[m.ordinal - read.first])) for m in metadata]
        if block.clamped:
            if self._first_clamped is None:
                self._first_clamped = read.offset
            self._clamped += block.clamped
        self._letters += block.letters
        common = self._common
        common["phase"] += block.phases
        common["flags"] += block.flags
        common["ordinal"] += ordinals.tobytes()
        common["track"] += block.tracks
        common["category"] += block.categories
        common["name"] += block.names
        common["start"] += block.starts
        self._durations += block.durations
        self._binding += block.binding
        for key, values in block.samples.items():
            self._samples[key] += values
        for kind, ids in block.ids.items():
            self._ids[kind][0].extend(ids.kinds)
            self._ids[kind][1].extend(ids.values)
        self._lifter.keep(block.lifted)
        for one in metadata:
            owner = (one.pid, one.tid, one.name)
            self._metadata.pop(owner, None)
            self._metadata[owner] = one
        self._counts.update(block.counts)
        self._starts += block.first_starts
        self._ends += block.last_ends

    def report(self, problem: Problem) -> None:
        """Add a problem that reading met within this part; it counts in the ledger under its kind."""
        self._problems.append(problem)
        self._counts[problem.kind] += problem.count

    def finish(self) -> Part:
        """Return the part; the builder is not to be used again."""
        self._settle()
        problems = list(self._problems)
        if self._clamped:
            text = "times beyond 146 years, drawn at the edge"
            problems.append(Problem("clamped time", self._clamped, self._first_clamped, text))
        totals = np.bincount(np.frombuffer(self._letters, np.uint8))
        for code in np.flatnonzero(totals).tolist():
            self._counts[f"phase.{chr(code)}"] += int(totals[code])
        tables = self._tables()
        lifted = self._lifter.finish(tables["timed"]["ordinal"])
        # These refer to themselves, and workers run without a garbage collector.
        self._lifter.forget()
        self._tracks.clear()
        return Part(
            number=self.number,
            events=self.events,
            tables=tables,
            lifted=lifted,
            strings=self._strings.strings,
            tracks=self._tracks.tracks,
            metadata=list(self._metadata.values()),
            counts={key: number for key, number in sorted(self._counts.items()) if number},
            problems=problems,
            exact_start=min(self._starts, default=None),
            exact_end=max(self._ends, default=None),
        )

    def _tables(self) -> dict[str, Table]:
        """Return the events by kind, and the blocks."""
        common = {key: np.frombuffer(raw, TABLES["timed"][key]) for key, raw in self._common.items()}
        kinds = np.frombuffer(self._common["phase"].translate(KINDS), np.uint8)
        timed = _of_kind(common, kinds, TIMED)
        timed["duration"] = np.zeros(len(timed["start"]), np.int64)
        timed["duration"][timed["phase"] == X] = np.frombuffer(self._durations, np.int64)
        tables = {"timed": timed}
        for kind, name in ((FLOW, "flows"), (ASYNC, "asyncs")):
            tables[name] = {**_of_kind(common, kinds, kind), **self._id_columns(kind)}
        tables["flows"]["flags"] |= np.frombuffer(self._binding, np.uint8) * np.uint8(
            EventFlag.BIND_ENCLOSING
        )
        rows = np.frombuffer(self._samples["row"], np.uint32)
        counters = {**_of_kind(common, kinds, COUNTER), **self._id_columns(COUNTER)}
        tables["counters"] = {
            **{key: values[rows] for key, values in counters.items()},
            "series": np.frombuffer(self._samples["series"], np.uint32),
            "value": np.frombuffer(self._samples["value"], np.float64),
        }
        tables["blocks"] = {
            key: np.array([values[i] for values in self._blocks], dtype)
            for i, (key, dtype) in enumerate(TABLES["blocks"].items())
        }
        return {name: {key: tables[name][key] for key in keys} for name, keys in TABLES.items()}

    def _id_columns(self, kind: int) -> Table:
        kinds, values = self._ids[kind]
        return {"id_kind": np.frombuffer(kinds, np.uint8), "id_value": np.frombuffer(values, np.int64)}


def _of_kind(common: Table, kinds: U8, kind: int) -> Table:
    """Return the columns of all events of one kind."""
    places = np.flatnonzero(kinds == kind)
    return {key: values.take(places) for key, values in common.items()}


def _decoded_again(data: bytes, events: Sequence[object], repaired: bool) -> Sequence[object]:
    """Return the events of a block by the reference decoder; what it cannot better stays as it was."""
    if not repaired:
        return decode_exact(data)
    again = [item.value for item in repair_array(data, decode_exact, 0, at_end=True)[0].events]
    return again if len(again) == len(events) else events
