"""Snapshots of PyTorch's memory become traces that say of each entry what the snapshot says of it."""

from __future__ import annotations

import copy
import gzip
import io
import json
import pickle
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.linear import assert_linear
from tests.snapshots import (
    TRAIN,
    CachingAllocator,
    frames,
    pickled,
    pickled_by_cpp,
    snapshot_of,
    training,
)
from tracelane.core.base.errors import UnreadableError
from tracelane.core.read.entry_rows import EntryFile, EntryRows
from tracelane.core.read.inflate import PlainReader
from tracelane.core.read.pickle_values import PickleReader
from tracelane.core.read.problem import Problem
from tracelane.core.read.snapshot import MAX_WRITTEN, snapshot_reader
from tracelane.core.read.snapshot_parts import SnapshotParts
from tracelane.core.read.source import SNAPSHOT, open_source
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main

Event = dict[str, Any]
CHANGES = {"alloc": 1, "free_requested": -1}
WRITERS: dict[str, Callable[[Any], bytes]] = {
    **{
        f"Python, protocol {number}": lambda value, number=number: pickled(value, number)
        for number in (2, 3, 4, 5)
    },
    "PyTorch's C++": pickled_by_cpp,
}


def text_of(data: bytes) -> tuple[bytes, list[Problem]]:
    reader = snapshot_reader(PlainReader(io.BytesIO(data)), "x.pickle")
    parts = []
    while part := reader.read(1 << 20):
        parts.append(part)
    return b"".join(parts), reader.problems


def events_of(data: bytes) -> list[Event]:
    """Return the events of a snapshot; times in ns."""
    text, problems = text_of(data)
    assert problems == []
    events: list[Event] = json.loads(text, parse_float=Decimal)["traceEvents"]
    for event in events:
        for key in {"ts", "dur"} & event.keys():
            event[key] = int(Decimal(event[key]) * 1000)
    return events


def named(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event["name"].startswith(name)]


@pytest.mark.parametrize("writer", WRITERS)
def test_all_writers_say_the_same(writer: str) -> None:
    """A snapshot is the same trace by whichever writer it was pickled."""
    snapshot = snapshot_of(training(30))
    assert text_of(WRITERS[writer](snapshot)) == text_of(pickled(snapshot))


@pytest.mark.parametrize("newest", [None, 40, 11, 1])
def test_records_are_the_entries_with_what_is_in_use(newest: int | None) -> None:
    """Each allocation and release is a record with the sum of all before it, also of those that are lost."""
    whole = training(8)
    in_use, expected = 0, []
    for entry in whole.history:
        change = CHANGES.get(entry["action"], 0) * entry["size"]
        in_use += change
        expected.append((entry["time_us"] * 1000, entry["addr"], change, in_use))
    expected = [row for row in expected[-(newest or 10**6) :] if row[2]]
    events = events_of(pickled(snapshot_of(whole, newest=newest)))
    records = [(e["ts"], e["args"]) for e in named(events, "[memory]")]
    rows = [(ts, a["Addr"], a["Bytes"], a["Total Allocated"]) for ts, a in records if "Addr" in a]
    assert rows == expected
    assert records[-1][1]["Total Allocated"] == in_use
    assert records[-1][1]["Total Reserved"] == sum(one["total_size"] for one in whole.segments)


def test_other_actions_go_by_their_names() -> None:
    """Every entry that does not change what is in use becomes an instant of its action, none is left out."""
    one = training(4)
    one.record("oom", 1 << 40, 0, frames(TRAIN), device_free=12345)
    one.record("snapshot", 0, 0, [], addr=0)
    counts = Counter(e["name"] for e in events_of(pickled(snapshot_of(one))) if e["ph"] == "i")
    actions = Counter(entry["action"] for entry in one.history)
    records = sum(actions.pop(action) for action in CHANGES)
    assert counts["[memory]"] == records + 1
    assert {name: n for name, n in counts.items() if not name.startswith("[")} == actions


def test_what_was_allocated_before_the_history() -> None:
    """Blocks in use whose allocation is not in the history are records ahead of it, with their stacks."""
    whole = training(6)
    events = events_of(pickled(snapshot_of(whole, newest=15)))
    known = {entry["addr"] for entry in whole.history[-15:] if entry["action"] == "alloc"}
    blocks = [block for segment in whole.segments for block in segment["blocks"]]
    expected = {
        (block["address"], block["requested_size"])
        for block in blocks
        if block["state"] == "active_allocated" and block["address"] not in known
    }
    records = named(events, "[before]")
    assert {(e["args"]["Addr"], e["args"]["Bytes"]) for e in records} == expected
    assert len(records) == len(expected) > 3
    assert max(e["ts"] for e in records) < min(e["ts"] for e in named(events, "[memory]"))


def test_slices_around_an_entry_are_its_stack() -> None:
    """At each entry, the slices of its lane are the frames of its stack, the outermost first."""
    one = training(6)
    one.record("alloc", 10, 0, [], addr=5)
    one.segments[0]["blocks"].append(
        {"address": 5, "size": 10, "requested_size": 10, "state": "active_allocated", "frames": []}
    )
    slices = [e for e in events_of(pickled(snapshot_of(one))) if e["ph"] == "X"]
    assert len(slices) < sum(len(entry["frames"]) for entry in one.history)
    for entry in one.history:
        at, lane = entry["time_us"] * 1000, f"stream {entry['stream']}"
        around = [e for e in slices if e["tid"] == lane and e["ts"] <= at < e["ts"] + e["dur"]]
        around.sort(key=lambda e: (e["ts"], -e["dur"]))
        stack = [f"{f['filename']}({f['line']}): {f['name']}" for f in reversed(entry["frames"])]
        assert [e["name"] for e in around] == stack, entry


def test_segments_and_blocks_follow() -> None:
    """Segments and their blocks are instants after the last entry, with sizes, states and what is used."""
    one = training(5)
    events = events_of(pickled(snapshot_of(one)))
    segments, blocks = named(events, "[segment]"), named(events, "[block]")
    words = {"active_allocated": "allocated", "active_awaiting_free": "awaiting free", "inactive": "free"}
    expected_segments = [(s["address"], s["total_size"], s["stream"]) for s in one.segments]
    expected = [
        (b["address"], b["size"], f"[block] {words[b['state']]}") for s in one.segments for b in s["blocks"]
    ]
    args = [e["args"] for e in segments]
    assert sorted((a["Addr"], a["Bytes"], a["stream"]) for a in args) == sorted(expected_segments)
    assert sorted((e["args"]["Addr"], e["args"]["Bytes"], e["name"]) for e in blocks) == sorted(expected)
    assert {e["name"] for e in segments} == {"[segment] large", "[segment] small"}
    in_use = named(events, "[memory]")[-1]["args"]["Total Allocated"]
    assert sum(e["args"]["Total Allocated"] for e in blocks) == in_use
    assert sum(e["args"]["Total Allocated"] for e in segments) == in_use


@pytest.mark.parametrize("newest", [None, 9])
def test_levels_are_never_negative(newest: int | None) -> None:
    """Neither what is in use nor what waits or is free is ever less than nothing."""
    for event in events_of(pickled(snapshot_of(training(9), newest=newest))):
        if event["ph"] == "C":
            assert all(value >= 0 for value in event["args"].values())
        if "Total Allocated" in event.get("args", {}):
            assert event["args"]["Total Allocated"] >= 0
            assert event["args"].get("Total Reserved", 0) >= 0


def test_entries_of_one_microsecond_stay_apart_and_in_order() -> None:
    """Entries of the same time follow one another by a nanosecond."""
    one = training(2)
    for entry in one.history:
        entry["time_us"] = 17
    events = events_of(pickled(snapshot_of(one)))
    times = [e["ts"] for e in events if e["ph"] == "i" and not e["name"].startswith("[b")][: len(one.history)]
    assert times == [17_000 + number for number in range(len(one.history))]


def test_marked_ranges_are_annotations() -> None:
    """Begins and ends of ranges become slices; what has no end lasts to the last entry."""
    one = training(1)
    marks = [("START", "step", 100), ("START", "step", 120), ("END", "step", 130), ("END", "step", 180)]
    snapshot = snapshot_of(one)
    snapshot["external_annotations"] = [
        {"device": 0, "name": name, "stage": stage, "time_us": time}
        for stage, name, time in [*marks, ("START", "open", 150)]
    ]
    events = [e for e in events_of(pickled(snapshot)) if e.get("cat") == "user_annotation"]
    end = one.history[-1]["time_us"] * 1000
    spans = sorted((e["name"], e["ts"], e["ts"] + e["dur"]) for e in events)
    assert spans == [("open", 150_000, end), ("step", 100_000, 180_000), ("step", 120_000, 130_000)]


def old_form(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return a snapshot as PyTorch 1.13 wrote it: no times, no addresses of blocks, stacks as histories."""
    old = copy.deepcopy(snapshot)
    for entry in (entry for history in old["device_traces"] for entry in history):
        del entry["time_us"], entry["pool_id"]
    for block in (block for segment in old["segments"] for block in segment["blocks"]):
        del block["address"]
        stack = block.pop("frames")
        requested = block.pop("requested_size")
        if block["state"] == "active_allocated":
            block["history"] = [{"addr": 0, "real_size": requested, "frames": stack}]
        elif block["state"] == "active_awaiting_free":
            block["state"] = "active_pending_free"
    return old


def test_older_releases_wrote_less() -> None:
    """Without times entries are a microsecond apart; addresses and stacks of blocks stand elsewhere."""
    snapshot = snapshot_of(training(5), newest=20)
    new, old = events_of(pickled(snapshot)), events_of(pickled(old_form(snapshot)))
    for name in ("[memory]", "[before]", "[segment]"):
        assert [e["args"] for e in named(old, name)] == [e["args"] for e in named(new, name)]
    entries = [e["ts"] for e in named(old, "[memory]")][:-1]
    assert entries == sorted(set(entries)) and entries[-1] < 20_000


def test_a_history_that_contradicts_the_segments_is_told() -> None:
    """Where the history releases more than there can have been, the level begins at the least possible."""
    snapshot = snapshot_of(training(3))
    snapshot["segments"] = []
    text, problems = text_of(pickled(snapshot))
    assert "does not lead to the segments" in problems[0].message
    totals = [
        e["args"]["Total Allocated"] for e in json.loads(text)["traceEvents"] if e["name"] == "[memory]"
    ]
    assert totals[0] == min(totals) == 5_000_000  # the first allocation, with nothing before it


def test_of_a_snapshot_that_is_cut_off_the_entries_are_read(tmp_path: Path) -> None:
    """What a cut file holds whole is a trace that is cut off; of one without any the error is one line."""
    data = pickled(snapshot_of(training(20)))
    path = tmp_path / "cut.pickle"
    path.write_bytes(data[: len(data) * 3 // 4])
    trace = open_trace(path, index_dir=tmp_path / "index")
    problems = [problem["kind"] for problem in trace.indexes[0].manifest["problems"]]
    assert problems == ["truncated"]
    assert trace.indexes[0].string_numbers("[memory]")
    path.write_bytes(data[:300])
    with pytest.raises(UnreadableError, match=r"cut\.pickle: is cut off$"):
        open_trace(path, index_dir=tmp_path / "index")


def test_a_snapshot_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    """Whatever a snapshot is called, and packed or not, it is one."""
    data = pickled(snapshot_of(training(2)))
    for name, content in (("a.json", data), ("b", gzip.compress(data))):
        (tmp_path / name).write_bytes(content)
        assert open_source(tmp_path / name).encoding == SNAPSHOT


NO_SNAPSHOTS = {
    "no lists": pickle.dumps({"segments": 1, "device_traces": 2}),
    "no traces": pickle.dumps({"segments": []}),
    "lists of numbers": pickle.dumps({"segments": [1, 2], "device_traces": []}),
    "frames that are numbers": pickle.dumps({"segments": [], "device_traces": [[{"frames": [1]}]]}),
    "a list": pickle.dumps(["segments", "device_traces"]),
}


@pytest.mark.parametrize("name", NO_SNAPSHOTS)
def test_other_pickles_are_refused(name: str) -> None:
    """A pickle that is no snapshot, though it has its words, is refused in one line that names the file."""
    with pytest.raises(UnreadableError, match=r"^x\.pickle: .*") as caught:
        text_of(NO_SNAPSHOTS[name])
    assert "\n" not in str(caught.value)


def test_a_snapshot_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is read before its first event is known: never to look what it is, or to open it again."""
    read, times = SnapshotParts.read, list[SnapshotParts]()
    monkeypatch.setattr(
        SnapshotParts, "read", lambda self, reader: (times.append(self), read(self, reader))[1]
    )
    path = tmp_path / "a.pickle"
    path.write_bytes(pickled(snapshot_of(training())))
    for command in ("info", "info", "memory", "doctor"):
        assert main([command, str(path), "--index-dir", str(tmp_path / "index")]) == 0
    assert len(times) == 1


def test_stacks_come_to_no_more_than_the_file_allows() -> None:
    """Deep stacks that entries refer to in turn are drawn up to a bound, and that is told."""
    one = CachingAllocator()
    deep = frames(*(f"{'x' * 200}.py:{n}:f" for n in range(400)))
    for number in range(4000):
        one.record("alloc", 1, 0, deep if number % 2 else [], addr=number)
    data = pickled(snapshot_of(one))
    text, problems = text_of(data)
    json.loads(text)
    assert len(text) <= (MAX_WRITTEN + 64) * len(data)
    assert "times the file" in problems[-1].message


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_damaged_snapshots_are_read_or_refused(seed: int) -> None:
    """Whatever is changed in a snapshot, it becomes sound JSON or is refused in one line."""
    chance = random.Random(seed)
    snapshot = snapshot_of(training(4))
    odd = [None, -1, 1 << 62, 1 << 80, "x", [], {}, 1.5, True, [1], (1, 2)]
    for _ in range(600):
        one = copy.deepcopy(snapshot)
        entries = [*one["segments"], *(block for segment in one["segments"] for block in segment["blocks"])]
        entries += [entry for history in one["device_traces"] for entry in history]
        for entry in chance.sample(entries, chance.choice((1, 2, 5))):
            entry[chance.choice([*entry, "x"])] = chance.choice(odd)
        data = bytearray(pickled(one))
        if chance.random() < 0.3:
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            text, _ = text_of(bytes(data))
        except UnreadableError as error:
            assert "\n" not in str(error)
        else:
            for event in json.loads(text if text.endswith(b"]}\n") else text + b"]}")["traceEvents"]:
                assert event.get("args", {}).get("Total Allocated", 0) >= 0


@pytest.mark.parametrize("count", [0, 1, 3, 4, 11])
def test_entries_put_aside_come_back(count: int) -> None:
    """All entries of two histories that share a file come back in order, as often as they are asked for."""
    file = EntryFile()
    histories = EntryRows(file, at_hand=3), EntryRows(file, at_hand=3)
    entries = [(n, n + 1, 2, -n, 1 << 62, -7, n * 1000) for n in range(count)]
    for entry in entries:
        for one in histories:
            one.add(*entry)
    for one in (*histories, histories[0]):
        assert len(one) == count
        assert [entry for block in one.blocks() for entry in zip(*block)] == entries
    file.close()


@pytest.mark.slow
def test_what_is_held_does_not_grow_with_the_entries() -> None:
    """Of each entry at most 20 bytes remain: of the numbers that its parts have; stacks are held once."""

    def held(size: int) -> int:
        one = CachingAllocator()
        stacks = [frames(f"a.py:{number}:f", TRAIN) for number in range(9)]
        for number in range(size):
            words = {"addr": number, "compile_context": "".join(("0/", "0"))}
            one.record("alloc", 1 + number % 7, 0, stacks[number % 9], **words)
        stream, parts = io.BytesIO(pickled(snapshot_of(one))), SnapshotParts(at_hand=100)
        tracemalloc.start()
        try:
            PickleReader(lambda n: stream.read(min(n, 4096)), parts).value()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            parts.file.close()

    few, many = 2000, 12_000
    assert held(many) - held(few) <= 20 * (many - few)


def test_stacks_that_all_differ_are_bounded() -> None:
    """A full tree of stacks takes no more nodes: a new stack has its outer frames only, and is counted;
    what was there before stays whole.
    """
    one = CachingAllocator()
    for number in range(30):
        one.record("alloc", 1, 0, frames(f"a.py:{number % 20}:f", TRAIN), addr=number)
    stream, parts = io.BytesIO(pickled(snapshot_of(one))), SnapshotParts(max_nodes=10)
    PickleReader(lambda n: stream.read(min(n, 64)), parts).value()
    stacks, (block,) = parts.stacks, parts.histories[0].rows.blocks()
    depth = len(stacks.path(block.stack[0]))
    assert len(stacks.parents) - 1 == 10
    whole = 10 - depth + 1  # each after the first adds its innermost frame
    expected = [depth if number % 20 < whole else depth - 1 for number in range(30)]
    assert [len(stacks.path(node)) for node in block.stack] == expected
    assert stacks.shortened == sum(length < depth for length in expected)
    parts.file.close()


@pytest.mark.slow
def test_reading_takes_linear_time() -> None:
    """Four times the entries take about four times the time."""

    def prepare(size: int) -> Callable[[], object]:
        one = CachingAllocator()
        for number in range(size):
            one.record("alloc", 1 + number % 7, 0, frames(f"a.py:{number % 9}:f", TRAIN), addr=number)
        data = pickled(snapshot_of(one))
        return lambda: text_of(data)

    assert_linear(prepare, 2000)
