"""What a snapshot of PyTorch's caching allocator holds: histories of devices, segments, blocks, stacks.

`torch.cuda.memory._dump_snapshot` writes it; its fields are explained in
https://docs.pytorch.org/docs/stable/torch_cuda_memory.html#snapshot-api-reference.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .entry_rows import AT_HAND, EntryFile, EntryRows
from .inflate import RawReader
from .perfetto_values import encoded
from .pickle_values import FORGOTTEN, CutOffError, Elements, PickleError, PickleReader

PARTS = "segments", "device_traces"
ALLOCATED, AWAITING, FREE = "allocated", "awaiting free", "free"
STATES = {"active_allocated": ALLOCATED, "active_awaiting_free": AWAITING, "active_pending_free": AWAITING}
"""States of blocks; what has another one is free."""
MAX_NUMBER = (1 << 63) - 1
MAX_LENGTH, MAX_FRAMES = 4096, 512
"""Characters of a text, frames of a stack; of a deeper stack the inner ones count."""
FRAME_BITS = 32
"""More than any frame's number has."""
MAX_NODES = 2 << 20
"""Nodes of the tree of stacks, 170 bytes each. A program's stacks come again, and have some 100,000."""


class Lists(Elements):
    """A list of lists or dictionaries that are handed on: the whole of `kind`."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind


class DeviceHistory(Elements):
    """The entries of one device."""

    def __init__(self, device: int, file: EntryFile, at_hand: int = AT_HAND) -> None:
        super().__init__()
        self.device = device
        self.rows = EntryRows(file, at_hand)
        self.streams: set[int] = set()
        self.first_ns, self.last_ns, self.last_stream = 0, -1, 0

    def time_ns(self, time_us: int) -> int:
        """Return when the next entry is: those of one µs are 1 ns apart. Where a time is missing, as up to
        2.0, entries are 1 µs apart.
        """
        is_known = 0 <= time_us < MAX_NUMBER // 2000
        self.last_ns = max(time_us * 1000, self.last_ns + 1) if is_known else self.last_ns + 1000
        if not len(self.rows):
            self.first_ns = self.last_ns
        return self.last_ns


class Block(NamedTuple):
    """A block of a segment; `size` as the allocator rounded it, `requested` bytes of it are used."""

    address: int
    size: int
    requested: int
    state: str
    stack: int


class Blocks(Elements):
    """The blocks of one segment."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[tuple[int | None, int, int, str, int]] = []


class Segment(NamedTuple):
    """Memory that was taken from the device at once."""

    device: int
    address: int
    size: int
    stream: int
    kind: str
    blocks: list[Block]


class Annotation(NamedTuple):
    """The begin or end of a range that the program marked (`record_function`)."""

    device: int
    time_us: int
    name: str
    is_begin: bool


class StackPlace(NamedTuple):
    """What stands for a list of frames that was read."""

    node: int


class FramePlace(NamedTuple):
    """What stands for a frame that was read."""

    frame: int


@dataclass(eq=False)
class Stacks:
    """Stacks as a tree: each node is a frame below that of its parent; node 0 is no frame at all. Once there
    are `max_nodes`, a stack that is new has only the outer frames that it shares with one that is not.
    """

    max_nodes: int = MAX_NODES
    shortened: int = 0  # stacks whose inner frames are left out
    names: list[bytes] = field(default_factory=list)  # JSON, by frame
    parents: array[int] = field(default_factory=lambda: array("i", [0]))
    frames: array[int] = field(default_factory=lambda: array("i", [-1]))
    _by_frame: dict[tuple[str, str, int], int] = field(default_factory=dict)
    _by_place: dict[int, int] = field(default_factory=dict)  # by node above, shifted, and frame

    def frame(self, value: Any) -> int:
        if isinstance(value, FramePlace):
            return value.frame
        if not isinstance(value, dict):
            raise PickleError("has a frame that is none")
        line = value.get("line")
        key = str(value.get("filename", "")), str(value.get("name", "")), line if type(line) is int else 0
        number = self._by_frame.get(key)
        if number is None:
            number = self._by_frame[key] = len(self.names)
            file, name, at = key
            text = f"{file}({at}): {name}" if file and file not in ("??", "none") else name
            self.names.append(encoded(text[:MAX_LENGTH]))
        return number

    def node(self, frames: Any) -> int:
        """Return the node of a list of frames, the innermost first."""
        if isinstance(frames, StackPlace):
            return frames.node
        node = 0
        for value in reversed((frames or ())[:MAX_FRAMES]):
            frame = self.frame(value)
            key = node << FRAME_BITS | frame
            below = self._by_place.get(key)
            if below is None:
                if len(self.parents) > self.max_nodes:  # node 0 is none
                    self.shortened += 1
                    break
                below = self._by_place[key] = len(self.parents)
                self.parents.append(node)
                self.frames.append(frame)
            node = below
        return node

    def path(self, node: int) -> list[int]:
        """Return the nodes from the outermost frame to this one."""
        nodes = []
        while node:
            nodes.append(node)
            node = self.parents[node]
        return nodes[::-1]


class SnapshotParts:
    """Takes the parts of a snapshot from its pickle."""

    def __init__(self, at_hand: int = AT_HAND, max_nodes: int = MAX_NODES) -> None:
        """`at_hand`: how many entries of a history are in memory; `max_nodes`: how large the tree of stacks
        may grow.
        """
        self._at_hand = at_hand
        self.stacks = Stacks(max_nodes)
        self.file = EntryFile()
        self.histories: list[DeviceHistory] = []
        self.segments: list[Segment] = []
        self.annotations: list[Annotation] = []
        self.actions: list[str] = []
        self.extras: list[tuple[tuple[str, str], ...]] = [()]
        self.is_cut_off = False
        self.passed: Counter[str] = Counter()
        self._actions: dict[str, int] = {}
        self._extras: dict[tuple[tuple[str, str], ...], int] = {(): 0}
        self._known: dict[int, int] = {}  # nodes of the lists of frames at hand, by their id

    def read(self, reader: RawReader) -> None:
        """Read a pickle to its end, or as far as it goes. Raises PickleError."""
        try:
            value = PickleReader(reader.read, self).value()
            parts = [value.get(key) for key in PARTS] if isinstance(value, dict) else [None]
            if not all(isinstance(part, Lists) for part in parts):
                raise PickleError("is a Python pickle, but no snapshot of PyTorch's memory")
        except CutOffError:
            if not self.histories and not self.segments:
                raise
            self.is_cut_off = True

    # -- as the receiver of a PickleReader -------------------------------------------------------------------

    def begins(self, owner: list[Any] | None, key: object) -> Elements | None:
        if isinstance(owner, Lists) and owner.kind == "device_traces":
            history = DeviceHistory(len(self.histories), self.file, self._at_hand)
            self.histories.append(history)
            return history
        if key in (*PARTS, "external_annotations"):
            return Lists(str(key))
        return Blocks() if key == "blocks" else None

    def take(self, elements: Elements, values: list[Any]) -> None:
        self._known.clear()
        for value in values:
            if isinstance(elements, Lists) and elements.kind == "device_traces":
                continue  # each list of entries took its own
            if type(value) is not dict:
                raise PickleError("is no snapshot of PyTorch's memory: its lists do not hold dictionaries")
            try:
                self._take(elements, value)
            except OverflowError:
                self.passed["entry with a number that cannot be"] += 1

    def reference(self, value: Any) -> Any:
        if type(value) is dict:
            return FramePlace(self.stacks.frame(value)) if _is_frame(value) else FORGOTTEN
        node = self._known.get(id(value))
        if node is None and all(type(one) is FramePlace or _is_frame(one) for one in value):
            node = self.stacks.node(value)
        return FORGOTTEN if node is None else StackPlace(node)

    def _take(self, elements: Elements, value: dict[str, Any]) -> None:
        if isinstance(elements, DeviceHistory):
            self._take_entry(elements, value)
        elif isinstance(elements, Blocks):
            self._take_block(elements, value)
        elif isinstance(elements, Lists) and elements.kind == "segments":
            self._take_segment(value)
        else:
            time = _number(value, "time_us")
            name, stage = str(value.get("name", "")), str(value.get("stage", "")).upper()
            if stage in ("START", "END"):
                self.annotations.append(Annotation(_number(value, "device"), time, name, stage == "START"))
            else:
                self.passed["annotation that neither begins nor ends"] += 1

    def _node(self, value: dict[str, Any]) -> int:
        frames = value.get("frames")
        if frames is None or isinstance(frames, StackPlace):
            return 0 if frames is None else frames.node
        if type(frames) is not list:
            raise PickleError("is no snapshot of PyTorch's memory: its frames are no list")
        node = self._known.get(id(frames))
        if node is None:
            node = self._known[id(frames)] = self.stacks.node(frames)
        return node

    def _take_entry(self, history: DeviceHistory, value: dict[str, Any]) -> None:
        action = str(value.get("action", ""))
        addr, size, stream, time_us = (
            _number(value, "device_free" if action == "oom" else "addr"),
            _number(value, "size"),
            _number(value, "stream", least=-MAX_NUMBER),
            _number(value, "time_us", -1, -1),
        )
        words = ("category", "compile_context", "user_metadata")
        extra = tuple((word, str(value[word])[:MAX_LENGTH]) for word in words if value.get(word))
        code, more = (
            _code(action[:MAX_LENGTH], self._actions, self.actions),
            _code(extra, self._extras, self.extras),
        )
        node = self._node(value)
        history.rows.add(code, node, more, addr, size, stream, history.time_ns(time_us))
        history.streams.add(stream)
        history.last_stream = stream

    def _take_block(self, blocks: Blocks, value: dict[str, Any]) -> None:
        size = _number(value, "size")
        state = STATES.get(str(value.get("state")), FREE)
        requested, node = _number(value, "requested_size", size), self._node(value)
        history = value.get("history")  # of releases up to 1.13
        if isinstance(history, list) and history and type(history[0]) is dict:
            requested, node = _number(history[0], "real_size", size), self._node(history[0])
        address = _number(value, "address") if type(value.get("address")) is int else None
        blocks.blocks.append((address, size, requested, state, node))

    def _take_segment(self, value: dict[str, Any]) -> None:
        own = value.get("blocks")
        at = address = _number(value, "address")
        blocks = []
        for own_address, size, requested, state, node in own.blocks if isinstance(own, Blocks) else ():
            at = at if own_address is None else own_address
            blocks.append(Block(at, size, requested, state, node))
            at += size
        of = (
            _number(value, "device"),
            address,
            _number(value, "total_size"),
            _number(value, "stream", least=-MAX_NUMBER),
        )
        self.segments.append(Segment(*of, str(value.get("segment_type", "")), blocks))


def _number(value: dict[str, Any], key: str, otherwise: int = 0, least: int = 0) -> int:
    """Return a number of a dictionary. Raises OverflowError where it is less than `least` or has more than
    63 bits.
    """
    number = value.get(key)
    if type(number) is not int:
        return otherwise
    if not least <= number <= MAX_NUMBER:
        raise OverflowError
    return number


def _code(value: Any, codes: dict[Any, int], values: list[Any]) -> int:
    code = codes.get(value)
    if code is None:
        code = codes[value] = len(values)
        values.append(value)
    return code


def _is_frame(value: object) -> bool:
    return isinstance(value, dict) and "filename" in value and "name" in value
