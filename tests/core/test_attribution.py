"""Device work belongs to the step whose host window holds its launch."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CASES, CORPUS, needs_cases, needs_corpus, representative
from tests.events import complete, index_of
from tracelane.core import open_trace
from tracelane.core.tables.attribution import (
    StepRule,
    StepsOfWork,
    by_step,
    scope_of_step,
    steps_of_work,
    work_by_steps,
)
from tracelane.core.tables.instances import instances
from tracelane.core.tables.kernels import OUTSIDE, kernels
from tracelane.core.tables.metrics import metrics
from tracelane.core.tables.op_sums import work_positions
from tracelane.core.tables.scope import Attribute, Scope
from tracelane.core.tables.step_choice import Steps, find_steps
from tracelane.core.tables.step_spans import step_spans
from tracelane.core.tables.steps import steps
from tracelane.core.trace import Trace
from tracelane.tui.actions.view import first_session
from tracelane.tui.controllers.tables import scope_of


def attributed(trace: Trace) -> tuple[Steps, StepsOfWork]:
    """Return the steps of a trace's first source and the step of all its device work."""
    marks = find_steps(trace, 0)
    assert marks is not None
    return marks, steps_of_work(Scope(trace), marks, work_positions(trace.indexes[0]))


@needs_cases
def test_work_after_the_end_of_a_step_belongs_to_it(tmp_path: Path) -> None:
    """Kernels that run on into the next step, or after the last, belong whole to their launch's step."""
    trace = open_trace([CASES / "adversarial" / "steps_dev.json"], index_dir=tmp_path)
    _, work = attributed(trace)
    assert work.steps.tolist() == [0, 1, 2]
    assert trace.indexes[0].duration(work.positions).tolist() == [400_000] * 3
    assert work.rules.tolist() == [StepRule.LAUNCH] * 3
    trace.close()


@needs_cases
@pytest.mark.parametrize("name", ["steps_threads", "steps_nested_same"])
def test_a_step_marked_twice_is_one(name: str, tmp_path: Path) -> None:
    """Marks of one step on several threads, or one in the other, make three steps of 900 µs."""
    trace = open_trace([CASES / "adversarial" / f"{name}.json"], index_dir=tmp_path)
    marks = find_steps(trace, 0)
    assert marks is not None
    assert (marks.ends - marks.starts).tolist() == [900_000] * 3
    trace.close()


def test_without_a_launch_the_annotation_on_its_stream_tells(tmp_path: Path) -> None:
    """A kernel without a launch belongs to the step whose device annotation spans it, else by its start."""
    events = [complete(1000 * n, 1000, f"ProfilerStep#{n}", "user_annotation") for n in range(3)]
    events += [
        complete(1500 + 1000 * n, 900, f"ProfilerStep#{n}", "gpu_user_annotation", pid=0) for n in range(3)
    ]
    events += [complete(2600, 100, "in the annotation of 1", "kernel", pid=0)]
    events += [complete(2700, 100, "on another stream", "kernel", pid=0, tid=9)]
    events += [complete(9000, 100, "nowhere", "kernel", pid=0, tid=9)]
    trace = Trace([index_of(events, tmp_path)])
    _, work = attributed(trace)
    names = trace.indexes[0].strings(trace.indexes[0].column("slices.name")[work.positions])
    assert dict(zip(names, work.steps.tolist())) == {
        "in the annotation of 1": 1,
        "on another stream": 2,
        "nowhere": -1,
    }
    assert sorted(work.rules.tolist()) == [StepRule.NONE, StepRule.ANNOTATION, StepRule.START]


@pytest.mark.parametrize("seed", range(5))
def test_launches_go_to_the_step_that_holds_them(seed: int, tmp_path: Path) -> None:
    """With steps that overlap and leave gaps each kernel goes to the latest step begun that still lasts."""
    pick = random.Random(seed)
    spans = [(100 * n + pick.randrange(0, 90), pick.randrange(20, 260)) for n in range(12)]
    events: list[dict[str, Any]] = [
        complete(ts, dur, f"ProfilerStep#{n}", "user_annotation", tid=n % 3)
        for n, (ts, dur) in enumerate(spans)
    ]
    calls = [pick.randrange(0, 1600) for _ in range(80)]
    for n, ts in enumerate(calls):
        ids = {"correlation": n + 1}
        events.append(complete(ts, 1, "launch", "cuda_runtime", tid=50 + n, args=ids))
        events.append(complete(ts + pick.randrange(0, 500), 1, f"{n}", "kernel", pid=0, tid=n, args=ids))
    trace = Trace([index_of(events, tmp_path)])
    marks, work = attributed(trace)
    names = trace.indexes[0].strings(trace.indexes[0].column("slices.name")[work.positions])
    assert len(names) == len(calls)
    for name, step in zip(names, work.steps.tolist()):
        time = calls[int(name)]
        holding = [n for n, (ts, dur) in enumerate(spans) if ts <= time < ts + dur]
        latest = max(holding, key=lambda n: spans[n][0], default=None)
        assert (marks.labels[step] if step >= 0 else None) == (None if latest is None else str(latest))


SPYRE = CORPUS / "aiu" / "spyre_torch_profiler"
STEPPED = (
    "gpu/hta_a100_resnet_ddp_nccl.json.gz",
    "gpu/hta_gpu_user_annotation.json.gz",
    "gpu/hta_mtia_inference_rank0.json.gz",
    "gpu/kineto2021_resnet50_strtid_memory.pt.trace.json.gz",
    "gpu/tl_h100_qwen_infer.json.gz",
    "gpu/tl_mi300_resnet_train_rank0of8.json.gz",
    "gpu/tl_sglang_decode_graph.json.gz",
    "gpu/tl_vllm_decode_cudagraph_exec.json.gz",
    "aiu/mlp_trace.json",
    "cpu/torch213_mlp_shapes_mem_stack_steps.json.gz",
    "multirank/dlrm_8gpu_ranks0-3",
    *(f"aiu/{SPYRE.name}/{path.name}" for path in (sorted(SPYRE.iterdir()) if SPYRE.is_dir() else [])),
)


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("name", STEPPED)
def test_every_table_gives_a_step_the_work_that_it_launched(name: str, corpus_cache: Path) -> None:
    """Kernels by step, of one step, in the table of steps, the summary and the viewer are the same ones; over
    all steps and what is outside they come to the whole, exactly.
    """
    trace = open_trace([CORPUS / name], index_dir=corpus_cache)
    scope = Scope(trace, clocks=trace.clocks)
    spans = step_spans(trace, trace.clocks)
    assert spans is not None
    nothing = {"count": 0, "total_ns": 0}
    rows = {row["name"]: row for row in kernels(scope, by="step").rows()}
    work = work_by_steps(scope, spans)
    for step, title in enumerate(spans.titles):
        of_step = scope_of_step(scope, spans, step, work)
        row = rows.get(f"step {title}", nothing)
        alone = kernels(of_step).totals
        assert (alone["count"], alone["total_ns"]) == (row["count"], row["total_ns"])
        summed = metrics(of_step, ["kernels"])
        assert summed["kernels.calls"].value == row["count"]
        assert (summed["kernels.total"].value or 0) == row["total_ns"]
        session = replace(first_session(trace, 80), range=of_step.range, clocks=trace.clocks)
        totals = kernels(scope_of(trace, session)).totals
        assert (totals["count"], totals["total_ns"]) == (row["count"], row["total_ns"])
    whole = kernels(scope).totals
    assert sum(row["count"] for row in rows.values()) == whole["count"]  # type: ignore[misc]
    assert sum(row["total_ns"] for row in rows.values()) == whole["total_ns"]  # type: ignore[misc]
    table = steps(scope).steps
    for key, total in (("device_ns", "total_ns"), ("device_slices", "count")):
        outside = table.totals["outside_ns" if key == "device_ns" else "outside_slices"]
        assert int(table.numbers(key).sum()) + outside == whole[total]
        assert outside == rows.get(OUTSIDE, nothing)[total]
    by_rule = sum(table.numbers(f"by_{rule}") for rule in ("launch", "annotation", "start"))
    assert (by_rule == table.numbers("device_slices")).all()
    trace.close()


def every_trace() -> list[Path]:
    """Return all traces of profilers in the corpus and its small cases, and the folders of ranks."""
    folders = [CORPUS / name for name in ("gpu", "aiu", f"aiu/{SPYRE.name}", "cpu")]
    folders += [CASES / name for name in ("adversarial", "cheat")]
    files = [path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]
    ranks = sorted((CORPUS / "multirank").iterdir()) if CORPUS.is_dir() else []
    return [path for path in files if path.name.endswith((".json", ".json.gz"))] + ranks


@pytest.mark.slow
@needs_corpus
@needs_cases
@pytest.mark.parametrize("attribute", ["launch", "window"])
@pytest.mark.parametrize("path", representative(every_trace()), ids=lambda path: path.name)
def test_steps_and_what_is_outside_come_to_the_whole(
    path: Path, attribute: Attribute, corpus_cache: Path
) -> None:
    """Device time over all steps and outside of them is the trace's, less what windows that overlap share."""
    trace = open_trace([path], index_dir=corpus_cache)
    scope = Scope(trace, clocks=trace.clocks, attribute=attribute)
    whole = kernels(scope).totals
    table = steps(scope).steps
    shared_ns = table.totals["shared_ns"] if attribute == "window" else 0
    assert int(table.numbers("device_ns").sum()) + table.totals["outside_ns"] - shared_ns == whole["total_ns"]
    rows = {row["name"]: row for row in kernels(scope, by="step").rows()}
    outside = rows.get(OUTSIDE, {"count": 0, "total_ns": 0})
    assert outside["total_ns"] == table.totals["outside_ns"]
    assert outside["count"] == table.totals["outside_slices"]
    if attribute == "launch":
        assert int(table.numbers("device_slices").sum()) + outside["count"] == whole["count"]
    trace.close()


def test_work_is_cut_at_windows_as_a_plain_loop_does(tmp_path: Path) -> None:
    """With steps that overlap, touch and leave gaps each piece counts with its part in each step."""
    pick = random.Random(3)
    marks = [(0, 90), (60, 70), (130, 40), (170, 30), (260, 100)]
    times = [(pick.randrange(0, 400), pick.choice([0, 1, 7, 60, 200])) for _ in range(200)]
    events: list[dict[str, Any]] = [
        complete(ts, dur, f"ProfilerStep#{n}", "user_annotation", tid=n) for n, (ts, dur) in enumerate(marks)
    ]
    events += [complete(ts, dur, f"k{n}", "kernel", pid=0, tid=n) for n, (ts, dur) in enumerate(times)]
    trace = Trace([index_of(events, tmp_path)])
    scope, spans = Scope(trace, attribute="window"), step_spans(trace)
    assert spans is not None
    rows = {row["name"]: row for row in kernels(scope, by="step").rows()}
    for n, (low, dur) in enumerate(marks):
        high = low + dur
        parts = [
            min(ts + length, high) - max(ts, low)
            for ts, length in times
            if low <= ts < high or (ts < low < ts + length)
        ]
        row = rows[f"step {n}"]
        assert (row["count"], row["total_ns"]) == (len(parts), 1000 * sum(parts))
        alone = kernels(scope_of_step(scope, spans, n)).totals
        assert (alone["count"], alone["total_ns"]) == (row["count"], row["total_ns"])
    outside = sum(
        sum(not any(low <= at < low + dur for low, dur in marks) for at in range(ts, ts + length))
        for ts, length in times
    )
    assert rows[OUTSIDE]["total_ns"] == 1000 * outside


def test_steps_of_one_name_are_rows_of_their_own(tmp_path: Path) -> None:
    """Steps that an engine calls by their kind are told apart as --step takes them."""
    events = [complete(100 * n, 90, "step[DECODE bs=4]", "user_annotation") for n in range(3)]
    events += [complete(100 * n + 10, 10 + n, "k", "kernel", pid=0) for n in range(3)]
    trace = Trace([index_of(events, tmp_path)])
    rows = {row["name"]: row["total_ns"] for row in kernels(Scope(trace), by="step").rows()}
    assert sorted(rows.values()) == [10_000, 11_000, 12_000]
    assert all("(nth:" in str(name) for name in rows)
    assert len(by_step(Scope(trace), kernels)) == 3


def test_runs_of_kernels_tell_the_step_of_their_launch(tmp_path: Path) -> None:
    """A run's step is the one that launched it, by window the one in which it starts."""
    events = [complete(100 * n, 100, f"ProfilerStep#{n}", "user_annotation") for n in range(2)]
    events += [complete(90, 2, "launch", "cuda_runtime", args={"correlation": 1})]
    events += [complete(120, 30, "k", "kernel", pid=0, args={"correlation": 1})]
    trace = Trace([index_of(events, tmp_path)])
    for attribute, step in (("launch", "0"), ("window", "1")):
        table, _ = instances(Scope(trace, attribute=attribute), "k")  # type: ignore[arg-type]
        assert [row["step"] for row in table.rows()] == [step]


def test_a_file_without_steps_is_outside(tmp_path: Path) -> None:
    """Of two files of which one has no steps, the other's device work is outside of all of them."""
    own = [complete(0, 100, "ProfilerStep#0", "user_annotation"), complete(10, 20, "k", "kernel", pid=0)]
    other = [complete(10, 30, "k", "kernel", pid=0)]
    trace = Trace([index_of(own, tmp_path / "a"), index_of(other, tmp_path / "b")])
    scope = Scope(trace)
    rows = {row["name"]: row["total_ns"] for row in kernels(scope, by="step").rows()}
    assert rows == {"step 0": 20_000, OUTSIDE: 30_000}
    assert steps(scope).steps.totals["outside_ns"] == 30_000
    spans = step_spans(trace)
    assert spans is not None
    assert kernels(scope_of_step(scope, spans, 0)).totals["total_ns"] == 20_000
