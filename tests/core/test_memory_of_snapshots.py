"""Memory of a snapshot: peaks, what was live, stacks, segments and steps, against the allocator that made it,
and against PyTorch's own reading of the file.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.snapshots import TRAIN, CachingAllocator, frames, pickled, snapshot_of, training
from tracelane.core.tables.device.memory import MAX_LISTED, analyse_memory, memory
from tracelane.core.tables.device.memory_map import CELLS, EMPTY, FULL, memory_maps, segment_table
from tracelane.core.tables.device.memory_stacks import stacks_of
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.allocators import allocators
from tracelane.core.tables.overview.overview import overview
from tracelane.core.trace import open_trace

TORCH = os.environ.get("TRACELANE_TORCH", "")
"""A Python that has PyTorch."""
MANY = 1 << 20


def opened(folder: Path, snapshot: Any) -> Scope:
    path = folder / f"{len(list(folder.iterdir()))}.pickle"
    path.write_bytes(pickled(snapshot))
    return Scope(open_trace(path, index_dir=folder / "index"))


def random_run(seed: int, count: int = 300, device: int = 0) -> CachingAllocator:
    """Return an allocator that allocated and released at random, on two streams, at times waiting for one."""
    chance, one = random.Random(seed), CachingAllocator(device=device)
    stacks = [frames(f"m.py:{n}:f{n}", *[f"m.py:{n % 3}:g"] * (n % 2), TRAIN) for n in range(6)]
    live: list[int] = []
    pending: list[int] = []
    for _ in range(count):
        stack = chance.choice(stacks)
        match chance.randrange(10):
            case 0 | 1 | 2 | 3 | 4:
                size = chance.choice((1, 513, 70_000, 900_000, 3_000_000, 30_000_000))
                live.append(one.alloc(size + chance.randrange(99), stack, chance.choice((0, 0, 7))))
            case 5 | 6 | 7 if live:
                one.free(live.pop(chance.randrange(len(live))), stack)
            case 8 if live:
                pending.append(live.pop(chance.randrange(len(live))))
                one.request_free(pending[-1], stack)
            case _ if pending:
                one.complete_free(pending.pop(0), stack)
            case _:
                one.empty_cache(stack)
    return one


def test_the_headline_is_the_peak(tmp_path: Path) -> None:
    """A snapshot's first sentence is what is live at the peak, by the line of code that holds most of it,
    however many stacks lead there; so is the first block of the overview, and its rows lead to the peak.
    """
    one = CachingAllocator()
    cached = [one.alloc(3 << 20, frames("cache.py:7:keep", f"m.py:{n}:step", TRAIN)) for n in range(8)]
    passing = one.alloc(10 << 20, frames("model.py:3:forward", TRAIN))
    one.free(passing, frames("model.py:4:forward", TRAIN))
    one.free(cached.pop(), frames("cache.py:9:drop", TRAIN))
    scope = opened(tmp_path, snapshot_of(one))
    (headline,) = [one for one in findings(scope).findings if one.kind == "headline"]
    assert headline.text.startswith(
        "CUDA 0 holds 34.0 MiB at its peak, 70.6 % of it in 8 allocations of cache.py(7): keep, 24.0 MiB; "
        "7 allocations of the trace are not released in it, 21.0 MiB"
    )
    assert headline.short == "cache.py(7): keep: 70.6 % of 34.0 MiB at the peak"
    (use,) = memory(scope).uses
    assert [(one.start, one.label) for one in headline.evidence] == [
        (use.peak_at, "at the peak: model.py(3): forward")
    ]
    groups = overview(scope, [])
    assert [(row.name, row.amount, row.calls) for row in groups["held"]] == [
        ("cache.py(7): keep", 24 << 20, 8),
        ("model.py(3): forward", 10 << 20, 1),
    ]
    assert "slices" not in groups


def test_small_holders_are_not_named(tmp_path: Path) -> None:
    """Where no line of code holds a twentieth of the peak, it is told alone."""
    one = CachingAllocator()
    for number in range(30):
        one.alloc(1 << 20, frames(f"a.py:{number}:f"))
    (headline,) = [
        one for one in findings(opened(tmp_path, snapshot_of(one))).findings if one.kind == "headline"
    ]
    assert headline.short == "CUDA 0 holds 30.0 MiB at its peak"


class Walk:
    """What is live entry by entry, as a person would keep the books."""

    def __init__(self, one: CachingAllocator, first: int = 0) -> None:
        """Look for the peak from entry `first` on; the state before it counts, too."""
        self.live: dict[int, tuple[int, str]] = {}
        self.peak, self.at_peak = -1, dict(self.live)
        for number, entry in enumerate(one.history):
            if number == first:
                self._look()
            stack = ";".join(f"{f['filename']}({f['line']}): {f['name']}" for f in reversed(entry["frames"]))
            if entry["action"] == "alloc":
                self.live[entry["addr"]] = entry["size"], stack
            elif entry["action"] == "free_requested":
                del self.live[entry["addr"]]
            if number >= first:
                self._look()

    def _look(self) -> None:
        level = sum(size for size, _ in self.live.values())
        if level > self.peak:
            self.peak, self.at_peak = level, dict(self.live)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("newest", [None, 60])
def test_the_peak_and_what_was_live_are_those_of_a_walk(
    seed: int, newest: int | None, tmp_path: Path
) -> None:
    """The greatest sum of live bytes, and each allocation of it, are found, also where the history is cut."""
    one = random_run(seed)
    walk = Walk(one, len(one.history) - newest if newest else 0)
    (use,) = memory(opened(tmp_path, snapshot_of(one, newest=newest))).uses
    assert use.peak_bytes == walk.peak
    assert use.allocator.total.min() >= 0
    assert int(use.allocator.total[-1]) == sum(size for size, _ in walk.live.values())
    of = use.allocator.allocations
    at_peak = {(int(of.addresses[n]), int(of.bytes[n])) for n in use.at_peak.tolist()}
    assert at_peak == {(address, size) for address, (size, _) in walk.at_peak.items()}
    if newest is None:
        stacks: Counter[str] = Counter()
        for size, stack in walk.at_peak.values():
            stacks[stack] += size
        listed = {";".join(names): size for names, size, _ in stacks_of(use.allocator, use.at_peak)}
        assert listed == dict(stacks)


@pytest.mark.parametrize("seed", range(4))
def test_segments_are_those_of_the_allocator(seed: int, tmp_path: Path) -> None:
    """Of each segment, what is in use, lost to rounding, waits and is free adds up to its size."""
    first, second = random_run(seed), random_run(seed + 50, device=1)
    scope = opened(tmp_path, snapshot_of(first, second))
    rows = list(segment_table(scope, MANY).rows())
    segments = [*first.segments, *second.segments]
    assert len(rows) == len(segments)
    by_address = {(f"CUDA {s['device']}", f"{s['address']:#x}"): s for s in segments}
    for row in rows:
        blocks = by_address[row["allocator"], row["address"]]["blocks"]
        free = [block["size"] for block in blocks if block["state"] == "inactive"]
        used = [block for block in blocks if block["state"] == "active_allocated"]
        assert row["in_use_bytes"] == sum(block["requested_size"] for block in used)
        assert row["rounding_bytes"] == sum(block["size"] - block["requested_size"] for block in used)
        assert (row["free_bytes"], row["free_blocks"]) == (sum(free), len(free))
        assert row["largest_free_bytes"] == max(free, default=0)
        parts = ("in_use_bytes", "rounding_bytes", "awaiting_bytes", "free_bytes")
        assert sum(row[part] for part in parts) == row["bytes"]
        assert row["map"] == drawn(by_address[row["allocator"], row["address"]])
    assert [one.title for one in memory_maps(scope)] == [one.title for one in allocators(scope)]
    for one, allocator in zip(memory_maps(scope), (first, second), strict=True):
        assert int(one.sizes.sum()) == sum(segment["total_size"] for segment in allocator.segments)


def drawn(segment: dict[str, Any]) -> str:
    """Return the map of a segment, part by part."""
    size, cells = segment["total_size"], []
    for cell in range(CELLS):
        low, high = cell * size / CELLS, (cell + 1) * size / CELLS
        held = sum(
            max(0.0, min(high, begin + block["size"]) - max(low, begin))
            for block in segment["blocks"]
            if block["state"] != "inactive"
            for begin in [block["address"] - segment["address"]]
        ) / (high - low)
        cells.append(EMPTY if held < 0.01 else FULL if held > 0.99 else "▒")
    return "".join(cells)


def test_what_a_step_never_releases(tmp_path: Path) -> None:
    """Of each marked step, the allocations that nothing releases are counted."""
    one = CachingAllocator()
    marks = []
    for step in range(4):
        marks.append(("START", f"ProfilerStep#{step}", one.time_us))
        one.alloc(1000 + step, frames("cache.py:1:grow", TRAIN))
        one.free(one.alloc(5000, frames("m.py:2:f", TRAIN)), [])
        marks.append(("END", f"ProfilerStep#{step}", one.time_us))
    snapshot = snapshot_of(one)
    snapshot["external_annotations"] = [
        {"device": 0, "name": name, "stage": stage, "time_us": time} for stage, name, time in marks
    ]
    rows = list(analyse_memory(opened(tmp_path, snapshot))["steps"].rows())
    assert [(row["allocations"], row["kept"], row["kept_bytes"]) for row in rows] == [
        (2, 1, 1000 + step) for step in range(4)
    ]


def test_a_snapshot_without_history_has_what_is_in_use(tmp_path: Path) -> None:
    """Where only the state was recorded, what is in use at the end is the peak, with its stacks."""
    one = training(3)
    snapshot = snapshot_of(one)
    snapshot["device_traces"] = [[]]
    (use,) = memory(opened(tmp_path, snapshot)).uses
    assert use.peak_bytes == sum(size for size, _ in Walk(one).live.values())
    assert len(use.at_peak) == len(Walk(one).live) <= MAX_LISTED


SCRIPT = """
import json, pickle, sys
from torch.cuda import _memory_viz as viz
snapshot = pickle.load(open(sys.argv[1], "rb"))
text = viz.memory(snapshot, format_flamegraph=lambda lines: lines)
json.dump({"stacks": text, "segments": viz.segsum(snapshot)}, sys.stdout)
"""
PROFILE = """
import pickle, sys, threading, torch
from torch.cuda._memory_viz import _profile_to_snapshot
from torch.profiler import profile
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8))
optimizer = torch.optim.Adam(model.parameters())
def work():
    for _ in range(3):
        model(torch.randn(32, 64)).sum().backward()
with profile(profile_memory=True, with_stack=True, record_shapes=True) as run:
    thread = threading.Thread(target=work)
    for _ in range(3):
        model(torch.randn(128, 64)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    thread.start()
    thread.join()
pickle.dump(_profile_to_snapshot(run), open(sys.argv[1], "wb"))
"""


def ran(script: str, path: Path) -> str:
    command = [TORCH, "-c", script, str(path)]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.skipif(not TORCH, reason="TRACELANE_TORCH names no Python with PyTorch")
@pytest.mark.parametrize("seed", range(3))
def test_pytorch_reads_the_same(seed: int, tmp_path: Path) -> None:
    """Bytes by stack at the end, and the sums of segments, are those of torch.cuda._memory_viz."""
    one = random_run(seed)
    path = tmp_path / "s.pickle"
    path.write_bytes(pickled(snapshot_of(one)))
    theirs = json.loads(ran(SCRIPT, path))
    stacks: Counter[str] = Counter()
    for line in theirs["stacks"].splitlines():
        stack, _, size = line.rpartition(" ")
        _, state, *names = stack.split(";")
        if state == "active_allocated" and names != ["<gaps>"]:
            stacks[";".join(names)] += int(size)
    scope = Scope(open_trace(path, index_dir=tmp_path / "index"))
    (use,) = memory(scope).uses
    at_end = use.allocator.live(len(use.allocator) - 1)
    ours = {";".join(map(as_pytorch, names)): size for names, size, _ in stacks_of(use.allocator, at_end)}
    assert ours == dict(stacks)
    (one_map,) = memory_maps(scope)
    lines = dict(line.split(": ", 1) for line in theirs["segments"].splitlines() if ": " in line)
    assert lines["segments"] == str(len(one_map.sizes))
    assert lines["total_allocated"] == with_unit(sum(stacks.values()))
    assert lines["total_reserved"] == with_unit(int(one_map.sizes.sum()))


def as_pytorch(name: str) -> str:
    position, _, function = name.rpartition(": ")
    file, _, line = position.rstrip(")").rpartition("(")
    return f"{file.rpartition('/')[2]}:{line}:{function}"


def with_unit(size: float) -> str:
    units = ["", "Ki", "Mi", "Gi"]
    while size >= 1024:
        size /= 1024
        del units[0]
    return f"{size:3.1f}{units[0]}B"


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.skipif(not TORCH, reason="TRACELANE_TORCH names no Python with PyTorch")
def test_a_snapshot_that_pytorch_made(tmp_path: Path) -> None:
    """Of a snapshot that PyTorch makes of a profile on the host, the peak is that of its entries."""
    path = tmp_path / "s.pickle"
    ran(PROFILE, path)
    snapshot = pickle.loads(path.read_bytes())
    entries = snapshot["device_traces"][0]
    changes = {"alloc": 1, "free_requested": -1}
    level = final = sum(
        b["size"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] != "inactive"
    )
    levels = [final]
    for entry in reversed(entries):
        level -= changes.get(entry["action"], 0) * entry["size"]
        levels.append(level)
    assert len(entries) > 100 and min(levels) >= 0
    (use,) = memory(Scope(open_trace(path, index_dir=tmp_path / "index"))).uses
    assert (use.peak_bytes, use.first_bytes) == (max(levels), levels[-1])
