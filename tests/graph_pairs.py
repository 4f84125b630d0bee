"""A trace that replays graphs and the traces of their captures, made with known owners."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.events import Event, complete, write_events

DEVICE_PID = 9
HOST = {"pid": 5, "tid": 5}


class Kernel(NamedTuple):
    """A kernel and who launches it."""

    name: str
    op: str = "aten::mm"
    dims: Any = ((32, 64), (64, 64))
    module: str = "Model_0"
    stream: int = 7
    node: int | None = None


MODEL = (
    Kernel("embed", "aten::embedding", ((1000, 64), (32,)), "Embedding_0"),
    *(
        Kernel(name, op, dims, f"Layer_{layer}")
        for layer in range(3)
        for name, op, dims in (
            ("gemm", "aten::mm", ((32, 64), (64, 64))),
            ("attention", "vllm::unified_attention", ((32, 64),)),
            ("norm", "aten::rms_norm", ((32, 64),)),
        )
    ),
    Kernel("[copy]", "aten::copy_", ((32, 64),), "Head_0"),
    Kernel("sample", "aten::argmax", ((32, 1000),), "Head_0"),
)
"""Twelve pieces of work; three layers launch the same kernels."""


def swapped(kernels: Sequence[Kernel], one: int, other: int) -> list[Kernel]:
    """Return the kernels, two in each other's place."""
    result = list(kernels)
    result[one], result[other] = result[other], result[one]
    return result


def capture_events(
    kernels: Sequence[Kernel],
    label: str = "capture_32_FULL",
    *,
    named: bool = True,
    calls: bool = True,
    graphs: Sequence[int] = (),
    at: int = 1000,
) -> list[Event]:
    """Return the events of a capture, each kernel's launch in an op in a module in `forward` of model.py;
    without the `calls` that begin and end it where these are not wanted. `graphs`: at which kernels another
    graph begins.
    """
    maker = "hip" if named else "cuda"
    events: list[Event] = []
    time = at + 20
    if calls:
        events.append(complete(time - 5, 1, f"{maker}StreamBeginCapture", "cuda_runtime", **HOST))
    for number, kernel in enumerate(kernels):
        if number in graphs:
            events.append(complete(time - 8, 1, f"{maker}StreamEndCapture", "cuda_runtime", **HOST))
            events.append(complete(time - 5, 1, f"{maker}StreamBeginCapture", "cuda_runtime", **HOST))
        frame = "model.py(12): forward"
        events.append(complete(time, 10, frame, "python_function", **HOST))
        events.append(complete(time + 1, 8, f"nn.Module: {kernel.module}", "python_function", **HOST))
        dims = {"Input Dims": kernel.dims, "Input type": ["c10::BFloat16"] * len(kernel.dims)}
        events.append(complete(time + 2, 6, kernel.op, "cpu_op", **HOST, args=dims))
        args: dict[str, Any] = {"correlation": 10_000 + at + number}
        is_copy = kernel.name == "[copy]"
        if named and not is_copy:
            args["kernel"] = kernel.name
        if kernel.node is not None:
            args["graph node id"] = kernel.node
        call = "MemcpyAsync" if is_copy else "LaunchKernel"
        events.append(complete(time + 3, 2, f"{maker}{call}", "cuda_runtime", **HOST, args=args))
        time += 20
    if calls:
        events.append(complete(time - 8, 1, f"{maker}StreamEndCapture", "cuda_runtime", **HOST))
    if label:
        events.insert(0, complete(at, time - at, label, "user_annotation", **HOST))
    return events


def replay_events(
    kernels: Sequence[Kernel], step: str = "execute_32_context_0(sq0)_generation_32(sq32)", *, number: int = 1
) -> list[Event]:
    """Return the events of a step that replays a graph; the kernels run one after another from `number` ms
    on. Their own graph's launch has the correlation id `number`.
    """
    at = 1000 * number
    args = {"correlation": number}
    events = [complete(at, 900, step, "user_annotation", **HOST)] if step else []
    events.append(complete(at + 10, 5, "hipGraphLaunch", "cuda_runtime", **HOST, args=args))
    for rank, kernel in enumerate(kernels):
        is_copy = kernel.name == "[copy]"
        name, category = ("Memcpy DtoD", "gpu_memcpy") if is_copy else (kernel.name, "kernel")
        own = {**args, "stream": kernel.stream, "device": 0}
        if kernel.node is not None:
            own["graph node id"] = kernel.node
        time = at + 20 + 10 * rank
        events.append(complete(time, 8, name, category, pid=DEVICE_PID, tid=kernel.stream, args=own))
    return events


def write_pair(
    folder: Path,
    replays: Sequence[Sequence[Event]],
    captures: dict[str, Sequence[Event]],
    details: Sequence[dict[str, Any]] = (),
) -> Path:
    """Write a trace of replays, and beside it its captures by file name; return the trace's path."""
    inside = folder / "capture_traces"
    inside.mkdir(parents=True)
    for name, events in captures.items():
        write_events(inside / name, events)
    if details:
        (inside / "execution_details.json").write_text(json.dumps(list(details)), encoding="utf-8")
    return write_events(folder / "trace.json", [one for events in replays for one in events])
