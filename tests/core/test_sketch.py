"""An unfinished trace as the viewer sees it: lanes in display order, windows, and busy shares of cells."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.reading import batches_of_file
from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import CacheError
from tracelane.core.index.ingest import ingest_index
from tracelane.core.index.options import IndexOptions
from tracelane.core.index.sketching import FILES, Sketching
from tracelane.core.query.sketch import Sketch
from tracelane.core.read.coarse import write_picture
from tracelane.core.read.source import open_source
from tracelane.core.trace import trace_of

DAYS = 86_400_000_000
"""One in µs."""


def events() -> list[dict[str, object]]:
    rng = np.random.default_rng(3)
    trace_events: list[dict[str, object]] = []
    for n in range(3000):
        where = {"pid": int(rng.integers(3)), "tid": int(rng.integers(4))}
        trace_events.append({"ph": "X", "name": "a", "ts": 50.0 * n, "dur": float(rng.integers(90)), **where})
    trace_events.append({"ph": "i", "name": "late", "ts": 151_000.5, "pid": 9, "tid": 9, "s": "t"})
    for n in range(20):
        trace_events.append(
            {"ph": "C", "name": f"power{n % 2}", "ts": 7000.0 * n, "pid": 1, "args": {"W": n}}
        )
        trace_events.append(
            {"ph": "be"[n % 2], "name": "req", "cat": "net", "id": 5, "ts": 7000.0 * n, "pid": 2}
        )
    for pid in (9, 2, 1):
        trace_events.append(
            {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": -pid}}
        )
        trace_events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": f"p{pid}"}})
    trace_events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": 3, "args": {"name": "worker"}})
    return trace_events


def written(folder: Path, contents: list[dict[str, object]]) -> Path:
    path = folder / "t.json"
    path.write_text(json.dumps({"traceEvents": contents}))
    return path


def sketches(path: Path, folder: Path) -> list[Sketch]:
    """Return the pictures that are passed on, parts being drawn last first."""
    received: list[Sketch] = []
    sketching = Sketching(folder, lambda file: received.append(Sketch.read(file)))
    pictures = [write_picture(batch, table, folder) for batch, table in batches_of_file(path, 40_000)]
    for picture in reversed(pictures):
        sketching.take(picture)
        sketching.pass_on()
    return received


def test_lanes_are_those_of_the_trace(tmp_path: Path) -> None:
    """The last picture has the lanes of the finished trace: order, titles, processes, span."""
    path = written(tmp_path, events())
    drawn = sketches(path, tmp_path)
    sketch, trace = (
        drawn[-1],
        trace_of(path, ingest_index(open_source(path), IndexOptions(tmp_path / "index"))),
    )
    assert len(drawn) > 3
    assert [(*lane.name[:2], lane.title) for lane in sketch.lanes] == [
        (lane.kind, lane.pid, lane.title.removesuffix(" 5")) for lane in trace.lanes
    ]
    assert [p.title for p in sketch.processes] == [p.title for p in trace.processes if len(p.lanes)]
    width = sketch.coarse.width
    for ours, theirs in ((sketch.span, trace.span), (sketch.opening_span, trace.opening_span)):
        assert ours[0] <= theirs[0] < ours[0] + width and ours[1] - width <= theirs[1] <= ours[1]
    assert sketch.span_at(Clocks()) == sketch.span
    assert len(list(tmp_path.glob("sketch-*"))) == FILES and not list(tmp_path.glob("picture-*"))


def test_shares_of_cells(tmp_path: Path) -> None:
    """Busy shares are those of the buckets under a cell, spread evenly; no cell over a bucket is blank."""
    sketch = sketches(written(tmp_path, events()), tmp_path)[-1]
    assert sketch.lanes and len(sketch.coarse.bucket)
    coarse, width = sketch.coarse, sketch.coarse.width
    low, high = sketch.span
    for edges in (
        np.linspace(low, high, 61).astype(np.int64),
        np.linspace(low + 3 * width // 2, low + 7 * width, 90).astype(np.int64),
        np.array([low - 5000, low - 4000, low + 1, high + 10, high + 20]),
    ):
        for lane in sketch.lanes:
            shares = sketch.shares(lane, edges)
            mine = coarse.lane == lane.number
            buckets = list(zip(coarse.bucket[mine].tolist(), coarse.busy[mine].tolist()))
            for left, right, share in zip(edges.tolist(), edges[1:].tolist(), shares.tolist()):
                overlaps = [
                    (min(right, (bucket + 1) * width) - max(left, bucket * width), busy)
                    for bucket, busy in buckets
                    if bucket * width < right and (bucket + 1) * width > left
                ]
                expected = sum(inside * min(busy, width) / width for inside, busy in overlaps) / (
                    right - left
                )
                assert share == pytest.approx(expected if overlaps else -1.0, abs=1e-9)


def test_outliers_do_not_set_the_window(tmp_path: Path) -> None:
    """What lies months away is in the span, and not in the first window."""
    path = written(tmp_path, [*events(), {"ph": "X", "name": "x", "ts": 60.0 * DAYS, "dur": 1, "pid": 1}])
    sketch = sketches(path, tmp_path)[-1]
    assert sketch.span[1] > 59 * DAYS * 1000
    assert sketch.opening_span[1] < 1_000_000_000


def test_nothing_yet(tmp_path: Path) -> None:
    """Before anything was read there are no lanes; a picture that is gone says so."""
    empty = Sketch.empty()
    assert empty.lanes == () and empty.span == empty.opening_span == (0, 0)
    with pytest.raises(CacheError):
        Sketch.read(tmp_path / "gone")
