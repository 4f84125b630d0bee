"""Event dicts of every phase, for traces made in tests; times in µs as traces have them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.batches import Part
from tracelane.core.base.progress import ProgressCallback, no_progress
from tracelane.core.demo.trace import write_demo
from tracelane.core.index.build import build
from tracelane.core.index.options import BUFFERS
from tracelane.core.index.store import Index
from tracelane.core.index.workers import Workers
from tracelane.core.read.batch import Batch, StringTable
from tracelane.core.read.envelope import Envelope
from tracelane.core.read.problem import add_counts, merge_problems
from tracelane.core.read.promoted import PromotedTable
from tracelane.core.read.reader import NATIVE, ReadResult, new_scanner, scanner_name
from tracelane.core.read.scan_reference import Reason, ScanText, ScanWatch
from tracelane.core.trace import Trace, open_trace

Event = dict[str, Any]
PROMOTED_TABLE = PromotedTable()
SLICES = 50


def write_demo_without_counters(folder: Path) -> None:
    """Write the demo without the counters that its files have of the memory."""
    write_demo(folder)
    for path in folder.glob("rank*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        content["traceEvents"] = [event for event in content["traceEvents"] if event["ph"] != "C"]
        path.write_text(json.dumps(content), encoding="utf-8")


def write_slices(path: Path, count: int = SLICES, name: str = "") -> Path:
    """Write a trace of some slices, called after the file where no name is given: no other has its index."""
    return write_events(path, [complete(2 * at, 1, name or path.name) for at in range(count)])


def event(ph: str, ts: Any, name: str | None = "e", **more: Any) -> Event:
    """Any event; pid 1, tid 1 unless given, None leaves a key out."""
    fields = {"ph": ph, "ts": ts, "name": name, "pid": 1, "tid": 1, **more}
    return {key: value for key, value in fields.items() if value is not None}


def complete(ts: Any, dur: Any, name: str = "x", cat: str | None = "cpu_op", **more: Any) -> Event:
    """A complete event."""
    return event("X", ts, name, cat=cat, dur=dur, **more)


def begin(ts: Any, name: str | None = "b", **more: Any) -> Event:
    """A begin of a thread's stack."""
    return event("B", ts, name, **more)


def end(ts: Any, **more: Any) -> Event:
    """The end of the innermost open begin."""
    return event("E", ts, **{"name": None, **more})


def async_event(ph: str, ts: Any, id: Any, name: str = "", cat: str = "async", **more: Any) -> Event:
    """b, n, e or legacy S, T, p, F; called "a" unless given, ends without a name."""
    return event(ph, ts, name or (None if ph in "eF" else "a"), cat=cat, id=id, **more)


def flow(ph: str, ts: Any, id: Any, cat: str = "ac2g", bp: str | None = None, **more: Any) -> Event:
    """s, t or f."""
    return event(ph, ts, "flow", cat=cat, id=id, bp=bp, **more)


def arrow(number: Any, source: Event, target: Event, cat: str = "ac2g") -> list[Event]:
    """A flow from where one event begins to where another one does."""
    ends = (("s", source, None), ("f", target, "e"))
    return [flow(ph, one["ts"], number, cat, bp, pid=one["pid"], tid=one["tid"]) for ph, one, bp in ends]


def counter(ts: Any, name: str, /, **args: Any) -> Event:
    """A sample of each series in `args`."""
    return event("C", ts, name, tid=None, args=args)


def metadata(kind: str, pid: Any = 1, tid: Any = None, /, **args: Any) -> Event:
    """Names, labels, sort indices."""
    return event("M", 0, kind, pid=pid, tid=tid, args=args)


def every_phase(seed: int = 1, n: int = 400) -> list[Event]:
    """A trace with every phase, odd ids, several processes and threads, in no order of time."""
    pick = random.Random(seed)
    events: list[Event] = [
        metadata("process_name", 1, name="python"),
        metadata("process_labels", 2, labels="AIU 0"),
        metadata("process_label", 3, label="AIU 1"),
        metadata("process_sort_index", 2, sort_index=-1),
        metadata("thread_name", 1, 1, name="main"),
        metadata("thread_name", 1, 99, name="never seen"),
        metadata("thread_sort_index", 1, 2, sort_index=-5),
        metadata("something_else", 1, 1, value=3),
    ]
    ids: list[Any] = [1, 2, "2", "0x10", 3.5, 1 << 70, -4]
    for number in range(n):
        ts = pick.randrange(1000) / 4
        where = {"pid": pick.choice([1, 2, 3, "1"]), "tid": pick.choice([1, 2, 10, "main"])}
        args = {"External id": number % 7, "correlation": number % 11, "bytes": 10**number % 10**9}
        kinds: list[Event] = [
            complete(ts, pick.choice([0, 0.5, 3, 40]), f"x{number % 5}", args=args, **where),
            complete(ts, 7, "kernel", "kernel", args={"grid": [number % 3, 1, 1], **args}, **where),
            begin(ts, "call", args=args, **where),
            end(ts, args={"bytes": number}, **where),
            async_event(pick.choice("bne"), ts, pick.choice(ids), **where),
            async_event(pick.choice("bne"), ts, None, id2={"local": "7"}, **where),
            async_event(pick.choice("bne"), ts, None, id2={"global": "7"}, **where),
            async_event(pick.choice("bne"), ts, 7, scope="s", **where),
            async_event(pick.choice("STpF"), ts, 5, cat="legacy", **where),
            event("i", ts, "now", s=pick.choice("gpt"), **where),
            event(pick.choice("IR"), ts, "then", cat="cpu_instant_event", args={"Addr": number}, **where),
            counter(ts, "mem", used=number, free=pick.random()),
            flow("s", ts, number % 13, **where),
            flow("t", ts, number % 13, **where),
            flow("f", ts, number % 13, bp=pick.choice([None, "e"]), **where),
            flow("s", ts, None, "local", id2={"local": "1"}, **where),
            flow("f", ts, None, "local", id2={"local": "1"}, **where),
            event(pick.choice("NOD"), ts, "object", id=1, **where),
            event("P", ts, "sample", **where),
            event("V", ts, "v", **where),
            event("v", ts, "v", **where),
            event("zz", ts, "unknown", **where),
            complete("no time", 1, **where),
            complete(ts, "no duration", **where),
            complete(ts, -5, **where),
        ]
        events.append(pick.choice(kinds))
    return events


def read_result(batches: Sequence[Batch], tables: Sequence[StringTable]) -> ReadResult:
    """What reading a source came to, by what its batches say themselves."""
    counts = add_counts(batch.counts for batch in batches)
    problems = merge_problems(batch.problems for batch in batches)
    events = sum(batch.events for batch in batches)
    return ReadResult(tuple(batches), tuple(tables), Envelope(), events, counts, problems, NATIVE)


def part_of(events: Sequence[object], number: int = 0, offset: int = 0) -> Part:
    """One part of these events."""
    data = json.dumps(list(events))[1:-1].encode()
    scanner = new_scanner(scanner_name(NATIVE), PROMOTED_TABLE)(ScanWatch())
    scanner.begin()
    stop = scanner.scan(ScanText.of(data, offset), 0, len(data) + 1, len(data) + 1)
    assert stop.reason is Reason.LIMIT, stop
    return Part.of(scanner.finish(number, 0), scanner.table())


def parts_of(events: Sequence[object], cuts: Sequence[int] = ()) -> list[Part]:
    """The events as parts, cut before the events of these numbers."""
    bounds = [0, *cuts, len(events)]
    return [part_of(events[a:b], i, a * 1000) for i, (a, b) in enumerate(pairwise(bounds))]


def build_parts(
    parts: Sequence[Part],
    folder: Path,
    workers: Workers | None = None,
    progress: ProgressCallback = no_progress,
) -> None:
    """Build the index of parts, given in file order."""
    batches, tables = zip(*(part.batch(number) for number, part in enumerate(parts)))
    build(read_result(batches, tables), folder, workers or Workers(), progress)


def index_of(
    events: Sequence[object], folder: Path, cuts: Sequence[int] = (), buffers: int = BUFFERS
) -> Index:
    """Build and open the index of a trace that consists of these events."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = parts_of(events, cuts)
    build_parts(parts, folder, Workers(buffers=buffers))
    return Index.open(folder)


def write_events(path: Path, events: Sequence[Event]) -> Path:
    """Write a trace of these events and return where it is."""
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return path


def open_events(folder: Path, events: Sequence[Event]) -> Trace:
    """Write events into a file of a folder and return it opened, its index beside it."""
    return open_trace(write_events(folder / "t.json", events), index_dir=folder / "index")
