"""Each pattern of a reading guide in several dialects and forms, and what almost is one, read from files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.patterns import DIALECTS, FORMS, HOST, Program, flow
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import open_trace

Write = Callable[[Program], None]
REGION, FUNCTION = "Torch-Compiled Region: {}", "CompiledFunction"


def _loop(host: float, device: float, count: int = 30) -> Write:
    """Operators of so many µs that each launch work of so many."""

    def write(p: Program) -> None:
        free = 0.0
        for n in range(count):
            at = n * (host + 1)
            p.op(at, host, "aten::mul")
            free = max(at + 8, free)
            p.launch(at + 2, 3, free, device, f"k{n % 3}")
            free += device

    return write


def _waiting(us: float) -> Write:
    """Little work, and a host that mostly waits for it."""

    def write(p: Program) -> None:
        for n in range(5):
            p.op(n * 1000, 20)
            p.launch(n * 1000 + 5, 3, n * 1000 + 10, us, f"k{n % 2}")
            p.sync(n * 1000 + 21, us)

    return write


def _back_to_back(part: float) -> Write:
    """Two streams that take turns, busy for a part of the time; launched ahead."""

    def write(p: Program) -> None:
        for n in range(20):
            p.launch(n * 5, 2, 110 + n * 100, 100 * part, f"k{n % 4}", stream=7 + n % 2)

    return write


def _kernels(*names_us: tuple[str, float], category: str = "kernel") -> Write:
    def write(p: Program) -> None:
        at = 100.0
        for n, (name, us) in enumerate(names_us):
            p.launch(n * 4, 2, at, us, name, category if name.startswith("Memcpy") else "kernel")
            at += us + 1

    return write


def _host(*names_us: tuple[str, float]) -> Write:
    def write(p: Program) -> None:
        at = 0.0
        for name, us in names_us:
            p.op(at, us, name)
            at += us + 1
        p.launch(at, 2, at + 3, 1)

    return write


def _called(count: int, us: float, other: float = 100) -> Write:
    def write(p: Program) -> None:
        for n in range(count):
            p.op(n * (us + 1), us, "aten::add_")
        p.op(count * (us + 1), other, "aten::mm")

    return write


def _nested(own: float) -> Write:
    """An operator whose part `own` is its own time."""

    def write(p: Program) -> None:
        for n in range(4):
            p.op(n * 1100, 1000, "aten::linear")
            p.op(n * 1100 + 1, 999 - 1000 * own, "aten::addmm")

    return write


def _iterations(first: float, name: str) -> Write:
    def write(p: Program) -> None:
        at = 0.0
        for n in range(6):
            us = first if n == 0 else 100
            p.note(at, us, name.format(n))
            p.op(at + 1, us - 2)
            at += us + 5

    return write


def _late(us: float, whole: float = 2000) -> Write:
    def write(p: Program) -> None:
        p.note(0, whole, "forward of the model")
        p.op(us, whole - us - 10)

    return write


def _queried(name: str) -> Write:
    def write(p: Program) -> None:
        p.op(0, 60, "aten::mm")
        p.call(10, 5, name)
        p.launch(20, 5, 40, 500, p.dialect.gemm)

    return write


def _waits(work: float) -> Write:
    """A wait of 1000 µs of which the device works so many."""

    def write(p: Program) -> None:
        p.op(0, 30)
        p.launch(5, 5, 40, work)
        p.launch(15, 5, 40 + work, 10, "other")
        p.sync(40, 1000)

    return write


def _bias(around: str, name: str = "", after: bool = False) -> Write:
    """A copy and a product; the copy is launched in `around`."""

    def write(p: Program) -> None:
        for n in range(3):
            at = n * 500.0
            p.op(at, 50, "aten::addmm")
            copy = at + (10 if around == "aten::addmm" else 60)
            if around != "aten::addmm":
                p.op(at + 55, 20, around)
            times = (at + 160, at + 100) if after else (at + 100, at + 110)
            p.launch(copy, 3, times[0], 5, name or p.dialect.within, "gpu_memcpy")
            p.launch(at + 30, 3, times[1], 50, p.dialect.gemm)

    return write


def _profiled(name: str, as_op: bool = False) -> Write:
    def write(p: Program) -> None:
        p.op(0, 5000)
        (p.op if as_op else p.call)(100, 3000, name)
        p.launch(4000, 5, 4010, 900)

    return write


def _runs(*us: float, grids: bool = False, name: str = "reduce_kernel") -> Write:
    def write(p: Program) -> None:
        at = 100.0
        for n, one in enumerate(us):
            p.launch(n * 5, 2, at, one, name, grid=[n if grids else 4, 1, 1], block=[128, 1, 1])
            at += one + 1

    return write


def _regions(*spans: tuple[str, float, float]) -> Write:
    """Compiled regions of each of three steps: (id, start, length)."""

    def write(p: Program) -> None:
        for n in range(3):
            p.step(n, n * 1000, 900)
            for name, at, us in spans:
                p.op(n * 1000 + at, us, REGION.format(name))

    return write


def _functions(count: int, backward: bool) -> Write:
    """Compiled functions without regions: in steps, or with a backward pass after each forward."""

    def write(p: Program) -> None:
        for n in range(4):
            if not backward:
                p.step(n, n * 1000, 950)
            for at in range(count):
                p.op(n * 1000 + 10 + 200 * at, 100, FUNCTION)
            if backward:
                p.op(n * 1000 + 800, 100, FUNCTION + "Backward", tid=2)

    return write


def _versions(*ids: str) -> Write:
    def write(p: Program) -> None:
        for n, one in enumerate(ids):
            p.op(n * 200, 100, REGION.format(one))

    return write


def _compiling(name: str) -> Write:
    def write(p: Program) -> None:
        p.op(0, 900, name)
        p.op(1000, 100, "aten::mm")

    return write


def _gaps(ahead: bool) -> Write:
    """A device with gaps of 50 µs; launched while it stands still, or long before."""

    def write(p: Program) -> None:
        for n in range(12):
            start = 500 + n * 100
            p.launch(n * 6 if ahead else start - 8, 4, start, 50, f"k{n % 3}")

    return write


def _compared(eager: float, compiled: float) -> Write:
    def write(p: Program) -> None:
        at = 0.0
        for n in range(8):
            us = compiled if n % 2 else eager
            p.step(n, at, us)
            p.op(at + 1, us - 2, REGION.format("0/0") if n % 2 else "aten::mm")
            at += us + 1

    return write


def _first(late: float, others: float = 4) -> Write:
    def write(p: Program) -> None:
        p.launch(0, 5, 5 + late, 10)
        for n in range(8):
            at = late + 100 + n * (others + 40)
            p.launch(at, 5, at + 5 + others, 10, f"k{n % 2}")

    return write


def _product(outer: str, inner: str, graph: bool = False) -> Write:
    def write(p: Program) -> None:
        for n in range(3):
            p.op(n * 100, 80, "## Call CompiledFxGraph f00 ##" if graph else outer)
            p.op(n * 100 + 10, 40, inner)

    return write


def _linked(category: str, count: int = 3, tid: int = 2, name: str = "MmBackward0") -> Write:
    """Forward operators and, on a thread of their own or the same, backward ones in turn, linked by flows."""

    def write(p: Program) -> None:
        for n in range(count):
            p.op(n * 50, 20, "aten::mm")
            p.op(2000 - n * 50, 20, name, tid=tid)
            p.events += [
                flow("s", n * 50 + 1, 900 + n, category, pid=HOST, tid=1),
                flow("f", 2000 - n * 50 + 1, 900 + n, category, bp="e", pid=HOST, tid=tid),
            ]

    return write


def _halved(part: str) -> Write:
    """Flows of which one end is missing: they link nothing."""

    def write(p: Program) -> None:
        whole = Program()
        _linked("fwdbwd")(whole)
        p.events += [one for one in whole.events if one["ph"] in ("X", part)]

    return write


def _gap_in(steps: tuple[int, ...], us: float) -> Write:
    """Eight steps whose work follows without gaps, but for some."""

    def write(p: Program) -> None:
        for n in range(8):
            at, gap = n * 1000.0, us if n in steps else 0
            p.step(n, at, 1000)
            p.launch(at + 1, 2, at + 20, 490, "k0")
            p.launch(at + 5, 2, at + 510 + gap, 510 - gap, "k1")

    return write


def _copies(blocking: bool) -> Write:
    def write(p: Program) -> None:
        for n in range(5):
            at = n * 1000.0
            p.op(at, 900 if blocking else 20, "aten::copy_")
            name = p.dialect.copy if blocking else "cudaMemcpyAsync"
            number = 5000 + n
            p.call(at + 2, 890 if blocking else 10, name, correlation=number)
            p.work(at + 15, 870, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", correlation=number)
            p.op(at + 905, 20, "aten::mm")
            p.launch(at + 908, 3, at + 930, 20, p.dialect.gemm)

    return write


def _items(us: float, work: float, loop: int = 12) -> Write:
    """Values read back one by one: a copy that is not waited for, then a synchronisation, in an operator."""

    def write(p: Program) -> None:
        for n in range(loop):
            at = n * 1000.0
            p.launch(at, 5, at + 8, work, p.dialect.gemm)
            p.op(at + 20, us, "aten::item")
            p.op(at + 21, us - 2, "aten::_local_scalar_dense")
            p.launch(at + 24, 5, at + 10 + work, us - 60, "Memcpy DtoH (Device -> Pinned)", "gpu_memcpy")
            p.sync(at + 31, us - 15)

    return write


def _pageable(us: float, pinned: bool) -> Write:
    """Copies that are to run beside the host: from pageable memory the call lasts until they are done."""

    def write(p: Program) -> None:
        for n in range(8):
            at = n * 1000.0
            p.op(at, us if not pinned else 12, "aten::to")
            call, number = us - 10 if not pinned else 6, 7000 + n
            p.call(at + 4, call, "cudaMemcpyAsync", correlation=number)
            p.work(at + 8, us - 20, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", correlation=number)
            p.op(at + us, 15, "aten::relu")
            p.launch(at + us + 2, 4, at + us + 9, 30)

    return write


def _clock(by: float) -> Write:
    """Device work that stands so many µs from where it belongs."""

    def write(p: Program) -> None:
        for n in range(20):
            p.launch(n * 100, 5, n * 100 + 20 + by, 30)

    return write


def _triton(on_device: str, on_host: str = "aten::mm") -> Write:
    def write(p: Program) -> None:
        for n in range(4):
            p.op(n * 50, 40, on_host)
            p.launch(n * 50 + 2, 3, n * 50 + 10, 20, on_device)

    return write


FUNCTORS = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::{}Ops, 4> >(R)"
"""Kernels that differ only in what a short form leaves out."""
FORMS_AND_DIALECTS = (*FORMS, *DIALECTS)
PATTERNS: dict[str, tuple[tuple[Write, ...], tuple[Write, ...]]] = {
    "overhead-bound": (
        (_loop(100, 10), _loop(60, 25), _loop(200, 3, 12)),
        (_loop(100, 95), _loop(40, 60), _waiting(900)),
    ),
    "device-bound": (
        (_back_to_back(1), _back_to_back(0.9), _loop(30, 80)),
        (_back_to_back(0.7), _loop(100, 20), _first(3000)),
    ),
    "device-hotspot": (
        (
            _kernels(("a", 60), ("b", 20), ("c", 20)),
            _kernels(("b", 10), ("a", 30), ("c", 9), ("a", 30)),
            _kernels(("Memcpy HtoD (Pinned -> Device)", 500), ("a", 30), ("b", 10), category="gpu_memcpy"),
        ),
        (
            _kernels(("a", 50), ("b", 50)),
            _kernels(("a", 52), ("b", 30), ("c", 18)),
            _kernels((FUNCTORS.format("a"), 40), (FUNCTORS.format("b"), 40), ("c", 20)),
            _kernels(("Memcpy HtoD (Pinned -> Device)", 500), ("a", 30), ("b", 30), category="gpu_memcpy"),
        ),
    ),
    "host-hotspot": (
        (
            _host(("aten::nonzero", 600), ("aten::mul", 200), ("aten::add", 100)),
            _host(("aten::mul", 90), ("mine", 200), ("aten::add", 80), ("mine", 200)),
            _host(("f", 60), ("g", 29), ("h", 29)),
        ),
        (
            _host(("aten::nonzero", 500), ("aten::mul", 500)),
            _host(("f", 60), ("g", 40)),
            _host(("f", 49), ("g", 20), ("h", 20), ("i", 20)),
        ),
    ),
    "many-calls": (
        (_called(600, 2), _called(520, 9, 3000), _called(2000, 1)),
        (_called(480, 2), _called(600, 1, 6000), _called(600, 12)),
    ),
    "cost-in-children": (
        (_nested(0.01), _nested(0.03), _nested(0.045)),
        (_nested(0.2), _nested(0.5), _nested(0.9)),
    ),
    "cold-start": (
        (
            _iterations(500, "iteration_{}"),
            _iterations(250, "ProfilerStep#{}"),
            _iterations(900, "step[DECODE bs=8]"),
        ),
        (
            _iterations(180, "iteration_{}"),
            _iterations(100, "ProfilerStep#{}"),
            _iterations(40, "iteration_{}"),
        ),
    ),
    "late-first-op": ((_late(300), _late(1500), _late(210)), (_late(80), _late(150, 4000), _late(20))),
    "occupancy-query": (
        (
            _queried("cudaOccupancyMaxActiveBlocksPerMultiprocessor"),
            _queried("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"),
            _queried("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"),
        ),
        (
            _queried("cudaFuncGetAttributes"),
            _queried("cudaStreamIsCapturing"),
            _queried("hipDeviceGetAttribute"),
        ),
    ),
    "sync": ((_waits(20), _waits(300), _waits(450)), (_waits(980), _waits(700), _waits(600))),
    "hidden-copies": (
        (
            _bias("aten::addmm"),
            _bias("aten::addmm", "Memcpy DtoD (Device -> Device)"),
            _bias("aten::addmm", "CopyDeviceToDevice"),
        ),
        (
            _bias("aten::copy_"),
            _bias("aten::addmm", "Memcpy HtoD (Pinned -> Device)"),
            _bias("aten::addmm", after=True),
        ),
    ),
    "profiler": (
        (_profiled("Activity Buffer Request"), _profiled("Buffer Flush"), _profiled("Instrumentation")),
        (
            _profiled("Activity Buffer Request", as_op=True),
            _profiled("cudaMalloc"),
            _profiled("Buffer Flush ahead"),
        ),
    ),
    "uneven-kernel": (
        (_runs(10, 40, 10), _runs(10, 10, 11, 10, 25), _runs(30, 10, 90, 10, 12)),
        (_runs(10, 40), _runs(10, 12, 15, 19, 10), _runs(10, 40, 90, grids=True)),
    ),
    "graph-breaks": (
        (
            _regions(("0/0", 10, 500), ("1/0", 100, 100)),
            _functions(3, backward=False),
            _functions(2, backward=True),
        ),
        (
            _regions(("0/0", 10, 300), ("1/0", 400, 300)),
            _functions(1, backward=False),
            _functions(1, backward=True),
        ),
    ),
    "recompiled": (
        (_versions("0/0", "0/1"), _versions("3/0", "4/0", "4/2"), _versions("1/7")),
        (_versions("0/0", "1/0"), _versions("0/0", "0/0"), _versions("5/0")),
    ),
    "compile-time": (
        (
            _compiling("_compile.compile_inner (dynamo_timed)"),
            _compiling("create_aot_dispatcher_function (dynamo_timed)"),
            _compiling("compile_fx_inner (dynamo_timed)"),
        ),
        (_compiling("compile_fx_inner"), _compiling("dynamo_timed"), _compiling("TorchDynamo Cache Lookup")),
    ),
    "launch-gaps": (
        (_gaps(ahead=False), _loop(100, 10), _loop(60, 25)),
        (_gaps(ahead=True), _back_to_back(0.5), _loop(20, 80)),
    ),
    "compiled-slower": (
        (_compared(100, 150), _compared(100, 110), _compared(20, 500)),
        (_compared(150, 100), _compared(100, 100), _compared(500, 20)),
    ),
    "first-kernel": (
        (_first(2300), _first(1100), _first(9000, 50)),
        (_first(900), _first(5000, 600), _first(20)),
    ),
    "fused-ops": (
        (
            _product("aten::matmul", "aten::bmm"),
            _product("aten::linear", "aten::addmm"),
            _product("", "extern_kernels.addmm", graph=True),
        ),
        (
            _product("aten::matmul", "aten::mm"),
            _product("aten::bmm", "aten::bmm"),
            _product("mine", "aten::addmm"),
        ),
    ),
    "forward-backward": (
        (
            _linked("fwdbwd"),
            _linked("fwdbwd", count=1, name="autograd::engine::evaluate_function: AddmmBackward0"),
            _linked("fwdbwd", count=20, tid=1, name="CompiledFunctionBackward"),
        ),
        (_linked("mine"), _halved("s"), _halved("f")),
    ),
    "triton": (
        (
            _triton("triton_poi_fused_add_0"),
            _triton("triton_per_fused_native_layer_norm_1", "triton_per_fused_native_layer_norm_1"),
            _kernels(("ampere_sgemm_128x64_tn", 400), ("triton_tem_fused_mm_7", 30), ("k", 5)),
        ),
        (
            _triton("elementwise_kernel"),
            _triton("k", "triton_poi_fused_add_0"),
            _kernels(("not_triton_k", 50), ("void triton::gemm", 10)),
        ),
    ),
    "step-gap": (
        (_gap_in((3,), 400), _gap_in((1, 6), 300), _gap_in((5,), 150)),
        (_gap_in((), 0), _gap_in((0, 2, 4), 300), _gap_in((3,), 80)),
    ),
    "transfer-bound": (
        (_copies(blocking=True), _items(800, 40), _pageable(700, pinned=False)),
        (
            _copies(blocking=False),
            _items(700, 690),
            _pageable(700, pinned=True),
            _loop(100, 10),
            _waiting(900),
        ),
    ),
    "device-clock": (
        (_clock(-50), _clock(-90), _clock(-5e6)),
        (_clock(0), _clock(400), _clock(-15)),
    ),
}
UNSCALED = {"many-calls", "late-first-op", "first-kernel"}
"""Rules with limits in ns: what is short does not stay so a thousandfold."""
EACH = 3
"""Each program comes in every third form; the programs of a rule come in all."""


def _suits(rule: str, form: str) -> bool:
    return form != "thousandfold" or rule not in UNSCALED


CASES = [
    (rule, number, form, expected)
    for rule, sides in PATTERNS.items()
    for expected, writes in zip((True, False), sides)
    for number in range(len(writes))
    for form in FORMS_AND_DIALECTS[number % EACH :: EACH]
    if _suits(rule, form)
]


def _speaks(rule: str, write: Write, form: str, folder: Path) -> bool:
    """Return whether a rule speaks of a program in a form, read from a file."""
    program = Program(DIALECTS.get(form, DIALECTS["cuda"]))
    write(program)
    events = FORMS[form](program.all_events) if form in FORMS else program.all_events
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    rows = findings(Scope(open_trace(path, index_dir=folder / "index"))).findings
    return rule in [row.rule for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "number", "form", "expected"), CASES)
def test_pattern(rule: str, number: int, form: str, expected: bool, tmp_path: Path) -> None:
    """A pattern is recognised, and what almost is one is not, whoever wrote the trace and however."""
    assert _speaks(rule, PATTERNS[rule][not expected][number], form, tmp_path) == expected
