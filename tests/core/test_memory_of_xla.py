"""What allocators of XLA and TensorFlow record becomes the same answers as PyTorch's records: made by an
allocator whose books are known, in the form in which XLA writes its traces.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.events import Event, complete, metadata
from tracelane.core.logs.counters import with_cheap_lanes
from tracelane.core.tables.absent import absent
from tracelane.core.tables.device.memory import (
    MemoryUse,
    analyse_memory,
    memory,
)
from tracelane.core.tables.device.memory_stacks import stacks_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.allocators import type_and_id_of_name
from tracelane.core.trace import Trace, open_trace

HOST, DEVICES, STEPS = 701, (1, 2), 6
EVERY_US = 10
LIMIT = 1 << 30


@dataclass
class Books:
    """An allocator and what it did: (µs, change, address, what is in use after it, op)."""

    name: str
    used: int = 0
    before: int = 0
    live: dict[int, tuple[int, int]] = field(default_factory=dict)  # address -> (µs, bytes)
    done: list[tuple[int, int, int, int, str]] = field(default_factory=list)
    peak: int = 0
    at_peak: dict[int, tuple[int, int]] = field(default_factory=dict)

    def does(self, time: int, address: int, change: int, op: str = "") -> None:
        self.used += change
        if change > 0:
            self.live[address] = time, change
        else:
            self.live.pop(address, None)
        self.done.append((time, change, address, self.used, op))
        if self.used > self.peak:
            self.peak, self.at_peak = self.used, dict(self.live)


def run_of(name: str, seed: int, before: int = 4096, count: int = 120) -> Books:
    """Return an allocator that gave out and took back at random, some of it given out before the trace."""
    chance = random.Random(seed)
    books = Books(name, before, before, peak=before)
    books.does(0, 0x1000, -1024)
    for number in range(1, count):
        if books.live and chance.random() < 0.45:
            address = chance.choice(sorted(books.live))
            books.does(number, address, -books.live[address][1])
        else:
            free = [
                at
                for at in range(0x10_0000, 0x10_0000 + count * 0x10_0000, 0x10_0000)
                if at not in books.live
            ]
            op = chance.choice(("", "(null)", "jit(train_step)/dot_general"))
            books.does(number, chance.choice(free), chance.choice((256, 4096, 1 << 20)), op)
    return books


def scaffold(count: int) -> list[Event]:
    """Return devices, steps on the host's thread, and a call in each step around what is recorded in it."""
    events = [metadata("process_name", pid, name=f"/device:GPU:{pid - 1}") for pid in DEVICES]
    events += [metadata("thread_name", pid, 13, name="Stream #13(Compute)") for pid in DEVICES]
    events += [
        metadata("process_name", HOST, name="/host:CPU"),
        metadata("thread_name", HOST, 5, name="python"),
    ]
    events += [slice_of(pid, 13, 3, 4, "loop_fusion") for pid in DEVICES]
    length = count * EVERY_US // STEPS
    for step in range(STEPS):
        events.append(slice_of(HOST, 5, step * length, length - 1, "PjitFunction(train_step)"))
        events.append(slice_of(HOST, 5, step * length + 1, length - 3, "Execute"))
    return events


def slice_of(pid: int, tid: int, ts: float, dur: float, name: str, **args: str) -> Event:
    """Return a slice as XLA writes it: no category, each argument in quotes."""
    return complete(ts, dur, name, None, pid=pid, tid=tid, args=args)


def as_xla(books: Books, **more: str) -> list[Event]:
    """Return what a BFC allocator records: slices of a picosecond."""
    events = []
    for time, change, address, used, op in books.done:
        args = {
            "addr": str(address), "allocation_bytes": str(abs(change)), "allocator_name": books.name,
            "bytes_allocated": str(used), "bytes_available": str(LIMIT - used), "bytes_reserved": "0",
            "fragmentation": f"{used % 100 / 100}", "id": "7", "peak_bytes_in_use": "3000000000",
            "requested_bytes": str(abs(change) - 6), "region_type": "temp" if op else "", "data_type": "1",
            "shape": "[64, 64]" if op else "", "tf_op": op,
        }  # fmt: skip
        name = "MemoryAllocation" if change > 0 else "MemoryDeallocation"
        events.append(slice_of(HOST, 5, time * EVERY_US + 5.123456, 0.000001, name, **{**args, **more}))
    return events


def as_torch(books: Books, kind: tuple[int, int]) -> list[Event]:
    """Return the same as PyTorch's profiler records it."""
    return [
        {
            "ph": "i", "s": "t", "cat": "cpu_instant_event", "pid": HOST, "tid": 5, "name": "[memory]",
            "ts": time * EVERY_US + 5.123456, "args": {
                "Addr": address, "Bytes": change, "Total Allocated": used,
                "Device Type": kind[0], "Device Id": kind[1],
            },
        }
        for time, change, address, used, _ in books.done
    ]  # fmt: skip


def opened(folder: Path, events: list[Event], name: str = "xla.json") -> Trace:
    path = folder / name
    content = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": [*events, {}]}
    path.write_text(json.dumps(content), encoding="utf-8")
    return open_trace(path, index_dir=folder / "index")


RUNS = {"GPU_0_bfc": 1, "GPU_1_bfc": 2, "gpu_host_bfc": 3}


@pytest.fixture
def runs() -> list[Books]:
    return [run_of(name, seed) for name, seed in RUNS.items()]


@pytest.fixture
def trace(tmp_path: Path, runs: list[Books]) -> Trace:
    records = [event for books in runs for event in as_xla(books)]
    return opened(tmp_path, [*scaffold(len(runs[0].done)), *records])


def used_by_name(trace: Trace) -> MemoryUse:
    return memory(Scope(trace))


def test_peaks_and_what_stays_are_those_of_the_books(trace: Trace, runs: list[Books]) -> None:
    """Each allocator is a row by its name, the host's first; curve, peak and what is live are the books'."""
    uses = {use.allocator.title: use for use in used_by_name(trace).uses}
    assert list(uses) == ["gpu_host_bfc", "GPU_0_bfc", "GPU_1_bfc"]
    for books in runs:
        use = uses[books.name]
        one, of = use.allocator, use.allocator.allocations
        assert one.known_by == "recorded" and one.total.tolist() == [used for _, _, _, used, _ in books.done]
        assert (use.first_bytes, use.peak_bytes) == (books.before, books.peak)
        for numbers, live in ((use.at_peak, books.at_peak), (use.unreleased, books.live)):
            assert {
                int(of.addresses[n]): int(of.bytes[n]) for n in numbers.tolist() if of.begins[n] >= 0
            } == {address: size for address, (_, size) in live.items()}
    assert {use.allocator.host for use in uses.values() if use.allocator.device is None} == {True}
    assert [uses[f"GPU_{n}_bfc"].allocator.device.label for n in (0, 1)] == ["GPU 0", "GPU 1"]  # type: ignore[union-attr]


def test_the_same_records_of_torch_give_the_same_numbers(
    trace: Trace, runs: list[Books], tmp_path: Path
) -> None:
    """Tables and curve have the same numbers, in whichever form the same allocations are written."""
    kinds = {books.name: type_and_id_of_name(books.name) for books in runs}
    records = [event for books in runs for event in as_torch(books, kinds[books.name])]
    torch = opened(tmp_path, [*scaffold(len(runs[0].done)), *records], "torch.json")
    own, other = (analyse_memory(Scope(one), limit=500) for one in (trace, torch))
    curves = (analyse_memory(Scope(one), "curve") for one in (trace, torch))
    pairs = [tuple(one["memory"] for one in curves)]
    pairs += [(own[name], other[name]) for name in ("allocators", "at_peak", "kept", "stacks", "steps")]
    for here, there in pairs:
        assert len(here) == len(there)
        for column in here.columns:
            if column.unit == "text" and column.key not in ("name", "allocator", "kind"):
                assert here.texts(column.key) == there.texts(column.key), column.key
            elif column.unit != "text" and column.key != "reserved":  # in neither form
                assert np.array_equal(here[column.key], there[column.key], column.statistic), column.key


def test_ops_and_stacks_stand_around_records(trace: Trace, runs: list[Books]) -> None:
    """An allocation is called by its record's op, else by the slice around it; no record is a frame."""
    tables = analyse_memory(Scope(trace), limit=1000)
    table = tables["at_peak"]
    rows = list(zip(*(table.texts(key) for key in ("allocator", "name", "address", "kind"))))
    assert rows
    for allocator, name, address, kind in rows:
        books = next(one for one in runs if one.name == allocator)
        begun = books.at_peak[int(address, 16)][0]
        op = next(op for time, _, _, _, op in books.done if time == begun)
        assert name == (op if op.startswith("jit") else "Execute")
        assert kind == ("temp [64, 64]" if op else "")
    for use in used_by_name(trace).uses:
        assert {tuple(names) for names, _, _ in stacks_of(use.allocator, use.at_peak)} == {
            ("PjitFunction(train_step)", "Execute")
        }


def test_what_records_say_besides_is_told(trace: Trace, runs: list[Books]) -> None:
    """Notes have the fragmentation at the peak and at the end, and what was in use before the trace."""
    notes = used_by_name(trace).notes
    for books in runs:
        share = {used: used % 100 for _, _, _, used, _ in books.done}
        text = next(note for note in notes if note.startswith(f"{books.name}: of what is free"))
        assert (
            f"{share[books.peak]:.1f} % at the peak" in text
            and f"{share[books.used]:.1f} % at the end" in text
        )
        assert f"{books.name}: up to 2.79 GiB were in use before the trace" in notes


def test_lanes_show_what_is_live(trace: Trace, runs: list[Books]) -> None:
    """The viewer's lanes of a device have what each of its allocators holds; the panel is offered."""
    assert "memory" not in absent(trace)
    counters = {one.title: one for one in with_cheap_lanes(trace).computed.counters}
    assert set(counters) == {"GPU_0_bfc MiB", "GPU_1_bfc MiB"}
    for books in runs[:2]:
        values = counters[f"{books.name} MiB"].values * (1 << 20)
        assert values.tolist() == [used for _, _, _, used, _ in books.done]


@pytest.mark.parametrize("field", ["allocator_name", "allocation_bytes", "bytes_allocated", "addr"])
def test_what_is_missing_is_made_up_for_or_told(field: str, tmp_path: Path) -> None:
    """Totals are summed up where there are none; without addresses nothing is live; else records are told."""
    books = run_of("GPU_0_bfc", 5)
    records = as_xla(books)
    for record in records:
        del record["args"][field]
    use = used_by_name(opened(tmp_path, [*scaffold(len(books.done)), *records]))
    if field in ("allocator_name", "allocation_bytes"):
        assert not use.uses and f"{len(records)} records name no device" in use.notes[0]
        return
    (one,) = use.uses
    if field == "bytes_allocated":
        assert one.allocator.known_by == "summed, start unknown"
        assert one.peak_bytes == books.peak - books.before + 1024
    else:
        assert one.peak_bytes == books.peak and not len(one.at_peak)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("GPU_0_bfc", (9, 0)),
        ("GPU_12_bfc", (9, 12)),
        ("gpu_async_3", (9, 3)),
        ("GPU_collectivememory_1_bfc", (9, 1)),
        ("xla_gpu_host_bfc", (0, -1)),
        ("cpu", (0, -1)),
        ("mklcpu", (0, -1)),
        ("HBM", (9, -1)),
    ],
)
def test_names_tell_the_device(name: str, kind: tuple[int, int]) -> None:
    """The number of the device stands in its allocator's name; those of the host have none."""
    assert type_and_id_of_name(name) == kind


def test_two_hosts_have_allocators_of_their_own(tmp_path: Path) -> None:
    """Allocators of one name in two processes stay apart and are called by their process."""
    events: list[Any] = [*as_xla(run_of("cpu", 1)), *({**e, "pid": 702} for e in as_xla(run_of("cpu", 2)))]
    names = [metadata("process_name", pid, name=name) for pid, name in ((HOST, "/host:CPU"), (702, "other"))]
    uses = used_by_name(opened(tmp_path, [*names, *events])).uses
    assert [use.allocator.title for use in uses] == ["cpu of /host:CPU", "cpu of other"]
    assert [use.peak_bytes for use in uses] == [run_of("cpu", seed).peak for seed in (1, 2)]
