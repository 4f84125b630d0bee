"""Time that cannot be trusted: lost, zero, collapsed, merged, truncated; and silence elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import CASES, CORPUS, needs
from tests.events import Event, complete, event, flow, metadata
from tests.rank_files import straggler_files
from tracelane.core.base.kineto import StartedWork, started_work
from tracelane.core.index.format import LaneRole
from tracelane.core.tables.device.breakdown import breakdown_metrics
from tracelane.core.tables.device.device_state import state_table
from tracelane.core.tables.device.gap import work_gaps
from tracelane.core.tables.device.untrusted import (
    OF_DEVICES,
    OF_RECORDS,
    TROUBLES,
    LostCalls,
    Trouble,
    Untrusted,
)
from tracelane.core.tables.device.untrusted_periods import untrusted, untrusted_time
from tracelane.core.tables.findings.facts import SourceFacts
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.frame_columns import timed_work
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.work_device import GAP_CLASSES
from tracelane.core.tables.peers.skew import RankPart
from tracelane.core.tables.ranks.ranks import ranks
from tracelane.core.tables.registry import BY_NAME
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.text.summary import trace_info

HOST = 7
STARTING = {
    StartedWork.KERNEL: "cudaLaunchKernel cudaLaunchKernelExC cudaLaunchKernel_ptsz cudaLaunchKernel_v7000 "
    "cudaLaunchCooperativeKernelMultiDevice cudaLaunch cuLaunch cuLaunchGridAsync cuLaunchKernelEx "
    "hipLaunchKernel hipModuleLaunchKernel hipExtModuleLaunchKernel hipExtLaunchKernel hipLaunchByPtr "
    "hipExtLaunchMultiKernelMultiDevice hipHccModuleLaunchKernel hipDrvLaunchKernelEx hipLaunchKernel_spt "
    "urEnqueueKernelLaunch urEnqueueKernelLaunchWithArgsExp piEnqueueKernelLaunch musaLaunchKernel "
    "zeCommandListAppendLaunchKernel zeCommandListAppendLaunchMultipleKernelsIndirect "
    "zeCommandListAppendLaunchCooperativeKernel mtiaLaunchKernel aiuLaunchControlBlocks",
    StartedWork.GRAPH: "cudaGraphLaunch cuGraphLaunch_ptsz hipGraphLaunch cudaGraphLaunch_v10000 "
    "aiuGraphExecLaunch urEnqueueCommandBufferExp",
    StartedWork.COPY: "cudaMemcpy cudaMemcpyAsync cudaMemcpy2DAsync cudaMemcpyPeerAsync hipMemcpyWithStream "
    "cuMemcpyHtoDAsync_v2 cuMemcpyDtoDAsync_v2_ptsz cudaMemcpyToSymbolAsync hipMemcpyDtoH "
    "urEnqueueUSMMemcpy2D piextUSMEnqueueMemcpy zeCommandListAppendMemoryCopy aiuLaunchDMIControlBlocks",
    StartedWork.FILL: "cudaMemsetAsync cuMemsetD8Async cuMemsetD32Async_v2 hipMemsetD8 urEnqueueUSMFill "
    "zeCommandListAppendMemoryFill",
}
STARTING_IN_WORDS = {
    "runFunction": StartedWork.KERNEL,
    "runFunction - job_prep_and_submit_for_execution": StartedWork.KERNEL,
    "enqueueCommand memcpyHtoDAsync": StartedWork.COPY,
    "enqueueCommand waitOnEvent": None,
}
"""The names of calls that are no verb behind a vendor's prefix, and what they start."""
STARTING_NONE = (
    "cudaStreamWaitEvent cudaStreamSynchronize cudaDeviceSynchronize cudaEventRecord hipEventRecordWithFlags "
    "cudaLaunchHostFunc cuLaunchHostFunc cudaMalloc cudaFree cudaGraphInstantiate cudaGraphAddMemcpyNode "
    "cudaGraphExecMemcpyNodeSetParams cudaGraphKernelNodeSetParams cudaGraphAddMemsetNode "
    "cudaFuncSetAttribute cudaStreamBeginCapture cudaStreamIsCapturing urEventWait "
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor urQueueFinish "
    "zeCommandListAppendBarrier hipStreamSynchronize aiuScheduleWait cudaMemGetInfo"
)


def test_the_table_of_calls_that_start_work() -> None:
    """Launches, graphs, copies and fills in the spellings of all vendors; waits, events, nodes do not."""
    for kind, names in STARTING.items():
        assert {name: started_work(name) for name in names.split()} == dict.fromkeys(names.split(), kind)
    assert [name for name in STARTING_NONE.split() if started_work(name) is not None] == []
    assert {name: started_work(name) for name in STARTING_IN_WORDS} == STARTING_IN_WORDS


Work = tuple[int, float, float]  # correlation id, start and length of a kernel, µs


def call(
    number: int, ts: float, name: str = "cudaLaunchKernel", cat: str = "cuda_runtime", tid: int = HOST
) -> Event:
    return complete(ts, 2, name, cat, pid=HOST, tid=tid, args={"correlation": number})


def kernel(number: int, ts: float, dur: float, device: int = 0, name: str = "gemm") -> Event:
    args = {"correlation": number, "stream": 7, "device": device}
    return complete(ts, dur, name, "kernel", pid=device, tid=7, args=args)


def program(count: int, missing: Sequence[int] = (), devices: int = 1) -> list[Event]:
    """Return launches each 100 µs, and 50 µs later their kernels of 60 µs, but for the missing ones; of
    several devices each has a thread of its own.
    """
    names = [metadata("process_labels", one, labels=f"GPU {one}") for one in range(devices)]
    events = [*names, complete(0, 100.0 * count, "run", "user_annotation", pid=HOST, tid=HOST)]
    for number in range(count):
        for one in range(devices):
            at, key = 100.0 * number + 10, number * devices + one + 1
            events.append(call(key, at, tid=HOST + one))
            if number not in missing or one:
                events.append(kernel(key, at + 50, 60, one))
    return events


def opened(path: Path, events: Sequence[Event], text: str | None = None) -> Trace:
    file = path / "t.json"
    file.write_text(text or json.dumps({"traceEvents": list(events)}), encoding="utf-8")
    return open_trace(file, index_dir=path / "index")


def periods(trace: Trace) -> list[tuple[str, str, float, float, int]]:
    """Return (trouble, device, start, end, count) of each, µs of the file."""
    return [
        (
            one.trouble,
            "" if one.device is None else one.device.label,
            one.start / 1e3,
            one.end / 1e3,
            one.count,
        )
        for one in untrusted(Scope(trace))
    ]


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ([], []),
        (range(10), [(10, 1060, 10)]),
        (range(20, 30), [(2020, 3060, 10)]),
        (range(40, 50), [(4020, 5000, 10)]),
        ([*range(10), *range(20, 30)], [(10, 1060, 10), (2020, 3060, 10)]),
        ([3, 20, 40], []),  # a few
    ],
    ids=["none", "start", "middle", "end", "twice", "few"],
)
def test_lost_work_is_told_where_it_is_missing(
    missing: Sequence[int], expected: list[tuple[float, float, int]], tmp_path: Path
) -> None:
    """By correlation alone, at the start, in the middle and at the end, of the device that lacks it only."""
    one = periods(opened(tmp_path, program(50, list(missing))))
    assert one == [("lost", "GPU 0", *period) for period in expected]
    (two := tmp_path / "two").mkdir()
    assert [row[:3] for row in periods(opened(two, program(50, list(missing), 2)))] == [
        row[:3] for row in one
    ]


@pytest.mark.parametrize(("first", "count"), [(192, 0), (100, 8)])
def test_what_runs_when_a_profiler_stops_is_lost(first: int, count: int, tmp_path: Path) -> None:
    """Eight calls of 200 without work are few at the end, where a profiler loses what still runs; a row of
    them that others follow is a loss.
    """
    lost = periods(opened(tmp_path, program(200, range(first, first + 8))))
    assert [row[-1] for row in lost] == ([count] if count else [])


def test_all_work_is_lost(tmp_path: Path) -> None:
    """Without any device work no device is known, and all launches are lost."""
    ((trouble, device, start, _, count),) = periods(opened(tmp_path, program(20, range(20))))
    assert (trouble, device, start, count) == ("lost", "", 10, 20)


def test_nothing_is_lost_that_never_ran(tmp_path: Path) -> None:
    """What a graph capture records, calls in a call that has work, waits with an arrow, and calls without any
    way to their work.
    """
    events = program(30)
    number = 1000
    events.append(call(number, 1, "cudaStreamBeginCapture"))
    events += [call(number + at, 2.5 + at * 0.1, tid=90) for at in range(20)]
    events.append(call(number + 50, 5, "cudaStreamEndCapture_v10000"))
    for at in range(10):
        events.append(call(2000 + at, 100.0 * at + 10.5, "cuLaunchKernel", "cuda_driver") | {"dur": 1})
        ts = 100.0 * at + 20
        events += [call(3000 + at, ts, "cudaStreamWaitEvent"), flow("s", ts, 3000 + at, pid=HOST, tid=HOST)]
    events += [call(0, 100.0 * at + 30, "cudaLaunchKernelExC", tid=91) for at in range(10)]
    assert periods(opened(tmp_path, events)) == []


def test_names_that_no_table_knows_are_learned(tmp_path: Path) -> None:
    """Most calls of the name have work: those without have lost it."""
    events = [
        {**one, "name": "acmeRun", "cat": "acme_runtime"} if one.get("cat") == "cuda_runtime" else one
        for one in program(40, range(10, 20))
    ]
    assert [one[0] for one in periods(opened(tmp_path, events))] == ["lost"]


def test_work_at_zero(tmp_path: Path) -> None:
    """The kernels are there without their times: until the next one that has some."""
    later = [{**one, "ts": one["ts"] + 1e6} if "ts" in one else one for one in program(30)]
    events = [
        {**one, "ts": 0, "dur": 0} if one.get("cat") == "kernel" and one["args"]["correlation"] < 11 else one
        for one in later
    ]
    assert periods(opened(tmp_path, events)) == [("zero", "GPU 0", 1_000_010, 1_001_060, 10)]


def test_all_that_is_lost_collapses_into_one_kernel(tmp_path: Path) -> None:
    """Neither a long kernel while nothing is lost nor lost work elsewhere makes one."""
    events = program(50, range(11, 50))
    long = [
        kernel(11, 1060, 4000) if one.get("args", {}).get("correlation") == 11 and one["pid"] == 0 else one
        for one in events
    ]
    times = periods(opened(tmp_path, long))
    assert times == [("collapsed", "GPU 0", 1060, 5060, 1), ("lost", "GPU 0", 1110, 5060, 39)]
    sound = tmp_path / "sound"
    sound.mkdir()
    nccl = [kernel(99, 60, 4900, name="ncclDevKernel_AllReduce") | {"tid": 9}]
    assert periods(opened(sound, [*program(50, [40, 41, 42]), *nccl])) == []


def test_rules_see_no_work_of_lost_time(tmp_path: Path) -> None:
    """What begins in such a time, in the first of a trace too, is no work for findings."""
    sound = [one for one in program(50, range(11, 50)) if one.get("args", {}).get("correlation") != 11]
    trace = opened(tmp_path, [*sound, call(11, 1010, tid=HOST), kernel(11, 1060, 4000)])
    assert periods(trace)[0][:3] == ("collapsed", "GPU 0", 1060)
    facts = SourceFacts(RankPart(Scope(trace, source=0)))
    assert sorted(facts.work.start.tolist()) == [100_000 * number + 60_000 for number in range(10)]


def test_work_lost_before_a_long_kernel_makes_none(tmp_path: Path) -> None:
    """What was lost has to be launched while the kernel runs: it is not long for what is missing before."""
    long = kernel(99, 2560, 2000, name="ncclDevKernel_AllReduce") | {"tid": 9}
    times = periods(opened(tmp_path, [*program(50, range(1, 20)), long]))
    assert [trouble for trouble, *_ in times] == ["lost"]


def mark(ts: float) -> Event:
    return event("i", ts, "Record Window End", pid="", tid="", s="g")


def test_captures_in_one_file(tmp_path: Path) -> None:
    """Between two captures nothing was recorded; two ranks side by side leave no such time."""
    later = [
        {
            **one,
            "ts": one["ts"] + 1e5,
            "args": {**one["args"], "correlation": one["args"].get("correlation", 0) + 100},
        }
        if "ts" in one and "args" in one
        else {**one, "ts": one.get("ts", 0) + 1e5}
        for one in program(20)
        if one["ph"] == "X"
    ]
    events = [*program(20), mark(2100), *later, mark(1e5 + 2100)]
    assert periods(opened(tmp_path, events)) == [("merged", "GPU 0", 2100, 100_000, 0)]
    both = tmp_path / "both"
    both.mkdir()
    assert periods(opened(both, [*program(20), mark(1500), mark(1900)])) == []


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    """Behind the last work of the device nothing is known."""
    events = [*sorted(program(30), key=lambda one: one.get("cat") == "kernel")]
    whole = json.dumps({"traceEvents": events})
    text = whole[: whole.index('"correlation": 21, "stream"')]
    ((trouble, device, start, end, count),) = periods(opened(tmp_path, [], text))
    assert (trouble, device, start, end) == ("truncated", "GPU 0", 2020, 3000) and count == 10


@needs(CASES)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("c1_ts0", [("zero", 12)]),
        ("c2_dropfirst", [("lost", 24)]),
        ("c3_collapse", [("collapsed", 1), ("lost", 240)]),
        ("v4_merged", []),
        ("v9_aiuoverlap", []),
        ("v9_syncflows", []),
    ],
)
def test_cases_of_verdicts(name: str, expected: list[tuple[str, int]], tmp_path: Path) -> None:
    """What is wrong with each is told in the facts, in JSON as in Python."""
    trace = open_trace(CASES / "verdicts" / f"{name}.json", index_dir=tmp_path)
    times = untrusted(Scope(trace))
    assert [(one.trouble, one.count) for one in times] == expected
    assert [(one["trouble"], one["count"]) for one in trace_info(trace)["untrusted"]] == expected


@needs(CORPUS)
@pytest.mark.parametrize("folder", ["gpu", "verdicts", "aiu/spyre_torch_profiler"])
def test_traces_that_lost_nothing_have_no_such_time(folder: str, corpus_cache: Path) -> None:
    """Of all real ones only those that were looked at by hand."""
    known = {"resnet50_lost_memsets", "zoology_all_kernels_lost", "hta_cupti_profiler_counters"}
    known |= {"tl_sglang_decode_graph", "tl_vllm_decode_cudagraph_exec"}  # cut out of longer ones
    for path in sorted((CORPUS / folder).glob("*.json*")):
        times = untrusted(Scope(open_trace(path, index_dir=corpus_cache)))
        assert bool(times) == (path.name.split(".")[0] in known), path.name


def test_time_of_a_device_is_that_of_its_source_too() -> None:
    """Where no device is known, the time counts for all of them."""
    one = Untrusted(0, None, "lost", 10, 20, 3, (10, 12), 5)
    both = untrusted_time([one, Untrusted(1, None, "lost", 15, 30, 3, None, None)])
    assert both.length == 20 and np.array_equal(both.starts, [10])


def excerpt(named: bool) -> list[Event]:
    """Return a few launches, then a copy for which the host waits 9 ms while the device does nothing."""
    events = [one for one in program(8) if named or one["ph"] != "M"]
    return [*events, call(99, 900, "cudaMemcpy") | {"dur": 9_000}, kernel(99, 9_890, 5)]


@pytest.mark.parametrize("later_us", [0, 10**7])
def test_time_that_is_not_in_an_excerpt(later_us: int, tmp_path: Path) -> None:
    """The host waits for a device that does nothing: of a file cut out of a longer one its records are
    missing, and no finding speaks of a gap; of a whole file that is what happened. When does not matter.
    """
    for named in (False, True):
        (folder := tmp_path / str(named)).mkdir()
        trace = opened(folder, [one | {"ts": one["ts"] + later_us} for one in excerpt(named)])
        assert [row[0] for row in periods(trace)] == ([] if named else ["cut"])
        rules = {finding.rule for finding in findings(Scope(trace)).losses}
        assert ("lost-kernels" in rules) is not named
        assert named or not rules & {"step-gap", "sync", "device-idle"}
        if not named:
            (finding,) = [one for one in findings(Scope(trace)).losses if one.rule == "lost-kernels"]
            assert finding.helps == "Open the file that this one was cut out of."


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("queue_us", [100, 9_000])
def test_a_queue_before_the_first_record_of_an_excerpt(named: bool, queue_us: int, tmp_path: Path) -> None:
    """What is launched at the begin of an excerpt runs long after it: what the device did before is not in
    it, so that it was not idle; in a whole file, or for a short time, it was.
    """
    begun = 100 + queue_us
    events = [one for one in program(0) if named and one["ph"] == "M"]
    for number in range(8):
        events += [call(number, 100 + 10 * number), kernel(number, begun + 2000 * number, 1990)]
    trace = opened(tmp_path, events)
    is_cut = not named and queue_us > 1000
    assert [row[0] for row in periods(trace)] == (["cut"] if is_cut else [])
    (row,) = state_table(Scope(trace)).rows()
    assert row["of_ns"] == (15_990 if is_cut else 15_990 + queue_us) * 1000


def open_ended(count: int) -> list[Event]:
    """Return ops, and Python functions that all end when the recording does."""
    ops = [complete(100.0 * at, 50, "aten::mm", pid=HOST, tid=HOST) for at in range(20)]
    frames = [
        complete(100.0 * at + 1, 1999 - 100.0 * at, "len", "python_function", pid=HOST, tid=HOST)
        for at in range(count)
    ]
    return [*ops, *frames]


@pytest.mark.parametrize(
    ("analysis", "events", "said"),
    [
        (
            "breakdown",
            [*program(30), kernel(999, -8e9, 10)],
            "1 piece of work on another clock, 2 h 13 min from all others",
        ),
        ("idle", [*program(30), kernel(999, -8e9, 10)], "1 piece of work on another clock, 2 h 13 min"),
        ("summary", [*program(30), kernel(999, -8e9, 10)], "1 piece of work on another clock, 2 h 13 min"),
        ("breakdown", program(50, range(20, 30)), "the work of 10 launch calls is missing, for 1.04 ms"),
        ("breakdown", excerpt(named=False), "cut out of a longer one and lacks the device's records"),
        ("tree", open_ended(10), "10 slices of one name end with the lane"),
        ("range", open_ended(10), "10 slices of one name end with the lane"),
    ],
)
def test_tables_say_what_cannot_be_trusted(
    analysis: str, events: Sequence[Event], said: str, tmp_path: Path
) -> None:
    """Below a table's rows stands which of its time cannot be trusted; a range without it says nothing."""
    trace = opened(tmp_path, events)
    notes = BY_NAME[analysis].run(Scope(trace)).main.notes
    assert sum(said in note for note in notes) == 1, notes
    elsewhere = Scope(trace, (trace.opening_span[0], trace.opening_span[0] + 500))
    assert not any(said in note for note in BY_NAME[analysis].run(elsewhere).main.notes)


@pytest.mark.parametrize(
    "events",
    [
        [*program(30), kernel(999, -8e9, 10)],
        [*program(30), kernel(999, 8e9, 10)],
        program(50, range(20, 30)),
        excerpt(named=False),
    ],
    ids=["far before", "far behind", "lost", "cut"],
)
def test_no_idle_time_is_counted_where_nothing_is_known(events: Sequence[Event], tmp_path: Path) -> None:
    """Totals of idle time leave out what cannot be trusted: by device, stream, state, cause, as metrics and
    as the gaps that a key walks; busy time and idle time are still all of it.
    """
    trace = opened(tmp_path, events)
    scope = Scope(trace)
    unknown = untrusted_time(untrusted(scope), troubles=OF_DEVICES)
    work = timed_work(scope)
    span = int(work.start.min()), int(work.end.max())
    known = work.union().union(unknown).gaps(*span).length
    breakdown, idle = (BY_NAME[name].run(scope) for name in ("breakdown", "idle"))
    for table in (breakdown["devices"], breakdown["streams"]):
        (row,) = table.rows()
        assert row["idle_ns"] == known and row["kernel_time_ns"] == row["busy_ns"] + known
    (state,) = breakdown["states"].rows()
    assert state["of_ns"] == state["busy_ns"] + state["collective_waiting_ns"] + state["idle_ns"]
    (stream,), (device,) = idle["streams"].rows(), idle["devices"].rows()
    assert stream["idle_ns"] == known and device["idle_ns"] == state["idle_ns"]
    assert sum(device[f"{name}_ns"] for name in GAP_CLASSES) <= device["idle_ns"]  # none after the last work
    named = {metric.name: metric.value for metric in breakdown_metrics(scope)}
    assert named["device.idle"] == known
    gaps = work_gaps(trace, next(lane.index for lane in trace.lanes if lane.role is LaneRole.DEVICE))
    assert gaps is not None
    assert unknown.covered(gaps.starts, gaps.ends).sum() < (gaps.ends - gaps.starts).sum()


def test_slices_that_never_end_are_in_no_total(tmp_path: Path) -> None:
    """Trees, operators and ranges are as of a trace without them: no sum is longer than the trace, and
    nothing stands below what was never ended.
    """
    ops = [complete(100.0 * at, 50, "aten::mm", pid=HOST, tid=HOST) for at in range(20)]
    frames = [
        complete(100.0 * at + 60, 1990 - 100.0 * at, "len", "python_function", pid=HOST, tid=HOST)
        for at in range(20)
    ]
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    ended, never = (
        Scope(opened(tmp_path / name, events)) for name, events in (("a", ops), ("b", [*ops, *frames]))
    )
    assert never.trace.span[1] - never.trace.span[0] == 2_050_000
    for name in ("tree", "ops", "range"):
        mains = [BY_NAME[name].run(scope).main for scope in (ended, never)]
        rows = [[{**row, "share": 0} for row in main.rows()] for main in mains]
        assert rows[0] == rows[1] and len(rows[0]) == 1, name
        assert "20 slices whose ends are not known" in mains[1].scope


@pytest.mark.parametrize("trouble", TROUBLES)
def test_each_trouble_has_its_words(trouble: Trouble) -> None:
    """One sentence of a device, one of a cause and one of a file, each once for all who tell of it."""
    kind = TROUBLES[trouble]
    texts = [text.format(count="3 calls", ns="1 ms") for text in (kind.text, kind.cause, *kind.lack)]
    assert all(texts) and not any("{" in text for text in texts)
    assert (trouble in OF_RECORDS) is kind.of_records


@pytest.mark.parametrize("analysis", ["breakdown", "idle", "summary", "tree", "range"])
def test_tables_of_sound_traces_say_nothing(analysis: str, tmp_path: Path) -> None:
    """Sound work, and calls of several names in which a profiler is stopped, make no note."""
    stack = [
        complete(100.0 * at, 3000 - 100.0 * at, f"f{at}", "python_function", pid=HOST, tid=60)
        for at in range(12)
    ]
    notes = BY_NAME[analysis].run(Scope(opened(tmp_path, [*program(30), *stack]))).main.notes
    assert not any("(doctor)" in note for note in notes)


@pytest.mark.slow
def test_of_many_ranks_each_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting what ranks do asks each file once for what cannot be trusted, however many there are: of 256
    it asked 65,536 times.
    """
    sources: list[int] = []
    periods = LostCalls.periods

    def counted(calls: LostCalls) -> Iterator[Untrusted]:
        sources.append(calls.source)
        return periods(calls)

    monkeypatch.setattr(LostCalls, "periods", counted)
    trace = open_trace(straggler_files(tmp_path / "run", 70, late=3), index_dir=tmp_path / "index")
    assert len(ranks(Scope(trace, clocks=trace.clocks)).ranks) == 70
    assert sorted(sources) == list(range(70))
    trace.close()
