"""What was launched under a slice: every launch inside its time on its lane, and a graph replay as a unit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.events import complete, flow, index_of
from tracelane.core.base.kineto import NOT_LAUNCHED
from tracelane.core.demo.trace import write_demo
from tracelane.core.index.store import Index
from tracelane.core.query.chain import chain_of, enclosing, full_chain, replays_of
from tracelane.core.query.launches import kernels_under, launch_of, launches_of

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def names(index: Index) -> list[str]:
    return index.strings(index.column("slices.name"))


def named(index: Index, name: str) -> int:
    return names(index).index(name)


def launched_at_random(seed: int) -> list[dict[str, Any]]:
    """Ops in ops on two threads, launches in them; some kernels linked by flow, some by id, some by both."""
    pick = random.Random(seed)
    events: list[dict[str, Any]] = []
    for number in range(150):
        ts, tid = pick.randrange(0, 2000), pick.choice([1, 2])
        events.append(complete(ts, pick.randrange(1, 300), f"op{number}", "cpu_op", tid=tid))
        if pick.random() < 0.2:
            ids = {"External id": number}
            events.append(complete(ts, 50, f"note{number}", "user_annotation", tid=tid, args=ids))
    for number in range(1, 120):
        ts, tid = pick.randrange(0, 2000), pick.choice([1, 2])
        args = {"correlation": number}
        events.append(
            complete(ts, pick.randrange(0, 9), f"launch{number}", "cuda_runtime", tid=tid, args=args)
        )
        for part in range(pick.choice([0, 1, 1, 3])):
            known = {"correlation": number if pick.random() < 0.7 else 0, "External id": pick.randrange(150)}
            at = ts + pick.randrange(0, 200)
            events.append(
                complete(
                    at, pick.randrange(0, 40), f"k{number}.{part}", pick.choice(DEVICE), pid=0, args=known
                )
            )
            if pick.random() < 0.5:
                events.append(flow("s", ts, f"{number}.{part}", tid=tid))
                events.append(flow("f", at, f"{number}.{part}", bp="e", pid=0))
    events.append(complete(5, 500, "sync", "cuda_sync", pid=0, args={"correlation": 3}))
    pick.shuffle(events)
    return events


@pytest.mark.parametrize("seed", range(5))
def test_the_table_is_the_single_lookup_for_all(tmp_path: Path, seed: int) -> None:
    """Device work of every kind has the launch and the way of knowing that looking it up alone gives."""
    index = index_of(launched_at_random(seed), tmp_path)
    launches = launches_of(index)
    categories = [index.categories[number] for number in index.column("slices.category").tolist()]
    device = [p for p, category in enumerate(categories) if category in DEVICE]
    assert launches.kernels.tolist() == device
    assert {launch_of(index, p)[1] for p in device} >= {"flow", "correlation", "external id"}
    for position in range(len(categories)):
        expected = launch_of(index, position) if categories[position] in DEVICE else (None, "")
        assert launches.launch_of(position) == expected, names(index)[position]


@pytest.mark.parametrize("seed", range(5))
def test_kernels_under_a_slice(tmp_path: Path, seed: int) -> None:
    """They are those whose launch begins within the slice on its lane; sums and gaps are those of a sweep."""
    index = index_of(launched_at_random(seed), tmp_path)
    launches = launches_of(index)
    launch_by_kernel = {int(kernel): launches.launch_of(int(kernel))[0] for kernel in launches.kernels}
    lane = [int(index.rows[index.row_of(p)]["lane"]) for p in range(len(names(index)))]
    launching = 0
    for position in range(0, len(lane), 3):
        start, end = index.start(position), index.end(position)
        expected = {
            kernel
            for kernel, launch in launch_by_kernel.items()
            if launch is not None
            and lane[launch] == lane[position]
            and (launch == position or start <= index.start(launch) < end)
            and not (launch != position and index.start(launch) == start and index.end(launch) > end)
        }
        launching += bool(expected)
        got = kernels_under(index, launches, position)
        assert set(got.kernels.tolist()) == expected
        assert got.launches == len({launch_by_kernel[kernel] for kernel in expected})
        assert got.total == sum(index.end(kernel) - index.start(kernel) for kernel in expected)
        covered = {t for kernel in expected for t in range(index.start(kernel), index.end(kernel), 1000)}
        assert got.busy == 1000 * len(covered)
        assert got.idle == (got.end - got.start) - got.busy
        assert [index.start(kernel) for kernel in got.kernels.tolist()] == sorted(
            index.start(kernel) for kernel in expected
        )
    assert launching


def test_a_graph_replay_is_a_unit(tmp_path: Path) -> None:
    """All kernels of one launch, over two streams, with the time in which any of them runs and the gaps."""
    args = {"correlation": 7}
    index = index_of(
        [
            complete(0, 100, "step", "user_annotation"),
            complete(10, 20, "graphLaunch", "cuda_runtime", args=args),
            *(complete(ts, 10, f"k{ts}", "kernel", pid=0, tid=7, args=args) for ts in (50, 60, 80, 200)),
            complete(55, 10, "other stream", "kernel", pid=0, tid=8, args=args),
            complete(40, 10, "earlier work", "kernel", pid=0, tid=7),
        ],
        tmp_path,
    )
    unit = kernels_under(index, launches_of(index), named(index, "graphLaunch"))
    assert [names(index)[p] for p in unit.kernels.tolist()] == ["k50", "other stream", "k60", "k80", "k200"]
    assert (unit.launches, unit.total, unit.busy) == (1, 50_000, 40_000)
    assert (unit.start, unit.end, unit.idle) == (50_000, 210_000, 120_000)
    assert (unit.gaps, unit.longest_gap) == (2, 110_000)
    assert (
        kernels_under(index, launches_of(index), named(index, "step")).kernels.tolist()
        == unit.kernels.tolist()
    )
    chain = full_chain(index, named(index, "k50"), *launch_of(index, named(index, "k50")))
    assert (chain.launch_delay, chain.queue_wait) == (20_000, 20_000)
    chain = full_chain(index, named(index, "k80"), *launch_of(index, named(index, "k80")))
    assert (chain.launch_delay, chain.queue_wait) == (50_000, 40_000)


def test_replays_are_compared_by_position(tmp_path: Path) -> None:
    """Launches of one name that started the same kernels in the same order are replays; others are not."""
    events = []
    for replay, lengths in enumerate([(10, 20, 5), (12, 20, 5), (9, 25, 5)], start=1):
        ts = 1000 * replay
        ids = {"correlation": replay}
        events.append(complete(ts, 5, "graphLaunch", "cuda_runtime", args=ids))
        for number, length in enumerate(lengths):
            tid = 8 if number == 1 else 7
            events.append(
                complete(ts + 100 * number + 50, length, f"k{number}", "kernel", pid=0, tid=tid, args=ids)
            )
    ids = {"correlation": 9}
    events.append(complete(9000, 5, "graphLaunch", "cuda_runtime", args=ids))
    events += [complete(9100 + n, 1, f"k{n + 5}", "kernel", pid=0, tid=7, args=ids) for n in range(0, 6, 2)]
    index = index_of(events, tmp_path)
    launches = launches_of(index)
    calls = [p for p, name in enumerate(names(index)) if name == "graphLaunch"]
    replays = replays_of(index, launches, calls[1])
    assert replays is not None
    assert replays.launches.tolist() == calls[:3]
    assert replays.this == 1
    assert [names(index)[p] for p in replays.kernels[0].tolist()] == ["k0", "k2", "k1"]
    assert replays.durations.tolist() == [[10000, 5000, 20000], [12000, 5000, 20000], [9000, 5000, 25000]]
    assert replays.spread.tolist() == [3000, 0, 5000]
    other = replays_of(index, launches, calls[3])
    assert other is not None and other.launches.tolist() == [calls[3]]
    assert replays_of(index, launches, named(index, "k0")) is None


def test_the_demo_tells_op_step_and_annotation(tmp_path: Path) -> None:
    """Where the launch stands in an annotation of its own, the op around it is not left out."""
    from tracelane.core import open_trace

    write_demo(tmp_path)
    trace = open_trace([tmp_path / "rank0.pt.trace.json"], index_dir=tmp_path / "index")
    index = trace.indexes[0]
    mm = next(
        p
        for p in trace.launches(0).kernels.tolist()
        if any(names(index)[a] == "aten::mm" for a in enclosing(index, launch_of(index, p)[0] or p))
    )
    links = [(link.role, names(index)[link.position].split("_")[0]) for link in chain_of(index, mm)]
    roles = [role for role, _ in links]
    assert roles[:2] == ["kernel", "launch"]
    assert ("annotation", "launch") in links
    assert ("op", "aten::mm") in links
    assert roles.index("op") < roles.index("step")
    trace.close()


def test_what_only_tells_of_work_is_no_work(tmp_path: Path) -> None:
    """Device categories that mark time but are not launched are never counted as kernels."""
    events = [
        complete(0, 9, "launch", "cuda_runtime", args={"correlation": 1}),
        *(complete(20, 5, c, c, pid=0, args={"correlation": 1}) for c in sorted(NOT_LAUNCHED)),
        complete(20, 5, "k", "kernel", pid=0, tid=2, args={"correlation": 1}),
    ]
    index = index_of(events, tmp_path)
    assert [names(index)[p] for p in launches_of(index).kernels.tolist()] == ["k"]
