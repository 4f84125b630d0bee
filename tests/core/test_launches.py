"""What launched a piece of device work, and what was launched under a slice: by correlation, flow, time."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CASES, CORPUS, file, files, for_files, needs, traces
from tests.events import complete, flow, index_of
from tracelane.core.base.errors import TracelaneError
from tracelane.core.base.kineto import NOT_LAUNCHED, OPS
from tracelane.core.demo.trace import write_demo
from tracelane.core.index.format import NONE
from tracelane.core.index.store import Index
from tracelane.core.query.chain import chain_of, enclosing, full_chain, replays_of
from tracelane.core.query.launches import kernels_under, launch_of, launches_of
from tracelane.core.sql.query import run_query
from tracelane.core.tables.device.kernels import OUTSIDE, instances, kernels
from tracelane.core.tables.frame.frame_columns import work_of
from tracelane.core.tables.frame.scope import Attribute, Scope
from tracelane.core.tables.host.op_sums import work_positions
from tracelane.core.tables.host.ops import REST, ops
from tracelane.core.tables.metric_groups import metrics
from tracelane.core.tables.steps.attribution import (
    StepRule,
    StepsOfWork,
    by_step,
    scope_of_step,
    steps_of_work,
    work_by_steps,
)
from tracelane.core.tables.steps.steps import steps
from tracelane.core.trace import Trace, open_trace, trace_of
from tracelane.core.trace.step_choice import Steps, find_steps
from tracelane.core.trace.step_spans import step_spans
from tracelane.tui.actions.ranges import scope_of
from tracelane.tui.actions.view import first_session

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


TRACES = traces("*/*.json*")
KEYS = ("op", "module", "annotation")


def by(trace: Trace, key: str) -> dict[str, int]:
    table = kernels(Scope(trace, clocks=trace.clocks), key)
    return dict(zip(table["name"], table["total_ns"].tolist()))


def test_the_innermost_counts(tmp_path: Path) -> None:
    """An op within an op, a module within a module, an annotation but not that of the step; what lies outside
    all of them and what has no launch in the file are told apart.
    """
    launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel"}
    events = [
        complete(0, 100, "ProfilerStep#1", "user_annotation"),
        complete(1, 60, "## forward ##", "user_annotation"),
        complete(2, 50, "nn.Module: Net_0", "python_function"),
        complete(3, 40, "nn.Module: Linear_7", "python_function"),
        complete(4, 30, "aten::linear"),
        complete(5, 20, "aten::addmm"),
        complete(6, 2, **launch, args={"correlation": 1}),
        complete(70, 2, **launch, args={"correlation": 2}),
        complete(20, 5, "gemm", "kernel", pid=0, tid=7, args={"correlation": 1}),
        complete(80, 7, "fill", "kernel", pid=0, tid=7, args={"correlation": 2}),
        complete(90, 3, "lost", "kernel", pid=0, tid=7, args={"correlation": 3}),
    ]
    trace = trace_of("t.json", index_of(events, tmp_path))
    rest = {key: {f"launched outside any {key}": 7000, "launch not in the file": 3000} for key in KEYS}
    assert by(trace, "op") == {"aten::addmm": 5000, **rest["op"]}
    assert by(trace, "module") == {"Linear_7": 5000, **rest["module"]}
    assert by(trace, "annotation") == {"## forward ##": 5000, **rest["annotation"]}
    query = "select name, op, module, annotation from kernels order by ts"
    with run_query(trace, query, "sqlite") as answer:
        assert list(answer.rows) == [
            ("gemm", "aten::addmm", "Linear_7", "## forward ##"),
            ("fill", None, None, None),
            ("lost", None, None, None),
        ]


def test_device_time_of_an_op(tmp_path: Path) -> None:
    """Of work that it launched itself, of that below it too, and how long any of that ran; and in a range."""
    launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel"}
    events = [
        complete(0, 40, "outer"),
        complete(1, 2, **launch, args={"correlation": 1}),
        complete(5, 10, "inner"),
        complete(6, 2, **launch, args={"correlation": 2}),
        complete(50, 40, "outer"),
        complete(51, 2, **launch, args={"correlation": 3}),
        complete(95, 2, **launch, args={"correlation": 4}),
        complete(20, 10, "k", "kernel", pid=0, tid=7, args={"correlation": 1}),
        complete(25, 20, "k", "kernel", pid=0, tid=8, args={"correlation": 2}),
        complete(60, 10, "k", "kernel", pid=0, tid=7, args={"correlation": 3}),
        complete(97, 5, "k", "kernel", pid=0, tid=7, args={"correlation": 4}),
        complete(103, 7, "k", "kernel", pid=0, tid=7, args={"correlation": 5}),
    ]
    trace = trace_of("t.json", index_of(events, tmp_path))
    keys = ("device_self_ns", "device_total_ns", "device_busy_ns")
    table = ops(Scope(trace))
    rows = {row["name"]: tuple(row[key] // 1000 for key in keys) for row in table.rows()}
    assert (rows["outer"], rows["inner"], rows["k"]) == ((20, 40, 35), (20, 20, 20), (0, 52, 0))
    assert [table.totals[key] for key in REST] == [5_000, 7_000]
    with run_query(trace, f"select name, {', '.join(keys)} from ops order by ts", "sqlite") as answer:
        assert [(name, *(ns // 1000 for ns in times)) for name, *times in answer.rows] == [
            ("outer", 10, 30, 25),
            ("inner", 20, 20, 20),
            ("outer", 10, 10, 10),
        ]
    later = ops(Scope(trace, (50_000, 110_000)))
    assert dict(zip(later["name"], later["device_self_ns"].tolist()))["outer"] == 10_000
    assert [later.totals[key] for key in REST] == [5_000, 7_000]


@for_files("path", TRACES)
def test_no_work_is_lost(path: str, corpus_cache: Path) -> None:
    """On every real trace the times by op, module or annotation add up to all device work, to the ns, and the
    op is the first that a climb from the launch meets.
    """
    try:
        trace = open_trace(file(path), index_dir=corpus_cache)
    except TracelaneError as error:  # files that are no traces are other tests' matter
        pytest.skip(str(error))
    work = work_of(Scope(trace, clocks=trace.clocks))
    for key in KEYS:
        assert sum(by(trace, key).values()) == int(work.dur.sum())
    index, parents = trace.indexes[0], trace.indexes[0].column("slices.parent")
    categories = index.column("slices.category")
    for at, position in list(zip(work.op_at.tolist(), work.launched.tolist()))[:3000]:
        while position not in (-1, NONE) and index.categories[int(categories[position])] not in OPS:
            position = int(parents[position])
        assert at == (-1 if position == NONE else position)
    with run_query(
        trace, "select o.name, k.op, k.dur from kernels k left join ops o on o.id = k.op_id", "sqlite"
    ) as answer:
        times: Counter[str] = Counter()
        for joined, op, ns in answer.rows:
            assert joined == op
            times[op or ""] += ns
    named = {name: ns for name, ns in by(trace, "op").items() if not name.startswith("launch")}
    assert {name: ns for name, ns in times.items() if name} == named
    table = ops(Scope(trace, clocks=trace.clocks))
    linked = int(table.numbers("device_self_ns").sum())
    assert linked + sum(table.totals[key] for key in REST) == int(work.dur.sum())
    assert (table.numbers("device_busy_ns") >= 0).all()
    query = "select sum(device_self_ns), min(device_total_ns - device_self_ns) from ops"
    with run_query(trace, query, "sqlite") as answer:
        own, rest = next(answer.rows)
        assert (own or 0, (rest or 0) >= 0) == (sum(named.values()), True)


@needs(CORPUS)
@pytest.mark.parametrize(
    ("path", "linked_ns", "busy_ns"),
    [
        # The others' figure leaves out 81 memsets (133,212 ns) that a correlation links and no flow.
        ("gpu/tl_mi300_resnet_train_rank0of8.json.gz", 56_100_855 + 133_212, 84_002_056),
        ("gpu/tl_h100_qwen_infer.json.gz", 31_905_473, 45_647_300),
    ],
)
def test_how_much_is_linked(path: str, linked_ns: int, busy_ns: int, corpus_cache: Path) -> None:
    """The busy time of linked work on two traces is what a tool of others said, and memsets."""
    work = work_of(Scope(open_trace(file(path), index_dir=corpus_cache)))
    assert (work.union(work.op_at >= 0).length, work.union().length) == (linked_ns, busy_ns)


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


@needs(CASES)
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


@needs(CASES)
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
    work = [(pick.randrange(1, 7), pick.randrange(0, 3000)) for _ in range(40)]
    work += [(pick.randrange(1, 7), pick.choice(calls)[1]) for _ in range(20)]  # some as they are called
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


def attributed(trace: Trace) -> tuple[Steps, StepsOfWork]:
    """Return the steps of a trace's first source and the step of all its device work."""
    marks = find_steps(trace, 0)
    assert marks is not None
    return marks, steps_of_work(Scope(trace), marks, work_positions(trace.indexes[0], trace.launches(0)))


@needs(CASES)
def test_work_after_the_end_of_a_step_belongs_to_it(tmp_path: Path) -> None:
    """Kernels that run on into the next step, or after the last, belong whole to their launch's step."""
    trace = open_trace([CASES / "adversarial" / "steps_dev.json"], index_dir=tmp_path)
    _, work = attributed(trace)
    assert work.steps.tolist() == [0, 1, 2]
    assert trace.indexes[0].duration(work.positions).tolist() == [400_000] * 3
    assert work.rules.tolist() == [StepRule.LAUNCH] * 3
    trace.close()


@needs(CASES)
@pytest.mark.parametrize("name", ["steps_threads", "steps_nested_same"])
def test_a_step_marked_twice_is_one(name: str, tmp_path: Path) -> None:
    """Marks of one step on several threads, or one in the other, make three steps of 900 µs."""
    trace = open_trace([CASES / "adversarial" / f"{name}.json"], index_dir=tmp_path)
    marks = find_steps(trace, 0)
    assert marks is not None
    assert (marks.ends - marks.starts).tolist() == [900_000] * 3
    trace.close()


def test_without_a_launch_the_annotation_on_its_stream_tells(tmp_path: Path) -> None:
    """A kernel without a launch belongs to the step whose device annotation spans it, else by its start."""
    events = [complete(1000 * n, 1000, f"ProfilerStep#{n}", "user_annotation") for n in range(3)]
    events += [
        complete(1500 + 1000 * n, 900, f"ProfilerStep#{n}", "gpu_user_annotation", pid=0) for n in range(3)
    ]
    events += [complete(2600, 100, "in the annotation of 1", "kernel", pid=0)]
    events += [complete(2700, 100, "on another stream", "kernel", pid=0, tid=9)]
    events += [complete(9000, 100, "nowhere", "kernel", pid=0, tid=9)]
    trace = Trace([index_of(events, tmp_path)])
    _, work = attributed(trace)
    names = trace.indexes[0].strings(trace.indexes[0].column("slices.name")[work.positions])
    assert dict(zip(names, work.steps.tolist())) == {
        "in the annotation of 1": 1,
        "on another stream": 2,
        "nowhere": -1,
    }
    assert sorted(work.rules.tolist()) == [StepRule.NONE, StepRule.ANNOTATION, StepRule.START]


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        # what runs before: (start, name, stream); the calls of `gemm` from 1300 on are in the file
        ((1100, "gemm", 7), -1),  # its call was made before that of what runs next on its stream
        ((2100, "gemm", 7), -1),  # the device is a step behind
        ((100, "gemm", 7), 0),  # in a step before
        ((1100, "triton", 7), 1),  # calls of its kind are in no file
        ((1100, "gemm", 9), 1),  # nothing on its stream has a call
        ((2700, "gemm", 7), 2),  # after others that have one
    ],
    ids=["before", "behind", "earlier", "unknown", "stream", "after"],
)
def test_work_launched_before_the_recording_is_of_no_step(
    first: tuple[int, str, int], expected: int, tmp_path: Path
) -> None:
    """What runs before all launched work of its stream was launched before that: not in the first step that
    launches, though it runs in it.
    """
    events = [complete(1000 * n, 1000, f"ProfilerStep#{n}", "user_annotation") for n in range(4)]
    for n in range(4):
        ids = {"correlation": n + 1}
        events.append(complete(1300 + 10 * n, 5, "cudaLaunchKernel", "cuda_runtime", args=ids))
        events.append(complete(2300 + 100 * n, 50, "gemm", "kernel", pid=0, tid=7, args=ids))
    start, name, stream = first
    events.append(complete(start, 50, name, "kernel", pid=0, tid=stream))
    trace = Trace([index_of(events, tmp_path)])
    _, work = attributed(trace)
    starts = trace.indexes[0].column("slices.start")[work.positions] // 1000
    by_start = dict(zip(starts.tolist(), zip(work.steps.tolist(), work.rules.tolist())))
    rule = StepRule.NONE if expected < 0 else StepRule.START
    assert by_start.pop(start) == (expected, rule)
    assert set(by_start.values()) == {(1, StepRule.LAUNCH)}


@pytest.mark.parametrize("seed", range(5))
def test_launches_go_to_the_step_that_holds_them(seed: int, tmp_path: Path) -> None:
    """With steps that overlap and leave gaps each kernel goes to the latest step begun that still lasts."""
    pick = random.Random(seed)
    spans = [(100 * n + pick.randrange(0, 90), pick.randrange(20, 260)) for n in range(12)]
    events: list[dict[str, Any]] = [
        complete(ts, dur, f"ProfilerStep#{n}", "user_annotation", tid=n % 3)
        for n, (ts, dur) in enumerate(spans)
    ]
    calls = [pick.randrange(0, 1600) for _ in range(80)]
    for n, ts in enumerate(calls):
        ids = {"correlation": n + 1}
        events.append(complete(ts, 1, "launch", "cuda_runtime", tid=50 + n, args=ids))
        events.append(complete(ts + pick.randrange(0, 500), 1, f"{n}", "kernel", pid=0, tid=n, args=ids))
    trace = Trace([index_of(events, tmp_path)])
    marks, work = attributed(trace)
    names = trace.indexes[0].strings(trace.indexes[0].column("slices.name")[work.positions])
    assert len(names) == len(calls)
    for name, step in zip(names, work.steps.tolist()):
        time = calls[int(name)]
        holding = [n for n, (ts, dur) in enumerate(spans) if ts <= time < ts + dur]
        latest = max(holding, key=lambda n: spans[n][0], default=None)
        assert (marks.labels[step] if step >= 0 else None) == (None if latest is None else str(latest))


SPYRE = CORPUS / "aiu" / "spyre_torch_profiler"
STEPPED = (
    "gpu/hta_a100_resnet_ddp_nccl.json.gz",
    "gpu/hta_mtia_inference_rank0.json.gz",
    "gpu/kineto2021_resnet50_strtid_memory.pt.trace.json.gz",
    "gpu/tl_h100_qwen_infer.json.gz",
    "gpu/tl_mi300_resnet_train_rank0of8.json.gz",
    "gpu/tl_sglang_decode_graph.json.gz",
    "gpu/tl_vllm_decode_cudagraph_exec.json.gz",
    "aiu/mlp_trace.json",
    "cpu/torch213_mlp_shapes_mem_stack_steps.json.gz",
    "multirank/dlrm_8gpu_ranks0-3",
    *files("aiu/spyre_torch_profiler/*"),
    *("cuda/gloo.pt.trace.json.gz", "cuda/stacks.pt.trace.json.gz"),
)


@pytest.mark.slow
@for_files("name", STEPPED)
def test_every_table_gives_a_step_the_work_that_it_launched(name: str, corpus_cache: Path) -> None:
    """Kernels by step, of one step, in the table of steps, the summary and the viewer are the same ones; over
    all steps and what is outside they come to the whole, exactly.
    """
    trace = open_trace([file(name)], index_dir=corpus_cache)
    scope = Scope(trace, clocks=trace.clocks)
    spans = step_spans(trace, trace.clocks)
    assert spans is not None
    nothing = {"count": 0, "total_ns": 0}
    rows = {row["name"]: row for row in kernels(scope, by="step").rows()}
    work = work_by_steps(scope, spans)
    for step, title in enumerate(spans.titles):
        of_step = scope_of_step(scope, spans, step, work)
        row = rows.get(f"step {title}", nothing)
        alone = kernels(of_step).totals
        assert (alone["count"], alone["total_ns"]) == (row["count"], row["total_ns"])
        summed = metrics(of_step, ["kernels"])
        assert summed["kernels.calls"].value == row["count"]
        assert (summed["kernels.total"].value or 0) == row["total_ns"]
        session = first_session(trace, 80)._replace(range=of_step.range, clocks=trace.clocks)
        totals = kernels(scope_of(trace, session)).totals
        assert (totals["count"], totals["total_ns"]) == (row["count"], row["total_ns"])
    whole = kernels(scope).totals
    assert sum(row["count"] for row in rows.values()) == whole["count"]  # type: ignore[misc]
    assert sum(row["total_ns"] for row in rows.values()) == whole["total_ns"]  # type: ignore[misc]
    table = steps(scope)
    for key, total in (("device_ns", "total_ns"), ("device_slices", "count")):
        outside = table.totals["outside_ns" if key == "device_ns" else "outside_slices"]
        assert int(table.numbers(key).sum()) + outside == whole[total]
        assert outside == rows.get(OUTSIDE, nothing)[total]
    by_rule = sum(table.numbers(f"by_{rule}") for rule in ("launch", "annotation", "start"))
    assert (by_rule == table.numbers("device_slices")).all()
    trace.close()


def every_trace() -> list[Path]:
    """Return all traces of profilers, of the small cases too, and the folders of ranks."""
    folders = ("gpu", "aiu", "aiu/spyre_torch_profiler", "cpu", "cases/adversarial", "cases/cheat")
    paths = traces(*(f"{folder}/*.json{ending}" for folder in folders for ending in ("", ".gz")))
    return paths + sorted((CORPUS / "multirank").glob("*"))


@pytest.mark.slow
@pytest.mark.parametrize("attribute", ["launch", "window"])
@for_files("path", every_trace())
def test_steps_and_what_is_outside_come_to_the_whole(
    path: Path, attribute: Attribute, corpus_cache: Path
) -> None:
    """Device time over all steps and outside of them is the trace's, less what windows that overlap share."""
    trace = open_trace([path], index_dir=corpus_cache)
    scope = Scope(trace, clocks=trace.clocks, attribute=attribute)
    whole = kernels(scope).totals
    table = steps(scope)
    shared_ns = table.totals["shared_ns"] if attribute == "window" else 0
    assert int(table.numbers("device_ns").sum()) + table.totals["outside_ns"] - shared_ns == whole["total_ns"]
    rows = {row["name"]: row for row in kernels(scope, by="step").rows()}
    outside = rows.get(OUTSIDE, {"count": 0, "total_ns": 0})
    assert outside["total_ns"] == table.totals["outside_ns"]
    assert outside["count"] == table.totals["outside_slices"]
    if attribute == "launch":
        assert int(table.numbers("device_slices").sum()) + outside["count"] == whole["count"]
    trace.close()


def test_work_is_cut_at_windows_as_a_plain_loop_does(tmp_path: Path) -> None:
    """With steps that overlap, touch and leave gaps each piece counts with its part in each step."""
    pick = random.Random(3)
    marks = [(0, 90), (60, 70), (130, 40), (170, 30), (260, 100)]
    times = [(pick.randrange(0, 400), pick.choice([0, 1, 7, 60, 200])) for _ in range(200)]
    events: list[dict[str, Any]] = [
        complete(ts, dur, f"ProfilerStep#{n}", "user_annotation", tid=n) for n, (ts, dur) in enumerate(marks)
    ]
    events += [complete(ts, dur, f"k{n}", "kernel", pid=0, tid=n) for n, (ts, dur) in enumerate(times)]
    trace = Trace([index_of(events, tmp_path)])
    scope, spans = Scope(trace, attribute="window"), step_spans(trace)
    assert spans is not None
    rows = {row["name"]: row for row in kernels(scope, by="step").rows()}
    for n, (low, dur) in enumerate(marks):
        high = low + dur
        parts = [
            min(ts + length, high) - max(ts, low)
            for ts, length in times
            if low <= ts < high or (ts < low < ts + length)
        ]
        row = rows[f"step {n}"]
        assert (row["count"], row["total_ns"]) == (len(parts), 1000 * sum(parts))
        alone = kernels(scope_of_step(scope, spans, n)).totals
        assert (alone["count"], alone["total_ns"]) == (row["count"], row["total_ns"])
    outside = sum(
        sum(not any(low <= at < low + dur for low, dur in marks) for at in range(ts, ts + length))
        for ts, length in times
    )
    assert rows[OUTSIDE]["total_ns"] == 1000 * outside


def test_steps_of_one_name_are_rows_of_their_own(tmp_path: Path) -> None:
    """Steps that an engine calls by their kind are told apart as --step takes them."""
    events = [complete(100 * n, 90, "step[DECODE bs=4]", "user_annotation") for n in range(3)]
    events += [complete(100 * n + 10, 10 + n, "k", "kernel", pid=0) for n in range(3)]
    trace = Trace([index_of(events, tmp_path)])
    rows = {row["name"]: row["total_ns"] for row in kernels(Scope(trace), by="step").rows()}
    assert sorted(rows.values()) == [10_000, 11_000, 12_000]
    assert all("(nth:" in str(name) for name in rows)
    assert len(by_step(Scope(trace), kernels)) == 3


def test_runs_of_kernels_tell_the_step_of_their_launch(tmp_path: Path) -> None:
    """A run's step is the one that launched it, by window the one in which it starts."""
    events = [complete(100 * n, 100, f"ProfilerStep#{n}", "user_annotation") for n in range(2)]
    events += [complete(90, 2, "launch", "cuda_runtime", args={"correlation": 1})]
    events += [complete(120, 30, "k", "kernel", pid=0, args={"correlation": 1})]
    trace = Trace([index_of(events, tmp_path)])
    for attribute, step in (("launch", "0"), ("window", "1")):
        table, _ = instances(Scope(trace, attribute=attribute), "k")  # type: ignore[arg-type]
        assert [row["step"] for row in table.rows()] == [step]


def test_a_file_without_steps_is_outside(tmp_path: Path) -> None:
    """Of two files of which one has no steps, the other's device work is outside of all of them."""
    own = [complete(0, 100, "ProfilerStep#0", "user_annotation"), complete(10, 20, "k", "kernel", pid=0)]
    other = [complete(10, 30, "k", "kernel", pid=0)]
    trace = Trace([index_of(own, tmp_path / "a"), index_of(other, tmp_path / "b")])
    scope = Scope(trace)
    rows = {row["name"]: row["total_ns"] for row in kernels(scope, by="step").rows()}
    assert rows == {"step 0": 20_000, OUTSIDE: 30_000}
    assert steps(scope).totals["outside_ns"] == 30_000
    spans = step_spans(trace)
    assert spans is not None
    assert kernels(scope_of_step(scope, spans, 0)).totals["total_ns"] == 20_000
