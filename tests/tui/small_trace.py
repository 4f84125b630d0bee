"""A small trace with everything that the viewer's tests need: nesting, steps, flows, counters, instants."""

from __future__ import annotations

from pathlib import Path

from tests.small_index import L, S, write_index
from tracelane.core.index.format import LaneKind
from tracelane.core.index.store import Index
from tracelane.core.trace import Trace

MS = 1_000_000
START = 5_000 * MS
BASE = 1_700_000_000_000_000_000
STEPS = 4


def small_trace(folder: Path) -> Trace:
    """Return four steps of 10 ms: each an op with two children, one launching a kernel 2 ms later.

    Ordinals: step k is 10 k, its op 10 k + 1, the op's children 10 k + 2 and 10 k + 3 (the launch), the
    kernel 10 k + 4.
    """
    host, device, flows = [], [], []
    for step in range(STEPS):
        at, first = START + step * 10 * MS, 10 * step
        host += [
            S(at, 10 * MS, f"ProfilerStep#{step}", "user_annotation", first),
            S(at + MS, 6 * MS, "aten::linear", "cpu_op", first + 1),
            S(at + 2 * MS, MS, "aten::t", "cpu_op", first + 2),
            S(at + 4 * MS, MS, "launchKernel", "cuda_runtime", first + 3, {"correlation": 100 + step}),
        ]
        name = "" if step == 3 else "/tmp/x/inductor-spyre/sdsc_fused_mm_0_434jgp19/bundle.mlir"
        device.append(S(at + 6 * MS, 3 * MS, name, "kernel", first + 4, {"correlation": 100 + step}))
        flows.append((first + 3, first + 4, "ac2g"))
    workers = [
        L(
            [S(START + n * MS, 20 * MS, "work", "cpu_op", 50 + n)],
            pid="7",
            tid=str(20 + n),
            name=f"worker {n}",
        )
        for n in range(3)
    ]
    write_index(
        folder,
        [
            L(host, pid="7", tid="7", name="main", process_name="python"),
            *workers,
            L(
                [],
                pid="7",
                tid='"power"',
                name="power",
                kind=LaneKind.COUNTER,
                series={"W": [(START + n * MS, float(n % 7)) for n in range(40)]},
            ),
            L(
                device,
                [(START + 15 * MS, "mark", "cpu_instant_event")],
                pid="0",
                tid="1",
                name="Stream 1",
                process_name="aiu",
                labels="AIU 0",
            ),
        ],
        flows=flows,
        manifest={"base_time_ns": BASE, "path": str(folder / "small.json")},
    )
    index = Index.open(folder)
    return Trace([index])
