"""Collectives that a profiler shows step by step: what they are, move, wait for and cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.events import Event, begin, complete, end, metadata, open_events
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.ranks.rank_tables import collectives_table
from tracelane.core.tables.ranks.ranks import ranks
from tracelane.core.trace import Trace

REDUCE = "[AllReduce,AllReduce_AllGatherSum,2048]"
GATHER = "[AllGather,Ring,512]"
NESTED = 7
"""The stream on which spans stand around steps."""


class Step(NamedTuple):
    """A slice of a device: name, start and length in µs, peer."""

    name: str
    at: float
    us: float
    peer: str = ""


ONE = [Step(f"{REDUCE} Send", 0, 10, "1"), Step(f"{REDUCE} Recv", 10, 20, "1")]
SEVERAL = [
    *(Step(f"{REDUCE} Send", 10 * at, 10, str(at + 1)) for at in range(2)),
    *(Step(f"{REDUCE} Recv", 20 + 10 * at, 10, str(at + 1)) for at in range(2)),
]


def moved(steps: list[Step], us: float) -> list[Step]:
    return [step._replace(at=step.at + us) for step in steps]


def spyre(steps: list[Step], calls: bool = True, around: tuple[str, ...] = ()) -> list[Event]:
    """Make what torch-spyre's profiler writes of one rank: a gemm of 5 µs where each step begins, a call that
    enqueues (3 µs) and one that waits (40 µs) before each Send that follows no Send.
    """
    events = [metadata("process_labels", 0, labels="AIU 0")]
    before = ""
    for number, (name, at, us, peer) in enumerate(steps):
        more: dict[str, Any] = {"args": {"Peer": peer}} if peer else {}
        events.append(complete(1000 + at, us, name, "kernel", pid=0, tid=NESTED if around else 1, **more))
        events.append(complete(1000 + at, 5, f"gemm_{number % 2}", "kernel", pid=0, tid=2))
        if calls and name.endswith("Send") and not before.endswith("Send"):
            for call, us in (("Start", 3), ("Wait", 40)):
                host = f"aiuCommsWorkSched{call}"
                ts = 900 + at + (3 if call == "Wait" else 0)
                events.append(complete(ts, us, host, "privateuse1_runtime", pid=8, tid=8))
        before = name
    for name in around:
        first, last = steps[0], steps[-1]
        events.append(
            complete(1000 + first.at, last.at + last.us - first.at, name, "kernel", pid=0, tid=NESTED)
        )
    return events


def flex(steps: list[Step]) -> list[Event]:
    """Make the same as a FLEX job trace."""
    events = [(1000 + at, 1, name, us, peer) for name, at, us, peer in steps]
    events += [(1000 + at, 0, "mm Cmpt Exec", 5, "") for _, at, us, peer in steps]
    rows = []
    for ts, tid, name, us, peer in sorted(events):
        more: dict[str, Any] = {"attr": {"Peer": peer}} if peer else {}
        rows += [(ts, begin(ts, name=name, pid=0, tid=tid, **more)), (ts + us, end(ts + us, pid=0, tid=tid))]
    return [event for _, event in sorted(rows, key=lambda row: (row[0], row[1]["ph"] == "B"))]


def rows_of(trace: Trace) -> list[dict[str, Any]]:
    return list(collectives_table(ranks(Scope(trace)), 0).rows())


TWICE = [*ONE, *moved(ONE, 100)]
KEYS = ("name", "algorithm", "bytes", "peers", "steps", "pure_ns", "exposed_ns")


@pytest.mark.parametrize("make", [spyre, flex])
def test_a_send_and_its_recv_are_one(make: Callable[[list[Step]], list[Event]], tmp_path: Path) -> None:
    """A collective is all of its steps, and says its kind, algorithm, bytes and peers; computing hides it."""
    rows = rows_of(open_events(tmp_path, make(TWICE)))
    want = ("all_reduce", "AllReduce_AllGatherSum", 2048, "1", 2, 30_000, 20_000)
    assert [tuple(row[key] for key in KEYS) for row in rows] == [want] * 2
    assert [row["start_ns"] for row in rows] == [1_000_000, 1_100_000]
    assert all(row["algbw"] == pytest.approx(2048 / 30_000) for row in rows)
    assert all(row["exposed_share"] == pytest.approx(2 / 3) for row in rows)


def test_what_the_host_does_for_them(tmp_path: Path) -> None:
    """The k-th call that enqueues, or waits, is the k-th collective's; of another number of calls none is."""
    rows = rows_of(open_events(tmp_path, spyre(TWICE)))
    assert [(row["enqueue_ns"], row["host_wait_ns"]) for row in rows] == [(3_000, 40_000)] * 2
    events = [event for event in spyre(TWICE) if event.get("ts") != 903]
    (tmp_path / "less").mkdir()
    rows = rows_of(open_events(tmp_path / "less", events))
    assert [(row["enqueue_ns"], row["host_wait_ns"]) for row in rows] == [(3_000, None)] * 2


@pytest.mark.parametrize("make", [spyre, flex])
def test_several_steps_of_a_kind(make: Callable[[list[Step]], list[Event]], tmp_path: Path) -> None:
    """Sends, then receives, of several peers are one collective; the next begins with a send again."""
    rows = rows_of(open_events(tmp_path, make([*SEVERAL, *moved(SEVERAL, 200)])))
    assert [(row["steps"], row["peers"], row["pure_ns"]) for row in rows] == [(4, "1, 2", 40_000)] * 2


def test_kinds_are_told_apart(tmp_path: Path) -> None:
    """Steps of another kind, algorithm or size are another collective, though they lie between."""
    between = [Step(f"{GATHER} Send", 2, 3), Step(f"{GATHER} Recv", 6, 3)]
    rows = rows_of(open_events(tmp_path, spyre(sorted([*ONE, *moved(between, 10)], key=lambda one: one.at))))
    assert [(row["name"], row["bytes"], row["steps"]) for row in rows] == [
        ("all_reduce", 2048, 2),
        ("all_gather", 512, 2),
    ]


def test_spans_around_steps(tmp_path: Path) -> None:
    """What lies in one span is one collective, whatever its steps; the span is none beside it."""
    steps = [Step(f"{REDUCE} {way}", 10 * at, 10) for at, way in enumerate(("Send", "Recv", "Send", "Recv"))]
    rows = rows_of(open_events(tmp_path, spyre(steps, calls=False, around=("spyreccl:allreduce",))))
    assert [(row["name"], row["steps"], row["pure_ns"]) for row in rows] == [("all_reduce", 4, 40_000)]


def test_kernels_that_are_a_whole_collective(tmp_path: Path) -> None:
    """A kernel of NCCL is one part, and its name has the algorithm."""
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    events = [complete(0, 10, name, "kernel", pid=0, tid=7), complete(6, 4, "gemm", "kernel", pid=0, tid=8)]
    (row,) = rows_of(open_events(tmp_path, events))
    assert (row["algorithm"], row["steps"], row["exposed_ns"], row["peers"]) == ("RING_LL", 1, 6_000, "")
