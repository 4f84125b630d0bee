"""Flow ends: which slice each belongs to, which start each end follows, and the books over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.loops import BOTH, loops_of
from tests.events import Event, complete, flow, index_of
from tracelane.core.index.format import FLOW_COUNTS, NONE
from tracelane.core.index.store import Index


def arrows(index: Index) -> list[tuple[str | None, str | None]]:
    """(source, target) slice names of all flows, in stored order; None where an end lies in no slice."""
    names = index.strings(index.column("slices.name"))

    def name(position: int) -> str | None:
        return None if position == NONE else names[position]

    source, target = index.column("flows.source").tolist(), index.column("flows.target").tolist()
    return [(name(s), name(t)) for s, t in zip(source, target)]


def books(index: Index, category: str = "ac2g") -> list[int]:
    """starts, steps, ends, paired, orphan_starts, orphan_ends."""
    return list(index.read_report["flows"][category].values())


GPU = {"pid": 0, "tid": 7}


@pytest.mark.parametrize(
    "events, want",
    [
        # deepest slice that contains the stamp; for an end without bp the next one that begins there
        ([complete(0, 10, "op"), complete(2, 3, "launch"), flow("s", 3, 1)], "launch"),
        ([complete(0, 10, "op"), complete(2, 3, "launch"), flow("s", 5, 1)], "op"),
        ([complete(0, 10, "op"), flow("s", 10, 1)], None),
        ([complete(4, 0, "mark"), flow("s", 4, 1)], "mark"),
        ([complete(0, 10, "op"), flow("s", 3, 1, tid=2)], None),
        # several begin at the stamp: correlation, then the nearest before it in the file, then the deepest
        (
            [
                complete(2, 9, "a", args={"correlation": 5}, cat="cuda_runtime"),
                complete(2, 4, "b"),
                flow("s", 2, 5),
            ],
            "a",
        ),
        ([complete(2, 4, "b"), complete(2, 9, "a"), flow("s", 2, 5)], "a"),
        ([flow("s", 2, 5), complete(2, 9, "a"), complete(2, 4, "b")], "b"),
        # overlapping slices: the one opened last
        ([complete(0, 10, "a"), complete(5, 10, "b"), complete(6, 1, "c"), flow("s", 8, 1)], "b"),
        ([complete(0, 10, "a"), complete(5, 10, "b"), complete(6, 1, "c"), flow("s", 14, 1)], "b"),
    ],
)
def test_starts_bind(tmp_path: Path, events: list[Event], want: str | None) -> None:
    """A start belongs to the deepest slice of its track around its stamp."""
    starts = [e for e in events if e["ph"] == "s"]
    index = index_of(
        [*events, complete(20, 1, "k", **GPU), flow("f", 20, starts[0]["id"], bp="e", **GPU)],
        tmp_path / "again",
    )
    assert arrows(index) == [(want, "k")]


@pytest.mark.parametrize(
    "bp, ts, want",
    [("e", 3, "a"), ("e", 12, None), (None, 3, "b"), (None, 15, "b"), (None, 16, None), (None, 0, "a")],
)
def test_ends_bind(tmp_path: Path, bp: str | None, ts: float, want: str | None) -> None:
    """An end with bp=e belongs to the slice around it, one without to the next that begins."""
    events = [
        complete(0, 1, "src"),
        flow("s", 0, 1),
        complete(0, 10, "a", **GPU),
        complete(15, 3, "b", **GPU),
    ]
    index = index_of([*events, flow("f", ts, 1, bp=bp, **GPU)], tmp_path)
    assert arrows(index) == [("src", want)]


def test_chains_and_fans(tmp_path: Path) -> None:
    """Steps link on, one start serves many ends, several starts of one id pair by time."""
    events: list[Event] = []
    for ts in (0, 10, 20, 30, 40, 50):
        events.append(complete(ts, 5, f"x{ts}"))
    events += [
        flow("s", 1, "chain"), flow("t", 11, "chain"), flow("f", 21, "chain", bp="e"),
        flow("s", 2, 7), flow("f", 12, 7, bp="e"), flow("f", 22, 7, bp="e"),
        flow("s", 31, 7), flow("f", 41, 7, bp="e"), flow("f", 51, 8, bp="e"),
        flow("s", 3, 8, "other"), flow("f", 52, 8, "other", bp="e"), flow("s", 4, 9),
    ]  # fmt: skip
    index = index_of(events, tmp_path)
    assert sorted(arrows(index), key=str) == [
        ("x0", "x10"), ("x0", "x10"), ("x0", "x20"), ("x0", "x50"), ("x10", "x20"), ("x30", "x40"),
    ]  # fmt: skip
    assert books(index) == [4, 1, 5, 4, 1, 1]
    assert books(index, "other") == [1, 0, 1, 1, 0, 0]


def test_an_end_before_every_start_follows_the_first(tmp_path: Path) -> None:
    """Kernels whose clock is off still have their launches."""
    events = [complete(0, 1, "k", **GPU), flow("f", 0, 1, bp="e", **GPU)]
    for ts in (100, 200):
        events += [complete(ts, 5, f"launch{ts}"), flow("s", ts, 1)]
    assert arrows(index_of(events, tmp_path)) == [("launch100", "k")]


def test_both_ways_are_sorted(tmp_path: Path) -> None:
    """Flows stand by source, unbound ones last, and by_target lists them by target."""
    events: list[Event] = [flow("s", 999, 50), complete(500, 1, "end"), flow("f", 500, 50, bp="e")]
    for i in range(30):
        events += [complete(i * 10, 5, f"x{i}"), flow("s", i * 10, i)]
        events += [complete(i * 7 % 30 * 10, 4, "k", **GPU), flow("f", i * 7 % 30 * 10, i, bp="e", **GPU)]
    index = index_of(events, tmp_path)
    source, target = index.column("flows.source"), index.column("flows.target")
    assert (np.diff(source.astype(np.int64)) >= 0).all() and source[-1] == NONE
    assert (np.diff(target[index.column("flows.by_target")].astype(np.int64)) >= 0).all()
    assert sorted(index.column("flows.by_target").tolist()) == list(range(31))


ENDS = st.lists(
    st.tuples(st.sampled_from("stf"), st.integers(0, 3), st.integers(0, 8), st.integers(0, 1)), max_size=40
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
@pytest.mark.parametrize("loops", BOTH)
@given(ends=ENDS, kind=st.sampled_from([1, 3]))
def test_pairing_equals_the_definition(loops: str, ends: list[tuple[str, int, int, int]], kind: int) -> None:
    """Each step and end follows the latest start or step of its key before it, else the key's first start."""
    n = len(ends)
    table: dict[str, Any] = {
        "phase": np.array([ord(e[0]) for e in ends], np.uint8),
        "id_value": np.array([e[1] for e in ends], np.int64),
        "start": np.array([e[2] for e in ends], np.int64),
        "ordinal": np.arange(n, dtype=np.uint32),
        "category": np.zeros(n, np.uint32),
        "id_kind": np.full(n, kind, np.uint8),
    }
    pid = np.array([e[3] for e in ends], np.uint32)
    source, target, counts = loops_of(loops).pair(table, pid, 1)
    want, paired = set(), 0
    order = sorted(range(n), key=lambda i: (ends[i][2], i))
    for at, i in enumerate(order):
        if ends[i][0] == "s":
            continue
        own = [j for j in order if ends[j][1] == ends[i][1] and (kind == 1 or pid[j] == pid[i])]
        before = [j for j in own if order.index(j) < at and ends[j][0] in "st"]
        starts = [j for j in own if ends[j][0] == "s"]
        paired += ends[i][0] == "f" and bool(starts)
        if before or starts:
            want.add(((before[-1:] or starts)[0], i))
    assert set(zip(source.tolist(), target.tolist())) == want
    assert len(source) == len(want) and counts[0][FLOW_COUNTS.index("paired")] == paired
