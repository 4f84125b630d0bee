"""Small traces for the rules of findings: host and device events with times in µs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from tests.events import Event, arrow, complete, event, index_of, metadata
from tracelane.core.trace import Trace

HOST, DEVICE = 1, 0
MEMORY = 1_000_000
_NUMBERS = count(1)


def op(ts: float, dur: float, name: str = "aten::op", cat: str = "cpu_op", **args: Any) -> Event:
    """An operator of the host."""
    return complete(ts, dur, name, cat, pid=HOST, tid=1, args=args)


def note(ts: float, dur: float, name: str) -> Event:
    """An annotation."""
    return op(ts, dur, name, "user_annotation")


def step(number: int, ts: float, dur: float) -> Event:
    """A profiler's step."""
    return note(ts, dur, f"ProfilerStep#{number}")


def call(ts: float, dur: float, name: str, cat: str = "cuda_runtime", **args: Any) -> Event:
    """A runtime call."""
    return op(ts, dur, name, cat, **args)


def kernel(ts: float, dur: float, name: str = "k", cat: str = "kernel", **args: Any) -> Event:
    """Device work that nobody is known to have launched."""
    return complete(ts, dur, name, cat, pid=DEVICE, tid=7, args={"stream": 7, "device": 0, **args})


def launched(
    at: float, call_us: float, ts: float, dur: float, name: str = "k", cat: str = "kernel", **args: Any
) -> list[Event]:
    """A launch call and the work that it launched."""
    number = next(_NUMBERS)
    return [
        call(at, call_us, "cudaLaunchKernel", correlation=number),
        kernel(ts, dur, name, cat, correlation=number, **args),
    ]


def linked(first: float, second: float) -> list[Event]:
    """Two operators with a forward-backward flow from one to the other."""
    forward, backward = op(first, 1, "aten::mm"), op(second, 1, "MmBackward0")
    return [forward, backward, *arrow(5, forward, backward, "fwdbwd")]


def allocated(ts: float, size: int, total: int) -> Event:
    """A record of the GPU's allocator."""
    facts = {"Bytes": size, "Total Allocated": total, "Device Type": 1, "Device Id": 0, "Addr": int(ts) + 1}
    return event("i", ts, "[memory]", cat="cpu_instant_event", pid=HOST, tid=1, s="t", args=facts)


def trace_of(events: Sequence[Event], folder: Path) -> Trace:
    """The events as a trace with one GPU of MEMORY bytes."""
    labels = metadata("process_labels", DEVICE, labels="GPU 0")
    index = index_of([labels, *events], folder)
    index.manifest["envelope"] = {"deviceProperties": [{"id": 0, "totalGlobalMem": MEMORY}]}
    return Trace([index])
