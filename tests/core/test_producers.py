"""What a known producer's lanes are: devices, steps, lanes that repeat others; and files that say nothing."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.corpus import file, for_files, needs, traces
from tests.events import complete, metadata, open_events
from tracelane.core.base.errors import TracelaneError
from tracelane.core.base.kineto import SliceKind, slice_kind
from tracelane.core.index import repeats
from tracelane.core.index.format import LaneRole
from tracelane.core.index.producers import PRODUCERS, Producer, producer_of
from tracelane.core.query.chain import chain_of
from tracelane.core.query.views import plain
from tracelane.core.tables.device.device_state import device_states
from tracelane.core.tables.device.kernels import kernels
from tracelane.core.tables.device.launches import analyse_launches
from tracelane.core.tables.device.states import PRECEDENCE
from tracelane.core.tables.doctor.doctor import analyse_doctor
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.frame_columns import work_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.ops import analyse_ops
from tracelane.core.tables.overview.overview import overview
from tracelane.core.tables.registry import BY_NAME
from tracelane.core.trace import open_trace
from tracelane.core.trace.devices import devices
from tracelane.core.trace.step_choice import find_steps

Event = dict[str, Any]
MS = 1000  # µs, as files have times
BUSY_NAMES = [PRECEDENCE[state] for state in range(len(PRECEDENCE) - 1)]
"""The states of a device but idle."""


def _slice(name: str, ts: float, dur: float, pid: Any, tid: Any, **args: Any) -> Event:
    return complete(ts, dur, name, None, pid=pid, tid=tid, args=args)


def _processes(names: dict[Any, str], labels: dict[Any, str] | None = None) -> Iterator[Event]:
    for pid, name in names.items():
        yield metadata("process_name", pid, name=name)
    for pid, label in (labels or {}).items():
        yield metadata("process_labels", pid, labels=label)


def _threads(pid: Any, names: dict[Any, str]) -> Iterator[Event]:
    for tid, name in names.items():
        yield metadata("thread_name", pid, tid, name=name)


def cann() -> list[Event]:
    """Make two iterations of 10 ms as CANN exports them: 4 ms of a kernel, 5 ms of an AllReduce of which 3 ms
    are a wait for another rank, 1 ms free; planes and the analysis repeat it.
    """
    events = [
        *_processes(
            {3: "Ascend Hardware", 9: "CANN", 11: "HCCL", 12: "Overlap Analysis"},
            {3: "NPU", 11: "NPU", 12: "NPU"},
        ),
        *_threads(3, {2: "Stream 2", 5: "Stream 5", 90: "Step Trace(Model ID:1)"}),
        *_threads(11, {1: "Communication Kernel", 2: "Plane 0"}),
        *_threads(12, {1: "Computing", 2: "Communication", 3: "Free"}),
        _slice("GE@Infer", 0, 20 * MS, 9, 1),
    ]
    for at in (0, 10 * MS):
        events += [
            _slice(f"Iteration {at // 10_000 + 1}", at, 10 * MS, 3, 90),
            _slice("net/Conv2D-op1", at, 4 * MS, 3, 2),
            _slice("NOTIFY_WAIT", at + 4 * MS, 3 * MS, 3, 5),
            _slice("SDMA_SQE", at + 7 * MS, 2 * MS, 3, 5),
            _slice("NOTIFY_RECORD", at + 9 * MS, 0, 3, 5),
            _slice("hcom_allReduce__1", at + 4 * MS, 5 * MS, 11, 1),
            _slice("Notify_Wait", at + 4 * MS, 3 * MS, 11, 2),
            _slice("Memcpy", at + 7 * MS, 2 * MS, 11, 2),
            _slice("Computing", at, 4 * MS, 12, 1),
            _slice("Communication", at + 4 * MS, 5 * MS, 12, 2),
            _slice("Free", at + 9 * MS, 1 * MS, 12, 3),
        ]
    return events


def cann_8() -> list[Event]:
    """Make the same as CANN 8 exports it: names with blanks, a task that switches the profiler on before the
    host does anything, and arrows from the nodes that launch.
    """
    new = {"NOTIFY_WAIT": "Notify Wait", "SDMA_SQE": "SDMA", "NOTIFY_RECORD": "Write Value"}
    events = [{**one, "name": new.get(one["name"], one["name"])} for one in cann()]
    events += [*_threads(3, {0: "Stream 0"}), _slice("PROFILING_ENABLE", -12 * MS, 0.02, 3, 0)]
    for at in (0, 10 * MS):
        arrow = {"cat": "HostToDevice", "id": str(at), "name": "HostToDevice", "ts": at}
        events += [
            _slice("Node@launch", at, 5, 9, 1),
            {"ph": "s", "pid": 9, "tid": 1, **arrow},
            {"ph": "f", "bp": "e", "pid": 3, "tid": 2, **arrow},
        ]
    return events


def xla_tpu() -> list[Event]:
    """Make two steps of 10 ms of a TPU: two operations of 4 ms and of 2 ms, repeated by modules and steps."""
    events = [
        *_processes({2: "/device:TPU:0", 7: "/host:CPU"}),
        *_threads(2, {1: "Steps", 2: "XLA Modules", 3: "XLA Ops", 4: "Async XLA Ops"}),
        _slice("PjRtExecute", 0, 50, 7, 1),
    ]
    for at in (0, 10 * MS):
        events += [
            _slice(str(at // 10_000), at, 9 * MS, 2, 1),
            _slice("jit_step(77)", at, 9 * MS, 2, 2),
            _slice("fusion.12", at, 4 * MS, 2, 3),
            _slice("all-reduce.3", at + 4 * MS, 2 * MS, 2, 3),
            _slice("copy-start.9", at + 1 * MS, 5 * MS, 2, 4),
        ]
    return events


def mindspore() -> list[Event]:
    """Make two steps as MindSpore's timeline has them: operators by stream, when streams work together, and
    what the host does to get input.
    """
    return [
        *(_slice(f"Default/network/MatMul-op{at}", 10 * MS * at, 4 * MS, 1, 519) for at in (0, 1)),
        *(_slice(f"Adam-op{at}", 10 * MS * at + 4 * MS, 2 * MS, 1, 521) for at in (0, 1)),
        *(_slice("stream_520_parallel_0", 10 * MS * at, 6 * MS, 10000, 520) for at in (0, 1)),
        _slice("GetNext", 7 * MS, 2 * MS, 9000, 0),
    ]


def rocprof() -> list[Event]:
    """Make what rocprof writes of one GPU: copies in a process of their own, arrows that end at a step."""
    events = [*_processes({1: "COPY", 2: "CPU HIP API", 6: "GPU0"})]
    calls = (("hipMemcpyWithStream", "CopyHostToDevice", 1, 6), ("hipLaunchKernel", "gemm_kernel", 6, 8))
    for number, (call, work, pid, ms) in enumerate(calls):
        ts = 10_000 * number
        events += [
            _slice(call, ts, 12, 2, 517),
            _slice(work, ts + 20, ms * MS, pid, 1),
            {"ph": "s", "cat": "DataFlow", "id": number, "name": "dep", "ts": ts, "pid": 2, "tid": 517},
            {"ph": "t", "cat": "DataFlow", "id": number, "name": "dep", "ts": ts + 20, "pid": pid, "tid": 1},
        ]
    return events


def tensorflow() -> list[Event]:
    """Make what TensorFlow's timeline has of a GPU: kernels by stream and all together, copies apart."""
    task = "/job:localhost/replica:0/task:0/device:"
    names = ("GPU:0/stream:all", "GPU:0/stream:13", "GPU:0/memcpy", "CPU:0")
    events = [*_processes({pid: f"{task}{name} Compute" for pid, name in enumerate(names)})]
    for at in (0, 10 * MS):
        work = (("Conv2D", 0, 4, (0, 1)), ("MEMCPYHtoD", 5, 2, (2,)), ("Const", 0, 9, (3,)))
        events += [
            {**_slice(name, at + ms * MS, dur * MS, pid, 0, op=name), "cat": "Op"}
            for name, ms, dur, pids in work
            for pid in pids
        ]
    return events


def proton() -> list[Event]:
    """Make what Triton's Proton writes of two launches: a scope of the host, its kernel, a captured one."""
    events = [
        *_processes({0: "Trace"}),
        *_threads(0, {1: "CPU Thread 77", 2: "Graph: Stream 7", 3: "GPU Stream 7"}),
    ]
    for number, ts in enumerate((0, 10 * MS)):
        arrow = {"cat": "flow", "id": number, "name": "launch->kernel", "bp": "e", "pid": 0}
        events += [
            {**_slice("step", ts, MS, 0, 1, call_stack=["ROOT", "step"]), "cat": "scope"},
            {**_slice("matmul_kernel", ts + 2 * MS, 4 * MS, 0, 3, call_stack=["ROOT"]), "cat": "kernel"},
            {**_slice("captured", ts + 2 * MS, 4 * MS, 0, 2), "cat": "scope"},
            {"ph": "s", "ts": ts, "tid": 1, **arrow},
            {"ph": "f", "ts": ts + 2 * MS, "tid": 3, **arrow},
        ]
    return events


def nsys2json() -> list[Event]:
    """Make what nsys2json makes of a report: ids in place of names, ranges as marked and projected."""
    lanes = (
        ("cudaLaunchKernel", "cuda_api", "CUDA API Thread 77", 0, 1),
        ("forward", "nvtx", "NVTX Thread 77", 0, 2),
        ("ampere_sgemm", "cuda", "Stream 7", 2, 4),
        ("forward", "nvtx-kernel", "NVTX Kernel Thread 77", 2, 4),
    )
    return [
        {**_slice(name, at + ms * MS, dur * MS, "Device 0", tid), "cat": category}
        for at in (0, 10 * MS)
        for name, category, tid, ms, dur in lanes
    ]


def nsys_ai() -> list[Event]:
    """Make what nsys-ai exports of a device: its streams, and ranges projected to them."""
    return [
        *_processes({0: "GPU 0"}),
        *_threads(0, {10: "NVTX Lvl 0", 21: "Stream 21 (Compute)"}),
        {**_slice("ampere_sgemm", 0, 4 * MS, 0, 21), "cat": "gpu_kernel"},
        {**_slice("forward", 0, 6 * MS, 0, 10), "cat": "nvtx_projected"},
    ]


SHAPED = (
    "void at::native::add<4, float>(float*)",
    "[MEMCPY] HtoD",
    "sm80_xmma_gemm_f16",
    "ampere_sgemm_128x64_tn",
)


def shaped() -> list[Event]:
    """Make a file without categories and names of processes: a lane of device work, one of the host."""
    work = [_slice(name, 10 * MS * at, 2 * MS, 1, 7, correlationId=at) for at, name in enumerate(SHAPED * 4)]
    return [*work, *(_slice("main loop", 20 * MS * at, 15 * MS, 1, 8) for at in range(8))]


class Known(NamedTuple):
    """What must be said of a file: titles of devices, ms of each kernel, steps, ms of states."""

    make: Callable[[], list[Event]]
    devices: list[str]
    kernels: dict[str, int]
    steps: int
    states: dict[str, int]


KNOWN = {
    "CANN": Known(
        cann, ["NPU"], {"net/Conv2D-op1": 8, "hcom_allReduce__1": 10}, 2,
        {"compute": 8, "collective_waiting": 6, "collective_unsplit": 4, "idle": 2},
    ),
    "XLA on a TPU": Known(
        xla_tpu, ["TPU 0"], {"fusion.12": 8, "all-reduce.3": 4}, 2, {"compute": 8, "collective_unsplit": 4}
    ),
    "rocprof": Known(
        rocprof, ["GPU0"], {"CopyHostToDevice": 6, "gemm_kernel": 8}, 0, {"compute": 8, "copy": 6}
    ),
    "CANN 8": Known(
        cann_8, ["NPU"], {"net/Conv2D-op1": 8, "hcom_allReduce__1": 10}, 2,
        {"compute": 8, "collective_waiting": 6, "collective_unsplit": 4, "idle": 2},
    ),
    "MindSpore": Known(
        mindspore, ["device"],
        {f"{name}-op{at}": ms for at in (0, 1) for name, ms in (("Default/network/MatMul", 4), ("Adam", 2))},
        0, {"compute": 12, "idle": 4},
    ),
    "TensorFlow": Known(
        tensorflow, ["GPU 0"], {"Conv2D": 8, "MEMCPYHtoD": 4}, 0, {"compute": 8, "copy": 4}
    ),
    "Proton": Known(proton, ["device"], {"matmul_kernel": 8}, 0, {"compute": 8}),
    "nsys2json": Known(nsys2json, ["Device 0"], {"ampere_sgemm": 8}, 2, {"compute": 8}),
    "nsys-ai": Known(nsys_ai, ["GPU 0"], {"ampere_sgemm": 4}, 0, {"compute": 4}),
    "nobody known": Known(
        shaped, ["device"],
        dict.fromkeys(SHAPED, 8), 0,
        {"compute": 24, "copy": 8},
    ),
}  # fmt: skip


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_lanes_of_a_producer(known: Known, tmp_path: Path) -> None:
    """Work is what the device did, once: no lane that repeats or sums it up counts, waits are no work."""
    trace = open_events(tmp_path, known.make())
    scope = Scope(trace)
    assert [device.label for device in devices(trace)] == known.devices
    table = kernels(scope)
    assert dict(zip(table.texts("name"), table.numbers("total_ns").tolist())) == {
        name: ms * 1_000_000 for name, ms in known.kernels.items()
    }
    steps = find_steps(trace, 0)
    assert (0 if steps is None else len(steps)) == known.steps
    waits = table.data["waited_ns"].sum() if "waited_ns" in table.data else 0
    assert waits == known.states.get("collective_waiting", 0) * 1_000_000
    (state,) = device_states(scope)
    assert {
        name: ns for name, ns in state.ns.items() if ns and (name != "idle" or "idle" in known.states)
    } == {name: ms * 1_000_000 for name, ms in known.states.items()}


@for_files(
    "path, producer",
    [
        ("cuda/activities.pt.trace.json.gz", "PyTorch profiler (Kineto), CUDA"),
        ("cpu/torch_2.13_training.pt.trace.json.gz", "PyTorch profiler (Kineto)"),
        ("jax.trace.json.gz", "XLA (GPU)"),
        ("gpu/kineto2021_resnet50_strtid_memory.pt.trace.json.gz", "PyTorch profiler (Kineto), CUDA"),
        ("gpu/hta_mi250_minitoy_rocm62.json.gz", "PyTorch profiler (Kineto), ROCm"),
        ("gpu/aorta_mi350_small.pt.trace.json", "PyTorch profiler (Kineto), ROCm"),
        ("gpu/hta_mtia_inference_rank0.json.gz", "PyTorch profiler (Kineto), MTIA"),
        ("gpu/tl_h100_qwen_infer.json.gz", "PyTorch profiler (Kineto), CUDA"),
        ("aiu/mlp_trace.json", "PyTorch profiler (Kineto), PrivateUse1"),
        ("aiu/acelyzer_spyre_mlp_tb.pt.trace.json", "aiu-trace-analyzer"),
        ("aiu/sample_flex_3062_job_4.json", "FLEX (AIU job trace)"),
        ("chrome/devtools_116.json.gz", "Chrome"),
        ("chrome/viztracer_multithread.json", "viztracer"),
        ("chrome/speedscope_simple.json", None),
        ("verdicts/rpd_matmul.json.gz", "RPD (rocmProfileData)"),
        ("cases/bugs/rocprof_results.json", "rocprof"),
        ("cases/strangers/ascend_msprof.json", "CANN (msprof)"),
        ("dynamo_chromium_events.json", "Dynamo (chromium events)"),
        ("odd/overlapping_x.json", None),
    ],
)
def test_who_wrote_a_file(path: str, producer: str | None, tmp_path: Path) -> None:
    """A file says by its signs who wrote it; one that has none of them is nobody's."""
    known = producer_of(open_trace(file(path), index_dir=tmp_path).indexes[0])
    assert (known and known.name) == producer


def onnx_runtime() -> list[Event]:
    """A session that runs a model of one node."""
    started = {**_slice("session_initialization", 0, 90, 7, 7), "cat": "Session"}
    ran = {**_slice("model_run", 100, 50, 7, 7), "cat": "Session"}
    node = {**_slice("mm_kernel_time", 110, 30, 7, 7, op_name="MatMul"), "cat": "Node"}
    return [started, ran, node]


def node_js() -> list[Event]:
    """Node's own trace events: what it awaits is asynchronous, what V8 does is not."""
    awaited = [{"name": "PROMISE", "cat": "node,node.async_hooks", "ph": ph, "id": "0x1"} for ph in "be"]
    collected = {**_slice("V8.GCScavenger", 10, 5, 7, 1), "cat": "v8"}
    return [*({**one, "ts": 900 * at, "pid": 7, "tid": 1} for at, one in enumerate(awaited)), collected]


def node_js_of_v8() -> list[Event]:
    """The same where only V8's categories were on, one of which Chrome's tools have, too."""
    collected = {**_slice("MajorGC", 10, 5, 7, 1), "cat": "devtools.timeline,v8"}
    compiled = {**_slice("V8.DeserializeContext", 20, 5, 7, 1), "cat": "v8"}
    return [*_processes({7: "/usr/bin/node"}), *_threads(7, {1: "JavaScriptMainThread"}), collected, compiled]


def xla_host() -> list[Event]:
    """Three steps of a JAX program on a CPU, the first of which compiles."""
    steps = [
        _slice("train", start, length, 7, 1, step_num=str(at))
        for at, (start, length) in enumerate(((0, 500 * MS), (500 * MS, 100 * MS), (600 * MS, 110 * MS)))
    ]
    compiled = _slice("backend_compile", 10 * MS, 400 * MS, 7, 1)
    return [*_processes({7: "/host:CPU"}), *_threads(7, {1: "python"}), *steps, compiled]


def hip_as_cuda() -> list[Event]:
    """PyTorch on ROCm before its runtime had a category of its own."""
    called = {**_slice("hipLaunchKernel", 0, 5, 7, 7, correlation=1), "cat": "cuda_runtime"}
    return [called, {**_slice("Cijk_x", 9, 5, 0, 0, correlation=1, device=0, stream=0), "cat": "kernel"}]


@pytest.mark.parametrize(
    ("make", "producer"),
    [
        (proton, "Proton (Triton)"),
        (nsys2json, "nsys2json (Nsight Systems)"),
        (nsys_ai, "nsys-ai (Nsight Systems)"),
        (onnx_runtime, "ONNX Runtime"),
        (node_js, "Node.js"),
        (node_js_of_v8, "Node.js"),
        (xla_host, "XLA (host)"),
    ],
)
def test_who_wrote_what_was_made(make: Callable[[], list[Event]], producer: str, tmp_path: Path) -> None:
    """The same of tools of which there is no real file here: made after their source."""
    known = producer_of(open_events(tmp_path, make()).indexes[0])
    assert known is not None and known.name == producer


def test_the_maker_of_a_device_by_its_calls(tmp_path: Path) -> None:
    """A runtime whose calls are HIP's is ROCm's, whatever its category is called."""
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": hip_as_cuda()}), encoding="utf-8")
    known = producer_of(open_trace(path, index_dir=tmp_path).indexes[0])
    assert known is not None and known.name == "PyTorch profiler (Kineto), ROCm"


def test_lanes_are_told_by_what_is_known_in_time() -> None:
    """What stands beside the events tells who wrote a file, and never what a lane is: it is read later."""
    assert [one.name for one in PRODUCERS if one.lanes and "beside" in one.signs] == []


def test_an_argument_tells_steps(tmp_path: Path) -> None:
    """Slices that XLA's profiler numbered are the steps, by their argument; no loop is guessed."""
    steps = find_steps(open_events(tmp_path, xla_host()), 0)
    assert steps is not None and (steps.choice, len(steps)) == ("train", 3)
    assert steps.reason == "the profiler wrote their step_num"


@pytest.mark.parametrize(
    ("category", "more"),
    [("cc", {}), ("build", {"schemaVersion": 1}), ("flow", {}), ("task", {"otherData": {"tool": "x"}})],
)
def test_signs_that_others_share_tell_nobody(category: str, more: dict[str, Any], tmp_path: Path) -> None:
    """A category or key that many tools write, arrows between threads: no producer, no device, no work."""
    events: list[Event] = [
        {**_slice(name, 10 * at, 8, 1, at), "cat": category} for at, name in enumerate("ab")
    ]
    arrow = {"cat": "flow", "id": 1, "name": "next", "bp": "e", "pid": 1}
    events += [{"ph": "s", "ts": 0, "tid": 0, **arrow}, {"ph": "f", "ts": 10, "tid": 1, **arrow}]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events, **more}), encoding="utf-8")
    trace = open_trace(path, index_dir=tmp_path)
    assert producer_of(trace.indexes[0]) is None and not devices(trace)
    assert analyse_ops(Scope(trace)).main.totals["self_device_total_ns"] == 0
    assert not len(analyse_launches(Scope(trace))["launches"])


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_a_producers_file_is_sound(known: Known, tmp_path: Path) -> None:
    """What a producer writes as it always does is nothing to warn of."""
    table = analyse_doctor(Scope(open_events(tmp_path, known.make())))["doctor"]
    assert not set(table.texts("severity")) - {"note"}


@pytest.mark.parametrize("category", ["nvtx", "NVTX_PUSHPOP_RANGE", "roctx", None])
def test_ranges_of_programs_are_no_work(category: str | None, tmp_path: Path) -> None:
    """Ranges that a program marked (NVTX, ROCTX) are no kernels where a tool projects them to the device."""
    events = [
        *_processes({1: "python", 2: "GPU 0"}, {2: "GPU 0"}),
        *_threads(2, {7: "Stream 7", 8: "NVTX GPU ranges"}),
        {**_slice("gemm", 0, 4 * MS, 2, 7), "cat": "kernel"},
        {**_slice("forward", 0, 9 * MS, 2, 8), **({"cat": category} if category else {})},
        {**_slice("forward", 0, 9 * MS, 1, 1), **({"cat": category} if category else {})},
    ]
    trace = open_events(tmp_path, events)
    assert [device.label for device in devices(trace)] == ["GPU 0"]
    assert kernels(Scope(trace)).texts("name") == ["gemm"]
    kinds = {slice_kind(category, "forward")} if category else set()
    assert kinds <= {SliceKind.ANNOTATION}


def test_several_devices_keep_copies_apart(tmp_path: Path) -> None:
    """Copies in a process of their own stay a device of their own where nothing says whose they are."""
    events = [*rocprof(), *_processes({7: "GPU1"}), _slice("other_kernel", 0, MS, 7, 1)]
    assert len(devices(open_events(tmp_path, events))) == 3


def test_a_host_lane_is_no_device(tmp_path: Path) -> None:
    """A few names of kernels among many others make no device of a lane."""
    names = ["void f<int>(int)", *(f"stage {number}" for number in range(9))]
    trace = open_events(tmp_path, [_slice(name, MS * at, MS, 1, 1) for at, name in enumerate(names * 5)])
    assert not devices(trace)


def test_calls_in_cpp_are_no_device(tmp_path: Path) -> None:
    """A stack of a host's functions, whose names are as those of kernels, is no device."""
    events = [_slice("void run<int>(int)", 100 * at, 90, 1, 1) for at in range(20)]
    events += [_slice("std::vector<int>::push_back(int)", 100 * at + 10, 20, 1, 1) for at in range(20)]
    assert not devices(open_events(tmp_path, events))


def cann_with_launches() -> list[Event]:
    """Make what CANN exports of three kernels that nodes of the host launch, by arrows of its own."""
    events = [*_processes({3: "Ascend Hardware", 9: "CANN"}, {3: "NPU"}), *_threads(3, {2: "Stream 2"})]
    for at in (0, 100, 200):
        arrow = {"cat": "HostToDevice", "id": str(at), "name": f"HostToDevice{at}"}
        events += [
            _slice("Node@launch", at, 10, 9, 1, item_id="MatMul"),
            _slice("MatMul", at + 30, 40, 3, 2),
            {"ph": "s", "ts": at, "pid": 9, "tid": 1, **arrow},
            {"ph": "f", "bp": "e", "ts": at + 30, "pid": 3, "tid": 2, **arrow},
        ]
    return events


def torch_npu() -> list[Event]:
    """Make what torch_npu writes of two operators: another thread launches, arrows tell for whom."""
    events = [
        *_processes({1: "Python", 2: "CANN", 3: "Ascend Hardware"}, {1: "CPU", 3: "NPU"}),
        *_threads(3, {5: "Stream 5"}),
    ]
    for number, (op, kernel, us) in enumerate((("aten::matmul", "MatMulV2", 120), ("aten::add", "Add", 30))):
        ts = 300 * number
        launch = {"cat": "HostToDevice", "id": number, "name": "HostToDevice"}
        owner = {"cat": "async_npu", "id": ts, "name": "torch_to_npu", "bp": "e"}
        events += [
            {**_slice(op, ts, 50, 1, 10), "cat": "cpu_op"},
            _slice("Node@launch", ts + 60, 10, 2, 11),
            _slice(kernel, ts + 100, us, 3, 5),
            {"ph": "s", "ts": ts + 60, "pid": 2, "tid": 11, **launch},
            {"ph": "f", "bp": "e", "ts": ts + 100, "pid": 3, "tid": 5, **launch},
            {"ph": "s", "ts": ts, "pid": 1, "tid": 10, **owner},
            {"ph": "f", "ts": ts + 100, "pid": 3, "tid": 5, **owner},
        ]
    return events


def test_operators_own_what_another_thread_launches(tmp_path: Path) -> None:
    """Device time of operators is that of the work to which their own arrows lead; launches stay what they
    are, and all tables speak of the same work.
    """
    scope = Scope(open_events(tmp_path, torch_npu()))
    table = analyse_ops(scope).main
    rows = dict(zip(table.texts("name"), table.numbers("self_device_ns").tolist()))
    assert rows == {"aten::matmul": 120_000, "aten::add": 30_000, "MatMulV2": 120_000, "Add": 30_000}
    assert table.totals["self_device_total_ns"] == 150_000
    by_op = kernels(scope, by="op")
    assert dict(zip(by_op.texts("name"), by_op.numbers("total_ns").tolist())) == {
        "aten::matmul": 120_000,
        "aten::add": 30_000,
    }
    (call,) = analyse_launches(scope)["launches"].rows()
    assert (call["name"], call["kernels"], call["kernel_ns"]) == ("Node@launch", 2, 150_000)


def xla_with_launches() -> list[Event]:
    """Make what XLA writes of three kernels of a GPU, with flows of version 2."""
    events = [
        *_processes({1: "/device:GPU:0", 7: "/host:CPU"}),
        *_threads(1, {3: "Stream #3(Compute)", 4: "XLA Modules"}),
    ]
    for at in (0, 100, 200):
        events += [
            {**_slice("cuLaunchKernel", at, 10, 7, 1), "bind_id": at + 1, "flow_out": True},
            {**_slice("loop_fusion", at + 30, 40, 1, 3), "bind_id": at + 1, "flow_in": True},
            _slice("jit_step", at, 90, 1, 4),
        ]
    return events


@pytest.mark.parametrize("make", [cann_with_launches, xla_with_launches, rocprof, proton])
def test_what_kernels_counts_is_launched(make: Callable[[], list[Event]], tmp_path: Path) -> None:
    """Kernels, launches and chains speak of the same work, and findings hold no launch for lost."""
    trace = open_events(tmp_path, make())
    scope = Scope(trace)
    calls = analyse_launches(scope)["launches"]
    count = sum(kernels(scope).numbers("count").tolist())
    assert sum(calls.numbers("kernels").tolist()) == count
    work = work_of(scope)
    chains = [chain_of(trace.indexes[0], position) for position in work.position.tolist()]
    assert [[link.role for link in chain][:2] for chain in chains] == [["kernel", "launch"]] * count
    assert not {one.rule for one in findings(scope).findings} & {"lost-kernels"}


@pytest.mark.slow
@for_files("path", traces("gpu/*", "multirank/*/*", "verdicts/*.json*", "cases/*/*.json"))
def test_launches_know_all_work(path: Path, corpus_cache: Path) -> None:
    """Where a file ties work to its calls, the work of `kernels` is that of `launches`, on real traces."""
    try:
        trace = open_trace(file(path), index_dir=corpus_cache)
    except TracelaneError as error:  # files that are no traces are other tests' matter
        pytest.skip(str(error))
    for source, index in enumerate(trace.indexes):
        known = trace.launches(source).kernels
        own = work_of(Scope(trace, source=source)).position
        assert not len(known) or np.isin(own, known).all(), index.folder


ONLY_CATEGORIES_TELL = {"overlapping_x.json"}
"""Files in which nothing but categories says what a device did: kernels are called k0, k1, …"""


@pytest.mark.slow
@for_files("path", traces("*/*.json*", "*/*/*.json*"))
def test_devices_without_categories(path: Path, tmp_path: Path, corpus_cache: Path) -> None:
    """A file from which every category is taken has the same devices, by their names."""
    raw = file(path).read_bytes()
    try:
        events = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        as_named = [device.label for device in devices(open_trace(file(path), index_dir=corpus_cache))]
    except (ValueError, TracelaneError) as error:  # files that are no traces are other tests' matter
        pytest.skip(str(error))
    elements = events.get("traceEvents") if isinstance(events, dict) else events
    for event in elements if isinstance(elements, list) else ():
        if isinstance(event, dict):
            event.pop("cat", None)
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(events), encoding="utf-8")
    labels = [device.label for device in devices(open_trace(bare, index_dir=tmp_path))]
    assert labels == ([] if Path(path).name in ONLY_CATEGORIES_TELL else as_named)


def test_frames_without_categories_are_the_hosts(tmp_path: Path) -> None:
    """Python's frames are the host's where a profiler puts their thread into a device's process."""
    frames = [_slice(f"loop.py({at}): step", MS * at, MS, 0, 0) for at in range(40)]
    work = [_slice("gemm", MS * at, MS, 1, 7) for at in range(40)]
    trace = open_events(tmp_path, [*_processes({}, {0: "GPU 0", 1: "GPU 1"}), *frames, *work])
    assert [device.label for device in devices(trace)] == ["GPU 1"]


def test_arguments_tell_devices(tmp_path: Path) -> None:
    """Without categories and names that tell, what says its device and stream is a device's work."""
    ran = [_slice(f"_fused_{at % 3}", MS * at, MS, 1, 7, device=0, stream=7) for at in range(40)]
    calls = [_slice(f"_call_{at % 3}", MS * at, MS, 2, 7, stream=7) for at in range(40)]
    (device,) = devices(open_events(tmp_path, [*ran, *calls]))
    assert device.pid == "1"


def _twice(events: list[Event], pid: Any, tids: Sequence[int], tid: Any, share: float = 1.0) -> list[Event]:
    """Return what repeats the slices of some threads of process 2, or a share of them, on another thread."""
    own = [one for one in events if one["ph"] == "X" and one["pid"] == 2 and one["tid"] in tids]
    return [
        {**one, "pid": pid, "tid": tid, **({} if at < share * len(own) else {"ts": one["ts"] + 0.5})}
        for at, one in enumerate(own)
    ]


STREAMS = [
    *_processes({1: "python", 2: "stepper"}, {2: "GPU 0"}),
    *(
        {**_slice(f"k{at % 5}", 10 * at + tid, 4 + tid, 2, tid), "cat": "gpu_kernel"}
        for at in range(200)
        for tid in (1, 2)
    ),
]
SLICES = 400
REPEATED = {
    "one lane again": (_twice(STREAMS, 2, [1], 9), SLICES),
    "all lanes in one": (_twice(STREAMS, 2, [1, 2], 9), SLICES),
    "by another process of the device": (
        [*_processes({5: "planes"}, {5: "GPU"}), *_twice(STREAMS, 5, [2], "plane")],
        SLICES,
    ),
    "199 of 200": (_twice(STREAMS, 2, [1], 9, 0.995), SLICES),
    "half of them": (_twice(STREAMS, 2, [1], 9, 0.5), SLICES + 200),
    "another device in step": (
        [*_processes({6: "stepper"}, {6: "GPU 1"}), *_twice(STREAMS, 6, [1, 2], 1)],
        2 * SLICES,
    ),
    "too few to tell": (_twice(STREAMS, 2, [1], 9)[:5], SLICES + 5),
}


@pytest.mark.parametrize("case", REPEATED.values(), ids=REPEATED)
def test_lanes_that_repeat_others(case: tuple[list[Event], int], tmp_path: Path) -> None:
    """What a tool draws twice counts once, whichever tool; devices that work in step are two."""
    more, count = case
    trace = open_events(tmp_path, [*STREAMS, *more])
    assert sum(kernels(Scope(trace)).numbers("count").tolist()) == count
    derived = [lane.slices for lane in trace.lanes if lane.role is LaneRole.DERIVED]
    assert sum(derived) == SLICES + len([one for one in more if one["ph"] == "X"]) - count


def test_a_sample_tells_repetitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many slices those looked at are the same on a lane and its repetition."""
    monkeypatch.setattr(repeats, "SAMPLE", 64)
    trace = open_events(tmp_path, [*STREAMS, *_twice(STREAMS, 2, [2], 9)])
    assert [lane.role is LaneRole.DERIVED for lane in trace.lanes if lane.slices] == [False, False, True]


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
@pytest.mark.parametrize("category", ["nvtx", "ROCTX_RANGE", None])
def test_ranges_are_no_work_whoever_wrote_them(known: Known, category: str | None, tmp_path: Path) -> None:
    """A lane of ranges beside the work of any producer changes no kernel."""
    events = known.make()
    title, extra = "NVTX ranges", {} if category is None else {"cat": category}
    pids = sorted({one["pid"] for one in events if one["ph"] == "X"})
    for pid in pids:
        events += _threads(pid, {4711: title if category is None else "marks"})
        events += [{**_slice("forward", 0, 9 * MS, pid, 4711), **extra}]
    table = kernels(Scope(open_events(tmp_path, events)))
    assert set(table.texts("name")) == set(known.kernels)


@needs("cases/strangers/ascend_msprof.json")
def test_the_summary_of_a_producer_agrees(tmp_path: Path) -> None:
    """Compute and exposed communication are those of CANN's own analysis, which is in the file."""
    path = file("cases/strangers/ascend_msprof.json")
    trace = open_trace(path, index_dir=tmp_path)
    lanes = {lane.title: lane for lane in trace.lanes if lane.process.name == "Overlap Analysis"}
    events = json.loads(path.read_bytes())
    elements = events.get("traceEvents") if isinstance(events, dict) else events
    stated: dict[str, float] = {}
    (pid,) = {plain(lane.process.pid) for lane in lanes.values()}
    for one in elements:
        if one.get("ph") == "X" and str(one["pid"]) == pid:
            stated[one["name"]] = stated.get(one["name"], 0) + float(one["dur"]) * 1000
    (state,) = device_states(Scope(trace))
    exposed = sum(state.ns[name] for name in state.ns if name.startswith("collective"))
    assert state.ns["compute"] == pytest.approx(stated["Computing"], rel=0.01)
    assert exposed == pytest.approx(stated["Communication(Not Overlapped)"], rel=0.01)


def cann_2023() -> list[Event]:
    """An iteration of 20 ms as CANN of 2023 exports it: 6 ms of a kernel, then an AllReduce of 10 ms, whose
    tasks stand on two streams of their own and on the planes that repeat them; a copy to the host.
    """
    events = [
        *_processes({3: "Ascend Hardware", 11: "HCCL", 12: "Overlap Analysis"}, {3: "NPU", 11: "NPU"}),
        *_threads(3, {2: "Stream 2", 5: "Stream 5", 6: "Stream 6", 90: "Step Trace(Model ID:2)"}),
        *_threads(11, {1: "Communication Kernel", 2: "Plane 0", 3: "Plane 1"}),
        _slice("Iteration 2", 0, 20 * MS, 3, 90),
        _slice("net/Conv2D-op1", 0, 6 * MS, 3, 2),
        _slice("MEMCPY_ASYNC", 17 * MS, 2 * MS, 3, 2),
        _slice("Default/AllReduce-op3_0", 7 * MS, 10 * MS, 11, 1),
    ]
    for stream, plane in ((5, 2), (6, 3)):
        for pid, tid, task, copy in (
            (3, stream, "REDUCE_ASYNC_V2", "MEMCPY_ASYNC"),
            (11, plane, "Memcpy", "Memcpy"),
        ):
            events += [
                _slice("NOTIFY_WAIT", 7 * MS, 2 * MS, pid, tid),
                _slice(task, 9 * MS, 4 * MS, pid, tid),
                _slice(copy, 13 * MS, 4 * MS, pid, tid),
                _slice("NOTIFY_RECORD", 17 * MS, 0, pid, tid),
            ]
    return events


def hccl_alone() -> list[Event]:
    """The collectives of the same, which CANN exports as a file of their own."""
    return [one for one in cann_2023() if one["pid"] == 11]


def tasks_alone() -> list[Event]:
    """The tasks of the same, which CANN exports as a file of their own."""
    return [one for one in cann_2023() if one["pid"] == 3 and one.get("tid") != 90]


@pytest.mark.parametrize(
    ("make", "shares"),
    [
        (cann_2023, {"compute": 6, "communication": 10, "memory": 2}),
        (hccl_alone, {"communication": 10}),
        (tasks_alone, {"compute": 6, "communication": 8, "memory": 10}),
    ],
)
def test_tasks_of_a_collective_are_no_work_of_their_own(
    make: Callable[[], list[Event]], shares: dict[str, int], tmp_path: Path
) -> None:
    """What a collective is made of counts as the collective, with its copies, where a lane shows that whole;
    without one what reduces is communication.
    """
    trace = open_events(tmp_path, make())
    known = producer_of(trace.indexes[0])
    assert known is not None and known.name == "CANN (msprof)"
    work = work_of(Scope(trace))
    ms = {
        name: int(work.dur[work.is_type(name)].sum()) // 10**6
        for name in ("compute", "communication", "memory")
    }
    assert {name: value for name, value in ms.items() if value} == shares


def test_collectives_of_an_export_are_those_of_ranks(tmp_path: Path) -> None:
    """Of two ranks the lanes of whole collectives are compared: the one that comes late is found."""
    events = cann_2023()
    for rank, late in enumerate((0, 4 * MS)):
        moved = [
            {**one, "ts": one["ts"] + late, "dur": one["dur"] - late}
            if one["name"].startswith("Default/")
            else one
            for one in events
        ]
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(moved), encoding="utf-8")
    trace = open_trace([tmp_path / f"rank{rank}.json" for rank in (0, 1)], index_dir=tmp_path / "i")
    (said,) = [one.text for one in findings(Scope(trace)).findings if one.rule == "rank-imbalance"]
    assert said == "Rank 1 is last in 1 of 1 collective: the other rank waits 4 ms for it"


def notify_waits(*, collective: bool, computing: bool) -> list[Event]:
    """A stream that waits 6 ms for a notification before each of 10 kernels of 1 ms, or that does nothing but
    wait; with a collective of 5 ms during each wait, or none.
    """
    events = [*_processes({3: "Ascend Hardware"}, {3: "NPU"}), *_threads(3, {2: "Stream 2", 5: "Stream 5"})]
    if collective:
        events += [
            *_processes({11: "HCCL"}, {11: "NPU"}),
            *_threads(11, {1: "Group 0 Communication"}),
        ]
    for at in range(0, 100 * MS, 10 * MS):
        events += [
            _slice("Notify Wait", at + 2 * MS, 4 * MS, 3, 2 if computing else 5),
            _slice("MatMulV2", at + 8 * MS, 1 * MS, 3, 2),
        ]
        if collective:
            events.append(_slice("hcom_allReduce__1", at + 1 * MS, 6 * MS, 11, 1))
    return events


@pytest.mark.parametrize(
    ("collective", "computing", "waited"),
    [(False, True, 0), (False, False, 0), (True, True, 0), (True, False, 40)],
)
def test_waits_for_peers_are_those_of_collectives(
    collective: bool, computing: bool, waited: int, tmp_path: Path
) -> None:
    """Only on streams that do nothing but collectives a wait is for another rank: else for an event."""
    trace = open_events(tmp_path, notify_waits(collective=collective, computing=computing))
    (state,) = device_states(Scope(trace))
    assert state.ns["collective_waiting"] == waited * 1_000_000
    texts = [one.text for one in findings(Scope(trace)).findings]
    assert any("another rank" in text for text in texts) == bool(waited)
    assert any(text.endswith("for 40 ms of it a stream waits for an event") for text in texts) == (
        not collective
    )


def test_lanes_that_sum_up_do_not_lengthen_the_time(tmp_path: Path) -> None:
    """Shares are of the time of work: what a lane says of streams beside each other may be longer."""
    longer = _slice("stream_520_parallel_1", 20 * MS, 500 * MS, 10000, 520)
    trace = open_events(tmp_path, [*mindspore(), longer])
    assert trace.opening_span == (0, 16 * MS * 1000)
    late = _slice("Iteration 3", 20 * MS, 10 * MS, 3, 90)
    trace = open_events(tmp_path, [*cann(), late])
    assert trace.opening_span == (0, 30 * MS * 1000)


def test_tasks_of_an_old_export_are_work(tmp_path: Path) -> None:
    """The process of tasks was once called otherwise: its streams are the device's, too."""
    events = [
        {**one, "args": {"name": "Task Scheduler"}} if one["name"] == "process_name" else one
        for one in tasks_alone()
        if one["name"] != "process_labels"
    ]
    trace = open_events(tmp_path, events)
    work = work_of(Scope(trace))
    assert len(devices(trace)) == 1 and int(work.dur[work.is_type("compute")].sum()) == 6 * MS * 1000


def test_an_exported_step_trace_has_steps(tmp_path: Path) -> None:
    """Iterations in a file of their own are the steps, and a sentence says what takes most in them."""
    events = [*_processes({5: "Step Trace"}), *_threads(5, {5: "Model ID:2"})]
    for at in range(6):
        parts = (
            ("Iteration", 0, 20 if at else 60),
            ("FP_BP Time", 0, 5),
            ("Iteration Refresh", 5, 15 if at else 55),
        )
        for name, start, length in parts:
            cat = f"{name} Time" if name == "Iteration" else name
            begin = (60 * at + start) * MS
            events.append({**_slice(f"{name} {at + 1}", begin, length * MS, 5, 5), "cat": cat})
    trace = open_events(tmp_path, events)
    steps = find_steps(trace, 0)
    assert steps is not None and len(steps) == 6
    texts = [one.text for one in findings(Scope(trace)).findings]
    assert any(text.startswith("The first step takes 60 ms") for text in texts)
    assert any(text.startswith("Iteration Refresh # takes most time of its own") for text in texts)


def clang(program: str = "clang-17") -> list[Event]:
    """A compilation of 100 ms of which 60 go into headers, and its sums, each on a thread of its own."""
    times = {"ExecuteCompiler": (0, 100), "Frontend": (0, 80), "Source": (10, 60), "Backend": (80, 20)}
    events = [*_processes({7: program}), *_threads(7, {7: "clang"})]
    events += [_slice(name, start * MS, length * MS, 7, 7) for name, (start, length) in times.items()]
    sums = enumerate(times.items(), 8)
    return events + [
        _slice(f"Total {name}", 0, length * MS, 7, tid, count=1) for tid, (name, (_, length)) in sums
    ]


def bazel() -> list[Event]:
    """A build of 100 ms: the main thread waits for one that runs actions, of which the longest is on the
    critical path, which Bazel draws again.
    """
    names = {0: "Critical Path", 1: "Main Thread", 2: "evaluator 0"}
    slices = [
        _slice("Parallel Evaluator evaluation", 0, 100 * MS, 1, 1),
        _slice("action 'Linking app'", 0, 70 * MS, 1, 0),
        _slice("subprocess.run", 0, 70 * MS, 1, 2),
        _slice("check cache hit", 70 * MS, 5 * MS, 1, 2),
    ]
    return [*_threads(1, names), *({**one, "cat": "general information"} for one in slices)]


def chrome() -> list[Event]:
    """A task of 100 ms of whose time 60 are told by nothing within it."""
    parts = {"RunTask": (0, 100), "Layout": (10, 30), "Paint": (50, 10)}
    slices = (_slice(name, start * MS, length * MS, 7, 1) for name, (start, length) in parts.items())
    return [{**one, "cat": "disabled-by-default-devtools.timeline"} for one in slices]


@pytest.mark.parametrize(
    ("make", "producer", "text"),
    [
        (
            clang,
            "clang (-ftime-trace)",
            "Source takes most time of its own, 60 ms in 1 slice of clang, 60.0 % of",
        ),
        (
            partial(clang, "rustc"),
            "LLVM (time trace)",
            "Source takes most time of its own, 60 ms in 1 slice of clang, 60.0 % of",
        ),
        (bazel, "Bazel", "; waits aside subprocess.run with 70 ms, 40.0 %"),
        (
            chrome,
            "Chrome",
            "60.0 % of all own time; tasks aside Layout with 30 ms, 30.0 %",
        ),
    ],
)
def test_sums_and_repetitions_of_builds(
    make: Callable[[], list[Event]], producer: str, text: str, tmp_path: Path
) -> None:
    """Sums of clang and Bazel's critical path count nowhere, and who only waits is said to."""
    trace = open_events(tmp_path, make())
    known = producer_of(trace.indexes[0])
    assert known is not None and known.name == producer
    (said,) = [one.text for one in findings(Scope(trace)).findings if one.rule == "widest"]
    assert text in said
    own = overview(Scope(trace), ())["slices"]
    assert own and not [row.name for row in own if row.name.startswith(("Total ", "action "))]


def test_what_was_never_ended_takes_no_time(tmp_path: Path) -> None:
    """The rows of an overview leave out begins without an end, as the headline does; alone they stay."""
    begun = {"ph": "B", "name": "MESSAGE_LOOP", "cat": "toplevel", "ts": 0, "pid": 1, "tid": 1}
    tasks = [
        {**_slice(name, 100 * at, us, 1, 1), "cat": "toplevel"}
        for at, (name, us) in enumerate((("TaskScheduler RunTask", 60), ("Layout", 30), ("Paint", 10)))
    ]
    trace = open_events(tmp_path, [begun, *tasks])
    rows = [(row.name, row.share) for row in overview(Scope(trace), ())["slices"]]
    assert rows == [("TaskScheduler RunTask", 0.6), ("Layout", 0.3), ("Paint", 0.1)]
    (text,) = [one.text for one in findings(Scope(trace)).findings if one.rule == "widest"]
    assert text.endswith("; tasks aside Layout with 30 µs, 30.0 %")


def test_marks_of_steps_are_no_rows(tmp_path: Path) -> None:
    """What nothing recorded says more of is told by steps, not as the work that takes most time."""
    trace = open_events(tmp_path, xla_host())
    rows = [row.name for row in overview(Scope(trace), ())["slices"]]
    assert find_steps(trace, 0) is not None and rows == ["backend_compile"]


def test_options_of_one_profiler_are_not_anothers(tmp_path: Path) -> None:
    """Nothing records stacks or allocations of a session's nodes: doctor asks for none."""
    table = analyse_doctor(Scope(open_events(tmp_path, onnx_runtime())))["doctor"]
    assert not {"no-shapes", "no-stacks", "no-memory"} & set(table.texts("rule"))


def test_rows_of_a_name_are_one(tmp_path: Path) -> None:
    """Slices of a name that have several categories are one row of an overview."""
    events = [
        {**_slice(name, 100 * at, us, 1, 1), "cat": f"toplevel,{at}"}
        for at, (name, us) in enumerate((("Layout", 30), ("Paint", 45), ("Layout", 25)))
    ]
    rows = overview(Scope(open_events(tmp_path, events)), ())["slices"]
    assert [(row.name, row.calls) for row in rows] == [("Layout", 2), ("Paint", 1)]
    assert rows[0].share == pytest.approx(0.55)


def test_a_device_that_only_waits_is_not_idle(tmp_path: Path) -> None:
    """Where a device does nothing but wait for its peers there is no idle time to tell of."""
    events = [
        *_processes({11: "HCCL"}, {11: "NPU"}),
        *_threads(11, {1: "Communication Kernel", 2: "Plane 0"}),
        _slice("Default/AllReduce-op3_0", 0, 10 * MS, 11, 1),
        _slice("Notify_Wait", 0, 8 * MS, 11, 2),
        _slice("Memcpy", 8 * MS, 2 * MS, 11, 2),
    ]
    report = findings(Scope(open_events(tmp_path, events))).findings
    assert {one.rule for one in report} == {"communication"}
    assert report[0].text.endswith("; for 8 ms of it another rank had yet to come")


def test_calls_that_wait_in_python_are_waits(tmp_path: Path) -> None:
    """Where a program of Python's waits most of its time, what it does besides is told, too."""
    names = {"select.epoll.poll": 60, "run (/app/a.py:1)": 30, "_thread.lock.acquire": 10}
    events = [_slice(name, 100 * MS * at, ms * MS, 1, 1) for at, (name, ms) in enumerate(names.items())]
    path = tmp_path / "t.json"
    file_text = {"traceEvents": events, "viztracer_metadata": {"version": "1.1.1"}}
    path.write_text(json.dumps(file_text), encoding="utf-8")
    (said,) = findings(Scope(open_trace(path, index_dir=tmp_path))).findings
    assert said.text.endswith("60.0 % of all own time; waits aside run (/app/a.py:1) with 30 ms, 30.0 %")


@pytest.mark.parametrize(
    "process", ["/job:localhost/replica:0/task:0/cpu:0 Compute", "/device:GPU:0/stream:7 Compute"]
)
def test_timelines_of_tensorflow(process: str, tmp_path: Path) -> None:
    """A timeline of TensorFlow is one on a CPU, too, and is not XLA's where its devices are called alike."""
    others = {
        2: "/job:localhost/replica:0/task:0/device:CPU:0 Compute",
        3: process.replace("Compute", "Tensors"),
    }
    events = [*_processes({1: process, **others}), _slice("MatMul", 0, 5, 2, 0), _slice("Conv2D", 9, 5, 1, 0)]
    known = producer_of(open_events(tmp_path, events).indexes[0])
    assert known is not None and known.name == "TensorFlow (timeline)"


def test_signs_in_names_need_nothing_around_them() -> None:
    """A sign that is looked for in names has no edge but at its ends: all names, which stand one after
    another, are asked at once whether one may fit.
    """
    patterns = [one.signs["name"] for one in PRODUCERS if "name" in one.signs]
    assert patterns
    for pattern in patterns:
        inside = pattern.strip("^$")
        assert not any(edge in inside for edge in ("^", "$", r"\b", r"\B", "(?")), pattern
        assert "|" not in re.sub(r"\([^()]*\)", "", inside), pattern


def test_streams_of_a_device_are_told_apart(tmp_path: Path) -> None:
    """Streams that are processes of their own, each with a thread 0, have names of their own in tables."""
    trace = open_events(tmp_path, tensorflow())
    names = BY_NAME["idle"].run(Scope(trace))["streams"].texts("stream")
    assert len(names) > 1 and len(set(names)) == len(names)
    assert all(name.startswith("/job:") and name.endswith(" Compute tid 0") for name in names)


@pytest.mark.parametrize("producer", PRODUCERS, ids=lambda producer: producer.name)
def test_no_pattern_means_what_has_no_name(producer: Producer) -> None:
    """Patterns of a producer are of names: none fits an empty one, least of all one that fits none."""
    patterns = (producer.waits, producer.peer_waits, producer.tasks, producer.parts, producer.joined)
    assert not [pattern for pattern in patterns if re.search(pattern, "")]


@pytest.mark.parametrize("named", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize("labelled", [(), (0,), (0, 1)])
def test_devices_are_apart_whatever_they_are_called(
    named: Sequence[int], labelled: Sequence[int], tmp_path: Path
) -> None:
    """Two devices are two, also where one of their processes has a name or a label and the other none."""
    trace = open_events(
        tmp_path,
        [
            *_processes(dict.fromkeys(named, "python"), {pid: f"GPU {pid}" for pid in labelled}),
            complete(
                0, 100, "gemm", "kernel", pid=0, tid=7, args={"device": 0, "stream": 7, "correlation": 1}
            ),
            complete(
                0, 60, "gemm", "kernel", pid=1, tid=7, args={"device": 1, "stream": 7, "correlation": 2}
            ),
        ],
    )
    assert [one.pid for one in devices(trace)] == ["0", "1"]
    assert [state.busy_ns for state in device_states(Scope(trace))] == [100_000, 60_000]
