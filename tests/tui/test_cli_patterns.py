"""The patterns of a reading guide, each on a trace that has it and on one that nearly has it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import tracelane
from tests.corpus import CORPUS, needs_corpus
from tests.events import Event, complete, flow, metadata
from tests.json_tables import command_json
from tracelane.tui.cli.main import main

CASES = CORPUS.parent / "cases" / "cheat"
GEMM, ADD = "ampere_bf16_s16816gemm_bf16_128x128_tn", "void at::native::vectorized_elementwise_kernel<4>"
BUFFER = "Activity Buffer Request"
NAMED = {
    # A file of cases/cheat: the rules it must have with the number of steps (None: any), those it must not.
    "P_overhead": ({"overhead-bound": (6, 6)}, {"device-bound"}),
    "P_compute": ({"device-bound": (8, 8)}, {"overhead-bound", "device-idle"}),
    "P_hotspot": ({"device-hotspot": (6, 6)}, set()),
    "N_hotspot": ({}, {"device-hotspot", "host-hotspot"}),
    "P_dtod": ({"hidden-copies": (6, 6)}, set()),
    "N_dtod": ({}, {"hidden-copies"}),
    "P_bufreq": ({"profiler": None, "device-idle": None, "first-kernel": (1, 3)}, {"device-clock"}),
    "P_gap_once": ({"step-gap": (1, 8), "sync": (1, 8)}, {"device-bound"}),
    "P_uneven3": ({"uneven-kernel": (1, 3)}, set()),
    "N_uneven20": ({}, {"uneven-kernel"}),
    "P_bmm": ({"fused-ops": (6, 6)}, set()),
    "N_bmm": ({}, {"fused-ops"}),
    "P_graphbreak_compiledfunction_only": ({"graph-breaks": (4, 4)}, {"device-hotspot"}),
    "P_endsync": ({"sync": (0, 3), "overhead-bound": (3, 3)}, set()),
    "N_endsync": ({}, {"sync"}),
    "P_coldstart": ({"cold-start": (1, 3)}, set()),
    "N_coldstart": ({}, {"cold-start", "late-first-op"}),
    "G_guide64_cold": (
        {
            "overhead-bound": (3, 3),
            "cold-start": (1, 3),
            "first-kernel": (1, 3),
            "occupancy-query": (3, 3),
            "profiler": None,
            "late-first-op": (1, 3),
        },
        {"device-clock", "device-bound"},
    ),
    "G_guide64_cold_nobuf": (
        {"overhead-bound": (3, 3), "cold-start": (1, 3), "first-kernel": (1, 3), "occupancy-query": (3, 3)},
        {"device-clock", "device-bound", "profiler"},
    ),
}


@dataclass
class Recording:
    """Steps of a model written one after another as PyTorch's profiler would; times in µs."""

    events: list[Event] = field(default_factory=lambda: [metadata("process_labels", 0, labels="GPU 0")])
    clock: float = 1000
    free: float = 0  # when the device's stream is done
    number: int = 100

    def op(self, name: str, dur: float, ts: float | None = None, cat: str = "cpu_op") -> None:
        """Write a slice of the host at a time, or at the clock, which it then moves on."""
        self.events.append(complete(self.clock if ts is None else ts, dur, name, cat, pid=1, tid=1))
        if ts is None:
            self.clock += dur

    def launch(
        self, work: float, name: str = GEMM, cat: str = "kernel", delay: float = 3, **args: Any
    ) -> None:
        """Write a launch of 5 µs and what it launches, which starts when the stream is free."""
        self.number += 1
        call = {"correlation": self.number}
        self.events.append(
            complete(self.clock, 5, "cudaLaunchKernel", "cuda_runtime", pid=1, tid=1, args=call)
        )
        start = max(self.free, self.clock + 5 + delay)
        facts = {"device": 0, "stream": 7, "grid": [64, 1, 1], "block": [256, 1, 1], **call, **args}
        self.events.append(complete(start, work, name, cat, pid=0, tid=7, args=facts))
        self.events.append(flow("s", self.clock, self.number, pid=1, tid=1))
        self.events.append(flow("f", start, self.number, pid=0, tid=7, bp="e"))
        self.free = start + work
        self.clock += 5

    def wait(self, until: float | None = None) -> None:
        """Write a synchronisation up to a time, or until the device is done."""
        end = max(self.clock + 1, self.free + 2 if until is None else until)
        self.op("cudaDeviceSynchronize", end - self.clock, cat="cuda_runtime")

    def step(self, number: int, since: float) -> None:
        """Write the mark of a step from a time to the clock."""
        self.op(f"ProfilerStep#{number}", self.clock - since, since, "user_annotation")
        self.clock += 2


def matmuls(
    works: Sequence[float],
    host: float = 30,
    add: float = 20,
    first: float = 0,
    sync: bool = False,
    outer: str = "aten::matmul",
    inner: str = "aten::mm",
    copy: float = 0,
    delay: float = 3,
    pause: Sequence[float] = (),
) -> Recording:
    """Return steps of a product and a sum: the time of each product on the device, and what differs."""
    tape = Recording()
    for number, work in enumerate(works):
        since = tape.clock
        tape.clock += first if number == 0 else 0
        tape.op(outer, host, tape.clock)
        tape.op(inner, host - 2, tape.clock + 1)
        end = tape.clock + host
        tape.clock += 3
        if copy:
            tape.launch(copy, "Memcpy DtoD (Device -> Device)", "gpu_memcpy")
        tape.launch(work, delay=delay if number == 0 else 3)
        tape.clock = end
        if pause:
            tape.free = max(tape.free, tape.clock) + pause[number]
        tape.op("aten::add", host * 2 / 3, tape.clock)
        end = tape.clock + host * 2 / 3
        tape.launch(add, ADD)
        tape.clock = max(end, tape.clock)
        if sync:
            tape.wait()
        tape.step(number, since)
    return tape


def buffered(tape: Recording, ts: float, dur: float) -> Recording:
    """Return the recording with a buffer request of the profiler."""
    tape.events.append(complete(ts, dur, BUFFER, "overhead", pid=1, tid=0))
    return tape


def trailing(tape: Recording, idle: float) -> Recording:
    """Return the recording with a synchronisation that outlasts the device by so much."""
    tape.wait(max(tape.clock, tape.free) + idle)
    return tape


def functions(count: int, steps: int, marked: bool) -> Recording:
    """Return training steps of so many compiled functions forward, and as many backward."""
    tape = Recording()
    for number in range(steps):
        since = tape.clock
        for name in ("CompiledFunction", "CompiledFunctionBackward"):
            for _ in range(count):
                tape.op(name, 40, tape.clock)
                tape.clock += 5
                tape.launch(50, "triton_poi_fused_0")
                tape.clock += 60
        if marked:
            tape.step(number, since)
    return tape


def copied(copies: float, work: float, steps: int = 4) -> Recording:
    """Return steps of a blocking copy to the device and operators that take so long, with a short kernel."""
    tape = Recording()
    for number in range(steps):
        since = tape.clock
        for name, inset in (("aten::to", 0), ("aten::_to_copy", 1), ("aten::copy_", 2)):
            tape.op(name, copies - 2 * inset, tape.clock + inset)
        tape.op("cudaMemcpyAsync", 4, tape.clock + 3, "cuda_runtime")
        tape.op("cudaStreamSynchronize", copies - 12, tape.clock + 8, "cuda_runtime")
        tape.clock += copies
        tape.op("aten::relu", work, tape.clock)
        tape.clock += 2
        tape.launch(10)
        tape.clock += work
        tape.step(number, since)
    return tape


PATTERNS = {
    "overhead": ("overhead-bound", (5, 5), matmuls([4] * 5, host=150), matmuls([900] * 5, host=150)),
    "overhead, work late in one burst": (
        *("overhead-bound", (3, 3)),
        trailing(matmuls([8, 8, 8], add=2, delay=1900), 10),
        trailing(matmuls([800, 800, 800], delay=1900), 10),
    ),
    "compute": ("device-bound", (7, 7), matmuls([1500] * 7), matmuls([15] * 7)),
    "a burst is not compute-bound": (
        *("device-bound", (6, 6)),
        matmuls([700] * 6),
        matmuls([20] * 6, delay=4000),
    ),
    "hotspot": ("device-hotspot", (9, 9), matmuls([300] * 9, add=40), matmuls([300] * 9, add=299)),
    "hidden copy": (
        *("hidden-copies", (11, 11)),
        matmuls([400] * 11, inner="aten::addmm", copy=25),
        matmuls([400] * 11, inner="aten::addmm"),
    ),
    "buffer request": (
        *("profiler", (5, 5)),
        buffered(matmuls([12] * 5, delay=3100), 1020, 3000),
        matmuls([12] * 5, delay=3100),
    ),
    "first launch": ("first-kernel", (1, 4), matmuls([50] * 4, delay=1700), matmuls([50] * 4, delay=60)),
    "gap once": (
        *("step-gap", (1, 12)),
        matmuls([90] * 12, sync=True, pause=[0] * 7 + [800] + [0] * 4),
        matmuls([90] * 12, sync=True, pause=[800] * 12),
    ),
    "uneven": (
        *("uneven-kernel", (1, 4)),
        matmuls([310, 300, 905, 305], sync=True),
        matmuls([310, 300, 405, 305], sync=True),
    ),
    "uneven, most slow": (
        *("uneven-kernel", (2, 3)),
        matmuls([300, 900, 880], sync=True),
        matmuls([300, 320, 310], sync=True),
    ),
    "bmm": ("fused-ops", (3, 3), matmuls([70] * 3, inner="aten::bmm"), matmuls([70] * 3)),
    "addmm": (
        *("fused-ops", (3, 3)),
        matmuls([70] * 3, outer="aten::linear", inner="aten::addmm"),
        matmuls([70] * 3, outer="my_module", inner="aten::bmm"),
    ),
    "graph breaks": ("graph-breaks", (5, 5), functions(3, 5, True), functions(1, 5, True)),
    "graph breaks without steps": ("graph-breaks", (0, 0), functions(2, 6, False), functions(1, 6, False)),
    "synchronisation at the end": (
        *("sync", (0, 4)),
        trailing(matmuls([20] * 4), 900),
        trailing(matmuls([800] * 4), 5),
    ),
    "cold start": ("cold-start", (1, 5), matmuls([30] * 5, first=190), matmuls([30] * 5, first=20)),
    "late first operator": (
        "late-first-op",
        (1, 5),
        matmuls([30] * 5, first=190),
        matmuls([30] * 5, first=4),
    ),
    "transfers": ("transfer-bound", (4, 4), copied(900, 300), copied(300, 900)),
}


UNITS = {
    # What the same calls are called on devices of other makers.
    "MTIA": {"cudaDeviceSynchronize": "mtiaDeviceSynchronize", "cuda_runtime": "mtia_runtime"},
    "AIU": {
        "cudaLaunchKernel": "aiuLaunchControlBlocks",
        "cudaDeviceSynchronize": "aiuScheduleWait",
        "cudaStreamSynchronize": "aiuScheduleWait",
        "cuda_runtime": "privateuse1_runtime",
    },
}


def renamed(tape: Recording, names: dict[str, str]) -> Recording:
    """Return a recording with other names of calls, kernels and categories."""
    events = [
        event
        | {"name": names.get(event["name"], event["name"])}
        | ({"cat": names.get(event["cat"], event["cat"])} if "cat" in event else {})
        for event in tape.events
    ]
    return Recording(events)


def annotated(tape: Recording) -> Recording:
    """Return the recording with each step drawn over the device, too."""
    steps = [event for event in tape.events if str(event.get("name", "")).startswith("ProfilerStep")]
    drawn = [
        step | {"cat": "gpu_user_annotation", "pid": 0, "tid": 7, "ts": step["ts"] + 9} for step in steps
    ]
    return Recording([*tape.events, *drawn])


def on_two_threads(tape: Recording) -> Recording:
    """Return the recording with each step marked on two threads."""
    steps = [event for event in tape.events if str(event.get("name", "")).startswith("ProfilerStep")]
    return Recording([*tape.events, *(step | {"tid": 2} for step in steps)])


FORMS = {
    "annotated": annotated,
    "on two threads": on_two_threads,
    "as iterations": lambda tape: renamed(tape, {f"ProfilerStep#{n}": f"iteration_{n}" for n in range(20)}),
}


def _findings(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, dict[str, Any]]:
    answer = command_json(capsys, "findings", path, "--index-dir", path.parent / "index", *more)
    return {row["rule"]: row for row in answer["findings"]}


def _written(tape: Recording, path: Path) -> Path:
    path.write_text(json.dumps({"traceEvents": tape.events}))
    return path


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("name", NAMED)
def test_files_of_the_guide(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that has a pattern names it in as many steps as it is in; one that nearly has it does not."""
    (tmp_path / "trace.json").write_bytes((CASES / f"{name}.json").read_bytes())
    rows = _findings(tmp_path / "trace.json", capsys)
    present, absent = NAMED[name]
    for rule, steps in present.items():
        assert rule in rows, (rule, sorted(rows))
        assert rows[rule]["evidence"]
        if steps is not None:
            assert (rows[rule]["in_steps"], rows[rule]["of_steps"]) == steps, rule
    assert not absent & set(rows)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
def test_other_numbers(pattern: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With other names, counts and times a pattern is named in the steps that have it, nothing like it is."""
    rule, steps, having, lacking = PATTERNS[pattern]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    rows = _findings(_written(having, tmp_path / "a" / "trace.json"), capsys)
    assert rule in rows, sorted(rows)
    assert (rows[rule]["in_steps"], rows[rule]["of_steps"]) == steps
    assert "device-clock" not in rows
    assert rule not in _findings(_written(lacking, tmp_path / "b" / "trace.json"), capsys)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "pattern", ["overhead", "compute", "hidden copy", "gap once", "uneven", "graph breaks"]
)
def test_other_forms(pattern: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """How a trace is written changes neither what is named nor the number of steps."""
    rule, steps, having, lacking = PATTERNS[pattern]
    (tmp_path / "lacking").mkdir()
    rows = _findings(_written(FORMS[form](having), tmp_path / "trace.json"), capsys)
    assert (rows[rule]["in_steps"], rows[rule]["of_steps"]) == steps
    assert rule not in _findings(_written(FORMS[form](lacking), tmp_path / "lacking" / "trace.json"), capsys)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("pattern", ["synchronisation at the end", "transfers", "hidden copy", "gap once"])
def test_other_devices(pattern: str, unit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What waits and copies is known by the names of each maker's runtime."""
    rule, steps, having, lacking = PATTERNS[pattern]
    (tmp_path / "lacking").mkdir()
    rows = _findings(_written(renamed(having, UNITS[unit]), tmp_path / "trace.json"), capsys)
    assert (rows[rule]["in_steps"], rows[rule]["of_steps"]) == steps
    lacks = _findings(_written(renamed(lacking, UNITS[unit]), tmp_path / "lacking" / "trace.json"), capsys)
    assert rule not in lacks


def test_which_step_has_the_gap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A gap in one step names the step and how long the device stands still."""
    tape = matmuls([90] * 9, sync=True, pause=[0] * 5 + [700] + [0] * 3)
    row = _findings(_written(tape, tmp_path / "trace.json"), capsys)["step-gap"]
    assert "step 5" in row["finding"]
    assert row["claimed_ns"] == pytest.approx(700_000, rel=0.05)


def test_the_first_offset_is_no_clock_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Work that begins after all of the host's is late, not by another clock; what runs before it is."""
    late = matmuls([20] * 3, delay=20_000)
    rows = _findings(_written(late, tmp_path / "late.json"), capsys)
    assert "first-kernel" in rows and "device-clock" not in rows
    early = matmuls([20] * 3, delay=-400)
    assert "device-clock" in _findings(_written(early, tmp_path / "early.json"), capsys)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["trace", "summary", "part"])
def test_compiled_slower_than_another_trace(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against an eager run compiled steps that take longer are named, whichever is the baseline."""
    compiled = _written(functions(1, 5, True), tmp_path / "compiled.json")
    eager = _written(matmuls([20] * 5, host=20), tmp_path / "eager.json")
    slower = _written(matmuls([20] * 5, host=400), tmp_path / "slower.json")
    baseline = str(eager)
    if form == "summary":
        assert main(["summary", str(eager), "--json", "--index-dir", str(tmp_path / "index")]) == 0
        baseline = str(tmp_path / "baseline.json")
        Path(baseline).write_text(capsys.readouterr().out)
    elif form == "part":
        baseline = f"{eager}:step=2"
    rows = _findings(compiled, capsys, "--baseline", baseline)
    assert (rows["compiled-slower"]["in_steps"], rows["compiled-slower"]["of_steps"]) == (5, 5)
    assert "compiled-slower" not in _findings(compiled, capsys, "--baseline", str(slower))
    assert "compiled-slower" in _findings(eager, capsys, "--baseline", str(compiled))
    assert "compiled-slower" not in _findings(compiled, capsys)


def test_baseline_in_python(tmp_path: Path) -> None:
    """From Python the baseline is another opened trace."""
    compiled = tracelane.open(str(_written(functions(1, 5, True), tmp_path / "compiled.json")))
    eager = tracelane.open(str(_written(matmuls([20] * 5, host=20), tmp_path / "eager.json")))
    assert "compiled-slower" in list(compiled.findings(baseline=eager)["rule"])
    assert "compiled-slower" not in list(compiled.findings()["rule"])


def test_baseline_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A baseline that cannot be read is a line of error."""
    trace = _written(matmuls([20] * 3), tmp_path / "trace.json")
    assert main(["findings", str(trace), "--baseline", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err
