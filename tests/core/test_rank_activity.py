"""When each of many ranks works, waits for others and keeps others waiting, in cells of time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.events import complete
from tests.rank_files import straggler_files
from tracelane.core.base.arrays import Intervals, merge
from tracelane.core.tables.device.device_state import device_states
from tracelane.core.tables.device.rank_activity import RankActivity, RankIntervals
from tracelane.core.tables.device.rank_delays import delays, host_activity
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.peers.skew import skew
from tracelane.core.trace import open_trace

CENTURY = 3_200_000_000_000_000_000
TIMES = st.one_of(st.integers(0, 60), st.integers(-CENTURY, CENTURY))


@given(
    st.lists(st.lists(st.tuples(TIMES, st.integers(1, 9)), max_size=6), min_size=1, max_size=5),
    st.lists(TIMES, min_size=2, max_size=8),
)
def test_cells_of_all_ranks_are_those_of_each(ranks: list[list[tuple[int, int]]], times: list[int]) -> None:
    """However far apart its stretches lie, each rank's cells hold the time that its own stretches cover."""
    starts = [np.array([start for start, _ in rank], np.int64) for rank in ranks]
    lengths = [np.array([length for _, length in rank], np.int64) for rank in ranks]
    own = tuple(merge(start, start + length) for start, length in zip(starts, lengths))
    edges = np.array(sorted(times), np.int64)
    expected = [
        [
            sum(max(0, min(high, right) - max(low, left)) for low, high in zip(*_bounds(one)))
            for left, right in zip(edges.tolist(), edges.tolist()[1:])
        ]
        for one in own
    ]
    assert RankIntervals(own).in_cells(edges).tolist() == expected


def _bounds(one: Intervals) -> tuple[list[int], list[int]]:
    return one.starts.tolist(), one.ends.tolist()


def test_the_late_rank_delays_and_the_others_wait(tmp_path: Path) -> None:
    """From the first arrival to the last the others wait and only the last one delays; before, all work."""
    trace = open_trace(straggler_files(tmp_path / "run", 3, late=1))
    scope = Scope(trace, clocks=trace.clocks)
    states, waiting = device_states(scope), skew(scope)
    activity = RankActivity.of(
        delays((0, 1, 2), waiting), host_activity(scope, (0, 1, 2), waiting, states), states
    )
    base = trace.span[0]
    edges = base + np.array(
        [100_000, 300_000, 320_000, 700_000, 800_000]
    )  # work, rank 2's work, waiting, moving
    cells = activity.in_cells(edges)
    assert cells.delays[1].tolist() == [0, 20_000, 380_000, 0] and not cells.delays[[0, 2]].any()
    assert cells.waits.tolist() == [[0, 20_000, 380_000, 0], [0, 0, 0, 0], [0, 0, 380_000, 0]]
    assert cells.works.tolist() == [
        [200_000, 0, 0, 100_000],
        [200_000, 20_000, 380_000, 100_000],
        [200_000, 20_000, 0, 100_000],
    ]


def test_a_host_computes_outside_of_its_collectives(tmp_path: Path) -> None:
    """Ranks without devices have the same states: operators but collectives are work, and in a collective
    they wait for the last one.
    """
    folder = tmp_path / "run"
    folder.mkdir()
    for rank, late in ((0, 0), (1, 300)):
        events = []
        for n in range(6):
            at = 1000 * n
            events.append(complete(at, 100 + late, "aten::mm", "cpu_op", pid=9, tid=1))
            events.append(complete(at + 100 + late, 700 - late, "gloo:all_reduce", "cpu_op", pid=9, tid=1))
        info = {"rank": rank, "world_size": 2}
        text = json.dumps({"distributedInfo": info, "traceEvents": events})
        (folder / f"rank{rank}.json").write_text(text, encoding="utf-8")
    trace = open_trace(folder)
    scope = Scope(trace, clocks=trace.clocks)
    waiting = skew(scope)
    hosts = host_activity(scope, (0, 1), waiting, ())
    activity = RankActivity.of(delays((0, 1), waiting), hosts, ())
    cells = activity.in_cells(trace.span[0] + np.array([0, 100_000, 400_000, 800_000]))
    assert cells.works.tolist() == [[100_000, 0, 0], [100_000, 300_000, 0]]
    assert cells.waits.tolist() == [[0, 300_000, 0], [0, 0, 0]]
    assert cells.delays.tolist() == [[0, 0, 0], [0, 300_000, 0]]
