"""Snapshots of PyTorch's memory, made by an allocator in the form that `torch.cuda.memory._snapshot` has."""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass, field
from typing import Any

Frames = list[dict[str, Any]]
ROUND = 512
SMALL, LARGE = 2 << 20, 20 << 20


def frames(*names: str) -> Frames:
    """Return a stack, the innermost frame first; a name is "file.py:12:function"."""
    parts = (name.split(":") for name in names)
    return [{"filename": file, "line": int(line), "name": name} for file, line, name in parts]


@dataclass
class CachingAllocator:
    """An allocator of one device: blocks of segments, the first that fits; what it does is its history."""

    device: int = 0
    time_us: int = 1_700_000_000_000_000
    history: list[dict[str, Any]] = field(default_factory=list)
    segments: list[dict[str, Any]] = field(default_factory=list)
    next_address: int = 0x7F00_0000_0000

    def record(self, action: str, size: int, stream: int, stack: Frames, **more: Any) -> None:
        entry = {"action": action, **more, "size": size, "stream": stream, "time_us": self.time_us}
        self.history.append({**entry, "frames": stack, "pool_id": (0, 0)})
        self.time_us += 3

    def alloc(self, size: int, stack: Frames, stream: int = 0) -> int:
        """Return the address of `size` bytes, rounded up within a block."""
        rounded = -(-size // ROUND) * ROUND
        kind = "small" if rounded <= 1 << 20 else "large"
        for segment in self.segments:
            if (segment["stream"], segment["segment_type"]) != (stream, kind):
                continue
            for number, block in enumerate(segment["blocks"]):
                if block["state"] == "inactive" and block["size"] >= rounded:
                    return self._take(segment, number, rounded, size, stack)
        total = SMALL if kind == "small" else max(LARGE, -(-rounded // SMALL) * SMALL)
        free = {
            "address": self.next_address,
            "size": total,
            "requested_size": 0,
            "state": "inactive",
            "frames": [],
        }
        segment = {
            "device": self.device, "address": self.next_address, "total_size": total, "stream": stream,
            "segment_type": kind, "segment_pool_id": (0, 0), "is_expandable": False, "frames": stack,
            "blocks": [free],
        }  # fmt: skip
        self.segments.append(segment)
        self.record("segment_alloc", total, stream, stack, addr=self.next_address)
        self.next_address += total
        return self._take(segment, 0, rounded, size, stack)

    def _take(self, segment: dict[str, Any], number: int, rounded: int, size: int, stack: Frames) -> int:
        blocks, free = segment["blocks"], segment["blocks"][number]
        address = free["address"]
        block = {
            "address": address, "size": rounded, "requested_size": size, "state": "active_allocated",
            "frames": stack,
        }  # fmt: skip
        rest = {**free, "address": address + rounded, "size": free["size"] - rounded}
        blocks[number : number + 1] = [block, rest] if rest["size"] else [block]
        self.record("alloc", size, segment["stream"], stack, addr=address)
        return int(address)

    def _block(self, address: int) -> tuple[dict[str, Any], int]:
        for segment in self.segments:
            for number, block in enumerate(segment["blocks"]):
                if block["address"] == address:
                    return segment, number
        raise KeyError(address)

    def request_free(self, address: int, stack: Frames) -> None:
        """Free what another stream may still use."""
        segment, number = self._block(address)
        block = segment["blocks"][number]
        block["state"] = "active_awaiting_free"
        self.record("free_requested", block["requested_size"], segment["stream"], stack, addr=address)

    def complete_free(self, address: int, stack: Frames) -> None:
        segment, number = self._block(address)
        blocks, block = segment["blocks"], segment["blocks"][number]
        self.record("free_completed", block["requested_size"], segment["stream"], stack, addr=address)
        blocks[number] = {**block, "state": "inactive", "requested_size": 0, "frames": []}
        at = len(blocks) - 1
        while at > 0:  # free neighbours become one
            if blocks[at]["state"] == blocks[at - 1]["state"] == "inactive":
                blocks[at - 1]["size"] += blocks.pop(at)["size"]
            at -= 1

    def free(self, address: int, stack: Frames) -> None:
        self.request_free(address, stack)
        self.complete_free(address, stack)

    def empty_cache(self, stack: Frames) -> None:
        """Return segments to the device that are free as a whole."""
        for segment in [one for one in self.segments if [b["state"] for b in one["blocks"]] == ["inactive"]]:
            self.segments.remove(segment)
            of = segment["total_size"], segment["stream"], stack
            self.record("segment_free", *of, addr=segment["address"])


def snapshot_of(*allocators: CachingAllocator, newest: int | None = None) -> dict[str, Any]:
    """Return the snapshot of some devices; of each history only the `newest` entries."""
    segments = []
    for segment in (segment for one in allocators for segment in one.segments):
        sizes = [(block["state"], block["size"]) for block in segment["blocks"]]
        allocated = sum(size for state, size in sizes if state == "active_allocated")
        active = sum(size for state, size in sizes if state != "inactive")
        segments.append({**segment, "allocated_size": allocated, "active_size": active})
    histories = [one.history[-newest:] if newest else one.history for one in allocators]
    return {"segments": segments, "device_traces": histories, "allocator_settings": {"max_split_size": -1}}


def pickled(value: Any, protocol: int = 4) -> bytes:
    return pickle.dumps(value, protocol)


def pickled_by_cpp(value: Any) -> bytes:
    """Return a pickle as PyTorch's C++ writes it: protocol 2, each text and container with a number."""
    parts = [b"\x80\x02"]
    numbers: dict[Any, int] = {}

    def number(key: Any) -> None:
        numbers[key] = len(numbers)
        index = numbers[key]
        parts.append(b"q%c" % index if index < 256 else b"r" + struct.pack("<I", index))

    def again(key: Any) -> bool:
        if key in numbers:
            index = numbers[key]
            parts.append(b"h%c" % index if index < 256 else b"j" + struct.pack("<I", index))
        return key in numbers

    def write(one: Any) -> None:
        if isinstance(one, bool) or one is None:
            parts.append({True: b"\x88", False: b"\x89", None: b"N"}[one])
        elif isinstance(one, int):
            if 0 <= one < 256:
                parts.append(b"K%c" % one)
            elif -(1 << 31) <= one < 1 << 31:
                parts.append(b"J" + struct.pack("<i", one))
            else:
                parts.append(b"\x8a\x08" + struct.pack("<q", one))
        elif isinstance(one, str):
            if not again(one):
                text = one.encode()
                parts.append(b"X" + struct.pack("<I", len(text)) + text)
                number(one)
        elif isinstance(one, tuple):
            for part in one:
                write(part)
            parts.append({1: b"\x85", 2: b"\x86", 3: b"\x87"}[len(one)])
        elif not again(id(one)):
            parts.append(b"}" if isinstance(one, dict) else b"]")
            number(id(one))
            parts.append(b"(")
            for part in one.items() if isinstance(one, dict) else one:
                for each in part if isinstance(one, dict) else (part,):
                    write(each)
            parts.append(b"u" if isinstance(one, dict) else b"e")

    write(value)
    return b"".join(parts) + b"."


TRAIN, LOADER = "train.py:10:main", "/usr/lib/python3.11/threading.py:900:_bootstrap"


def training(steps: int = 3) -> CachingAllocator:
    """Return an allocator after some steps of a training with two threads: weights stay, a cache grows."""
    one = CachingAllocator()
    model = frames("model.py:5:__init__", TRAIN)
    for size in (5_000_000, 700_000, 1000):
        one.alloc(size, model)
    for step in range(steps):
        forward = frames(f"model.py:{20 + step % 2}:forward", "train.py:14:step", TRAIN)
        activations = [one.alloc(size, forward) for size in (3_000_000, 800_000, 90_000)]
        loaded = one.alloc(2_000_001, frames("loader.py:8:fetch", LOADER), stream=7)
        one.alloc(10_000 + step, frames("cache.py:3:remember", "train.py:15:step", TRAIN))
        backward = frames("train.py:16:backward", TRAIN)
        for address in reversed(activations):
            one.free(address, backward)
        one.request_free(loaded, frames("loader.py:12:drop", LOADER))
        if step < steps - 1:
            one.complete_free(loaded, [])
    one.empty_cache(frames("train.py:20:main"))
    return one
