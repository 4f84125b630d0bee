"""Each rule of findings on a made trace: it speaks at its threshold, claims what it must, is silent below."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.findings_traces import (
    HOST,
    allocated,
    call,
    kernel,
    launched,
    linked,
    note,
    op,
    step,
    trace_of,
)
from tests.events import Event, async_event, complete, event, index_of
from tracelane.core.tables.findings.facts import SourceFacts
from tracelane.core.tables.findings.finding import Baseline
from tracelane.core.tables.findings.judge import RULES, findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.peers.skew import RankPart
from tracelane.core.trace import Trace
from tracelane.core.trace.step_choice import find_steps

LOOKUP, REGION = "TorchDynamo Cache Lookup", "Torch-Compiled Region: 0/0"
GRAPH = "## Call CompiledFxGraph abc ##"


def _two_kernels(first: float, host: float) -> list[Event]:
    """A device from 10 to 960 µs with two pieces of work, the second of 240 µs, under one operator."""
    return [op(0, host), kernel(10, first), kernel(720, 240)]


def _copied(copy: float, work: float) -> list[Event]:
    """A copy to the device that the host waits for, and operators; a kernel at the end."""
    return [
        op(0, copy, "aten::copy_"),
        call(1, copy - 2, "cudaMemcpy"),
        op(copy, work),
        *launched(900, 9, 990, 9),
    ]


def _one_gap(length: float) -> list[Event]:
    """Four steps of 1000 µs whose work follows without a gap, but for one in the third."""
    events = []
    for n in range(4):
        gap = length if n == 2 else 0
        events += [step(n, 1000 * n, 1000), *launched(1000 * n + 1, 1, 1000 * n + 10, 500)]
        events += launched(1000 * n + 3, 1, 1000 * n + 510 + gap, 500 - gap)
    return events


def _gaps_in(*lengths: float) -> list[Event]:
    """A step of 2000 µs for each length, two pieces of work with that gap between, none between steps."""
    events = []
    for n, gap in enumerate(lengths):
        events += [step(n, 2000 * n, 2000), *launched(2000 * n + 1, 1, 2000 * n + 10, 50)]
        events += launched(2000 * n + 3, 1, 2000 * n + 60 + gap, 1950 - gap)
    return events


def _device_last(events: list[Event]) -> list[Event]:
    """The same with the host's slices in front: its first has position 0."""
    return [{**one, "pid": 2 if one["pid"] == 0 else one["pid"]} for one in events]


def _gap(length: float, at: float) -> list[Event]:
    """1000 µs of a device with one gap, ended by a launch."""
    second = 500 + length
    return [*launched(0, 5, 10, 490), *launched(at, 1, second, 1010 - second)]


def _pauses(*lengths: float) -> list[Event]:
    """Work of 10 µs that was launched long before, after each pause, of which a piece is launched in it where
    its length is negative; no steps.
    """
    events, end = launched(0, 1, 1000, 10), 1010.0
    for number, length in enumerate(lengths):
        start = end + abs(length)
        at = 10 + 2 * number if length >= 0 else start - 1
        events, end = [*events, *launched(at, 1, start, 10)], start + 10
    return events


def _first(delay: float, others: int = 4) -> list[Event]:
    first = launched(0, 10, 10 + delay, 5)
    return first + [e for n in range(others) for e in launched(2000 + 50 * n, 10, 2015 + 50 * n, 5)]


def _names(*totals: float) -> list[Event]:
    return [kernel(100 * n, total, f"k{n}") for n, total in enumerate(totals)]


def _runs(slowest: float, count: int = 8) -> list[Event]:
    runs = [
        launched(50 * n, 1, 50 * n + 5, 10 if n else slowest, "gemm", grid=[1, 1, 1]) for n in range(count)
    ]
    return [event for events in runs for event in events]


def _short(count: int) -> list[Event]:
    short = [e for n in range(count) for e in launched(100 * n, 10, 100 * n + 20, 9)]
    return short + launched(5000, 10, 5020, 10)


def _lost(count: int) -> list[Event]:
    """Launches of which so many in the middle have no work."""
    starts = [200 * n for n in range(20)]
    lost = range(8, 8 + count)
    calls = [call(starts[n], 5, "cudaLaunchKernel", correlation=9000 + n) for n in lost]
    return calls + [
        e for n in range(20) if n not in lost for e in launched(starts[n], 5, starts[n] + 10, 150)
    ]


def _loaded(first: float) -> list[Event]:
    """A first launch that takes so long, and nineteen that do not."""
    rest = [e for n in range(19) for e in launched(500 + 50 * n, 3, 510 + 50 * n, 45)]
    return launched(100, first, 105 + first, 395 - first) + rest


def _captured(us: float) -> list[Event]:
    """A kernel that runs, and the capture of a graph of so long with two launches that run nothing."""
    calls = ((499, "cudaStreamBeginCapture"), (510, "cudaLaunchKernel"), (520, "cudaMemcpyAsync"))
    return [
        *(op(0, 1000), *launched(0, 1, 1, 99)),
        *(call(at, 1, name) for at, name in calls),
        call(500 + us, 1, "cudaStreamEndCapture"),
    ]


def _synchronised(rounds: int) -> list[Event]:
    """Kernels of 500 µs, each waited for; the next launch comes as long after, behind an operator."""
    waits = [call(1000 * n + 20, 500, "cudaStreamSynchronize") for n in range(rounds)]
    ops = [op(1000 * n + 521, 478) for n in range(rounds - 1)]
    return waits + ops + [e for n in range(rounds) for e in launched(1000 * n, 5, 1000 * n + 10, 500)]


def _slowed(us: float) -> list[Event]:
    """Ten kernels of 100 µs, then ten that take longer."""
    return [kernel(150 * n, 100 if n < 10 else us, "gemm", grid=[1, 1, 1]) for n in range(20)]


def _alternating(us: float) -> list[Event]:
    """Kernels that take longer in each second step, and at the end in two steps one after the other."""
    slow = [n % 2 == 1 or n >= 18 for n in range(20)]
    return [kernel(150 * n, us if slow[n] else 100, "gemm", grid=[1, 1, 1]) for n in range(20)]


def _resized(size: int) -> list[Event]:
    """Ten small kernels of one shape, then ten of another."""
    return [kernel(150 * n + 140, 1, "norm", grid=[1 if n < 10 else size, 1, 1]) for n in range(20)]


def _waited_in_a_copy() -> list[Event]:
    """A copy back, in which the host waits for kernels with gaps between them before it is made."""
    return [
        *(op(0, 1000, name) for name in ("aten::to", "aten::copy_")),
        call(5, 980, "aiuScheduleWait", "privateuse1_runtime"),
        *(kernel(200 * n + 10, 50) for n in range(5)),
        call(986, 5, "aiuLaunchDMOControlBlocks", "privateuse1_runtime"),
        kernel(988, 5, "Memcpy DtoH", "gpu_memcpy"),
    ]


def _converted() -> list[Event]:
    """A copy to the device within an operator, which takes 5 of its 1,000 µs."""
    return [
        op(0, 1000, "aten::_copy_from"),
        call(950, 5, "aiuLaunchDMIControlBlocks", "privateuse1_runtime"),
        kernel(951, 5, "Memcpy HtoD", "gpu_memcpy"),
    ]


def _allocating(malloc: float) -> list[Event]:
    """Work of 80 µs each 100 µs, launched in time but where memory is taken from the driver before."""
    events = []
    for n in range(10):
        late = malloc if n % 2 else 0
        events += launched(100 * n + 2 + late, 5, 100 * n + 10 + late, 80 - late)
        events += [call(100 * n - 5, 5 + malloc, "cudaMalloc")] if n % 2 else []
    return events


def _idle_host(us: float) -> list[Event]:
    """Steps in which nothing runs for so long before the first operator; the device is quick."""
    wall = us + 110
    return [
        event
        for n in range(4)
        for event in (
            step(n, n * wall, wall),
            note(n * wall + 1, us - 2, "augment"),
            op(n * wall + us, 100),
            *launched(n * wall + us + 5, 90, n * wall + us + 100, 10),
        )
    ]


def _idle_in(*pauses: float, marked: bool = True) -> list[Event]:
    """Steps of 20 ms, or as much without marks, each with an operator that begins so late."""
    events = []
    for n, us in enumerate(pauses):
        at = 20_000 * n
        events += [step(n, at, 20_000), note(at + 1, us - 2, f"part {n}")] if marked and us else []
        events += [step(n, at, 20_000)] if marked and not us else []
        events += [op(at + us, 100), *launched(at + us + 5, 90, at + us + 100, 19_900 - us)]
    return events


def _steps_around_a_gap(gap: float, *others: float) -> list[Event]:
    """Six full steps, one that begins 10 µs before a gap, others that begin so long after it began, the last
    of which launches what ends it, six full steps.
    """
    begins = [1000 * n for n in range(7)] + [6010 + at for at in others]
    last = begins[-1] + 1000
    begins += [last + 1000 * n for n in range(6)]
    events = []
    for n, (at, end) in enumerate(zip(begins, [*begins[1:], begins[-1] + 1000])):
        events.append(step(n, at, end - at))
        if n < 6 or n > 6 + len(others):
            events += launched(at + 1, 1, at + 10, 500)
            events += launched(at + 3, 1, at + 510, 500)
    return [*events, *launched(6010 + gap - 5, 1, 6010 + gap, last + 10 - 6010 - gap)]


def _exchanged(name: str) -> list[Event]:
    """Gradients that the host exchanges itself, between a copy to it and one back."""
    waits = [call(1000 * n + 20, 100, "cudaStreamSynchronize") for n in range(6)]
    notes = [note(1000 * n + 121, 700, name) for n in range(6)]
    return [*waits, *notes, *(e for n in range(6) for e in launched(1000 * n, 5, 1000 * n + 10, 100))]


def _late_at_the_end(n_late: int) -> list[Event]:
    """Steps of 100 µs, of which one does nothing for long after all that it launches."""
    events, at = [], 0.0
    for n in range(6):
        wall = 1000 if n == n_late else 100
        events += [step(n, at, wall), *launched(at, 5, at + 10, 50), *launched(at + 20, 5, at + 61, 30)]
        at += wall
    return events


def _queued_copy(copied: float) -> list[Event]:
    """A copy whose call waits for a kernel that was launched before, and begins late."""
    first = [*launched(0, 5, 10, 5), *launched(20, 5, 920, 20)]
    number = 4711
    copy = [call(30, 915 + copied, "hipMemcpyWithStream", correlation=number), *launched(980, 5, 1000, 20)]
    return [*first, *copy, kernel(941, copied, "Memcpy DtoH", "gpu_memcpy", correlation=number)]


def _selfs(*totals: float) -> list[Event]:
    return [op(100 * n, total, f"aten::o{n}") for n, total in enumerate(totals)]


def _cheap(count: int) -> list[Event]:
    return [op(2 * n, 1, "aten::tiny") for n in range(count)] + [op(2000, 4500, "aten::large")]


def _addmm(same: bool) -> list[Event]:
    """A copy within the device, then a product on its stream; of one addmm, or the copy of another op."""
    copy = launched(10 if same else 110, 2, 200, 5, "Memcpy DtoD (Device -> Device)", "gpu_memcpy")
    product = launched(20, 2, 210, 50, "ampere_sgemm_128x64_tn")
    return [op(0, 50, "aten::addmm"), op(100, 50, "aten::copy_"), *copy, *product]


def _steps(*walls: float) -> list[Event]:
    return [step(n, 100 * n, wall) for n, wall in enumerate(walls)]


def _growing(*sizes: int) -> list[Event]:
    """Steps that each leave so many bytes more allocated than there were."""
    events, total = [], 10_000
    for number, size in enumerate(sizes):
        total += size
        events += [step(number, 100 * number, 90), allocated(100 * number + 10, size, total)]
    return events


def _compiled_steps(wall: float) -> list[Event]:
    eager = [step(n, 1000 * n, 10) for n in range(2)]
    return [*eager, *(e for n in (2, 3) for e in (step(n, 1000 * n, wall), op(1000 * n, 5, REGION)))]


def _hidden(op_us: float) -> list[Event]:
    """A step with a kernel of 490 µs until 500, while an operator runs; a call waits for the kernel then."""
    wait = call(5 + op_us, 500 - op_us, "cudaDeviceSynchronize")
    return [step(0, 0, 1000), *launched(0, 5, 10, 490), op(5, op_us), wait]


def _process_called(name: str) -> list[Event]:
    """Say what the host's process is called, and its only lane as a snapshot of memory calls it."""
    of = {"pid": HOST, "tid": 1}
    return [
        event("M", 0, "process_name", **of, args={"name": name}),
        event("M", 0, "thread_name", **of, args={"name": "stream 0"}),
    ]


CASES: dict[str, tuple[list[Event], float, list[Event]]] = (
    {
        # rule: events that trigger it, µs claimed, events just below the threshold
        "overhead-bound": (_two_kernels(259, 1000), 501, _two_kernels(260, 1000)),
        "critical-path": (_hidden(449), 0, _hidden(448)),
        "transfer-bound": (_copied(496, 504), 496, _copied(495, 505)),
        "device-idle": (_two_kernels(239, 100), 481, _two_kernels(240, 100)),
        "no-durations": ([event("i", 10 * at, name) for at, name in enumerate("abb")], 0, [op(0, 1)]),
        "no-events": ([event("M", 0, "process_name", args={"name": "x"})], 0, [op(0, 1)]),
        "widest": (
            [op(0, 100, "frame", "toplevel"), op(10, 30, "paint", "toplevel")],
            0,
            [op(0, 100), op(10, 30), kernel(0, 10)],
        ),
        "device-bound": ([kernel(0, 400), kernel(600, 400)], 0, [kernel(0, 399), kernel(600, 400)]),
        "device-busy": ([kernel(0, 250), kernel(750, 250)], 0, [kernel(0, 250), kernel(751, 249)]),
        "one-call": ([op(0, 500, "aten::mm"), kernel(0, 1000)], 0, [op(0, 499, "aten::mm"), kernel(0, 1000)]),
        "launch-gaps": (_gap(101, 590), 101, _gap(100, 590)),
        "communication": (
            [step(0, 0, 1000), kernel(0, 201, "ncclDevKernel_AllReduce"), kernel(100, 100)],
            101,
            [step(0, 0, 1000), kernel(0, 200, "ncclDevKernel_AllReduce"), kernel(100, 100)],
        ),
        "copies": (
            [kernel(0, 80), kernel(80, 20, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy")],
            20,
            [kernel(0, 81), kernel(81, 19, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy")],
        ),
        "device-allocations": (_allocating(40), 5 * 45, _allocating(-2)),
        "pageable-copies": (
            [op(0, 1000), kernel(0, 10, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy")],
            10,
            [op(0, 1000), kernel(0, 9, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy")],
        ),
        "memory-peak": (
            [*_process_called("memory of device 0"), op(0, 100, "a.py(1): f"), allocated(10, 900, 900)],
            0,
            [*_process_called("memory of the device"), op(0, 100, "a.py(1): f"), allocated(10, 900, 900)],
        ),
        "memory-limit": (
            [op(0, 100), allocated(10, 900_000, 900_000), kernel(0, 1)],
            0,
            [op(0, 100), allocated(10, 899_999, 899_999), kernel(0, 1)],
        ),
        "memory-growth": (_growing(100, 99, 100), 0, _growing(100, 0, 200)),
        "first-kernel": (_first(1000), 1000, _first(999)),
        "device-hotspot": (_names(50, 25, 25), 50, _names(50, 26, 24)),
        "step-gap": (_one_gap(100.25), 100.25, _one_gap(100)),  # a tenth of 1002.5 µs
        "host-pause": (_idle_host(1000), 3 * 1000, _idle_host(999)),
        "uneven-kernel": (_runs(21), 11, _runs(20)),
        "lost-kernels": (_lost(6), 1210, _lost(5)),
        "graph-capture": (_captured(50), 50, _captured(49)),
        "first-use": (_loaded(80), 80, _loaded(79)),
        "sync-in-loop": (_synchronised(5), 2010, _synchronised(4)),
        "clock-drop": (_slowed(112), 120, _slowed(111)),
        "short-kernels": (_short(20), 200, _short(19)),
        "host-hotspot": (_selfs(50, 25, 25), 50, _selfs(49, 24, 24, 3)),
        "many-calls": (_cheap(500), 500, _cheap(499)),
        "cost-in-children": (
            [op(0, 100, "aten::outer"), op(0, 95, "aten::inner")],
            100,
            [op(0, 100, "aten::outer"), op(0, 94, "aten::inner")],
        ),
        "sync": (
            [call(100, 100, "cudaDeviceSynchronize"), kernel(50, 100)],
            50,
            [call(100, 100, "cudaDeviceSynchronize"), kernel(50, 101)],
        ),
        "dataloader": (
            [step(0, 0, 1000), op(0, 51, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")],
            51,
            [step(0, 0, 1000), op(0, 50, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")],
        ),
        "profiler": (
            [op(0, 1000), call(100, 10, "Activity Buffer Request", "overhead")],
            10,
            [op(0, 1000), call(100, 9, "Activity Buffer Request", "overhead")],
        ),
        "cold-start": (_steps(20, 10, 10), 10, _steps(19, 10, 10)),
        "late-first-op": (
            [note(0, 1000, "forward"), op(100, 900)],
            100,
            [note(0, 1000, "forward"), op(99, 901)],
        ),
        "occupancy-query": (
            [call(0, 3, "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")],
            3,
            [call(0, 3, "cudaFuncGetAttributes")],
        ),
        "hidden-copies": (_addmm(True), 5, _addmm(False)),
        "triton": ([kernel(0, 5, "triton_poi_fused_add_0")], 5, [kernel(0, 5, "my_triton_kernel")]),
        "forward-backward": (linked(0, 10), 0, linked(0, 10)[:3]),
        "graph-breaks": (
            [
                op(0, 100, REGION),
                op(10, 30, GRAPH),
                op(50, 40, "Torch-Compiled Region: 1/0"),
                op(55, 30, GRAPH),
            ],
            15,  # of 40: the calls of graphs are taken for the steps
            [
                op(0, 40, REGION),
                op(10, 30, GRAPH),
                op(50, 40, "Torch-Compiled Region: 1/0"),
                op(55, 30, GRAPH),
            ],
        ),
        "recompiled": (
            [op(0, 10, REGION), op(20, 10, "Torch-Compiled Region: 0/1")],
            0,
            [op(0, 10, REGION), op(20, 10, "Torch-Compiled Region: 1/0")],
        ),
        "compile-time": (
            [op(0, 1000), op(0, 10, "backend_compile (dynamo_timed)")],
            10,
            [op(0, 1000), op(0, 9, "backend_compile (dynamo_timed)")],
        ),
        "compiled-overhead": (
            [op(0, 10, LOOKUP), op(10, 90, REGION)],
            10,
            [op(0, 9, LOOKUP), op(9, 91, REGION)],
        ),
        "compiled-slower": (_compiled_steps(60), 100, _compiled_steps(10)),
        "device-clock": (launched(10, 1, 9, 5), 0, launched(10, 1, 10, 5)),
        "fused-ops": (
            [op(0, 10, GRAPH), op(1, 5, "aten::addmm")],
            0,
            [op(0, 10, GRAPH), op(11, 5, "aten::addmm")],
        ),
    }
    | {
        rule: (
            [op(0, 1000), kernel(0, 1), call(100, 50, name, "privateuse1_runtime")],
            50,
            [op(0, 1000), kernel(0, 1), call(100, 49, name, "privateuse1_runtime")],
        )
        for rule, name in (
            ("aiu-convert", "aiuDataConvert"),
            ("aiu-launch", "aiuLaunchDMIControlBlocks"),
            ("aiu-barriers", "aiuRdmaBarrier1"),
            ("aiu-waits", "aiuScheduleWait"),
            ("aiu-graph", "aiuCompileGraph"),
        )
    }
)


def test_every_rule_is_tried() -> None:
    """All rules have a case, but the one that needs several files (test_ranks.py), and those that need to
    know the device (test_findings_efficiency.py).
    """
    of_known_devices = {"below-peak", "fusable", "fp32-products", "few-blocks"}
    assert RULES.keys() - {"rank-imbalance"} - of_known_devices == CASES.keys()


def test_limits_belong_to_the_rule(tmp_path: Path) -> None:
    """A rule with another limit, and nothing else changed, judges by that one and says so."""
    events, _, _ = CASES["device-hotspot"]
    facts = SourceFacts(RankPart(Scope(trace_of(events, tmp_path), source=0)))
    rule = RULES["device-hotspot"]
    assert rule.outcome(facts) is not None
    limits = {**rule.limits, "share": 1.5}
    strict = replace(rule, limits=limits)
    assert strict.outcome(facts) is None and "150 %" in strict.threshold


EAGER = Baseline("before.json", compiled=False, steps=2, length_ns=20_000)
_ALL_COMPILED = [e for n in range(3) for e in (step(n, 1000 * n, 50 + 10 * n), op(1000 * n, 5, REGION))]
SENTENCES: list[tuple[str, list[Event], Baseline | None, str, list[tuple[str, int, int]]]] = [
    # rule, events, what they are compared with, the sentence, evidence from and to in µs
    (
        "launch-gaps", [*_gap(101, 590), *launched(1080, 1, 1090, 10)], None,
        "For 181 µs in 2 gaps GPU 0 sat idle because the next work was launched too late",
        [("longest wait", 500, 601), ("longest wait", 1010, 1090),
         ("the launch that ended the longest gap (101 µs): cudaLaunchKernel", 590, 591)],
    ),
    (
        "launch-gaps",  # nobody knows when the work was launched that ends the second
        [*launched(0, 5, 10, 490), op(500, 195, "aten::slow"), *launched(699, 1, 700, 10), kernel(800, 200)],
        None,
        "For 200 µs in 1 gap GPU 0 sat idle because the next work was launched too late; at the longest the "
        "host is in aten::slow",
        [
            ("longest wait", 500, 700),
            ("the launch that ended the longest gap (200 µs): cudaLaunchKernel", 699, 700),
        ],
    ),
    (
        "graph-capture", _captured(300), None,
        "For 300 µs the host captures 1 graph: 2 launches are recorded, and run nothing",
        [("the longest capture", 500, 800)],
    ),
    (
        "first-kernel", [*_first(2000), call(500, 900, "Activity Buffer Request", "overhead")], None,
        "The first work starts 2 ms after its launch, the rest 5 µs (median) after theirs or the work "
        "before: for 900 µs of it the profiler itself is at work",
        [("the first launch", 0, 10), ("what it launched", 2010, 2015)],
    ),
    (
        "first-kernel", _first(2000), None,
        "The first work starts 2 ms after its launch, the rest 5 µs (median) after theirs or the work "
        "before: the profiler's first buffer, or a cold device",
        [("the first launch", 0, 10), ("what it launched", 2010, 2015)],
    ),
    (
        "step-gap", _gaps_in(10, 900, 10, 1000, *[10] * 4), None,
        "In steps 1, 3 GPU 0 sits idle for up to 1 ms at a stretch, in the other 6 for 10 µs at most",
        [("the gap", 6060, 7060), ("the gap", 2060, 2960), ("the step: ProfilerStep#3", 6000, 8000)],
    ),
    (
        "step-gap", _gaps_in(*[900] * 6, *[10] * 18), None,
        "In steps 0, 1, 2, 3, 4, … GPU 0 sits idle for up to 900 µs at a stretch, in the other 18 "
        "for 10 µs at most",
        [("the gap", 60, 960), ("the gap", 2060, 2960), ("the gap", 4060, 4960),
         ("the step: ProfilerStep#0", 0, 2000)],
    ),
    (
        "step-gap", _gaps_in(*[900] * 5, *[10] * 16), None,
        "In steps 0, 1, 2, 3, 4 GPU 0 sits idle for up to 900 µs at a stretch, in the other 16 "
        "for 10 µs at most",
        [("the gap", 60, 960), ("the gap", 2060, 2960), ("the gap", 4060, 4960),
         ("the step: ProfilerStep#0", 0, 2000)],
    ),
    (
        "step-gap", _one_gap(101), None,
        "In step 2 GPU 0 sits idle for 101 µs at a stretch, in the other 3 for 0 ns at most",
        [("the gap", 2510, 2611), ("the step: ProfilerStep#2", 2000, 3000)],
    ),
    (
        "step-gap", _pauses(500, *[10] * 8), None,
        "GPU 0 sits idle once for 500 µs; its other gaps take 10 µs at most", [("the gap", 1010, 1510)],
    ),
    (
        "step-gap", _pauses(20, 450, 10, 500, *[10] * 8), None,
        "GPU 0 sits idle twice for up to 500 µs; its other gaps take 20 µs at most",
        [("the gap", 1520, 2020), ("the gap", 1040, 1490)],
    ),
    (
        "cold-start", _steps(30, 10, 12), None, "The first step takes 30 µs, those after it 11 µs (median)",
        [("the first step: ProfilerStep#0", 0, 30)],
    ),
    (
        "late-first-op",
        [note(0, 1000, "forward"), op(100, 900), note(2000, 800, "forward"), op(2300, 500)], None,
        "In 2 annotations the first operator comes late; in forward after 300 µs, 37.5 % of it",
        [("forward", 2000, 2800)],
    ),
    (
        "late-first-op",
        [note(0, 800, "forward"), op(300, 500), note(2000, 1000, "backward"), op(2100, 900)], None,
        "In 2 annotations the first operator comes late; in forward after 300 µs, 37.5 % of it",
        [("forward", 0, 800)],
    ),
    (
        "compiled-slower", [*_steps(50, 60, 70), op(0, 5, REGION)], EAGER,
        "Compiled steps take 60 µs (this trace), eager ones 20 µs (before.json; medians): 3 times as long",
        [("the first step", 0, 50)],
    ),
    (
        "host-pause", _idle_in(0, 9000, 8000, 7000), None,
        "For 24 ms in 3 pauses GPU 0 waits while the host runs no operator; at the longest it is in part 1",
        [("longest pause", 20000, 29000), ("longest pause", 40000, 48000), ("longest pause", 60000, 67000)],
    ),
    (
        "compiled-slower", _compiled_steps(60), None,
        "The 2 steps with compiled regions take 60 µs, the 2 without 10 µs (medians)",
        [("the first step", 2000, 2060)],
    ),
    (
        "compiled-slower", _ALL_COMPILED, EAGER,
        "Compiled steps take 60 µs (this trace), eager ones 20 µs (before.json; medians): 3 times as long",
        [("the first step", 0, 50)],
    ),
    (
        "compiled-slower", _steps(10, 12, 14), replace(EAGER, compiled=True),
        "Compiled steps take 20 µs (before.json), eager ones 12 µs (this trace; medians): 1.67 times as long",
        [("the first step", 0, 10)],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "events", "baseline", "sentence", "evidence"), SENTENCES)
def test_what_is_said(
    rule: str,
    events: list[Event],
    baseline: Baseline | None,
    sentence: str,
    evidence: list[tuple[str, int, int]],
    tmp_path: Path,
) -> None:
    """A rule's sentence has the counts and times of its trace, and its evidence lies where they are."""
    rows = findings(Scope(trace_of(events, tmp_path)), baseline).findings
    (finding,) = [finding for finding in rows if finding.rule == rule]
    assert finding.text == sentence
    assert [(one.label, one.start // 1000, one.end // 1000) for one in finding.evidence] == evidence


def test_only_the_step_of_the_first_launch_counts(tmp_path: Path) -> None:
    """Work of later launches, which follows that of the first, is of no step that waits."""
    events = [step(0, 0, 1995), step(1, 1996, 500), *_first(2000)]
    (finding,) = [
        one for one in findings(Scope(trace_of(events, tmp_path))).findings if one.rule == "first-kernel"
    ]
    assert (finding.in_steps, finding.of_steps) == (1, 2)


def test_children_that_take_no_time(tmp_path: Path) -> None:
    """Where an operator has its time in a call of its name, a child that takes none is not named."""
    events = [note("first", 0, 0), op(0, 100, "again"), op(0, 100, "again"), op(50, 0, "nothing")]
    ((_, evidence),) = [
        (finding.rule, finding.evidence)
        for finding in findings(Scope(trace_of(events, tmp_path))).findings
        if finding.rule == "cost-in-children"
    ]
    assert [each.label for each in evidence] == ["its longest call: again"]


@pytest.mark.slow
@pytest.mark.parametrize("rule", CASES)
def test_rule(rule: str, tmp_path: Path) -> None:
    """At its threshold a rule speaks once, claims the time stated, shows evidence; below it says nothing."""
    events, claimed, below = CASES[rule]
    trace = trace_of(events, tmp_path / "over")
    (finding,) = [finding for finding in findings(Scope(trace)).findings if finding.rule == rule]
    assert finding.claimed_ns + finding.caused_ns == claimed * 1000
    assert finding.text and finding.helps and finding.threshold and finding.origin
    assert finding.evidence or rule == "no-events"
    low, high = trace.span
    for evidence in finding.evidence:
        assert low <= evidence.start <= evidence.end <= high
        if evidence.slice is not None:
            location = trace.find(evidence.slice)
            assert location is not None
            assert trace.bounds(*location) == (evidence.start, evidence.end)
    silent = findings(Scope(trace_of(below, tmp_path / "below")))
    assert rule not in [finding.rule for finding in silent.findings]


@pytest.mark.parametrize(
    ("rule", "events"),
    [
        ("launch-gaps", [op(0, 2030), *_pauses(-500, 500)]),  # half of the idle time, exactly
        ("first-kernel", _first(1000, 1)),  # one other is enough to compare with
        ("first-kernel", [*launched(0, 100, 1100, 5), *launched(2000, 100, 2105, 5)]),  # ten times a call
        (
            "launch-gaps",
            _device_last([*launched(9, 1, 10, 490), *launched(590, 1, 601, 410)]),
        ),  # the first of all slices
        ("first-kernel", _device_last(_first(1000))),
        ("first-kernel", [*launched(0, 5, 1500, 5), *launched(20, 5, 40, 5), *launched(50, 5, 70, 5)]),
        ("step-gap", _pauses(500, *[100] * 7)),  # one of eight in a trace without steps, five times as long
        ("step-gap", _pauses(500, 450, *[10] * 8)),  # two
        ("step-gap", _pauses(46, *[0.5] * 8)),  # 4 % of 1150 µs
        ("host-pause", _idle_in(0, 5000, 3000, 0)),  # in two steps, a tenth of 80 ms
        ("host-pause", _idle_in(0, 5000, 5000, 5000, 0, marked=False)),  # three times without steps
        ("late-first-op", [note(0, 1000, "forward"), op(900, 100)]),  # a tenth is left
        ("step-gap", [op(0, 200), *(kernel(at, 10) for at in (0, 510, *range(530, 730, 20)))]),  # no launches
        (
            "step-gap",
            [
                *(step(n, 1000 * n, 1000) for n in range(3)),
                *launched(1, 1, 100, 900),
                *launched(1001, 1, 1010, 590),
                *launched(2001, 1, 2010, 500),
            ],
        ),  # three pieces of work in three steps
    ],
)
def test_also_so(rule: str, events: list[Event], tmp_path: Path) -> None:
    """The least that a rule needs is enough."""
    assert rule in [finding.rule for finding in findings(Scope(trace_of(events, tmp_path))).findings]


@pytest.mark.parametrize(
    ("rule", "events"),
    [
        ("graph-capture", [*_captured(300), kernel(400, 500)]),  # while the device is busy
        ("graph-capture", [one for one in _captured(300) if one["name"] != "cudaStreamEndCapture"]),
        ("step-gap", _pauses(500, 200, *[90] * 8)),  # two, of which the shorter is none
        ("step-gap", _gaps_in(1800, 250, 250, *[10] * 6)),  # in three steps of nine: not for its step alone
        ("step-gap", _pauses(500, *[10] * 6)),  # too few gaps to tell which is usual
        ("clock-drop", [kernel(150 * n, 100 if n < 10 else 130, "Conv2D") for n in range(20)]),  # of any size
        ("clock-drop", _alternating(130)),  # as slow before
        ("clock-drop", [*_slowed(130), *_resized(2)]),  # other shapes in the same time
        ("transfer-bound", _waited_in_a_copy()),  # for kernels, not for the copy
        ("transfer-bound", [*_converted(), call(10, 900, "aiuDataConvert", "privateuse1_runtime")]),
        ("launch-gaps", _gap(100, 400)),  # launched in time: the device's own gap
        ("uneven-kernel", _runs(21, 2)),  # too few runs to tell
        ("uneven-kernel", [kernel(50 * n, 10 + 11 * (n == 0), "ncclDevKernel_x") for n in range(8)]),
        ("device-hotspot", _names(50)),  # the only one
        ("device-hotspot", _names(501, 500)),  # half of two
        ("host-hotspot", _selfs(501, 500)),
        ("widest", [complete(0, 100, "PyTorch Profiler (0)", "Trace", pid="Spans", tid="PyTorch Profiler")]),
        ("widest", [op(10 * at, 10, f"f{at}", "toplevel") for at in range(30)]),  # nothing stands out
        ("widest", [op(0, 100, "aten::mm"), op(100, 10, "aten::add")]),  # host-hotspot says it
        ("communication", [step(0, 0, 100), op(0, 60, "nccl:all_reduce"), op(60, 40)]),  # of a device
        ("device-bound", [op(0, 100), *launched(10, 5, 500, 50), *launched(20, 5, 550, 50)]),  # a burst
        ("device-bound", [kernel(0, 100, "event_wait", "mtia_ccp_events")]),  # a wait is no work
        ("device-bound", [kernel(0, 100, "threading.py(1): wait", "python_function")]),
        ("sync", [call(0, 100, "cudaDeviceSynchronize")]),  # no device work in the trace
        ("cold-start", _steps(20, 10)),
        ("host-pause", _idle_in(0, 15_000, 0, 0)),  # in one step
        ("host-pause", _idle_in(0, 9000, 9000, 0, marked=False)),  # twice without steps
        ("late-first-op", [note(0, 1000, "forward"), op(901, 99)]),  # next to nothing is left of it
        ("compiled-slower", _compiled_steps(10)),  # as long as eager ones
        ("sync-in-loop", _exchanged("gloo:all_reduce")),  # the host is busy with its peers
        ("launch-gaps", _exchanged("gloo:all_reduce")),
        ("transfer-bound", _queued_copy(4)),  # the copy is short, what waits before it is not
        ("launch-gaps", _queued_copy(4)),  # launched in time
        ("memory-limit", [op(0, 9), allocated(1, 1000, 920_000), kernel(0, 1)]),  # taken ahead
        ("device-idle", [op(0, 100), kernel(0, 0), kernel(50, 0)]),  # work that takes no time tells nothing
        ("short-kernels", [call(0, 500, "cudaGraphLaunch", correlation=9), *(
            kernel(600 + 20 * n, 15, correlation=9) for n in range(40)
        )]),
    ],
)  # fmt: skip
def test_not_so(rule: str, events: list[Event], tmp_path: Path) -> None:
    """What looks alike but is something else is not claimed."""
    assert rule not in [finding.rule for finding in findings(Scope(trace_of(events, tmp_path))).findings]


def test_instants_say_when_and_not_how_long(tmp_path: Path) -> None:
    """Of a file with instants alone it is told how many there are, which most often, and the longest gap."""
    events = [
        event("i", ts, name) for ts, name in ((0, "Layout"), (5, "Paint"), (90, "Paint"), (100, "Paint"))
    ]
    (only,) = findings(Scope(trace_of(events, tmp_path))).findings
    assert only.rule == "no-durations"
    assert only.text == (
        "the file holds 4 instants and no slices: it does not say how long anything takes; most often Paint, "
        "3 times; "
        "the longest time between two is 85 µs, after Paint"
    )


def test_records_of_objects_are_called_so(tmp_path: Path) -> None:
    """Snapshots of objects are no instants to whoever recorded them."""
    events = [event("O", 10 * at, "cc::Tile", id="0x1") for at in range(3)]
    (only,) = findings(Scope(trace_of(events, tmp_path))).findings
    assert only.text.startswith("the file holds 3 records of objects and no slices")


def _stacks(children: float) -> list[Event]:
    """A step that is written as an operator, of whose time Python's functions have most; in these an operator
    whose own children have so much of its 400 µs, and Python the rest.
    """
    python = {"cat": "python_function"}
    return [
        op(0, 1000, "ProfilerStep#1"),
        complete(0, 600, "main.py(1): display", **python),
        op(600, 400, "aten::outer"),
        op(600, children, "aten::inner"),
        complete(600 + children, 395 - children, "hook.py(1): call", **python),
    ]


@pytest.mark.parametrize(("children", "most"), [(300, ", most in aten::inner"), (100, "")])
def test_the_dearest_child_is_named_where_children_are_known(
    children: float, most: str, tmp_path: Path
) -> None:
    """A mark of a step is no operator, and of Python's functions no operator's child is the dearest."""
    report = findings(Scope(trace_of(_stacks(children), tmp_path))).findings
    texts = [one.text for one in report if one.rule == "cost-in-children"]
    assert texts == [f"aten::outer takes 400 µs, 1.2 % of it itself: the time is in its children{most}"]


def test_slices_that_take_little_of_the_time_are_said_to(tmp_path: Path) -> None:
    """Where most of the time nothing is recorded, the share of own time alone would mislead."""
    events = [op(0, 17, "launch", "x"), event("i", 1000, "done")]
    (text,) = [
        one.text for one in findings(Scope(trace_of(events, tmp_path))).findings if one.rule == "widest"
    ]
    assert text.endswith("100.0 % of all own time; all slices take 17 µs of 1 ms")


def test_time_between_two_clocks_is_no_idle_time(tmp_path: Path) -> None:
    """Where all work of a device is seconds after the host's, its clock is told, and no idle time by it."""
    far = 3 * 10**6
    events = [op(0, 50), kernel(far, 100), kernel(far + 1000, 100)]
    rules = {one.rule for one in findings(Scope(trace_of(events, tmp_path))).findings}
    assert "device-clock" in rules and "device-idle" not in rules


def test_the_profilers_time_is_before_the_first_work(tmp_path: Path) -> None:
    """When the first work begins is told with the time of the profiler, which is no idle time."""
    request = call(0, 500, "Activity Buffer Request") | {"cat": "overhead"}
    events = [op(0, 400), request, kernel(1000, 5, correlation=9)]
    texts = [
        one.text for one in findings(Scope(trace_of(events, tmp_path))).findings if one.rule == "device-idle"
    ]
    assert len(texts) == 1 and texts[0].endswith("; the first work begins after 1 ms")


def test_a_rule_judges_once_whoever_asks(tmp_path: Path) -> None:
    """Rules that ask another one about the same time do not have it judge again."""
    judged: list[float] = []
    counting = replace(RULES["host-hotspot"], judge=lambda _, limits: judged.append(limits["share"]))
    facts = SourceFacts(RankPart(Scope(trace_of([op(0, 9)], tmp_path), source=0)))
    for rule in (counting, counting, replace(counting, limits={"share": 0.9}), counting):
        rule.outcome(facts)
    assert judged == [0.5, 0.9, 0.5]


def test_collectives_of_the_host_are_communication(tmp_path: Path) -> None:
    """While the host itself exchanges data, devices wait for communication, and for nothing else."""
    rows = findings(Scope(trace_of(_exchanged("gloo:all_reduce"), tmp_path))).losses
    assert rows[0].rule == "communication" and rows[0].claimed_ns == 6 * 700_000


def test_the_step_in_which_the_host_was(tmp_path: Path) -> None:
    """A gap belongs to the step in which the host was idle, not to the one that launches again."""
    first = findings(Scope(trace_of(_late_at_the_end(3), tmp_path))).losses[0]
    assert first.rule == "step-gap" and first.text.startswith("In step 3 ")


@pytest.mark.parametrize(
    ("events", "label"),
    [
        (_late_at_the_end(0), "0"),
        (_steps_around_a_gap(420, 150, 410), "7"),  # 260 of 420 µs, not the first third
        (_steps_around_a_gap(400, 100, 300), "8"),  # half of it in one step is not most: what launches again
    ],
)
def test_a_gap_is_of_the_step_that_has_most_of_it(events: list[Event], label: str, tmp_path: Path) -> None:
    """The step in which the host was for more than half of a gap has it, else the one that ends it."""
    rows = findings(Scope(trace_of(events, tmp_path))).findings
    (text,) = [one.text for one in rows if one.rule == "step-gap"]
    assert text.startswith(f"In step {label} ")


@pytest.mark.parametrize(
    ("rule", "events", "baseline"),
    [
        ("host-pause", [call(0, 5, "cudaFree"), *_pauses(5000, 5000, 5000)], None),
        ("compiled-slower", _ALL_COMPILED, replace(EAGER, length_ns=None)),
        ("compiled-slower", [op(0, 5, REGION)], EAGER),  # no steps here
    ],
)
def test_what_cannot_be_judged(
    rule: str, events: list[Event], baseline: Baseline | None, tmp_path: Path
) -> None:
    """Without what it needs a rule says so."""
    assert rule in dict(findings(Scope(trace_of(events, tmp_path)), baseline).not_judged)


def test_how_much_slower_than_a_baseline(tmp_path: Path) -> None:
    """All steps together claim what each takes longer than the median of the other run."""
    rows = findings(Scope(trace_of(_ALL_COMPILED, tmp_path)), EAGER).findings
    (one,) = [one for one in rows if one.rule == "compiled-slower"]
    assert one.claimed_ns + one.caused_ns == 3 * 40_000


def test_an_excerpt_does_not_tell_what_was_before(tmp_path: Path) -> None:
    """In a file without names of processes, which is cut out of another, the first launch is not judged."""
    scope = Scope(Trace([index_of(_first(5000), tmp_path)]))
    assert "first-kernel" in dict(findings(scope).not_judged)


def test_first_calls_of_a_loader_are_its_own(tmp_path: Path) -> None:
    """What takes long the first time while input is loaded is the loader's time."""
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    slow = [note(1000 * n, 500, loader) for n in range(4)]
    slow += [op(1000 * n + 10, 400 if n == 0 else 1, "aten::cat") for n in range(4)]
    events = [*slow, *(e for n in range(4) for e in launched(1000 * n + 510, 5, 1000 * n + 520, 400))]
    rules = [row.rule for row in findings(Scope(trace_of(events, tmp_path))).losses]
    assert rules[0] == "dataloader" and "first-use" not in rules


def test_questions_about_a_kernel_load_it(tmp_path: Path) -> None:
    """A call about a kernel that takes long right before its first launch is a first use."""
    name = "cudaOccupancyMaxActiveBlocksPerMultiprocessor"
    events = []
    for n in range(8):
        long = 400 if n == 4 else 3
        events += [call(600 * n, long, name)]
        events += launched(600 * n + long + 1, 5, 600 * n + long + 10, 150, "gemm" if n < 4 else "conv")
    first = findings(Scope(trace_of(events, tmp_path))).losses
    assert "first-use" in [row.rule for row in first]


def test_profiler_is_not_blamed(tmp_path: Path) -> None:
    """Idle time under the profiler's own work is claimed by no rule about idle devices."""
    plain = _two_kernels(230, 100)
    with_profiler = [*plain, call(300, 300, "Activity Buffer Request", "overhead")]
    claims = []
    for name, events in (("a", plain), ("b", with_profiler)):
        rows = findings(Scope(trace_of(events, tmp_path / name))).findings
        claims.append(next(row.claimed_ns for row in rows if row.rule == "device-idle"))
    assert claims[0] - claims[1] == 300_000


def test_a_call_held_by_the_profiler_is_no_overhead(tmp_path: Path) -> None:
    """A launch that lasts until the profiler has its buffer is no work of the host."""
    buffer = call(10, 2000, "Activity Buffer Request", "overhead")
    held = [buffer, *launched(5, 2010, 2020, 40), *launched(2016, 3, 2060, 40)]
    rules = [row.rule for row in findings(Scope(trace_of(held, tmp_path / "held"))).findings]
    assert "overhead-bound" not in rules and "profiler" in rules


def _stalls(*steps: float, in_call: bool = False) -> list[Event]:
    """Steps of eight operators: the fourth takes so many µs more than 20, or the first does in its call."""
    events: list[Event] = []
    at = 0.0
    for number, more in enumerate(steps):
        begin = at
        for nth in range(8):
            length = 20 + more * (nth == (0 if in_call else 3))
            call_us = length - 10 if in_call else 5
            events.append(op(at, length, f"aten::op{nth % 2}"))
            events += launched(at + length - call_us - 1, call_us, at + length, 200)
            at += length + 200
        events.append(step(number, begin, at - begin))
    return events


@pytest.mark.parametrize(
    ("stalls", "in_call", "speaking", "silent"),
    [
        ((2_000, 2_000, 2_000, 2_000), False, "host-pause", "first-use"),
        ((2_000, 0, 0, 2_000), False, "host-pause", "first-use"),
        ((2_500, 0, 0, 0), True, "first-use", "host-pause"),
        ((0, 0, 0, 0), False, "", "host-pause"),
    ],
    ids=["in each step", "in two", "in the first call", "never"],
)
def test_what_comes_again_is_no_first_use(
    stalls: tuple[float, ...], in_call: bool, speaking: str, silent: str, tmp_path: Path
) -> None:
    """An operator that is held up in several steps makes the host pause; a first call alone loads."""
    trace = trace_of(_stalls(*stalls, in_call=in_call), tmp_path)
    rules = {one.rule for one in findings(Scope(trace)).findings}
    assert (not speaking or speaking in rules) and silent not in rules


def test_a_single_pass_is_not_called_bound_by_its_host(tmp_path: Path) -> None:
    """What ran once says nothing of how host and device keep pace."""
    reports = []
    for folder, names in (("once", "abcd"), ("again", "aaaa")):
        events: list[Event] = []
        for n, name in enumerate(names):
            events += [op(900 * n, 800), *launched(900 * n + 780, 5, 900 * n + 800, 3, name)]
        reports.append(findings(Scope(trace_of(events, tmp_path / folder))))
    assert ["overhead-bound" in {one.rule for one in report.findings} for report in reports] == [False, True]
    assert "ran once" in dict(reports[0].not_judged)["overhead-bound"]


@pytest.mark.parametrize("host_us", [500, 5_000, 50_000, 500_000])
def test_no_sentence_has_an_exponent(host_us: int, tmp_path: Path) -> None:
    """However many times as long the host works."""
    events = [
        event
        for n in range(4)
        for event in (op(n * host_us, host_us), *launched(n * host_us + 10, 2, n * host_us + 15, 2))
    ]
    report = findings(Scope(trace_of(events, tmp_path)))
    assert "overhead-bound" in {one.rule for one in report.findings}
    assert not [one.text for one in report.findings if re.search(r"\de[+-]?\d", one.text)]


WIDEST: dict[str, tuple[list[Event], str]] = {
    "asynchronous spans are no work": (
        [op(0, 10, "parse", "v8"), op(10, 9, "layout", "v8")]
        + [async_event(ph, ts, "1", "request", pid=1) for ph, ts in (("b", 0), ("e", 900))],
        "parse takes most time of its own, 10 µs in 1 slice of thread 1, 52.6 % of all own time",
    ),
    "unless there is nothing else": (
        [async_event(ph, ts, "1", "request", pid=1) for ph, ts in (("b", 0), ("e", 900))],
        "request takes most time of its own, 900 µs in 1 slice of async 1, 100.0 % of all own time",
    ),
    "what was never ended lasts as long as its lane": (
        [event("B", 0, "loop", cat="v8"), op(0, 30, "draw", "v8"), op(900, 10, "paint", "v8")],
        "draw takes most time of its own, 30 µs in 1 slice of thread 1, 75.0 % of all own time",
    ),
    "many lanes may share it": (
        [complete(0, 9, "wait", "v8", tid=at) for at in range(8)] + [complete(9, 12, "run", "v8", tid=9)],
        "wait takes most time of its own, 72 µs in 8 slices of 8 lanes, 85.7 % of all own time; waits aside "
        "run with 12 µs, 14.3 %",
    ),
    "names that numbers alone tell apart are one": (
        [op(10 * at, 8, f"Reduce_{at}_0", "x") for at in range(3)] + [op(40, 20, "MatMul", "x")],
        "Reduce_#_# takes most time of its own, 24 µs in 3 slices of thread 1, 54.5 % of all own time",
    ),
    "numbers tell apart all that there is": (
        [op(10 * at, 9 if at == 2 else 2, f"Line {50 + at % 3}", "x") for at in range(9)],
        "Line 52 takes most time of its own, 13 µs in 3 slices of thread 1, 52.0 % of all own time",
    ),
    "numbers within words stay": (
        [op(0, 8, "Conv2D", "x"), op(10, 8, "Conv3D", "x"), op(20, 9, "conv_1x1", "x")],
        "conv_1x1 takes most time of its own, 9 µs in 1 slice of thread 1, 36.0 % of all own time",
    ),
    "marks of steps are no work": (
        [step(0, 0, 100), op(0, 20, "aten::mm"), op(20, 15, "aten::add"), op(35, 14, "aten::mul")],
        "aten::mm takes most time of its own, 20 µs in 1 slice of thread 1, 20.0 % of all own time",
    ),
    "operators that others wait in": (
        [step(0, 0, 100), op(0, 90, "gloo:all_reduce"), op(90, 2, "aten::mm")],
        "gloo:all_reduce takes most time of its own, 90 µs in 1 slice of thread 1, 90.0 % of all own time",
    ),
    "slices without a name": (
        [op(0, 90, " ", "mine"), op(90, 2, "b", "mine")],
        "(no name) takes most time of its own, 90 µs in 1 slice of thread 1, 97.8 % of all own time",
    ),
}


@pytest.mark.parametrize("case", WIDEST)
def test_where_the_time_goes(case: str, tmp_path: Path) -> None:
    """Where no device worked and no other headline is, one sentence says what takes most time of its own."""
    events, text = WIDEST[case]
    texts = [one.text for one in findings(Scope(trace_of(events, tmp_path))).findings if one.rule == "widest"]
    assert texts == [text]


@pytest.mark.parametrize("name", ["nccl:all_reduce", "gloo:broadcast", "c10d::allreduce_", "hccl:send"])
def test_collectives_are_no_steps(name: str, tmp_path: Path) -> None:
    """What repeats most often may be a collective: it is a part of steps, and never one."""
    events = [note(10 * at, 8, name) for at in range(50)]
    assert findings(Scope(trace_of(events, tmp_path))).findings
    assert find_steps(trace_of(events, tmp_path / "2"), 0) is None


def _frame(ts: float, dur: float, name: str, tid: int) -> Event:
    return complete(ts, dur, name, "python_function", pid=2, tid=tid)


ASLEEP = (
    "threading.py(359): wait",
    "queue.py(171): get",
    "<built-in method acquire of _thread.lock object at 0x7ce2864e5ac0>",
    "<method 'poll' of 'select.epoll' objects>",
)


@pytest.mark.parametrize("name", ASLEEP)
def test_what_the_host_does_is_no_other_threads_sleep(name: str, tmp_path: Path) -> None:
    """A monitor that sleeps all the time is not what holds a device up: the thread is that launches."""
    asleep = _frame(0, 1000, name, 9)
    events = [asleep, *launched(0, 5, 10, 40), op(60, 790, "preprocess"), *launched(900, 5, 910, 40)]
    report = findings(Scope(trace_of(events, tmp_path)))
    (idle,) = [one for one in report.findings if one.rule == "device-idle"]
    assert idle.text.endswith("at the longest the host is in preprocess")


@pytest.mark.parametrize(
    ("name", "copied", "is_unrecorded"),
    [
        ("hipMemcpyWithStream", 10, True),
        ("hipMemcpyWithStream", 900, False),  # a large copy, which the host prepares
        ("cudaDeviceSynchronize", 900, True),
        ("preprocess", 10, False),
    ],
)
def test_waits_for_an_idle_device_tell_of_work_that_is_missing(
    name: str, copied: float, is_unrecorded: bool, tmp_path: Path
) -> None:
    """A host that waits for a device that does nothing waits for what was launched before the recording."""
    work = [kernel(3010 + copied + 20 * at, 9) for at in range(40)]
    waits = [call(5, 3005 + copied, name, correlation=7), kernel(3005, copied, "Memcpy", correlation=7)]
    report = findings(Scope(trace_of([op(0, 2), kernel(3, 1), *waits, *work], tmp_path)))
    (idle,) = [one for one in report.findings if one.rule == "device-idle"]
    assert idle.text.endswith(", which waits for work that is not in the trace") == is_unrecorded


def test_many_gaps_tell_more_than_the_longest(tmp_path: Path) -> None:
    """Of gaps that are about as long it is said what the host does in most of their time."""
    events = launched(0, 1, 5, 10)
    for at, length in enumerate((110, 100, 100, 100)):
        start = 400 * at + 20
        doing = "cudaMemcpyAsync" if at else "cudaDeviceSynchronize"
        events += [op(start, length, doing), *launched(start + length, 1, start + length + 5, 10)]
        events += launched(start + length + 2, 1, start + length + 15, 265 - length)
    facts = SourceFacts(RankPart(Scope(trace_of(events, tmp_path), source=0)))
    assert facts.doing_at_longest(facts.idle) == "cudaMemcpyAsync"


@pytest.mark.parametrize(
    ("compute", "talk", "named"), [(60, 40, "gemm"), (30, 70, "ncclDevKernel_AllReduce")]
)
def test_the_kernel_of_what_is_the_limit(compute: float, talk: float, named: str, tmp_path: Path) -> None:
    """A device that mostly computes is said to be in what computes, though a collective takes longer."""
    events = [kernel(0, talk, "ncclDevKernel_AllReduce_Sum"), kernel(talk, compute / 2, "gemm_a")]
    events.append(kernel(talk + compute / 2, compute / 2, "gemm_b"))
    (said,) = findings(Scope(trace_of(events, tmp_path))).of_kind("headline")
    assert said.rule == "device-bound" and f"of it in {named}" in said.text


@pytest.mark.parametrize(("flushed", "first"), [(30, "device-bound"), (120, "profiler")])
def test_a_small_loss_does_not_lead(flushed: float, first: str, tmp_path: Path) -> None:
    """What says how the devices were used is read before losses that all cost less than 5 % of the time."""
    flush = call(900, flushed, "Buffer Flush", "overhead")
    report = findings(Scope(trace_of([kernel(0, 900), flush, kernel(900 + flushed, 100)], tmp_path)))
    assert report.leading is not None and report.leading.rule == first
    assert {one.rule for one in report.findings} >= {"device-bound", "profiler"}


def test_marks_of_steps_are_no_work_of_the_host(tmp_path: Path) -> None:
    """A step whose mark has the category of operators, as old traces have, is no time that the host works."""
    mark = op(0, 1000, "ProfilerStep#1")
    events = [
        mark,
        op(0, 100, "aten::mm"),
        *launched(110, 5, 120, 10),
        op(500, 100),
        *launched(610, 5, 620, 9),
    ]
    facts = SourceFacts(RankPart(Scope(trace_of(events, tmp_path), source=0)))
    assert facts.host_busy.length == 210_000


def test_lost_fills_are_not_what_is_read_first(tmp_path: Path) -> None:
    """Calls that only fill memory and whose work is missing are listed, after what costs time."""
    lost = [call(2 * at, 1, "cudaMemsetAsync", correlation=9000 + at) for at in range(9)]

    events = [*lost, *launched(20, 5, 26, 20), op(200, 700, "work"), *launched(950, 5, 960, 20)]
    losses = [one.rule for one in findings(Scope(trace_of(events, tmp_path))).losses]
    assert losses[0] != "lost-kernels" and "lost-kernels" in losses


def test_the_call_that_loads_is_named_within_its_operator(tmp_path: Path) -> None:
    """Where an operator takes memory for the first time, the call in it that lasts is said, with its time."""
    events = [op(0, 9000, "aten::empty"), call(100, 8800, "cudaDeviceGetStreamPriorityRange")]
    events += [op(9000 + 20 * at, 9, "aten::empty") for at in range(20)]
    events += [event for at in range(9) for event in launched(9500 + 20 * at, 5, 9510 + 20 * at, 9)]
    (first,) = [one for one in findings(Scope(trace_of(events, tmp_path))).losses if one.rule == "first-use"]
    assert "longest cudaDeviceGetStreamPriorityRange with 8.8 ms" in first.text


@pytest.mark.parametrize(
    ("returns", "said"), [(True, "last until what they launch is done"), (False, "take longer")]
)
def test_launch_calls_that_wait(returns: bool, said: str, tmp_path: Path) -> None:
    """Calls that return when their work is done are told from those that are only slow: of short work both
    outlast it, of long work the former do.
    """
    events: list[Event] = []
    for at in range(40):
        long = 600 if at % 2 else 20
        begin = 1000 * at
        events += launched(begin, 260 + long if returns else 280, begin + 250, long)
    texts = [
        one.text
        for one in findings(Scope(trace_of(events, tmp_path))).findings
        if one.rule == "short-kernels"
    ]
    assert len(texts) == 1 and said in texts[0]


def test_steps_that_have_next_to_nothing_do_not_count(tmp_path: Path) -> None:
    """Of twelve steps three wait for input for long, the others for a moment: it is a matter of three."""
    events = []
    for n in range(12):
        at, wait = 1000 * n, 600 if n % 4 == 3 else 4
        events += [
            step(n, at, 999),
            op(at, wait, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
        ]
        events += [op(at + wait, 100), *launched(at + wait + 5, 5, at + wait + 12, 990 - wait - 12)]
    (finding,) = [
        one for one in findings(Scope(trace_of(events, tmp_path))).losses if one.rule == "dataloader"
    ]
    assert (finding.in_steps, finding.of_steps) == (3, 12)


@pytest.mark.parametrize(("more", "claimed"), [(0, 0), (3, 3000)])
def test_a_cold_start_may_be_work_of_the_device(more: int, claimed: int, tmp_path: Path) -> None:
    """Algorithms that are tried in the first step are device work that later steps do not have; a host that
    runs ahead in the first step loses nothing.
    """
    events = []
    at = 0
    for n in range(6):
        tried = more if n == 0 else 0
        events += [step(n, at, 1000 + 1000 * tried)]
        for nth in range(1 + tried):
            begun = at + 1000 * nth
            events += [
                op(begun, 990),
                *launched(begun + 5, 5, begun + 12, 980, "try" if nth < tried else "k"),
            ]
        at += 1000 + 1000 * tried
    losses = [one for one in findings(Scope(trace_of(events, tmp_path))).losses if one.rule == "cold-start"]
    assert len(losses) == (claimed > 0)
    assert not losses or claimed * 600 <= losses[0].claimed_ns <= claimed * 1000  # less what others explain


@pytest.mark.parametrize(
    ("name", "rule", "us"), [("aiuDataConvert", "aiu-convert", 900), ("aiuScheduleWait", "aiu-waits", 750)]
)
def test_what_an_aiu_does_within_a_copy(name: str, rule: str, us: int, tmp_path: Path) -> None:
    """Conversion and waits for the scheduler within an operator that copies are what is told, whole."""
    if rule == "aiu-convert":
        events = [*_converted(), call(10, 900, name, "privateuse1_runtime")]
    else:
        events = _waited_in_a_copy()
    first = findings(Scope(trace_of(events, tmp_path))).losses[0]
    assert first.rule == rule and first.claimed_ns == pytest.approx(us * 1000, rel=0.1)
