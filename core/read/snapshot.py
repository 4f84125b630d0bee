"""A snapshot of PyTorch's memory, read as the JSON of a trace.

Each device becomes a process. An entry of its history becomes an instant on the lane of its stream: what
changes the memory in use a `[memory]` record, as the profiler writes them; all else goes by its action
(`free_completed`, `segment_alloc`, `oom` …). The stacks of the entries are slices around these, each as long
as the entries have the frame. Sizes are those that the program asked for. How much was in use before the
history is known from its end: from the segments and their blocks.

A block in use whose allocation the history does not have becomes a `[before]` record ahead of the first
entry. Segments and blocks, as they were when the snapshot was made, follow the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from ..base.errors import UnreadableError
from ..base.kineto import BEFORE_RECORD, BLOCK_RECORD, MEMORY_RECORD, SEGMENT_RECORD
from .inflate import ConvertedReader, RawReader
from .perfetto_values import encoded
from .pickle_values import PickleError
from .problem import Problem
from .snapshot_parts import (
    ALLOCATED,
    AWAITING,
    Block,
    DeviceHistory,
    Segment,
    SnapshotParts,
    Stacks,
)

CUDA = 1
"""c10::DeviceType; a snapshot does not say of which maker its devices are."""
IN_USE = {"alloc": 1, "free_requested": -1, "free": -1}
ACTIVE = {"alloc": 1, "free_completed": -1, "free": -1}
RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
"""How actions change what is in use, what cannot be given out again, and what is taken from the device."""
ANNOTATIONS = "annotations"
CONTRADICTION = "history that does not lead to the segments: its levels are the least that are possible"
STACK_CATEGORY = b"allocation_stack"
"""Of the frames of stacks: they are no calls, as nobody knows how long these took."""
IN_USE_LANE = "in use MiB"
BEFORE_LANE, SEGMENT_LANE = "allocated before", "segments"
MAX_WRITTEN = 64
"""Stacks and words of entries come to at most so many times the bytes read."""
MIB = 1 << 20
AT_ONCE = 1024
"""Events that are handed on together."""


def snapshot_reader(reader: RawReader, path: str) -> RawReader:
    """Return a reader of the JSON text of a snapshot; all of the file is read before the first byte comes.
    That raises UnreadableError, which names the `path`, for a pickle that is none.
    """
    parts = SnapshotParts()

    def problems() -> list[Problem]:
        if not parts.passed:
            return []
        words = (f"{count:,} × {what}" if count > 1 else what for what, count in parts.passed.most_common())
        return [Problem("entries passed over", parts.passed.total(), None, "; ".join(words))]

    return ConvertedReader(reader, _text(reader, parts, path), problems)


def _text(reader: RawReader, parts: SnapshotParts, path: str) -> Iterator[bytes]:
    try:
        parts.read(reader)
        before = b'{"traceEvents":[\n'
        events = _events(parts, WrittenBudget(MAX_WRITTEN * reader.offset))
        while several := list(islice(events, AT_ONCE)):
            yield before + b",\n".join(several)
            before = b",\n"
    except PickleError as error:
        raise UnreadableError(f"{path}: {error}") from None
    except OSError as error:
        raise UnreadableError(
            f"{path}: its entries cannot be put aside: {error.strerror or error}"
        ) from error
    finally:
        parts.file.close()
    if not parts.is_cut_off:  # else the text is cut off, too, and read as such
        yield (b"\n" if before == b",\n" else before) + b"]}\n"


def _events(parts: SnapshotParts, budget: WrittenBudget) -> Iterator[bytes]:
    """Yield the events of all devices."""
    segments: dict[int, list[Segment]] = {}
    for segment in parts.segments:
        segments.setdefault(segment.device, []).append(segment)
    histories = {history.device: history for history in parts.histories if len(history.rows)}
    last = max((history.last_ns for history in histories.values()), default=0)
    last = max(last, 1 + sum(len(one.blocks) for one in parts.segments))  # room for what came before
    for device in sorted({*segments, *histories}):
        history = histories.get(device, DeviceHistory(device, parts.file))
        yield from DeviceEvents(parts, budget, history, segments.get(device, [])).events(last + 1)
    yield from _annotated(parts, last)
    if parts.stacks.shortened:
        parts.passed["stack without its inner frames, as too many differ"] += parts.stacks.shortened
    if budget.left < 0:
        parts.passed[f"stacks and words that come to more than {MAX_WRITTEN} times the file"] += 1


def _annotated(parts: SnapshotParts, last: int) -> Iterator[bytes]:
    """Yield the ranges that the program marked; what has no end lasts until the last entry."""
    begun: dict[tuple[int, str], list[int]] = {}
    for device, time_us, name, is_begin in parts.annotations:
        key = device, name
        if is_begin:
            begun.setdefault(key, []).append(time_us * 1000)
        elif begun.get(key):
            yield _range(key, begun[key].pop(), time_us * 1000)
        else:
            parts.passed["end of an annotation that began before"] += 1
    for key, starts in begun.items():
        for start in starts:
            yield _range(key, start, max(last, start))


def _range(key: tuple[int, str], start: int, end: int) -> bytes:
    lane = _lane(key[0], ANNOTATIONS)
    return _slice(encoded(key[1]), b"user_annotation", lane, start, end)


def _lane(device: int, name: str) -> bytes:
    return b'"pid":%d,"tid":%b' % (device, encoded(name))


def _stream_name(stream: int) -> str:
    return f"stream {stream}"


def _us(ns: int) -> bytes:
    return b"%d.%03d" % divmod(ns, 1000)


def _slice(name: bytes, category: bytes, lane: bytes, start: int, end: int) -> bytes:
    form = b'{"ph":"X","cat":"%b","name":%b,%b,"ts":%d.%03d,"dur":%d.%03d}'
    return form % (category, name, lane, *divmod(start, 1000), *divmod(end - start, 1000))


@dataclass
class WrittenBudget:
    """How many bytes may still be written of what entries refer to, each perhaps to the same."""

    left: int

    def spend(self, size: int) -> bool:
        """Tell whether so many bytes may be written."""
        self.left -= size
        return self.left >= 0


@dataclass
class StackSlices:
    """The stacks of a lane as slices: each frame lasts as long as one stack after the other has it."""

    stacks: Stacks
    lane: bytes
    budget: WrittenBudget
    open: list[tuple[int, int]] = field(default_factory=list)  # node, start

    def at(self, time: int, node: int) -> Iterator[bytes]:
        """Yield what ends where a stack stands at a time."""
        if self.open and self.open[-1][0] == node:
            return
        path = self.stacks.path(node)
        same = 0
        while same < min(len(path), len(self.open)) and path[same] == self.open[same][0]:
            same += 1
        for ended, start in self.open[same:]:  # the outermost first: that nests what is equally long
            name = self.stacks.names[self.stacks.frames[ended]]
            event = _slice(name, STACK_CATEGORY, self.lane, start, time)
            if self.budget.spend(len(event)):
                yield event
        del self.open[same:]
        self.open += [(one, time) for one in path[same:]]


class Levels:
    """Writes the samples of a level of bytes, in MiB and never below 0."""

    def __init__(self, title: str, device: int) -> None:
        self._head = b'{"ph":"C","name":%b,"pid":%d,"ts":' % (encoded(title), device)

    def sample(self, time_us: bytes, level: int) -> bytes:
        return b'%b%b,"args":{"":%a}}' % (self._head, time_us, max(0, level) / MIB)


class DeviceEvents:
    """The events of one device's history and segments."""

    def __init__(
        self,
        parts: SnapshotParts,
        budget: WrittenBudget,
        history: DeviceHistory,
        segments: list[Segment],
    ) -> None:
        self._parts = parts
        self._budget = budget
        self._history = history
        self._segments = segments
        self._device = history.device
        self._flames: dict[int, StackSlices] = {}
        self._in_use_lane = Levels(IN_USE_LANE, self._device)
        self._owner = b'"Device Id":%d,"Device Type":%d' % (self._device, CUDA)
        in_use = sum(_in_use(block) for one in segments for block in one.blocks)
        awaiting = sum(b.requested for one in segments for b in one.blocks if b.state == AWAITING)
        self._in_use = self._level(IN_USE, in_use)
        self._active = self._level(ACTIVE, in_use + awaiting)
        self._reserved = self._level(RESERVED, sum(one.size for one in segments))

    def _level(self, changes: dict[str, int], last: int) -> int:
        """Return the level before the first entry, given that after the last: none is ever negative."""
        factors = [changes.get(action, 0) for action in self._parts.actions]
        level = least = 0
        for block in self._history.rows.blocks():
            for action, size in zip(block.action, block.size):
                level += factors[action] * size
                least = min(least, level)
        before = last - level
        if self._parts.is_cut_off or before + least < 0:
            if not self._parts.is_cut_off:
                self._parts.passed[
                    "history that does not lead to the segments: levels are the least possible"
                ] += 1
            return -least
        return before

    def events(self, end: int) -> Iterator[bytes]:
        """Yield them; `end`: the ns at which the snapshot was made."""
        name = b"memory of device %d" % self._device
        yield b'{"ph":"M","name":"process_name","pid":%d,"args":{"name":"%b"}}' % (self._device, name)
        for title in (*map(_stream_name, sorted(self._history.streams)), BEFORE_LANE, SEGMENT_LANE):
            form = b'{"ph":"M","name":"thread_name",%b,"args":{"name":%b}}'
            yield form % (_lane(self._device, title), encoded(title))
        has_history = bool(len(self._history.rows))
        yield from self._before(self._history.first_ns if has_history else end)
        yield from self._entries()
        for flame in self._flames.values():
            yield from flame.at(end, 0)
        totals = self._totals(self._in_use, self._reserved)
        lane = self._stream(self._history.last_stream)
        record = encoded(MEMORY_RECORD)
        yield self._instant(record, b"cpu_instant_event", lane.lane, _us(end), b'"Bytes":0,%b' % totals)
        yield self._in_use_lane.sample(_us(end), self._in_use)
        yield from self._map(end)

    def _stream(self, stream: int) -> StackSlices:
        if stream not in self._flames:
            self._flames[stream] = self._flame(_stream_name(stream))
        return self._flames[stream]

    def _flame(self, title: str) -> StackSlices:
        return StackSlices(self._parts.stacks, _lane(self._device, title), self._budget)

    def _instant(self, name: bytes, category: bytes, lane: bytes, time_us: bytes, args: bytes) -> bytes:
        of = name, category, lane, time_us, args, self._owner
        return b'{"ph":"i","s":"t","name":%b,"cat":"%b",%b,"ts":%b,"args":{%b,%b}}' % of

    def _totals(self, in_use: int, reserved: int) -> bytes:
        return b'"Total Allocated":%d,"Total Reserved":%d' % (in_use, reserved)

    def _entries(self) -> Iterator[bytes]:
        """Yield an instant for each entry, the slices of their stacks, and what waits or is free as counters;
        the levels go along.
        """
        actions = self._parts.actions
        extras = [
            b"".join(b"%b:%b," % (encoded(k), encoded(v)) for k, v in one) for one in self._parts.extras
        ]
        factors = [tuple(c.get(action, 0) for c in (IN_USE, ACTIVE, RESERVED)) for action in actions]
        names = [encoded(MEMORY_RECORD if action in IN_USE else action) for action in actions]
        awaiting, free = (
            Levels("awaiting free MiB", self._device),
            Levels("free in segments MiB", self._device),
        )
        latest: tuple[int, int] | None = None
        entries = (entry for block in self._history.rows.blocks() for entry in zip(*block))
        for code, node, extra, addr, size, stream, time in entries:
            of_use, of_active, of_reserved = factors[code]
            self._in_use += of_use * size
            self._active += of_active * size
            self._reserved += of_reserved * size
            flame = self._stream(stream)
            yield from flame.at(time, node)
            words = extras[extra] if self._budget.spend(len(extras[extra])) else b""
            args = b'%b"Addr":%d,"Bytes":%d,%b' % (
                words,
                addr,
                size * of_use if of_use else size,
                self._totals(self._in_use, self._reserved),
            )
            time_us = _us(time)
            yield self._instant(names[code], b"cpu_instant_event", flame.lane, time_us, args)
            if of_use:
                yield self._in_use_lane.sample(time_us, self._in_use)
            levels = self._active - self._in_use, self._reserved - self._active
            if levels != latest:
                yield awaiting.sample(time_us, levels[0])
                yield free.sample(time_us, levels[1])
            latest = levels

    def _before(self, first: int) -> Iterator[bytes]:
        """Yield records of the blocks in use whose allocation the history does not have, ahead of its first
        entry, 1 ns apart.
        """
        blocks = [
            (one.stream, block) for one in self._segments for block in one.blocks if block.state == ALLOCATED
        ]
        addresses = {block.address for _, block in blocks}
        live: set[int] = set()
        factors = [IN_USE.get(action, 0) for action in self._parts.actions]
        for part in self._history.rows.blocks():
            for action, addr in zip(part.action, part.addr):
                if factors[action] and addr in addresses:
                    (live.add if factors[action] > 0 else live.discard)(addr)
        blocks = [(stream, block) for stream, block in blocks if block.address not in live]
        flame, record = self._flame(BEFORE_LANE), encoded(BEFORE_RECORD)
        for number, (stream, block) in enumerate(blocks):
            time = first - len(blocks) + number
            yield from flame.at(time, block.stack)
            args = b'"Addr":%d,"Bytes":%d,"stream":%d' % (block.address, block.requested, stream)
            yield self._instant(record, b"cpu_instant_event", flame.lane, _us(time), args)
        yield from flame.at(first, 0)

    def _map(self, end: int) -> Iterator[bytes]:
        """Yield the segments and their blocks, in order of addresses."""
        lane, at = _lane(self._device, SEGMENT_LANE), _us(end)
        for one in sorted(self._segments, key=lambda segment: segment.address):
            stream = b'"stream":%d' % one.stream
            in_use = sum(map(_in_use, one.blocks))
            args = b'"Addr":%d,"Bytes":%d,"Total Allocated":%d,%b' % (one.address, one.size, in_use, stream)
            yield self._instant(encoded(f"{SEGMENT_RECORD} {one.kind}".strip()), b"memory", lane, at, args)
            for block in one.blocks:
                of = block.address, block.size, _in_use(block), stream
                args = b'"Addr":%d,"Bytes":%d,"Total Allocated":%d,%b' % of
                yield self._instant(encoded(f"{BLOCK_RECORD} {block.state}"), b"memory", lane, at, args)


def _fields(pairs: tuple[tuple[str, str], ...]) -> bytes:
    return b"".join(b"%b:%b," % (encoded(key), encoded(value)) for key, value in pairs)


def _in_use(block: Block) -> int:
    return block.requested if block.state == ALLOCATED else 0
