"""Every table, page and export can be made of a trace with nothing, one thing, or many equal things in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.events import Event, complete, counter, flow, metadata, write_events
from tracelane.core.base.errors import TracelaneError
from tracelane.core.base.progress import no_progress
from tracelane.core.python.exporting import writer_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import ANALYSES
from tracelane.core.trace import Trace, open_trace

GPU = {"pid": 7, "cat": "kernel"}


def roots(count: int) -> list[Event]:
    return [complete(at * 10, 10, f"root{at}") for at in range(count)]


def alike(count: int) -> list[Event]:
    return [complete(at * 10, 10, "same") for at in range(count)]


def steps(count: int) -> list[Event]:
    """Return as many steps, each with one op, its launch and its kernel, all of one length."""
    events = [metadata("process_labels", 7, labels="GPU 0")]
    for at in range(count):
        start, args = at * 100, {"correlation": at + 1, "External id": at + 1}
        events += [
            complete(start, 100, f"ProfilerStep#{at}", "user_annotation"),
            complete(start + 10, 50, f"op{at}", args=args),
            complete(start + 20, 10, "cudaLaunchKernel", "cuda_runtime", args=args),
            complete(start + 40, 50, f"k{at}", tid=7, args={**args, "stream": 7, "device": 0}, **GPU),
            flow("s", start + 20, at + 1),
            flow("f", start + 40, at + 1, bp="e", pid=7, tid=7),
        ]
    return events


def threads(count: int) -> list[Event]:
    return [complete(0, 10, "work", tid=at) for at in range(count)]


def nothing_long(count: int) -> list[Event]:
    return [complete(at, 0, f"n{at}") for at in range(count)]


def counters(count: int) -> list[Event]:
    return [counter(at, f"c{at}", value=1) for at in range(count)]


SHAPES: dict[str, Callable[[int], list[Event]]] = {
    one.__name__: one for one in (roots, alike, steps, threads, nothing_long, counters)
}
COUNTS = (0, 1, 2, 700)
CASES = [(name, count) for name in SHAPES for count in COUNTS if count or name == "roots"]
ENDINGS = ("html", "pftrace", "speedscope.json", "folded", "sqlite", "json", "json.gz")


def trace_of_shape(folder: Path, name: str, count: int) -> Trace:
    return open_trace(write_events(folder / "t.json", SHAPES[name](count)), index_dir=folder / "index")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), CASES)
def test_every_table_is_made(name: str, count: int, tmp_path: Path) -> None:
    """Each analysis answers, or says in one line why not, in the whole trace, at its begin and in no time."""
    trace = trace_of_shape(tmp_path, name, count)
    low, high = trace.opening_span
    for analysis in ANALYSES:
        for span in (None, (low, low + max(1, (high - low) // 1000)), (high + 5, high + 6)):
            try:
                for table in analysis.run(Scope(trace, range=span)):
                    for column in table.columns:
                        table.order(column.key)
            except TracelaneError as error:
                assert "\n" not in str(error), analysis.name


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), CASES)
def test_every_export_is_written(name: str, count: int, tmp_path: Path) -> None:
    """Each form is written, or refused in one line."""
    trace = trace_of_shape(tmp_path, name, count)
    for ending in ENDINGS:
        target = tmp_path / f"out.{ending}"
        try:
            written = writer_of(target)(Scope(trace), target, "title", no_progress)
        except TracelaneError as error:
            assert "\n" not in str(error), ending
        else:
            assert target.stat().st_size or ending == "folded", written


def test_calls_too_small_to_draw_are_said(tmp_path: Path) -> None:
    """A page of 700 calls of equal share says that none of them is drawn as a flame."""
    target = tmp_path / "x.html"
    writer_of(target)(Scope(trace_of_shape(tmp_path, "roots", 700)), target, "title", no_progress)
    assert "700 calls, each of less than 0.15% of the whole" in target.read_text(encoding="utf-8")
