"""Programs in the words of several devices, and the forms in which a trace of them may come.

A pattern is written once, in µs; `Program` puts it into a dialect's names and joins, `FORMS` rewrite the
events without changing what happened.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.events import Event, complete, event, flow, metadata

HOST, DEVICE = 4711, 0
EPOCH_US = 1_780_611_618_134_227


@dataclass(frozen=True)
class Dialect:
    """What a vendor calls things, and how it joins a launch with its work."""

    label: str
    launch: str
    sync: str
    copy: str  # a call that returns when the copy is done
    within: str  # work that copies within the device
    gemm: str
    runtime: str = "cuda_runtime"
    joined_by: str = "correlation"


CUDA = Dialect(
    *("GPU 0", "cudaLaunchKernel", "cudaStreamSynchronize", "cudaMemcpy"),
    *("Memcpy DtoD (Device -> Device)", "ampere_sgemm_128x64_tn"),
)
HIP = Dialect(
    *("GPU 0", "hipExtModuleLaunchKernel", "hipDeviceSynchronize", "hipMemcpyWithStream"),
    *("CopyDeviceToDevice", "Cijk_Ailk_Bljk_SB_MT64x64x16_SN"),
    joined_by="flow",
)
DRIVER = Dialect(
    *("GPU 0", "cuLaunchKernelEx", "cuCtxSynchronize", "cuMemcpyHtoD_v2"),
    *("Memcpy DtoD (Device -> Device)", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n"),
    runtime="cuda_driver",
)
XPU = Dialect(
    *("XPU 0", "urEnqueueKernelLaunch", "urQueueFinish", "zeCommandListHostSynchronize"),
    *("zeCommandListAppendMemoryCopy(D2D)", "gemm_kernel"),
    runtime="xpu_runtime",
)
NPU = Dialect(
    *("NPU 0", "aclrtLaunchKernel", "aclrtSynchronizeStream", "aclrtMemcpy"),
    *("Memcpy DtoD (Device -> Device)", "MatMulV2"),
    runtime="npu_runtime",
)
MUSA = Dialect(
    *("MUSA 0", "muLaunchKernel", "musaDeviceSynchronize", "musaMemcpy"),
    *("Memcpy DtoD (Device -> Device)", "mublas_gemm_kernel"),
    runtime="musa_driver",
)
DIALECTS = {"cuda": CUDA, "hip": HIP, "driver": DRIVER, "xpu": XPU, "npu": NPU, "musa": MUSA}


@dataclass
class Program:
    """What host and device did, in one dialect."""

    dialect: Dialect = CUDA
    events: list[Event] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: count(1))

    def op(self, at: float, us: float, name: str = "aten::add", tid: int = 1, **args: Any) -> None:
        """An operator."""
        self.events.append(complete(at, us, name, "cpu_op", pid=HOST, tid=tid, args=args))

    def note(self, at: float, us: float, name: str, tid: int = 1) -> None:
        """An annotation."""
        self.events.append(complete(at, us, name, "user_annotation", pid=HOST, tid=tid))

    def step(self, number: int, at: float, us: float) -> None:
        """A step of the profiler."""
        self.note(at, us, f"ProfilerStep#{number}")

    def call(self, at: float, us: float, name: str, **args: Any) -> None:
        """A call of the runtime."""
        category = "overhead" if name == "Activity Buffer Request" else self.dialect.runtime
        self.events.append(complete(at, us, name, category, pid=HOST, tid=1, args=args))

    def sync(self, at: float, us: float) -> None:
        """A call that waits for the device."""
        self.call(at, us, self.dialect.sync)

    def work(
        self, start: float, us: float, name: str = "k", category: str = "kernel", stream: int = 7, **args: Any
    ) -> None:
        """Work of the device."""
        more = {"device": 0, "stream": stream, **args}
        self.events.append(complete(start, us, name, category, pid=DEVICE, tid=stream, args=more))

    def launch(
        self,
        at: float,
        call: float,
        start: float,
        us: float,
        name: str = "k",
        category: str = "kernel",
        **args: Any,
    ) -> None:
        """A launch call and what it launched."""
        number = next(self.numbers)
        if self.dialect.joined_by == "correlation":
            self.call(at, call, self.dialect.launch, correlation=number)
            self.work(start, us, name, category, correlation=number, **args)
            return
        self.call(at, call, self.dialect.launch)
        self.work(start, us, name, category, **args)
        stream = args.get("stream", 7)
        self.events += [
            flow("s", at, number, pid=HOST, tid=1),
            flow("f", start, number, bp="e", pid=DEVICE, tid=stream),
        ]

    @property
    def all_events(self) -> list[Event]:
        """The events with what names the device."""
        return [metadata("process_labels", DEVICE, labels=self.dialect.label), *self.events]


Events = list[Event]


def begins_and_ends(events: Sequence[Event]) -> Events:
    """Write the host's slices as pairs of B and E."""
    slices = [e for e in events if e["ph"] == "X" and e["pid"] == HOST]
    others = [e for e in events if not (e["ph"] == "X" and e["pid"] == HOST)]
    pairs: list[tuple[tuple[float, int, float], Event]] = []
    for number, one in enumerate(slices):
        start, end = one["ts"], one["ts"] + one["dur"]
        begin = {key: value for key, value in one.items() if key != "dur"} | {"ph": "B"}
        pairs.append(((start, 1, -one["dur"] - number * 1e-9), begin))
        pairs.append(
            ((end, 0, -start + number * 1e-9), {"ph": "E", "ts": end, "pid": one["pid"], "tid": one["tid"]})
        )
    return [*others, *(event for _, event in sorted(pairs, key=lambda pair: pair[0]))]


def shuffled(events: Sequence[Event]) -> Events:
    """Write the events in another order, as several threads of a profiler do."""
    return random.Random(3).sample(list(events), len(events))


def moved(events: Sequence[Event], by: int) -> Events:
    return [{**e, "ts": e["ts"] + by} if e["ph"] != "M" else e for e in events]


def since_1970(events: Sequence[Event]) -> Events:
    """Stamps as older profilers wrote them."""
    return moved(events, EPOCH_US)


def before_zero(events: Sequence[Event]) -> Events:
    """Stamps that count from somewhere in the middle."""
    return moved(events, -700)


def as_text(events: Sequence[Event]) -> Events:
    """Times as strings, pids too."""
    return [
        {**e, **{key: str(e[key]) for key in ("ts", "dur", "pid") if key in e and e["ph"] != "M"}}
        if e["ph"] in "Xsf"
        else {**e, "pid": str(e["pid"])}
        for e in events
    ]


def longer(events: Sequence[Event]) -> Events:
    """All of it a thousand times as long."""
    return [{**e, **{key: e[key] * 1000 for key in ("ts", "dur") if key in e}} for e in events]


def two_processes(events: Sequence[Event]) -> Events:
    """Two ranks that do the same, merged into one file: the same correlation ids and streams twice."""
    second = [
        {
            **e,
            "pid": e["pid"] + 10_000 if e["pid"] == HOST else 1,
            **({"ts": e["ts"] + 3} if e["ph"] != "M" else {}),
            **({"id": f"r1-{e['id']}"} if "id" in e else {}),
            **({"args": {**e["args"], "device": 1}} if "device" in e.get("args", {}) else {}),
            **({"args": {"labels": e["args"]["labels"].replace("0", "1")}} if e["ph"] == "M" else {}),
        }
        for e in events
    ]
    return [*events, *second]


Rewrite = Callable[[Sequence[Event]], Events]
FORMS: dict[str, Rewrite] = {
    "pairs": begins_and_ends,
    "shuffled": shuffled,
    "since 1970": since_1970,
    "before zero": before_zero,
    "as text": as_text,
    "thousandfold": longer,
    "two processes": two_processes,
}
__all__ = ["DIALECTS", "FORMS", "HOST", "Dialect", "Program", "event", "flow"]
