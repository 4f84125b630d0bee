"""Answers that hang on no moment: all times moved, one pause stretched, the profiler stopped later."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.corpus import for_files, in_turn, short_texts, traces
from tests.events import Event, complete
from tracelane.core.base.clock import NO_CLOCKS
from tracelane.core.base.errors import UsageError
from tracelane.core.export.formats import as_json
from tracelane.core.query.own_clock import SPAN_CATEGORY
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import BY_NAME
from tracelane.core.trace import Trace, open_trace

Document: TypeAlias = dict[str, Any]
SHIFTS = (Decimal(1), Decimal("-86400000000"), Decimal(3 * 10**13), Decimal(9 * 10**18))
"""µs; by the last no time fits into 64 bits of ns, and none could be ns."""
STRETCHED = 10_000
"""So many times as long a pause becomes."""
MAX_US = 10**15
"""A stretched pause is no longer than 31 years: times beyond 146 are clamped."""
MARK = "<number>"
"""What stands around the digits of a number while it is a text, as JSON writes no Decimal."""
ALIKE = ("*/*.pt.trace.json.gz", "gpu/*.json.gz", "aiu/*.json", "chrome/*.json")
AT_ZERO = ("mlp_trace.json", "acelyzer_spyre_mlp_tb.pt.trace.json")
"""Work that stands at 0 has lost its time: moved it would not."""
NO_JSON = (
    *("perfetto_args_ordered.json", "perfetto_json_incomplete.json"),
    *("speedscope_simple-partial.json", "speedscope_simple-partial-trailing-comma.json"),
)
"""What Python's own decoder refuses."""
FILES = [path for path in short_texts(traces(*ALIKE)) if path.name not in (*AT_ZERO, *NO_JSON)]
WINDOW_END = "Record Window End"
"""The profiler's note of when it was stopped, which may come long after the last event."""
LATER_US = 5_000_000
OF_ITS_LENGTH = {"sections", "summary"}
"""Analyses that say how long the profiler's own span and the whole trace are."""


def later(by: Decimal, begin: Decimal | None, time: Decimal) -> Decimal:
    """Return a time so much later, where it is not before a begin."""
    return time + by if begin is None or time >= begin else time


def document_of(path: Path) -> Document:
    """Return a trace with exact numbers; of a bare array the object that holds it."""
    raw = path.read_bytes()
    read = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw, parse_float=Decimal)
    return read if isinstance(read, dict) else {"traceEvents": read}


def timed(document: Document) -> Iterator[Event]:
    """Yield the events with a time; of metadata it means nothing."""
    for event in document["traceEvents"]:
        if isinstance(event, dict) and isinstance(event.get("ts"), int | Decimal) and event.get("ph") != "M":
            yield event


def write(folder: Path, document: Document, time_of: Callable[[Decimal], Decimal]) -> Path:
    """Write a trace whose times are moved; slices begin and end where these do."""
    moved: dict[int, Event] = {}
    for event in timed(document):
        start, length = Decimal(event["ts"]), event.get("dur")
        begins = time_of(start)
        times = {"ts": f"{MARK}{begins:f}{MARK}"}
        if isinstance(length, int | Decimal):
            times["dur"] = f"{MARK}{time_of(start + length) - begins:f}{MARK}"
        moved[id(event)] = {**event, **times}
    events = [moved.get(id(event), event) for event in document["traceEvents"]]
    path = folder / "t.json"
    text = json.dumps({**document, "traceEvents": events}, default=float)
    path.write_text(re.sub(f'"{MARK}([^"]*){MARK}"', r"\1", text), encoding="utf-8")
    return path


def answers(trace: Trace) -> dict[str, Any]:
    """Return the tables of all analyses as JSON, whose moments count from where the trace begins."""
    results = {}
    for name, row in BY_NAME.items():
        try:
            text = as_json(row.run(Scope(trace)), name)
            said = json.loads(text.replace(str(Path(trace.sources[0].path).parent), ""))
        except UsageError as error:
            said = {"error": str(error)}
        said.pop("origin_ns", None)
        results[name] = said
    return results


@pytest.mark.slow
@for_files("path, shift", in_turn(FILES, SHIFTS, 1))
def test_moved_times_change_no_answer(path: Path, shift: Decimal, tmp_path: Path) -> None:
    """All analyses of a trace say the same, wherever its times begin; shifts take turns."""
    document = document_of(path)
    said = []
    for by in (Decimal(0), shift):
        folder = tmp_path / f"{by}"
        folder.mkdir()
        moved = write(folder, document, partial(later, by, None))
        with closing(open_trace(moved, index_dir=folder / "index")) as trace:
            said.append(answers(trace))
    before, after = said
    assert [name for name in after if after[name] != before[name]] == []


@pytest.mark.slow
@for_files("path", FILES)
def test_a_late_end_of_the_profiler_changes_no_answer(path: Path, tmp_path: Path) -> None:
    """What all analyses say is of what was recorded, however long after it the profiler was stopped."""
    if WINDOW_END not in [event.get("name") for event in timed(document_of(path))]:
        pytest.skip("nothing tells when the profiler was stopped")
    said = []
    for by in (0, LATER_US):
        document = document_of(path)
        for event in document["traceEvents"]:
            if event.get("name") == WINDOW_END:
                event["ts"] += by
            elif event.get("cat") == SPAN_CATEGORY:
                event["dur"] += by
        folder = tmp_path / f"{by}"
        folder.mkdir()
        with closing(open_trace(write(folder, document, lambda at: at), index_dir=folder / "index")) as trace:
            said.append(answers(trace))
    before, after = said
    assert {name for name in after if after[name] != before[name]} <= OF_ITS_LENGTH


def pauses(document: Document) -> list[tuple[Decimal, Decimal]]:
    """Return the gaps between all slices but whole-window spans that may be stretched, longest first; none
    of a trace whose slices begin and end in events of their own.
    """
    events = [event for event in timed(document) if event.get("cat") != SPAN_CATEGORY]
    if any(event.get("ph") in "BEbe" for event in events):
        return []
    reach, gaps = None, []
    for event in sorted(events, key=lambda one: Decimal(one["ts"])):
        start = Decimal(event["ts"])
        if reach is not None and start > reach:
            gaps.append((reach, start))
        length = event.get("dur", 0)
        end = start + (length if isinstance(length, int | Decimal) else 0)
        reach = end if reach is None else max(reach, end)
    may_grow = [gap for gap in gaps if (gap[1] - gap[0]) * STRETCHED < MAX_US]
    return sorted(may_grow, key=lambda gap: gap[0] - gap[1])


def busy(trace: Trace) -> dict[str, Any]:
    """Return what a pause does not change: names, counts and times of slices and of kernels, what devices did
    but idling.
    """
    scope = Scope(trace)
    sums = {
        analysis: [
            [row.get(key) for key in ("name", "category", "count", "total_ns", "self_ns", "max_ns")]
            for row in BY_NAME[analysis].run(scope).main.rows()
        ]
        for analysis in ("range", "kernels", "ops")
    }
    states = BY_NAME["breakdown"].run(scope).main.rows()
    working = [
        {
            key: row[key]
            for key in row
            if key in ("device", "state", "category", "compute_ns", "communication_ns")
        }
        for row in states
    ]
    return {**sums, "breakdown": working, "others": trace.slices_elsewhere}


def separate_steps() -> Document:
    """Return a program whose host and device do nothing for 2 ms between two steps."""
    events: list[Event] = []
    for step in range(4):
        at = 10_000 + 1000 * step + (2000 if step > 1 else 0)
        args = {"correlation": step, "stream": 7, "device": 0}
        events += [
            complete(at, 300, f"ProfilerStep#{step}", "user_annotation", pid=1, tid=1),
            complete(at + 10, 50, "aten::mm", "cpu_op", pid=1, tid=1),
            complete(at + 20, 10, "cudaLaunchKernel", "cuda_runtime", pid=1, tid=1, args=args),
            complete(at + 40, 200, "gemm", "kernel", pid=0, tid=7, args=args),
        ]
    return {"traceEvents": events}


@pytest.mark.slow
@for_files("path", FILES)
def test_a_long_pause_changes_no_work(path: Path, tmp_path: Path) -> None:
    """A pause of a recording, 10,000 times as long, leaves names, counts and times of all work alike."""
    check_stretched(document_of(path), tmp_path)


def test_a_pause_of_a_program_may_be_long(tmp_path: Path) -> None:
    """Nothing is said to be of another clock where host and device pause for 20 s."""
    assert check_stretched(separate_steps(), tmp_path) == 2_700_000 * (STRETCHED - 1)


def check_stretched(document: Document, folder: Path) -> int:
    """Stretch the longest pause; return by how much the trace is longer (ns), 0 where there is none."""
    gaps = pauses(document)
    if not gaps:
        return 0
    (begin, end), spans = gaps[0], []
    more = (end - begin) * (STRETCHED - 1)
    said = []
    for name, by in (("as-is", Decimal(0)), ("long", more)):
        (folder / name).mkdir()
        path = write(folder / name, document, partial(later, by, end))
        with closing(open_trace(path, index_dir=folder / name / "index")) as trace:
            said.append(busy(trace))
            spans.append(trace.opening_span)
    assert said[1] == said[0]
    longer = (spans[1][1] - spans[1][0]) - (spans[0][1] - spans[0][0])
    assert abs(longer - more * 1000) < 1  # each time is rounded to a ns
    return longer


SAYING_MOMENTS = frozenset({"findings", "explain", "doctor", "sections", "summary"})
"""Analyses that have moments in texts, or that look at the file."""
MOVED_NS = 7_000_000_007


def no_steps() -> Document:
    """Return a program of one process without steps, which keeps a device busy for a third of its time."""
    events: list[Event] = []
    for at in (0, 100, 300, 350, 900):
        args = {"correlation": at + 1, "stream": 7, "device": 0}
        events += [
            complete(at, 40, f"aten::op{at}", "cpu_op", pid=1, tid=1),
            complete(at + 5, 10, "cudaLaunchKernel", "cuda_runtime", pid=1, tid=1, args=args),
            complete(at + 20, 60, f"kernel{at}", "kernel", pid=0, tid=7, args=args),
        ]
    return {"traceEvents": events}


@pytest.mark.slow
@pytest.mark.parametrize("document", [no_steps(), separate_steps()], ids=["no steps", "steps"])
@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in SAYING_MOMENTS])
def test_a_moved_clock_moves_moments_alone(name: str, document: Document, tmp_path: Path) -> None:
    """Under a clock on which all of a trace stands later an analysis counts the same, at moments later by as
    much: so stands the second of two runs that are shown one below the other.
    """
    path = write(tmp_path, document, partial(later, Decimal(0), None))
    with closing(open_trace(path, index_dir=tmp_path / "index")) as trace:
        clocks = NO_CLOCKS.shifted((0, ""), MOVED_NS)
        try:
            there, moved = (BY_NAME[name].run(Scope(trace, clocks=of)) for of in (NO_CLOCKS, clocks))
            for table in there.names:
                rows = [
                    list(one[table].counted_from(by).rows()) for one, by in ((there, 0), (moved, MOVED_NS))
                ]
                assert rows[0] == rows[1], table
        except UsageError:
            pytest.skip("not of such a trace")
