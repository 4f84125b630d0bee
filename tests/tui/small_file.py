"""A small trace file with real arguments, for tests that read it from disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LONG_NAME = "void at::native::vectorized_kernel<4, " + "at::native::Functor<float>, " * 40 + ">(int)"


def events() -> list[dict[str, Any]]:
    """Return two iterations of host thread and stream, a counter, an instant, an unclosed begin."""
    trace_events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "aiu"}},
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "AIU 0"}},
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": 7, "args": {"name": "main"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 1, "args": {"name": "Stream 1"}},
    ]
    for step in range(2):
        at = 1000 + 100 * step
        flow = {"cat": "ac2g", "name": "ac2g", "id": 5 + step}
        trace_events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 7, "tid": 7}
            | {"ts": at, "dur": 100},
            {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 7, "tid": 7, "ts": at + 10, "dur": 60}
            | {"args": {"External id": 3 + step, "Input Dims": [[8, 16], [16, 4], []], "Ev Idx": step}},
            {"ph": "X", "cat": "cuda_runtime", "name": "launch", "pid": 7, "tid": 7, "ts": at + 40, "dur": 10}
            | {"args": {"correlation": 5 + step}},
            {"ph": "s", "pid": 7, "tid": 7, "ts": at + 40} | flow,
            {"ph": "f", "bp": "e", "pid": 0, "tid": 1, "ts": at + 60} | flow,
            {"ph": "X", "cat": "kernel", "name": LONG_NAME if step else "  ", "pid": 0, "tid": 1}
            | {"ts": at + 60, "dur": 30.5, "args": {"stream": 1, "correlation": 5 + step}},
            {"ph": "C", "name": "power", "pid": 0, "tid": 0, "ts": at, "args": {"W": 20.5 + step}},
        ]
    trace_events.append(
        {"ph": "i", "name": "mark\x1b[31m", "pid": 7, "tid": 7, "ts": 1055, "s": "t", "args": {"why": "x"}}
    )
    trace_events.append({"ph": "B", "name": "open", "cat": "cpu_op", "pid": 7, "tid": 8, "ts": 1100})
    return trace_events


LAUNCH = next(n for n, event in enumerate(events()) if event["name"] == "launch")
"""The ordinal of the first launch."""


def small_file(folder: Path) -> Path:
    """Write the trace and return its path."""
    path = folder / "small.json"
    path.write_text(
        json.dumps({"baseTimeNanoseconds": 1_700_000_000_000_000_000, "traceEvents": events()}),
        encoding="utf-8",
    )
    return path
