"""Correlation ids that come again (wrapped around, merged ranks) join the nearest launch before the work."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CASES, needs_cases
from tests.events import complete, flow, index_of
from tracelane.core import open_trace
from tracelane.core.index.store import Index
from tracelane.core.query.launches import launch_of, launches_of


def launches_by_kernel(index: Index) -> dict[str, tuple[str | None, bool]]:
    """Return per piece of device work (its launch and the start of it in µs, whether that is doubtful)."""
    launches = launches_of(index)
    names = index.strings(index.column("slices.name"))
    result: dict[str, tuple[str | None, bool]] = {}
    for number, kernel in enumerate(launches.kernels.tolist()):
        launch, via = launches.launch_of(kernel)
        assert launch_of(index, kernel) == (launch, via)
        result[f"{names[kernel]}@{index.start(kernel) // 1000}"] = (
            None if launch is None else f"{names[launch]}@{index.start(launch) // 1000}",
            bool(launches.ambiguous[number]),
        )
    return result


@needs_cases
@pytest.mark.parametrize("name", ["corr_wrap", "corr_two_procs", "corr_two_procs_flows"])
def test_each_kernel_starts_5_us_after_the_launch_of_its_own(name: str, tmp_path: Path) -> None:
    """Whether ids wrap around or two ranks share them, every delay is 5 µs and nothing is doubtful."""
    trace = open_trace([CASES / "adversarial" / f"{name}.json"], index_dir=tmp_path)
    index, launches = trace.indexes[0], trace.launches(0)
    assert len(launches.kernels) == 6
    delays = {index.start(k) - index.end(n) for k, n in zip(launches.kernels.tolist(), launches.launch)}
    assert delays == {5_000}
    assert not launches.ambiguous.any()
    trace.close()


@needs_cases
def test_ranks_in_lockstep_are_told_apart_by_the_file(tmp_path: Path) -> None:
    """Where both ranks launch at the same time with the same ids, each device belongs to the rank whose
    events stand beside its own.
    """
    trace = open_trace([CASES / "adversarial" / "merged2.json"], index_dir=tmp_path)
    index, launches = trace.indexes[0], trace.launches(0)
    pids = [p.pid for p in trace.processes]
    assert len(launches.kernels)
    for kernel, launch in zip(launches.kernels.tolist(), launches.launch.tolist()):
        device, host = (
            pids[int(index.lanes["process"][index.rows[index.row_of(at)]["lane"]])] for at in (kernel, launch)
        )
        assert (device, host) in {("0", "100"), ("1", "101")}
    trace.close()


def test_a_launch_after_its_work_is_doubtful(tmp_path: Path) -> None:
    """Clocks that disagree may put the only launch behind its work: it is taken, and marked."""
    events = [
        complete(0, 5, "k", "kernel", pid=0, args={"correlation": 3}),
        complete(50, 5, "launch", "cuda_runtime", args={"correlation": 3}),
    ]
    assert launches_by_kernel(index_of(events, tmp_path)) == {"k@0": ("launch@50", True)}


def test_launches_that_begin_together_are_doubtful(tmp_path: Path) -> None:
    """Of two calls with one id that begin at the same time either may be meant."""
    events = [
        complete(10, 5, "one", "cuda_runtime", args={"correlation": 3}),
        complete(10, 5, "other", "cuda_runtime", tid=2, args={"correlation": 3}),
        complete(20, 5, "k", "kernel", pid=0, args={"correlation": 3}),
    ]
    ((launch, doubtful),) = launches_by_kernel(index_of(events, tmp_path)).values()
    assert launch in {"one@10", "other@10"} and doubtful


@pytest.mark.parametrize("seed", range(6))
def test_the_join_is_the_definition(seed: int, tmp_path: Path) -> None:
    """Over random ids that come again in one process the launch is the last before, else the first after."""
    pick = random.Random(seed)
    calls = [(pick.randrange(1, 6), 10 * pick.randrange(0, 300)) for _ in range(40)]
    work = [(pick.randrange(1, 7), pick.randrange(0, 3000)) for _ in range(60)]
    events: list[dict[str, Any]] = [
        complete(ts, 1, f"l{n}", "cuda_runtime", tid=n, args={"correlation": c})
        for n, (c, ts) in enumerate(calls)
    ]
    events += [
        complete(ts, 1, f"k{n}", "kernel", pid=0, tid=n, args={"correlation": c})
        for n, (c, ts) in enumerate(work)
    ]
    index = index_of(events, tmp_path)
    launches = launches_of(index)
    names = index.strings(index.column("slices.name"))
    starts = {name: index.start(position) // 1000 for position, name in enumerate(names)}
    assert len(launches.kernels) == len(work)
    for number, kernel in enumerate(launches.kernels.tolist()):
        correlation, time = work[int(names[kernel][1:])]
        times = sorted(ts for c, ts in calls if c == correlation)
        before = [ts for ts in times if ts <= time]
        launch, via = launches.launch_of(kernel)
        assert launch_of(index, kernel) == (launch, via)
        if not times:
            assert launch is None
            continue
        assert launch is not None
        chosen = before[-1] if before else times[0]
        assert starts[names[launch]] == chosen
        assert bool(launches.ambiguous[number]) == (not before or times.count(chosen) > 1)


@pytest.mark.parametrize("shift", [0, 7, 400])
def test_arrows_of_ranks_with_one_numbering_do_not_cross(shift: int, tmp_path: Path) -> None:
    """Two ranks merged into one file share the ids of their arrows, too: work belongs to its own rank, also
    where the other rank's launch with this id is nearer.
    """
    events = []
    for rank, late in enumerate((0, shift)):
        for number in range(6):
            call, work = 100 * number + late, 100 * number + late + 450
            about = {"correlation": number + 1}
            events += [
                complete(call, 5, f"launch{rank}", "cuda_runtime", pid=100 + rank, args=about),
                flow("s", call, number + 1, pid=100 + rank),
                complete(work, 50, f"k{rank}", "kernel", pid=rank, args=about),
                flow("f", work, number + 1, pid=rank, bp="e"),
            ]
    by_kernel = launches_by_kernel(index_of(events, tmp_path))
    assert len(by_kernel) == 12
    for kernel, (launch, doubtful) in by_kernel.items():
        name, at = kernel.split("@")
        assert launch == f"launch{name[1:]}@{int(at) - 450}" and not doubtful


@pytest.mark.slow
@pytest.mark.parametrize("by_flow", [False, True])
@pytest.mark.parametrize("later_us", [0, 3, 37])
@pytest.mark.parametrize("one_stream", [False, True])
def test_merged_ranks_whose_devices_have_one_number(
    by_flow: bool, later_us: int, one_stream: bool, tmp_path: Path
) -> None:
    """Each rank called its device 0: with a stream each its work is its own, on one stream in turn, said."""
    events: list[dict[str, Any]] = []
    for rank in range(2):
        for number in range(1, 9):
            at, stream = number * 100 + rank * later_us, 7 if one_stream else 7 + rank
            ids = {"correlation": number}
            events += [
                complete(at, 5, f"launch{rank}", "cuda_runtime", pid=100 + rank, args=ids),
                complete(at + 12 + rank, 4, f"k{rank}", "kernel", pid=0, tid=stream, args=ids),
            ]
            if by_flow:
                events.append(flow("s", at, number, pid=100 + rank))
                events.append(flow("f", at + 12 + rank, number, bp="e", pid=0, tid=stream))
    launches = launches_by_kernel(index_of(events, tmp_path))
    assert len(launches) == 16
    for kernel, (launch, doubtful) in launches.items():
        assert launch is not None and launch[6] == kernel[1] and doubtful == one_stream
        assert int(kernel.split("@")[1]) - int(launch.split("@")[1]) == 12 + int(kernel[1])


def test_a_graph_on_a_merged_device_is_no_second_process(tmp_path: Path) -> None:
    """One launch of many kernels does not make its device one of several processes."""
    events: list[dict[str, Any]] = []
    for rank in range(2):
        for number in range(1, 5):
            at, ids = number * 100 + rank, {"correlation": number}
            events.append(complete(at, 5, f"launch{rank}", "cuda_runtime", pid=100 + rank, args=ids))
            events += [
                complete(at + 10 + 3 * each, 2, f"k{rank}", "kernel", pid=rank, tid=7, args=ids)
                for each in range(20)
            ]
    by_kernel = launches_by_kernel(index_of(events, tmp_path))
    assert len(by_kernel) == 160
    for kernel, (launch, doubtful) in by_kernel.items():
        assert launch is not None and launch[6] == kernel[1] and not doubtful
