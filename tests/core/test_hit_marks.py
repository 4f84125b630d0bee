"""Where hits lie on lines that stand for many rows, against looking at each hit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.events import complete, index_of
from tracelane.core.base.clock import Clocks
from tracelane.core.query.filter import parse
from tracelane.core.query.hit_marks import HitMarks
from tracelane.core.query.hits import Hits
from tracelane.core.trace import Trace
from tracelane.core.trace.hit_search import matches


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    rng = np.random.default_rng(7)
    events = [
        complete(int(ts), int(dur), f"n{int(name)}", pid=int(lane) % 3, tid=int(lane))
        for ts, dur, name, lane in zip(
            rng.integers(0, 5000, 400),
            rng.integers(0, 300, 400),
            rng.integers(0, 9, 400),
            rng.integers(0, 7, 400),
        )
    ]
    return Trace([index_of(events, tmp_path_factory.mktemp("marks") / "index")])


def brute(trace: Trace, hits: Hits, rows: range, edges: list[int], clocks: Clocks) -> list[bool]:
    index = trace.indexes[0]
    spans = []
    for position in hits.positions[0].tolist():
        number = index.row_of(position)
        if number in rows:
            lane = trace.lanes[int(index.rows[number]["lane"])]
            start = index.start(position) + clocks.offset(0, lane.pid)
            spans.append((start, start + max(1, int(index.duration([position])[0]))))
    return [any(s < b and e > a for s, e in spans) for a, b in itertools.pairwise(edges)]


@pytest.mark.parametrize("text", ["n3", "dur>200us", "n", "none"])
@pytest.mark.parametrize("clocks", [Clocks(), Clocks().shifted((0, "1"), 123_456)])
def test_touched_cells_are_those_with_a_hit(trace: Trace, text: str, clocks: Clocks) -> None:
    """For one lane, several and all, the marked cells are those that a hit overlaps, clocks moved or not."""
    hits = matches(trace, parse(text), clocks)
    marks = HitMarks(hits)
    for edges in (list(range(0, 5_400_000, 40_000)), list(range(1_000_000, 1_000_200, 7))):
        for lanes in ([trace.lanes[0]], list(trace.lanes)[2:5], list(trace.lanes)):
            spans = [(0, lane.rows.start, lane.rows.stop) for lane in lanes]
            touched = [brute(trace, hits, lane.rows, edges, clocks) for lane in lanes]
            expected = [any(column) for column in zip(*touched)]
            for _ in range(2):
                assert marks.touched(spans, edges).tolist() == expected
