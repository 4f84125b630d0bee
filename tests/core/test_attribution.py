"""Device work belongs to the step whose host window holds its launch."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import CASES, CORPUS, needs_cases, needs_corpus
from tests.events import complete, index_of
from tracelane.core import open_trace
from tracelane.core.tables.attribution import StepsOfWork, scope_of_step, steps_of_work
from tracelane.core.tables.kernels import OUTSIDE, kernels
from tracelane.core.tables.op_device import work_positions
from tracelane.core.tables.scope import Attribute, Scope
from tracelane.core.tables.step_choice import Steps, find_steps
from tracelane.core.tables.step_spans import step_spans
from tracelane.core.tables.steps import steps
from tracelane.core.trace import Trace


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
    assert work.count_by_rule() == {"none": 0, "launch": 3, "annotation": 0, "start": 0}
    trace.close()


@needs_cases
def test_each_process_counts_its_own_steps(tmp_path: Path) -> None:
    """Two ranks in one file have four steps each, and their kernels stay with their own."""
    trace = open_trace([CASES / "adversarial" / "merged2.json"], index_dir=tmp_path)
    marks, work = attributed(trace)
    assert [len(set(marks.processes[n : n + 2].tolist())) for n in range(0, 8, 2)] == [2] * 4
    assert marks.labels == ("0", "0", "1", "1", "2", "2", "3", "3")
    assert np.bincount(work.steps).tolist() == [1] * 8
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
    assert work.count_by_rule() == {"none": 1, "launch": 0, "annotation": 1, "start": 1}


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
    for name, step in zip(names, work.steps.tolist()):
        time = calls[int(name)]
        holding = [n for n, (ts, dur) in enumerate(spans) if ts <= time < ts + dur]
        latest = max(holding, key=lambda n: spans[n][0], default=None)
        assert (marks.labels[step] if step >= 0 else None) == (None if latest is None else str(latest))


@needs_corpus
@pytest.mark.parametrize(
    "name", ["gpu/hta_a100_resnet_ddp_nccl.json.gz", "gpu/tl_vllm_decode_cudagraph_exec.json.gz"]
)
def test_the_sum_over_steps_and_outside_is_the_whole(name: str, corpus_cache: Path) -> None:
    """Every piece of device work is in exactly one step or outside."""
    trace = open_trace([CORPUS / name], index_dir=corpus_cache)
    marks, work = attributed(trace)
    durations = trace.indexes[0].duration(work.positions)
    inside = [int(durations[work.steps == n].sum()) for n in range(-1, len(marks))]
    assert sum(inside) == int(durations.sum())
    assert sum(inside[1:]) > 0
    trace.close()


STEPPED = (
    "gpu/hta_a100_resnet_ddp_nccl.json.gz",
    "gpu/tl_mi300_resnet_train_rank0of8.json.gz",
    "cpu/torch213_mlp_shapes_mem_stack_steps.json.gz",
)


@needs_corpus
@pytest.mark.parametrize("attribute", ["launch", "window"])
@pytest.mark.parametrize("name", STEPPED)
def test_a_step_by_itself_is_its_row_of_the_table_by_step(
    name: str, attribute: Attribute, corpus_cache: Path
) -> None:
    """By launch the kernels of one step alone come to what its row says; all rows come to the whole."""
    if not (CORPUS / name).is_file():
        pytest.skip(f"no {name} in the corpus")
    trace = open_trace([CORPUS / name], index_dir=corpus_cache)
    scope = Scope(trace, attribute=attribute)
    spans = step_spans(trace)
    assert spans is not None
    rows = {row["name"]: row for row in kernels(scope, by="step").rows()}
    for place, label in enumerate(spans.labels):
        alone = kernels(scope_of_step(scope, spans, place))
        row = rows.get(f"step {label}", {"count": 0, "total_ns": 0})
        if attribute == "launch":
            assert (alone.totals["count"], alone.totals["total_ns"]) == (row["count"], row["total_ns"])
    whole = kernels(scope).totals
    assert sum(row["count"] for row in rows.values()) == whole["count"]
    assert sum(row["total_ns"] for row in rows.values()) == whole["total_ns"]
    table = steps(scope).steps
    if attribute == "launch":
        busy = dict(zip(table.data["step"], np.asarray(table.data["device_ns"]).tolist()))
        assert busy == {label: rows.get(f"step {label}", {"total_ns": 0})["total_ns"] for label in busy}
        outside = rows.get(OUTSIDE, {"count": 0, "total_ns": 0})
        assert table.totals["outside_ns"] == outside["total_ns"]
    trace.close()
