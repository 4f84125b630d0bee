"""Programs that each have one cause of lost time, or none: host threads, streams and queues simulated in µs.

A program is made from a seed: how many layers, steps and ranks it has, what its kernels are called and how
long they take, whose device it runs on, and what its profiler recorded. One thing is wrong with it, `cause`;
all else is as it should be: the host runs ahead of the device, copies are pinned and collectives hidden.
Seeds from `SECOND` on are programs of other authors (`_habits`): other vendors, loaders with names of their
own, several ranks where one would do, small tensors read instead of values, servers that wait for work.
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.events import Event, complete, flow, metadata


@dataclass(frozen=True)
class Vendor:
    """What a vendor calls its runtime, its calls and its work."""

    label: str
    runtime: str  # category
    launch: tuple[str, ...]
    copy: str
    blocking: str  # a copy that returns when it is done
    sync: str
    stream_sync: str
    alloc: str
    copies: tuple[str, str, str]  # in, in from pageable memory, out
    collective: str
    gemm: str
    other: str


VENDORS = {
    "cuda": Vendor(
        *("GPU {}", "cuda_runtime", ("cudaLaunchKernel", "cudaLaunchKernelExC"), "cudaMemcpyAsync"),
        *("cudaMemcpy", "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaMalloc"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pageable -> Device)",
         "Memcpy DtoH (Device -> Pinned)"),
        *("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
        *("sm90_xmma_gemm_bf16bf16_bf16f32_{}_tn_n_tilesize{}x128x64",),
        *("void {}_kernel<c10::BFloat16, {}>(int)",),
    ),
    "hip": Vendor(
        *("GPU {}", "cuda_runtime", ("hipLaunchKernel", "hipExtModuleLaunchKernel"), "hipMemcpyAsync"),
        *("hipMemcpyWithStream", "hipDeviceSynchronize", "hipStreamSynchronize", "hipMalloc"),
        ("Memcpy HtoD (Host -> Device)", "Memcpy HtoD (Host -> Device)", "Memcpy DtoH (Device -> Host)"),
        *("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",),
        *("Cijk_Ailk_Bljk_{}_MT128x{}x32_MI32x32x8x1_SN", "void at::native::{}_kernel<{}>(long)"),
    ),
    "xpu": Vendor(
        *("XPU {}", "xpu_runtime", ("urEnqueueKernelLaunch",), "urEnqueueUSMMemcpy"),
        *("urEnqueueUSMMemcpy", "urQueueFinish", "urEventWait", "urUSMDeviceAlloc"),
        ("zeCommandListAppendMemoryCopy(H2D)", "zeCommandListAppendMemoryCopy(M2D)",
         "zeCommandListAppendMemoryCopy(D2M)"),
        *("oneccl_allreduce_large_kernel",),
        *("gemm_kernel_{}_{}", "{}Functor<{}>"),
    ),
    "aiu": Vendor(
        *("AIU {}", "privateuse1_runtime", ("aiuLaunchControlBlocks",), "aiuLaunchDMIControlBlocks"),
        *("aiuLaunchDMIControlBlocks", "aiuRoundtrip", "aiuRoundtrip", "aiuAllocate"),
        ("Memcpy (HtoD)", "Memcpy (HtoD)", "Memcpy (DtoH)"),
        *("HCOLL_AllReduce_ring_bf16",),
        *("sdsc_fused_mm_{}_{}", "sdsc_fused_{}_{}"),
    ),
}  # fmt: skip
SECOND = 100
VENDORS_OF_SECOND = {
    **VENDORS,
    "musa": replace(
        VENDORS["cuda"],
        runtime="musa_runtime",
        launch=("musaLaunchKernel",),
        copy="musaMemcpyAsync",
        blocking="musaMemcpy",
        sync="musaDeviceSynchronize",
        stream_sync="musaStreamSynchronize",
        collective="mcclKernel_AllReduce_RING",
        gemm="mudnn_gemm_{}_{}_tn",
    ),
}
LOADERS = (
    ("user_annotation", "data_loading"),
    ("user_annotation", "get_batch"),
    ("python_function", "input_pipeline.py(12): next_batch"),
    ("python_function", "torch/utils/data/dataloader.py(733): __next__"),
    ("python_function", "my/dataset.py(40): __next__"),
)
READERS = (("aten::nonzero",), ("aten::to", "aten::_to_copy", "aten::copy_"))
OTHERS = ("mul", "layer_norm", "gelu", "softmax", "add", "dropout", "rotary", "silu", "cat", "index")
MARKS = ("ProfilerStep#{}", "iteration_{}", "train_step {}", "")
STREAM, COMM, COPYING = 7, 20, 24
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
LOCK = "<built-in method acquire of _thread.lock object at 0x7f1e>"


@dataclass
class Op:
    """One operator of a layer and the kernel that it launches."""

    name: str
    kernel: str
    us: float
    grid: list[int]
    dims: list[list[int]]


@dataclass
class Program:
    """All that is chosen once, and the one cause; times in µs."""

    seed: int
    cause: str
    rng: random.Random = field(repr=False)
    vendor: Vendor
    ranks: int
    steps: int
    layers: list[list[Op]]
    train: bool
    mark: str
    frames: bool
    flows: bool
    merged: bool
    op_us: float  # host time of an operator without its launch
    call_us: float
    load_us: float
    depth: int  # launches that a queue holds
    sync_steps: bool  # whether the host waits for the device at the end of each step
    late: int = 0  # the rank that is late
    at: int = 1  # the step in which it happens
    amount: float = 1.0
    way: int = 0  # which of several ways it shows
    chosen: str = ""  # kernel
    loader: tuple[str, str] = ("user_annotation", LOADER)  # category and name
    reader: tuple[str, ...] = ("aten::item", "aten::_local_scalar_dense")  # operators that read a value
    pauses: bool = False  # whether a server waits for requests now and then
    same_names: bool = False  # whether the backward pass runs kernels of the same names, for longer


def program(seed: int, cause: str) -> Program:
    """Return what a seed makes of a cause."""
    rng = random.Random(f"{cause}-{seed}")
    second = seed >= SECOND
    vendor = (
        VENDORS_OF_SECOND[rng.choice(("musa", "hip", "cuda", "xpu", "aiu"))]
        if second
        else VENDORS[rng.choice(("cuda", "cuda", "hip", "xpu", "aiu"))]
    )
    may_be = SPREAD if second else ("exposed-communication", "clean")
    several = cause in ("late-rank",) or (cause in may_be and rng.random() < 0.5)
    ranks = rng.randint(2, 8) if several else 1
    scale = rng.uniform(0.7, 2.0)
    layers: list[list[Op]] = []
    pattern = []
    for number in range(rng.randint(4, 8)):
        width = rng.choice((256, 512, 1024, 2048))
        if number % 2 == 0:
            name = vendor.gemm.format(rng.choice(("f32", "bf16", "SB", "HB")), 32 * (number + 1))
            pattern.append(
                Op("aten::addmm", name, scale * rng.uniform(90, 260), [width // 4, 2, 1], [[512, width]])
            )
        else:
            word = OTHERS[(number + seed) % len(OTHERS)]
            name = vendor.other.format(word, number)
            pattern.append(
                Op(f"aten::{word}", name, scale * rng.uniform(60, 180), [width, 1, 1], [[512, width]])
            )
    for _ in range(rng.randint(2, 4 if ranks > 3 else 7)):
        layers.append(pattern)
    mean = sum(op.us for op in pattern) / len(pattern)
    p = Program(
        seed, cause, rng, vendor, ranks, rng.randint(5, 10), layers, rng.random() < 0.7 or cause in TRAINING,
        rng.choice(MARKS), rng.random() < 0.4, rng.random() < 0.6, ranks > 1 and rng.random() < 0.3,
        rng.uniform(0.08, 0.25) * mean, rng.uniform(0.02, 0.05) * mean, rng.uniform(100, 400),
        rng.choice((128, 512, 1024)), False, way=rng.randrange(4),
    )  # fmt: skip
    p.at, p.same_names = rng.randint(2, p.steps - 2), rng.random() < 0.3
    CAUSES[cause](p)
    if second:
        _habits(p)
    return p


def _habits(p: Program) -> None:
    """Do as other authors do."""
    p.loader, p.reader = p.rng.choice(LOADERS), p.rng.choice(READERS)
    if p.cause == "clean" and p.ranks == 1 and not (p.sync_steps or p.train):
        p.mark, p.pauses, p.steps = "execute_context_0(0)_generation_{}(8)", True, 10


def step_us(p: Program) -> float:
    """Return about how long a device takes for a step."""
    return sum(op.us for layer in p.layers for op in layer) * (3 if p.train else 1)


class Rank:
    """One host and one device, and what their profiler wrote down."""

    def __init__(self, p: Program, number: int) -> None:
        self.p, self.number = p, number
        self.rng = random.Random(f"{p.cause}-{p.seed}-{number}")
        self.now, self.tid, self.correlation, self.step = self.rng.uniform(0, 50), 1, 100, 0
        self.free: dict[int, float] = {}
        self.pending: deque[float] = deque()
        self.seen: set[str] = set()
        self.host, self.device = 4000 + 17 * number, number if p.merged else 0
        self.events: list[Event] = []

    # -- host ---------------------------------------------------------------------------------------------

    def spend(self, us: float) -> None:
        self.now += us * self.rng.uniform(0.85, 1.2)

    @contextmanager
    def span(self, name: str, category: str = "cpu_op", **args: Any) -> Iterator[None]:
        start, tid = self.now, self.tid
        yield
        self.events.append(
            complete(start, self.now - start, name, category, pid=self.host, tid=tid, args=args)
        )

    @contextmanager
    def frame(self, name: str) -> Iterator[None]:
        if not self.p.frames:
            yield
            return
        with self.span(name, "python_function"):
            yield

    def call(self, name: str, us: float, until: float = 0.0, **args: Any) -> None:
        """A runtime call that takes so long, and lasts until a moment at least."""
        with self.span(name, self.p.vendor.runtime, **args):
            self.spend(us)
            self.now = max(self.now, until)

    def sync(self, stream: bool = False) -> None:
        free = self.free.get(STREAM, 0.0) if stream else max(self.free.values(), default=0.0)
        self.call(
            self.p.vendor.stream_sync if stream else self.p.vendor.sync, 3, free + self.rng.uniform(3, 8)
        )
        self.pending.clear()

    # -- device -------------------------------------------------------------------------------------------

    def work(
        self, name: str, us: float, stream: int, ready: float, category: str, end: float = 0.0, **args: Any
    ) -> tuple[float, float]:
        start = max(ready, self.free.get(stream, 0.0) + self.rng.uniform(0.6, 1.6))
        end = max(end, start + us)
        self.free[stream] = end
        args = {"device": self.device, "stream": stream, "correlation": self.correlation, **args}
        self.events.append(
            complete(start, end - start, name, category, pid=self.device, tid=stream, args=args)
        )
        return start, end

    def begin_call(self, name: str, us: float, **args: Any) -> float:
        """A call that enqueues work, waiting for room where the queue is full; return its middle."""
        while self.pending and self.pending[0] <= self.now:
            self.pending.popleft()
        until = self.pending[0] if len(self.pending) >= self.p.depth else 0.0
        self.correlation += 1
        start = self.now
        self.call(name, us, until, correlation=self.correlation, **args)
        return max(start, until) + 0.7 * us

    def linked(self, start: float, begun: float, stream: int) -> None:
        if self.p.flows:
            number = self.correlation + (100_000 * self.number if self.p.merged else 0)
            self.events += [
                flow("s", begun, number, pid=self.host, tid=self.tid),
                flow("f", start, number, bp="e", pid=self.device, tid=stream),
            ]

    def launch(self, kernel: str, us: float, stream: int = STREAM, after: float = 0.0, **args: Any) -> None:
        """Launch a kernel of about so many µs."""
        p, begun = self.p, self.now
        call = p.call_us
        if p.cause == "first-use" and kernel not in self.seen:
            call = p.amount * self.rng.uniform(0.6, 1.4)
        self.seen.add(kernel)
        issued = self.begin_call(p.vendor.launch[len(kernel) % len(p.vendor.launch)], call)
        if call != p.call_us:
            issued = self.now
        us *= self.rng.gauss(1.0, 0.015)
        if p.cause == "clock-drop" and self.step >= p.at:
            us *= p.amount
        if p.cause == "late-rank" and p.way % 2 == 0 and self.number == p.late:
            us *= p.amount
        if p.cause == "uneven-kernel" and kernel == p.chosen and self.rng.random() < 0.2:
            us *= p.amount * self.rng.uniform(0.7, 1.3)
        start, end = self.work(
            kernel, us, stream, max(issued + self.rng.uniform(2, 5), after), "kernel", **args
        )
        self.pending.append(end)
        self.linked(start, begun + 0.1, stream)

    def copy(
        self, us: float, kind: int, blocks: bool, stream: int = STREAM, after: float = 0.0, call: str = ""
    ) -> float:
        """A copy: 0 to the device, 1 from pageable memory, 2 to the host; return its end."""
        p, begun = self.p, self.now
        self.correlation += 1
        name = call or (p.vendor.blocking if blocks and kind == 0 else p.vendor.copy)
        ready = self.now + 4
        start, end = self.work(
            p.vendor.copies[kind], us * self.rng.gauss(1, 0.03), stream, max(ready, after), "gpu_memcpy",
            bytes=int(us * 20_000),
        )  # fmt: skip
        self.call(name, 5, end + 3 if blocks else 0.0, correlation=self.correlation)
        self.linked(start, begun + 0.1, stream)
        return end

    # -- the program --------------------------------------------------------------------------------------

    def op(self, op: Op, scale: float = 1.0, prefix: str = "") -> None:
        p = self.p
        host = p.op_us
        if p.cause == "late-launches":
            host *= p.amount
        if p.cause == "late-rank" and p.way % 2 and self.number == p.late:
            host *= p.amount
        if p.cause == "late-launches" and p.way % 2:  # in Python, between the operators
            with self.frame(f"model.py({len(op.name) * 7}): forward"):
                self.spend(host - p.op_us)
            host = p.op_us
        with self.frame("nn.Module: Block_1"), self.span(prefix + op.name, **{"Input Dims": op.dims}):
            self.spend(host * 0.6)
            suffix = "_bwd" if prefix and not p.same_names and op.kernel != p.chosen else ""
            self.launch(op.kernel + suffix, op.us * scale, grid=op.grid, block=[128, 1, 1])
            self.spend(host * 0.4)
        if p.cause == "item" and not prefix and self.rng.random() < p.amount:
            self.item()
        if p.cause == "blocking-copies" and op is p.layers[0][0] and not prefix:
            self.blocking_copy()

    def item(self) -> None:
        with ExitStack() as around:
            for name in self.p.reader:
                around.enter_context(self.span(name))
            self.spend(4)
            if self.p.vendor.label.startswith("AIU"):
                self.copy(4, 2, True, call="aiuLaunchDMOControlBlocks")
            else:
                self.copy(1.5, 2, False)
                self.sync(stream=True)

    def blocking_copy(self) -> None:
        with self.span("aten::to"), self.span("aten::_to_copy"), self.span("aten::copy_"):
            self.spend(8)
            self.copy(self.p.amount, 1 if self.p.way % 2 else 0, True)

    def load(self) -> None:
        p = self.p
        slow = p.cause == "slow-loader" and (p.way != 3 or self.step % 2)
        category, name = p.loader
        with ExitStack() as around:
            if name == LOADER:
                around.enter_context(self.frame("torch/utils/data/dataloader.py(733): __next__"))
            around.enter_context(self.span(name, category))
            if name == LOADER:
                around.enter_context(self.frame("torch/utils/data/dataloader.py(1448): _next_data"))
            self.spend(p.amount * step_us(p) if slow else p.load_us)
        with self.span("aten::to"):
            self.spend(6)
            self.copy(30, 0, False)

    def reduce(self, us: float) -> Generator[tuple[float, float], float, float]:
        """All-reduce on a stream of its own what the compute stream has done so far."""
        with self.span("c10d::allreduce_"), self.span("record_param_comms"):
            self.spend(12)
            begun = self.now
            issued = self.begin_call(self.p.vendor.launch[0], self.p.call_us)
            ready = max(issued + 3, self.free.get(STREAM, 0.0) + 1, self.free.get(COMM, 0.0) + 1)
            end = yield ready, us * self.rng.gauss(1, 0.01)
            args = {"Collective name": "allreduce", "Process Group Name": "0", "Group size": self.p.ranks}
            start, end = self.work(self.p.vendor.collective, 0, COMM, ready, "kernel", end=end, **args)
            self.pending.append(end)
            self.linked(start, begun + 0.1, COMM)
        return end

    def stall(self) -> None:
        """One step in which the host does something else for long."""
        p = self.p
        names = {
            "gc-step": ("<built-in function collect>", "gc.py(1): collect", "", ""),
            "lock-step": (LOCK, "threading.py(327): wait", "", ""),
        }[p.cause]  # fmt: skip
        name = names[p.way]
        us = p.amount * step_us(p) + max(0.0, max(self.free.values(), default=0.0) - self.now)
        with self.frame(name or "train.py(40): step"):
            self.now += us

    def recompile(self) -> None:
        """Run the compiled region: compiled anew in one step."""
        p = self.p
        again = p.cause == "recompilation" and self.step == p.at
        version = 1 if p.cause == "recompilation" and self.step >= p.at else 0
        with self.span("TorchDynamo Cache Lookup"):
            self.spend(20)
        with self.span(f"Torch-Compiled Region: 0/{version}"):
            if again:
                us = p.amount * step_us(p) + max(0.0, max(self.free.values(), default=0.0) - self.now)
                if p.way % 2:
                    with self.span("_compile.compile_inner (dynamo_timed)"):
                        self.now += us * 0.4
                        with self.span("compile_fx_inner (dynamo_timed)"):
                            self.now += us * 0.6
                else:
                    self.now += us
            with self.span("## Call CompiledFxGraph fab12 ##"):
                for op in p.layers[0]:
                    self.op(op)

    def run_step(self, number: int) -> Generator[tuple[float, float], float, None]:
        """One step; yields (ready, µs) of each collective and is sent when it ends."""
        p, self.step = self.p, number
        mark = p.mark.format(number + 3)
        with self.span(mark, "user_annotation") if mark else self.frame("train.py(12): other"):
            self.load()
            yield from self.step_body()
            if p.sync_steps:
                self.sync()
        if p.pauses and number % 3 == 2:
            self.now = max(self.now, *self.free.values()) + step_us(p)

    def step_body(self) -> Generator[tuple[float, float], float, None]:
        p = self.p
        if p.cause in ("gc-step", "lock-step") and self.step == p.at:
            self.stall()
        if p.cause == "recompilation":
            self.recompile()
        if p.cause == "copies":
            self.copies()
        with self.frame("train.py(31): forward"):
            for layer in p.layers:
                for op in layer:
                    self.op(op)
        comm = 0.0
        if p.train:
            self.tid = 2
            for layer in p.layers:
                for op in reversed(layer):
                    self.op(op, 2.0, "autograd::engine::evaluate_function: ")
                if p.ranks > 1 or p.cause == "exposed-communication":
                    per_layer = step_us(p) / len(p.layers)
                    exposed = p.cause == "exposed-communication"
                    comm = yield from self.reduce(per_layer * (p.amount if exposed else 0.15))
            self.tid = 1
            with self.span("Optimizer.step#AdamW.step", "user_annotation"):
                for _ in range(4):
                    with self.span("aten::_foreach_add_"):
                        self.spend(p.op_us)
                        self.launch(
                            "void multi_tensor_apply_kernel<FusedAdam>",
                            40,
                            after=comm,
                            grid=[320, 1, 1],
                            block=[512, 1, 1],
                        )

    def copies(self) -> None:
        """Copies from pinned memory that nothing waits for but the device."""
        p = self.p
        each = p.amount * step_us(p) / 4
        for _ in range(4):
            with self.span("aten::copy_"):
                self.spend(8)
                kind = 2 if p.way == 2 else 0
                end = self.copy(
                    each, kind, False, COPYING if p.way % 2 else STREAM, after=self.free.get(STREAM, 0.0)
                )
            if p.way % 2:
                self.free[STREAM] = max(self.free.get(STREAM, 0.0), end)


def run(p: Program) -> list[Rank]:
    """Let the ranks run in step with one another, and return them with all that was recorded."""
    ranks = [Rank(p, number) for number in range(p.ranks)]
    for number in range(p.steps):
        bodies = [rank.run_step(number) for rank in ranks]
        ready = [next(body, None) for body in bodies]
        while any(one is not None for one in ready):
            assert all(one is not None for one in ready)
            end = max(at for at, _ in ready) + ready[0][1]  # type: ignore[misc,index]
            ready = [_sent(body, end) for body in bodies]
    for rank in ranks:
        rank.sync()
    if p.cause == "lost-kernels":
        _lose(ranks[0], p)
    return ranks


def _sent(body: Generator[tuple[float, float], float, None], end: float) -> tuple[float, float] | None:
    try:
        return body.send(end)
    except StopIteration:
        return None


def _lose(rank: Rank, p: Program) -> None:
    """Leave out the device's events from one moment to another, as a profiler without buffers does."""
    work = sorted(
        (e for e in rank.events if e["pid"] == rank.device and e["ph"] == "X"), key=lambda e: e["ts"]
    )
    count = max(20, int(len(work) * p.amount))
    first = {0: 0, 1: (len(work) - count) // 2, 2: len(work) - count, 3: (len(work) - count) // 3}[p.way]
    lost = {id(e) for e in work[first : first + count]}
    starts = {(e["args"]["correlation"]) for e in work[first : first + count]}
    rank.events = [e for e in rank.events if id(e) not in lost and not (e["ph"] == "f" and e["id"] in starts)]


def write(p: Program, folder: Path) -> Path:
    """Write the trace of a program, a file per rank unless they are merged; return what to open."""
    ranks = run(p)
    folder.mkdir(parents=True, exist_ok=True)
    base = 1_780_000_000_000 + p.seed
    groups = [ranks] if p.merged else [[rank] for rank in ranks]
    for number, group in enumerate(groups):
        events: list[Event] = []
        for rank in group:
            events += [
                metadata("process_labels", rank.device, labels=p.vendor.label.format(rank.device)),
                metadata("process_labels", rank.host, labels="CPU"),
                metadata("process_name", rank.host, name="python"),
            ]
            events += rank.events
        events = [_stamped(e, base) for e in events]
        whole: dict[str, Any] = {"schemaVersion": 1, "traceEvents": events}
        if p.ranks > 1 and not p.merged:
            whole["distributedInfo"] = {"rank": number, "world_size": p.ranks, "backend": "nccl"}
        (folder / f"rank{number}.pt.trace.json").write_text(json.dumps(whole), encoding="utf-8")
    return folder if len(groups) > 1 else folder / "rank0.pt.trace.json"


def _stamped(event: Event, base: int) -> Event:
    """Return an event with its times in the file, starts and ends to the ns, so that slices nest."""
    if event["ph"] == "M":
        return event
    start = round((event["ts"] + base) * 1000)
    times: Event = {"ts": start / 1000}
    if "dur" in event:
        times["dur"] = (round((event["ts"] + event["dur"] + base) * 1000) - start) / 1000
    return {**event, **times}


# -- causes -----------------------------------------------------------------------------------------------


def _late_rank(p: Program) -> None:
    p.train, p.late = True, p.rng.randrange(p.ranks)
    if p.way % 2:  # the host of one rank is slower than its device
        p.amount = p.rng.uniform(1.4, 2.5) * 2 / (p.op_us / _mean(p))
    else:
        p.amount = p.rng.uniform(1.25, 2.0)


def _mean(p: Program) -> float:
    return sum(op.us for op in p.layers[0]) / len(p.layers[0])


def _slow_loader(p: Program) -> None:
    p.sync_steps = p.rng.random() < 0.5
    p.amount = p.rng.uniform(0.4, 1.5) + (0.0 if p.sync_steps else 1.0)


def _late_launches(p: Program) -> None:
    p.amount = p.rng.uniform(1.5, 3.0) * (2 if p.train else 1) / (p.op_us / _mean(p))


def _blocking_copies(p: Program) -> None:
    p.amount = p.rng.uniform(0.5, 1.5) * step_us(p) / len(p.layers)


def _first_use(p: Program) -> None:
    p.amount = p.rng.uniform(0.15, 0.6) * step_us(p) + step_us(p) / len(p.layers)


def _stall(p: Program) -> None:
    p.amount = p.rng.uniform(0.6, 3.0)


def _exposed(p: Program) -> None:
    p.amount = p.rng.uniform(0.8, 2.5)


def _copies(p: Program) -> None:
    p.amount = p.rng.uniform(0.6, 1.5)


def _heavy(p: Program) -> None:
    op = p.layers[0][p.rng.randrange(len(p.layers[0]))]
    p.chosen = op.kernel
    others = sum(one.us for one in p.layers[0]) - op.us
    op.us = others * p.rng.uniform(3.0, 6.0)


def _uneven(p: Program) -> None:
    op = p.layers[0][p.rng.randrange(len(p.layers[0]))]
    op.us = max(op.us, 0.8 * max(one.us for one in p.layers[0]))
    p.chosen, p.amount = op.kernel, p.rng.uniform(5.0, 9.0)


def _item(p: Program) -> None:
    p.amount = p.rng.uniform(0.3, 1.0)
    p.train = False
    for op in p.layers[0]:
        op.us *= 0.35
    p.op_us *= 0.9
    p.load_us = 0.01 * step_us(p)


def _clock(p: Program) -> None:
    p.amount = p.rng.uniform(1.25, 2.0)


def _tiny(p: Program) -> None:
    p.call_us, p.op_us = p.rng.uniform(4, 8), p.rng.uniform(3, 12)
    for op in p.layers[0]:
        op.us = p.rng.uniform(1.2, 3.5)
    p.load_us, p.train = 20, False
    p.layers = [p.layers[0]] * 12


def _lost(p: Program) -> None:
    p.amount = p.rng.uniform(0.1, 0.4)


def _clean(p: Program) -> None:
    p.sync_steps = p.rng.random() < 0.3 and step_us(p) > 15_000


CAUSES: dict[str, Callable[[Program], None]] = {
    "late-rank": _late_rank,
    "slow-loader": _slow_loader,
    "late-launches": _late_launches,
    "blocking-copies": _blocking_copies,
    "first-use": _first_use,
    "recompilation": _stall,
    "gc-step": _stall,
    "lock-step": _stall,
    "exposed-communication": _exposed,
    "copies": _copies,
    "heavy-kernel": _heavy,
    "uneven-kernel": _uneven,
    "item": _item,
    "clock-drop": _clock,
    "tiny-kernels": _tiny,
    "lost-kernels": _lost,
    "clean": _clean,
}
TRAINING = {"late-rank", "exposed-communication"}
SPREAD = {"exposed-communication", "clean", "late-launches", "slow-loader", "uneven-kernel"}
"""Causes that all ranks may have, in the second family."""
NAMES: dict[str, frozenset[str]] = {
    "late-rank": frozenset({"rank-imbalance"}),
    "slow-loader": frozenset({"dataloader"}),
    "late-launches": frozenset({"overhead-bound", "launch-gaps", "host-pause"}),
    "blocking-copies": frozenset({"transfer-bound"}),
    "first-use": frozenset({"first-use"}),
    "recompilation": frozenset({"recompiled"}),
    "gc-step": frozenset({"step-gap"}),
    "lock-step": frozenset({"step-gap"}),
    "exposed-communication": frozenset({"communication"}),
    "copies": frozenset({"copies"}),
    "heavy-kernel": frozenset({"device-hotspot"}),
    "uneven-kernel": frozenset({"uneven-kernel"}),
    "item": frozenset({"sync-in-loop"}),
    "clock-drop": frozenset({"clock-drop"}),
    "tiny-kernels": frozenset({"short-kernels"}),
    "lost-kernels": frozenset({"lost-kernels"}),
    "clean": frozenset(),
}
"""The rules of which the first line must be one."""
