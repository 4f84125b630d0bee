"""Sums of times of centuries: exact, or at the limit of int64; never wrapped around."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import thinned
from tests.events import Event, complete, write_events
from tests.modules import tree_of
from tests.sambatune import write_report
from tests.tui.small_file import small_file
from tracelane.core.base.arrays import LEAST, MOST, add_at, added_up, sum_of, sums_between
from tracelane.core.demo.trace import write_demo
from tracelane.core.read.columns import TIME_LIMIT
from tracelane.core.tables.analysis import Analysis
from tracelane.core.tables.registry import ANALYSES
from tracelane.tui.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("core/tables", "core/trace", "core/logs", "core/store")
GROUPS = ROOT / "core/query/groups.py"
FLOATS = {
    ("core/query/groups.py", "reduceat"),  # means and deviations
    ("core/tables/copies.py", "sum"),
    ("core/logs/series.py", "sum"),
    ("core/logs/telemetry_tables.py", "sum"),
    ("core/logs/correlation.py", "sum"),
}
"""Who adds up floats."""
PIECES = {
    ("core/tables/device_state.py", "at"),  # of a device's time, each moment once
    ("core/tables/idle.py", "at"),  # likewise
    ("core/tables/op_events.py", "at"),  # counts
    ("core/tables/findings/causes.py", "sum"),  # a few claims, as Python integers
    ("core/tables/step_choice.py", "sum"),  # counts
    ("core/tables/untrusted.py", "sum"),  # counts
    ("core/tables/diff.py", "sum"),  # two changes, each of numbers that are not negative
}
RUNTIME = {"cat": "cuda_runtime"}
BY_LIMITS = {"kernel_wait_ns", "other_ns", "host_wait_ns"}
"""Columns whose rows are chosen by a number of ns: they do not grow with the times."""


# -- sums ---------------------------------------------------------------------------------------------------


def within(value: int) -> int:
    return max(LEAST, min(MOST, value))


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_sums_equal_python_s(size: int) -> None:
    """Sums of numbers of any size are Python's, or at the limit that these are beyond."""
    chance = np.random.default_rng(size)
    for top in (5, 1 << 31, 1 << 32, 1 << 53, TIME_LIMIT, MOST):
        values = chance.integers(-top - 1, top, size, endpoint=True)
        for sample in (values, np.abs(values // 2), np.full(size, top), np.full(size, -top - 1)):
            exact = sample.tolist()
            assert sum_of(sample) == sum_of(exact) == within(sum(exact))
            begins = np.unique(chance.integers(0, size, 3) * (np.arange(3) > 0))
            ends = [*begins[1:].tolist(), size]
            sums = [within(sum(exact[low:high])) for low, high in zip(begins.tolist(), ends)]
            assert added_up(sample, begins).tolist() == sums
            assert sums_between(sample, begins, np.array(ends)).tolist() == sums
            at = chance.integers(0, 3, size)
            added = np.zeros(4, np.int64)
            add_at(added, at, sample)
            assert added.tolist() == [within(sum(np.array(exact, object)[at == n])) for n in range(4)]
            add_at(added, at, np.maximum(sample, 0))
            assert min(added) >= LEAST and (not (sample >= 0).all() or min(added) >= 0)
    assert sum_of(np.zeros(0, np.int64)) == sum_of([]) == 0


def _raw_sums(path: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, of = node.func.attr, node.func.value
            if name == "sum" or (
                name in ("at", "reduceat") and getattr(of, "attr", "") in ("add", "subtract")
            ):
                yield name
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "sum" and "_ns" in ast.unparse(node):
            yield "sum"


def test_nobody_adds_up_without_a_limit() -> None:
    """In the rooms that add up times, `sum_of`, `added_up` and `add_at` do so; the exceptions are listed."""
    raw = {
        (path.relative_to(ROOT).as_posix(), name)
        for room in ROOMS
        for path in (GROUPS, *(ROOT / room).rglob("*.py"))
        for name in _raw_sums(path)
    }
    assert raw == FLOATS | PIECES


# -- tables -------------------------------------------------------------------------------------------------


def nanoseconds(value: Any) -> int:
    return int(Decimal(str(value)) * 1000)


def stretched(path: Path) -> int:
    """Write beside a trace one over all of time, `long.json`: each time so many times as far from the middle.
    Return how many.
    """
    document = json.loads(path.read_bytes(), parse_float=Decimal)
    events = document["traceEvents"] if isinstance(document, dict) else document
    timed = [event for event in events if "ts" in event and event["ph"] != "M"]
    times = [(nanoseconds(event["ts"]), nanoseconds(event.get("dur", 0))) for event in timed]
    first, last = min(start for start, _ in times), max(start + length for start, length in times)
    factor, middle = 2 * TIME_LIMIT // (last - first), (first + last) // 2
    for event, (start, length) in zip(timed, times):
        event["ts"] = f"{(start - middle) * factor}e-3"
        if "dur" in event:
            event["dur"] = f"{length * factor}e-3"
    facts = {"distributedInfo": document.get("distributedInfo", {})} if isinstance(document, dict) else {}
    text = json.dumps({**facts, "traceEvents": events}, default=float)
    path.with_name("long.json").write_text(text)
    return factor


def write_crowd(folder: Path) -> Path:
    """Write a trace whose threads, steps, devices and streams all run at a time, each most of the time."""
    events: list[Event] = []
    for pid, tid, step in product((1, 2), (1, 2, 3), range(3)):
        at, number = 1000 * step + 10 * tid, 100 * pid + 10 * tid + step
        events.append(complete(at, 900, f"ProfilerStep#{step}", pid=pid, tid=tid, cat="user_annotation"))
        events.append(complete(at + 2, 890, "aten::mm", pid=pid, tid=tid, args={"External id": number}))
        args = {"correlation": number, "stream": tid, "device": pid, "External id": number, "bytes": 1 << 61}
        events.append(complete(at + 3, 880, "cudaLaunchKernel", pid=pid, tid=tid, args=args) | RUNTIME)
        for name, category in (
            ("gemm", "kernel"),
            ("nccl_AllReduce", "kernel"),
            ("Memcpy HtoD", "gpu_memcpy"),
        ):
            lane = {"pid": 10 + pid, "tid": f"{category} {name} {tid}", "cat": category}
            events.append(complete(at + 20, 870, name, args=args) | lane)
        memory = {"Addr": number, "Bytes": 1 << 62, "Device Type": 1, "Device Id": 0}
        instant = {"ph": "i", "name": "[memory]", "pid": pid, "tid": tid, "ts": at + 5, "args": memory}
        events.append(instant)
    return write_events(folder / "crowd.json", events)


def forms(analysis: Analysis) -> Iterator[list[str]]:
    """Yield the options that each form of an analysis has."""
    yield []
    for option in analysis.options:
        name = f"--{option.name.replace('_', '-')}"
        if option.choices:
            yield from ([name, choice] for choice in option.choices[1:])
        elif option.default is False:
            yield [name]


def columns(answer: Any) -> Iterator[tuple[str, list[int | float]]]:
    """Yield (table and column, ascending) of all numbers in the tables of JSON."""
    for name, table in answer["tables"].items():
        for column in table["columns"]:
            values = [row[column["name"]] for row in table["rows"]]
            yield (
                f"{name}.{column['name']}",
                sorted(value for value in values if isinstance(value, (int, float)) and value is not True),
            )


def _checked(short: Any, long: Any, factor: int) -> Iterator[str]:
    """Yield what is wrong with the numbers of a stretched trace, beside those of the trace."""
    before = dict(columns(short))
    for name, values in columns(long):
        was, key = before[name], name.partition(".")[2]
        if any(isinstance(value, int) and not LEAST <= value <= MOST for value in values):
            yield f"{name}: {values} is beyond int64"
        if key != "parent" and values and values[0] < 0 and not (was and was[0] < 0):
            yield f"{name}: {was} became {values}"
        if key.endswith("_ns") and key not in BY_LIMITS and len(was) == len(values):
            for value, one in zip(values, was):
                expected = min(one * factor, MOST)
                if one > 1000 and abs(value - expected) > expected / 1000:
                    yield f"{name}: {value} instead of {expected}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", thinned(["crowd", "demo", "report", "every phase"], 2))
def test_totals_of_stretched_traces(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a trace over all of time each table has the numbers of the trace itself, so many times as great, or
    the limit.
    """
    make = {
        "demo": lambda: write_demo(tmp_path)[0],
        "report": lambda: write_report(tmp_path),
        "every phase": lambda: small_file(tmp_path),
        "crowd": lambda: write_crowd(tmp_path),
    }[kind]
    path = make()
    factor = stretched(path)
    wrong, answers = [], 0
    for command in ([analysis.name, *form] for analysis in ANALYSES for form in forms(analysis)):
        shapes = []
        for file in (path, path.with_name("long.json")):
            name, *options = command
            code = main([name, str(file), *options, "--json", "--index-dir", str(tmp_path / "index")])
            out, err = capsys.readouterr()
            assert "should not have happened" not in err, (command, err)
            shapes.append(json.loads(out) if out else None)
            assert code in (0, 1, 2, 64), (command, code)
        if all(shapes):
            answers += 1
            wrong += [f"{' '.join(command)}: {what}" for what in _checked(*shapes, factor)]
    assert not wrong, "\n".join(wrong[:20])
    assert answers > len(ANALYSES)
