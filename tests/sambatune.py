"""A report as SambaTune's stack tracing is described: the run of a model, a row per hyperfunction below."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.events import Event, complete, metadata

HYPERFUNCTIONS = ("hf_embedding", "hf_attention", "hf_mlp")
HYPERSECTIONS = ("hs_forward", "hs_backward")
CNAMES = {"hs_forward": "good", "hs_backward": "rail_load"}
RUNS = 2
"""Each run of the model calls every hyperfunction once forward and once backward."""


def section_calls() -> list[tuple[int, str, str, float, float, dict[str, Any]]]:
    """Return (id, hyperfunction, hypersection, begin and length in µs, arguments) of all section calls."""
    calls = []
    at = 100.0
    for run in range(RUNS):
        order = [(name, "hs_forward") for name in HYPERFUNCTIONS]
        order += [(name, "hs_backward") for name in reversed(HYPERFUNCTIONS)]
        for number, (name, part) in enumerate(order):
            length = 10.0 * (number + 1) + run
            arguments = {
                "section id": number,
                "hypersection": part,
                "estimated latency (us)": 10.0 * (number + 1),
                "measured latency (us)": length,
                "Tflop": 0.5 * (number + 1),
                "PMUs": 100 + number,
                "PCUs": 200,
                "bandwidth": {"DDR (GB/s)": 150.5, "PCIe (GB/s)": 12},
                "IR": f"%{number} = section()",
            }
            calls.append((number, name, part, at, length, arguments))
            at += length + 2
    return calls


def report(coloured: bool = True, named: bool = True) -> list[Event]:
    """Return the events: hypersections by colour, by argument, or both."""
    calls = section_calls()
    lanes = ("RUN", *HYPERFUNCTIONS)
    events = [metadata("thread_name", "model", tid, name=lane) for tid, lane in enumerate(lanes)]
    for call, name, part, at, length, arguments in calls:
        args = (
            arguments if named else {key: value for key, value in arguments.items() if key != "hypersection"}
        )
        for tid in (0, lanes.index(name)):
            event = complete(at, length, f"section_{call}", pid="model", tid=tid, args=args)
            event.pop("cat", None)
            events.append(event | ({"cname": CNAMES[part]} if coloured else {}))
    return events


def write_report(folder: Path, **how: bool) -> Path:
    """Write a report and return its path."""
    path = folder / "bert_chrome_tracing_report.json"
    path.write_text(json.dumps(report(**how)), encoding="utf-8")
    return path
