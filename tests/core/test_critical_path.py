"""The critical path: what released each point, its length with other times, and against HTA's."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.hta_path import DEPENDENCY, OPERATOR, SYNC, HtaPath, events_of
from tests.corpus import CORPUS, GOLDENS, file, for_files, needs, traces
from tests.events import complete, flow, index_of, write_events
from tests.rank_files import REDUCE
from tracelane.core.base.errors import Cancelled, TracelaneError, UsageError
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.path.critical_path import analyse_critical_path, critical_path
from tracelane.core.tables.path.path_change import TimeChange, new_length, scale_of
from tracelane.core.tables.selection import Selection
from tracelane.core.trace import Trace, open_trace, trace_of
from tracelane.tui.cli.main import EXIT_USAGE, main

TRACES = traces("*/*.json*")
LAUNCH = {"cat": "cuda_runtime", "name": "cudaLaunchKernel"}
Events = list[dict[str, Any]]


def launched(at: float, start: float, dur: float, number: int, name: str = "gemm", **more: Any) -> Events:
    """Return a launch call of 2 µs and its kernel."""
    kernel = {"cat": "kernel", "pid": 0, "tid": 7, **more}
    stream = {"correlation": number, "stream": kernel["tid"], "device": 0}
    return [
        complete(at, 2, **LAUNCH, args={"correlation": number}),
        complete(start, dur, name, args={**stream, **more.pop("args", {})}, **kernel),
    ]


def sync(at: float, dur: float, name: str = "cudaDeviceSynchronize", **more: Any) -> dict[str, Any]:
    """Return a call that waits."""
    return complete(at, dur, name, **{"cat": "cuda_runtime", **more})


def trace_of_events(events: Events, folder: Path) -> Trace:
    return trace_of("t.json", index_of(events, folder))


def written(events: Events, folder: Path) -> Trace:
    """Return a trace whose file is there, so that arguments can be read from it."""
    folder.mkdir(exist_ok=True)
    (folder / "t.json").write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return open_trace(folder / "t.json", index_dir=folder / "index")


def path_of(trace: Trace, **options: Any) -> list[tuple[Any, ...]]:
    """Return (kind, name, ns, via, inferred) of each segment, by time."""
    table = analyse_critical_path(Scope(trace, clocks=trace.clocks), **options)["segments"]
    keys = ("kind", "name", "duration_ns", "via", "inferred")
    return [tuple(row[key] for key in keys) for row in table.rows()]


def length(trace: Trace, name: str, factor: float = 0.0) -> tuple[int, int]:
    """Return the length in µs and that with other times of a name."""
    path = critical_path(Scope(trace, clocks=trace.clocks))
    return path.elapsed_ns // 1000, new_length(
        path.graph, TimeChange.of(path.graph, name, factor), path.end
    ) // 1000


@pytest.mark.parametrize(
    "frame",
    [
        {"name": "forward", "cat": "user_annotation"},
        {"name": "train.py(3): forward", "cat": "python_function"},
        {"name": "ProfilerStep#4", "cat": "cpu_op"},
    ],
)
def test_what_gains_most_is_no_frame(frame: dict[str, str], tmp_path: Path) -> None:
    """Annotations, Python's frames and steps last long, but what is done in them is what could be quicker."""
    events = [
        complete(0, 1000, **frame),
        complete(10, 190, "aten::mm"),
        complete(300, 50, "aten::add"),
        complete(400, 20, "aten::mm"),
    ]
    trace = trace_of_events(events, tmp_path)
    gain = critical_path(Scope(trace, clocks=trace.clocks)).gain()
    assert gain is not None and (gain.name, gain.path_ns) == ("aten::mm", 210_000)
    assert (gain.less_ns, gain.saved_ns) == (21_000, 21_000)


# -- totals -----------------------------------------------------------------------------------------------


@needs(CORPUS)
@pytest.mark.parametrize(
    ("path", "step", "ns"),
    [
        ("gpu/hta_a100_resnet_ddp_nccl.json.gz", 5, 219_726_905),
        ("gpu/tl_h100_qwen_infer.json.gz", 6, 49_378_903),
        ("gpu/tl_mi300_resnet_train_rank0of8.json.gz", 16, 51_225_503),
        ("gpu/hta_cuda_event_sync.json.gz", 100, 3_154_000),
    ],
)
def test_segments_add_up_to_the_step(path: str, step: int, ns: int, corpus_cache: Path) -> None:
    """To the end of the last work that the step launched, to the ns."""
    trace = open_trace(file(path), index_dir=corpus_cache)
    tables = analyse_critical_path(Selection(step=step).scope(trace), by="kind")
    (summary,) = tables["path_summary"].rows()
    assert (
        summary["elapsed_ns"]
        == summary["length_ns"]
        == int(tables["segments"].numbers("duration_ns").sum())
        == ns
    )
    assert int(tables["path"].numbers("duration_ns").sum()) == ns
    assert summary["edges"] == len(tables["segments"]) == summary["nodes"] - 1
    assert sum(value for key, value in summary.items() if key.endswith("_share")) == pytest.approx(1)


@for_files("path", TRACES)
def test_a_path_has_no_holes(path: str, corpus_cache: Path) -> None:
    """On every real trace the segments follow one another from the window's start to its end, lie in their
    slices, and the window is as long as it is when nothing changes.
    """
    try:
        trace = open_trace(file(path), index_dir=corpus_cache)
    except TracelaneError as error:  # files that are no traces are other tests' matter
        pytest.skip(str(error))
    one = critical_path(Scope(trace, clocks=trace.clocks))
    segments, (low, _) = one.segments, one.graph.window
    if not len(segments):
        assert not len(one.graph.work) and not any(len(thread.positions) for thread in one.graph.threads)
        return
    assert (segments.starts[0], segments.ends[-1]) == (low, low + one.elapsed_ns)
    assert (segments.starts[1:] == segments.ends[:-1]).all() and (segments.durations > 0).all()
    is_slice = (segments.kinds == 0) | (segments.kinds >= 4) & (segments.kinds <= 6)
    for at in np.flatnonzero(is_slice)[:2000].tolist():
        source, position = int(segments.sources[at]), int(segments.positions[at])
        start = int(one.graph.scope.starts(source, np.array([position]))[0])
        end = start + int(trace.indexes[source].duration(np.array([position]))[0])
        assert start <= segments.starts[at] < segments.ends[at] <= end
    names = one.names.tolist()
    assert len(names) == len(one.ops.tolist()) == len(segments)
    for name in [name for name in dict.fromkeys(names) if not name.startswith("(")][:3]:
        assert new_length(one.graph, TimeChange.of(one.graph, name, 1.0), one.end) == one.elapsed_ns


# -- programs whose answer is known -----------------------------------------------------------------------


def test_a_serial_program(tmp_path: Path) -> None:
    """Each kernel is waited for: all of it is on the path, and the program is as much shorter as it is."""
    events = [
        *launched(0, 5, 40, 1, "first"),
        sync(3, 44),
        *launched(50, 55, 20, 2, "second"),
        sync(53, 24),
        complete(77, 3, "aten::rest"),
    ]
    trace = trace_of_events(events, tmp_path)
    assert path_of(trace) == [
        ("launch_delay", "first", 5_000, "launch", False),
        ("kernel", "first", 40_000, "launch", False),
        ("sync_return", "cudaDeviceSynchronize", 2_000, "sync", True),
        ("host_idle", "(nothing runs)", 3_000, "sync", True),
        ("launch_delay", "second", 5_000, "launch", False),
        ("kernel", "second", 20_000, "launch", False),
        ("sync_return", "cudaDeviceSynchronize", 2_000, "sync", True),
        ("host", "aten::rest", 3_000, "sync", True),
    ]
    assert length(trace, "first") == (80, 40)
    assert length(trace, "first", 0.5) == (80, 60)
    assert length(trace, "second") == (80, 60)
    assert length(trace, "aten::rest") == (80, 77)
    assert length(trace, "cudaDeviceSynchronize") == (80, 65)  # the second kernel then follows the first


def test_an_overlapped_program(tmp_path: Path) -> None:
    """Two streams, both waited for: the longer one is on the path; without it the shorter one is."""
    events = [
        *launched(0, 5, 100, 1, "long"),
        *launched(4, 10, 60, 2, "short", tid=8),
        *launched(8, 71, 20, 3, "after", tid=8),
        sync(12, 95),
    ]
    trace = trace_of_events(events, tmp_path)
    assert [row[:3] for row in path_of(trace)] == [
        ("launch_delay", "long", 5_000),
        ("kernel", "long", 100_000),
        ("sync_return", "cudaDeviceSynchronize", 2_000),
    ]
    assert length(trace, "short") == (107, 107)
    assert length(trace, "long") == (107, 93)  # short and after, and the return
    assert length(trace, "long", 0.9) == (107, 97)
    assert length(trace, "long", 2.0) == (107, 207)


def two_ranks(tmp_path: Path) -> Trace:
    """Return two ranks: the second comes 50 µs later to a collective, both together to another."""
    for rank, before in enumerate((20, 70)):
        events = [
            complete(0, 200, "ProfilerStep#1", "user_annotation"),
            *launched(10, 15, before, 1, f"gemm_{rank}"),
            *launched(14, 16 + before, 130 - before, 2, REDUCE),
            sync(20, 130),
            # A second one, so that clocks are known.
            *launched(160, 165, 10, 3, REDUCE),
            sync(163, 14),
        ]
        info = {"rank": rank, "world_size": 2}
        (tmp_path / f"rank{rank}.json").write_text(
            json.dumps({"distributedInfo": info, "traceEvents": events}), encoding="utf-8"
        )
    return open_trace(tmp_path, index_dir=tmp_path / "index")


def test_two_ranks(tmp_path: Path) -> None:
    """A collective waits for the rank that comes last: the path goes on there, and its kernel counts."""
    trace = two_ranks(tmp_path)
    path = [row[:3] for row in path_of(trace)]
    assert ("kernel", "gemm_1", 70_000) in path and "gemm_0" not in [name for _, name, _ in path]
    assert ("communication", REDUCE, 60_000) in path
    table = analyse_critical_path(Scope(trace, clocks=trace.clocks), by="rank")["path"]
    assert set(table["name"]) == {"0", "1"}
    assert length(trace, "gemm_0") == (200, 200)
    assert length(trace, "gemm_1") == (200, 150)  # then rank 0 comes last, 50 µs earlier
    started = analyse_critical_path(Scope(trace, clocks=trace.clocks), start_rank=1)["segments"]
    assert started["rank"][-1] == 1
    with pytest.raises(UsageError, match="no rank 7"):
        path_of(trace, start_rank=7)


def test_a_rank_that_has_not_come_is_waited_for(tmp_path: Path) -> None:
    """In a window that ends before the last rank comes, its collective only waits."""
    trace = two_ranks(tmp_path)
    first = trace.span[0]
    scope = Selection(begin=first, end=first + 60_000).scope(trace)
    table = analyse_critical_path(scope, start_rank=0)["segments"]
    rows = [(row["kind"], row["name"], row["duration_ns"]) for row in table.rows()]
    assert rows[-1] == ("wait_for_rank", REDUCE, 24_000) and ("kernel", "gemm_0", 20_000) in rows
    assert sum(ns for _, _, ns in rows) == 60_000


# -- what released what -----------------------------------------------------------------------------------


def test_of_two_that_end_together_the_smaller_id_counts(tmp_path: Path) -> None:
    """A kernel that waits for another stream's event and its own, which end at the same ns."""
    record = {"cat": "cuda_sync", "pid": 0, "tid": 7}
    waits = {"stream": 7, "wait_on_stream": 8, "wait_on_cuda_event_record_corr_id": 5, "correlation": 6}
    for number, streams in enumerate(((7, 8), (8, 7))):
        events = [
            *launched(0, 10, 30, 1, f"on_{streams[0]}", tid=streams[0]),
            *launched(3, 20, 20, 2, f"on_{streams[1]}", tid=streams[1]),
            complete(6, 1, "cudaEventRecord", "cuda_runtime", args={"correlation": 5}),
            complete(8, 1, "cudaStreamWaitEvent", "cuda_runtime", args={"correlation": 6}),
            complete(8, 1, "Stream Wait Event", **record, args=waits),
            *launched(10, 42, 10, 3, "waits"),
        ]
        names = [row[1] for row in path_of(written(events, tmp_path / str(number))) if row[0] == "kernel"]
        assert names == [f"on_{streams[0]}", "waits"]


@pytest.mark.parametrize("with_record", [True, False])
def test_a_stream_waits_for_an_event(with_record: bool, tmp_path: Path) -> None:
    """As the profiler's record says, else what ended last elsewhere before the work launched next."""
    waits = {"stream": 7, "wait_on_stream": 8, "wait_on_cuda_event_record_corr_id": 5, "correlation": 6}
    record = complete(8, 1, "Stream Wait Event", "cuda_sync", pid=0, tid=7, args=waits)
    events = [
        *launched(0, 5, 4, 1, "before"),
        *launched(3, 10, 50, 2, "elsewhere", tid=8),
        complete(6, 1, "cudaEventRecord", "cuda_runtime", args={"correlation": 5}),
        complete(8, 1, "cudaStreamWaitEvent", "cuda_runtime", args={"correlation": 6}),
        *launched(10, 61, 10, 3, "waits"),
        *([record] if with_record else []),
    ]
    assert path_of(written(events, tmp_path))[-3:] == [
        ("kernel", "elsewhere", 50_000, "launch", False),
        ("queue_wait", "waits", 1_000, "event", not with_record),
        ("kernel", "waits", 10_000, "event", not with_record),
    ]


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("cudaStreamSynchronize", "cuda_runtime"),
        ("cudaEventSynchronize", "cuda_runtime"),
        ("cuCtxSynchronize", "cuda_driver"),
        ("hipDeviceSynchronize", "cuda_runtime"),
        ("hipStreamSynchronize", "cuda_runtime"),
        ("urQueueFinish", "xpu_runtime"),
        ("zeCommandListHostSynchronize", "xpu_driver"),
        ("aiuScheduleWait", "privateuse1_runtime"),
        ("musaDeviceSynchronize", "musa_runtime"),
    ],
)
def test_calls_that_wait_are_inferred(name: str, category: str, tmp_path: Path) -> None:
    """Of any vendor, where the file has no records: until the last work launched before."""
    events = [*launched(0, 5, 40, 1), sync(3, 50, name, cat=category), *launched(20, 46, 40, 2, pid=0, tid=9)]
    events = [one for one in events if one.get("ts") != 20] if name == "never" else events
    kinds = [row[0] for row in path_of(trace_of_events([*events[:3], complete(60, 5, "aten::x")], tmp_path))]
    assert kinds == ["launch_delay", "kernel", "sync_return", "host_idle", "host"]


def test_a_call_does_not_wait_for_what_was_launched_later(tmp_path: Path) -> None:
    """Nor for work that was done before it began, nor for what ends after it."""
    other = {"tid": 2}
    events = [
        *launched(0, 2, 5, 1, "done"),
        sync(10, 30),
        complete(12, 2, **LAUNCH, args={"correlation": 2}, **other),
        complete(15, 20, "later", "kernel", pid=0, tid=9, args={"correlation": 2}),
        complete(45, 5, "aten::x"),
    ]
    assert [row[:2] for row in path_of(trace_of_events(events, tmp_path))] == [
        ("host", "cudaLaunchKernel"),
        ("host_idle", "(nothing runs)"),
        ("host", "cudaDeviceSynchronize"),
        ("host_idle", "(nothing runs)"),
        ("host", "aten::x"),
    ]


def test_an_event_stands_for_all_before_it(tmp_path: Path) -> None:
    """A call waits for the event recorded last before it, be it by a ns, and so for the work before that."""
    events = [
        *launched(0, 5, 15, 1, "first"),
        complete(2, 0.5, "cudaEventRecord", "cuda_runtime"),
        *launched(3, 25, 35, 2, "second"),
        complete(8, 0, "cudaEventRecord", "cuda_runtime"),
        sync(8.001, 52, "cudaEventSynchronize"),
        complete(62, 5, "aten::x"),
    ]
    rows = [row[:2] for row in path_of(trace_of_events(events, tmp_path))]
    assert rows[-4:-2] == [("kernel", "second"), ("sync_return", "cudaEventSynchronize")]


def test_a_copy_is_waited_for_by_its_call(tmp_path: Path) -> None:
    """cudaMemcpyAsync from pageable memory returns when the copy is done; a kernel's launch does not wait."""
    events = [
        complete(0, 30, "cudaMemcpyAsync", "cuda_runtime", args={"correlation": 1}),
        complete(
            5, 20, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", pid=0, tid=7, args={"correlation": 1}
        ),
        complete(40, 20, "cudaLaunchKernel", "cuda_runtime", args={"correlation": 2}),
        complete(45, 3, "k", "kernel", pid=0, tid=7, args={"correlation": 2}),
        complete(62, 5, "aten::x"),
    ]
    assert [row[0] for row in path_of(trace_of_events(events, tmp_path))] == [
        "launch_delay", "copy", "sync_return", "host_idle", "host", "host_idle", "host",
    ]  # fmt: skip


def test_work_of_a_graph_follows_its_work(tmp_path: Path) -> None:
    """One launch of several pieces of work on two streams: each comes after what ended last of the graph."""
    launch = complete(0, 3, "cudaGraphLaunch", "cuda_runtime", args={"correlation": 1})
    rows = [(5, 10, "a", 7), (16, 10, "b", 8), (27, 10, "c", 7)]
    work = [
        complete(at, dur, name, "kernel", pid=0, tid=tid, args={"correlation": 1})
        for at, dur, name, tid in rows
    ]
    assert [row[1] for row in path_of(trace_of_events([launch, *work], tmp_path)) if row[0] == "kernel"] == [
        "a",
        "b",
        "c",
    ]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("is_graph", [True, False])
def test_a_stream_without_gaps_has_no_queue_wait(seed: int, is_graph: bool, tmp_path: Path) -> None:
    """Whatever their stamps are apart by, up to 0.7 µs, kernels that run one after the other release each
    other: all of them are on the path, and a millisecond less of one makes the whole a millisecond shorter.
    """
    pick = random.Random(seed)
    events = [complete(0, 3, "cudaGraphLaunch", "cuda_runtime", args={"correlation": 1})] * is_graph
    at = 10.0
    for number in range(40):
        dur = pick.choice([2, 15, 130, 2000])
        early = round(pick.uniform(0, 0.7), 3) if number else 0
        args = {"correlation": 1 if is_graph else 100 + number, "stream": 7, "device": 0}
        events.append(
            complete(round(at - early, 3), dur + early, f"k{number}", "kernel", pid=0, tid=7, args=args)
        )
        if not is_graph:
            events.append(complete(number * 0.2, 0.1, **LAUNCH, args={"correlation": 100 + number}))
        at += dur
    trace = trace_of_events(events, tmp_path)
    segments = path_of(trace)
    assert "queue_wait" not in {row[0] for row in segments}
    assert [row[1] for row in segments if row[0] == "kernel"] == [f"k{number}" for number in range(40)]
    whole, without = length(trace, "k39")
    long = next(int(event["dur"]) for event in events if event["name"] == "k39")
    assert whole - without == pytest.approx(long, abs=1)


def test_what_overlaps_for_long_did_not_release(tmp_path: Path) -> None:
    """Work that runs beside other work of its stream waited for its launch, not for that."""
    events = [*launched(0, 5, 100, 1, "long"), *launched(50, 53, 100, 2, "beside")]
    assert ("launch_delay", "beside", 3_000, "launch", False) in path_of(trace_of_events(events, tmp_path))


def test_threads_hand_over(tmp_path: Path) -> None:
    """By an arrow from the slice that ended in the pause; forward and backward take turns both ways."""
    events = [
        complete(0, 10, "forward", args={"Sequence number": 1}),
        flow("s", 8, 1, "fwdbwd"),
        complete(20, 30, "autograd::engine::evaluate_function: MulBackward0", tid=2),
        flow("f", 20, 1, "fwdbwd", "e", tid=2),
        complete(60, 10, "step"),
    ]
    assert path_of(trace_of_events(events, tmp_path)) == [
        ("host", "forward", 10_000, "", False),
        ("host_idle", "(nothing runs)", 10_000, "flow", False),
        ("host", "autograd::engine::evaluate_function: MulBackward0", 30_000, "flow", False),
        ("host_idle", "(nothing runs)", 10_000, "thread", True),
        ("host", "step", 10_000, "thread", True),
    ]


@pytest.mark.parametrize(("giver", "taker"), [(1, 2), (2, 1), (3, 2)])
def test_any_thread_hands_over_to_any_other(giver: int, taker: int, tmp_path: Path) -> None:
    """An arrow between threads of the host releases what it leads to, whichever of them comes first."""
    events = [
        *(complete(2, 1, "idle hand", tid=tid) for tid in {1, 2, 3} - {giver, taker}),
        complete(0, 10, "produce", tid=giver),
        flow("s", 8, 1, "queue", tid=giver),
        complete(20, 30, "consume", tid=taker),
        flow("f", 20, 1, "queue", "e", tid=taker),
    ]
    assert path_of(trace_of_events(events, tmp_path)) == [
        ("host", "produce", 10_000, "", False),
        ("host_idle", "(nothing runs)", 10_000, "flow", False),
        ("host", "consume", 30_000, "flow", False),
    ]


def test_work_without_a_launch(tmp_path: Path) -> None:
    """Follows what ended last on its stream, else on its device, else nothing: the path ends there."""
    work = [complete(at, 10, name, "kernel", pid=0, tid=tid) for at, name, tid in ((5, "a", 7), (20, "b", 8))]
    assert [row[:2] for row in path_of(trace_of_events(work, tmp_path))] == [
        ("kernel", "a"), ("queue_wait", "b"), ("kernel", "b"),
    ]  # fmt: skip


def test_a_path_can_be_stopped(tmp_path: Path) -> None:
    """As all analyses."""
    trace = trace_of_events(launched(0, 5, 10, 1), tmp_path)
    with pytest.raises(Cancelled):
        critical_path(Scope(trace, cancelled=lambda: True))


def test_names_and_factors_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that no slice has, a scale without a factor."""
    trace = trace_of_events(launched(0, 5, 10, 1), tmp_path)
    with pytest.raises(UsageError, match="called 'nothing'"):
        length(trace, "nothing")
    assert scale_of("a=b=0.5") == ("a=b", 0.5)
    for text in ("a", "a=", "=1", "a=x", "a=-1"):
        with pytest.raises(UsageError, match="NAME=FACTOR"):
            scale_of(text)
    file = write_events(tmp_path / "t.json", launched(0, 5, 10, 1))
    assert main(["critical-path", str(file), "--without", "gemm", "--json"]) == 0
    assert main(["critical-path", str(file), "--scale", "gemm"]) == EXIT_USAGE
    assert "NAME=FACTOR" in capsys.readouterr().err


PAUSE, WAIT, RETURN = "a thread pauses", "a call waits", "a call returns"
ENDS = "the path begins and ends anywhere"
INSTANCE = "the instance is the device's copy of the step"
WINDOW = "the path leaves the window"
FREE = {DEPENDENCY: PAUSE, OPERATOR: WAIT, SYNC: RETURN}
"""What weighs nothing in HTA's graph, by the kind of edge."""
FORWARD = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"


@needs(CORPUS, GOLDENS)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "annotation", "step", "theirs", "ours", "reasons", "ends"),
    [
        ("hta_a100_resnet_ddp_nccl", "ProfilerStep", 5, 189_995_701, 219_726_905,
         {PAUSE: 28_703_822, WAIT: 35_239, ENDS: 992_143}, ENDS),
        ("hta_cuda_event_sync", "ProfilerStep", 100, 2_411_000, 3_154_000,
         {PAUSE: 95_000, WAIT: 9_000, RETURN: 8_000, ENDS: 631_000}, ENDS),
        ("hta_mi250_minitoy_rocm62", "ProfilerStep", 1, 747_447, 9_288_291,
         {PAUSE: 147_800, INSTANCE: 8_393_044}, INSTANCE),
        ("hta_overlaid_critical_path_flows", FORWARD, None, 241_724_000, 243_351_000,
         {PAUSE: 884_000, WAIT: 17_000, ENDS: 726_000}, ENDS),
        ("hta_overlaid_critical_path_flows", "", None, 41_435_012_000, 41_579_901_000,
         {PAUSE: 142_220_000, WAIT: 60_000, RETURN: 361_000, ENDS: 2_248_000}, ENDS),
        ("tl_h100_qwen_infer", "ProfilerStep", 6, 33_716_984, 49_378_903,
         {PAUSE: 1_450_867, WAIT: 14_110_220, ENDS: 100_832}, ENDS),
        ("tl_mi300_resnet_train_rank0of8", "ProfilerStep", 16, 15_905_786, 51_225_503,
         {WINDOW: 35_319_717}, WINDOW),
    ],
)  # fmt: skip
def test_each_difference_to_hta_has_a_reason(
    name: str,
    annotation: str,
    step: int | None,
    theirs: int,
    ours: int,
    reasons: dict[str, int],
    ends: str,
    corpus_cache: Path,
) -> None:
    """HTA's exact length and graph come out again; ours is longer by what weighs nothing there, to the ns."""
    golden = json.loads((GOLDENS / "critical_path" / f"{name}.json").read_bytes())
    row = next(
        row
        for row in golden["rows"]
        if row["annotation"] == annotation
        and row["tool_version"] == "f4d0062"
        and row["options"] == {"ns_rounding": False, "zero_weight_launch_edges": False}
    )
    start, stop = row["window"]["start_ns"], row["window"]["start_ns"] + row["window"]["dur_ns"]
    file = CORPUS / golden["input"]
    graph = HtaPath(events_of(file), start, stop)
    path = graph.path()
    kinds = Counter(kind for kind, _ in graph.edges.values())
    assert kinds == {key: one["edges"] for key, one in row["graph"]["edges_by_type"].items()}
    assert sum(graph.edges[edge][1] for edge in path) == row["length_ns_from_exact_times"] == theirs

    if annotation == FORWARD:
        selection = Selection(begin=start, end=stop)
    else:
        selection = Selection(step=step)
    own = critical_path(selection.scope(open_trace(file, index_dir=corpus_cache)))
    assert own.elapsed_ns == ours
    added = Counter[str]()
    for before, after in path:
        kind, weight = graph.edges[before, after]
        if free := graph.time(after) - graph.time(before) - weight:
            added[FREE[kind]] += free
    begin = own.graph.window[0]
    added[ends] += graph.time(path[0][0]) - begin + (begin + ours - graph.time(path[-1][1]))
    assert added == reasons and theirs + sum(reasons.values()) == ours
