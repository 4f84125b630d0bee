"""TensorBoard's steps where it knows the runtime: from the end of earlier device work to that of their own.

Ours are as long as the host marked them; with the lengthening, which is done here, all its numbers come out.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import CORPUS, GOLDENS, needs_corpus, needs_goldens
from tracelane.core.base.arrays import I64
from tracelane.core.index.store import Index
from tracelane.core.query.launches import launches_of
from tracelane.core.tables.op_sums import work_positions
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.step_choice import Steps, find_steps
from tracelane.core.tables.steps import ROLES, step_columns
from tracelane.core.trace import open_trace

pytestmark = [needs_corpus, needs_goldens]

OF_2021 = "kineto2021_resnet50_num_workers_4.tb_0.4.3"
OF_DRIVER = "tl_h100_qwen_infer.tb_0.4.3_PATCHED_runtime"
NAMES = (
    OF_2021,
    OF_DRIVER,
    "tl_mi300_resnet_train_rank0of8.tb_0.4.3_PATCHED_runtime",
    "hta_a100_resnet_ddp_nccl.tb_0.4.3_PATCHED_runtime",
)


@cache
def golden(name: str) -> dict[str, Any]:
    """Return what TensorBoard's plugin gave."""
    return dict(json.loads((GOLDENS / "tb" / f"{name}.json").read_bytes()))


def marked(name: str, cache_folder: Path) -> tuple[Scope, Steps]:
    """Return a reference's trace and its steps as the host marked them."""
    trace = open_trace(CORPUS / golden(name)["input"].removeprefix("share/"), index_dir=cache_folder)
    steps = find_steps(trace, 0)
    assert steps is not None
    return Scope(trace), steps


def lengthened(index: Index, steps: Steps) -> tuple[I64, I64]:
    """Return (starts, ends) by the plugin's rule: a step ends with the last work launched in it, if that is
    later; it begins where the one before ended, the first where work launched before any step ended.
    """
    work = work_positions(index)
    begun: I64 = index.column("slices.start")[work].astype(np.int64)
    done = begun + index.duration(work)
    launches = launches_of(index).calls_of(work)
    launched = index.column("slices.start")[np.maximum(launches, 0)].astype(np.int64)
    of = [
        (launches >= 0) & (launched >= low) & (launched <= high)
        for low, high in zip(steps.starts.tolist(), steps.ends.tolist())
    ]
    free = ~np.any(of, axis=0)
    earlier = done[free][done[free] < begun[of[0]].min(initial=np.iinfo(np.int64).max)]
    last = earlier.max(initial=steps.starts[0])
    starts, ends = steps.starts.copy(), steps.ends.copy()
    for at, own in enumerate(of):
        starts[at] = max(last, starts[at])
        ends[at] = last = max(ends[at], starts[at], done[own].max(initial=ends[at]))
    return starts, ends


@pytest.mark.parametrize("name", NAMES)
def test_lengthened_steps_are_those_of_tensorboard(name: str, corpus_cache: Path) -> None:
    """Lengthened by its rule, each step's total and split equal its numbers to 0.1 µs; calls of the driver,
    which it does not know, are Runtime here.
    """
    scope, steps = marked(name, corpus_cache)
    starts, ends = lengthened(scope.trace.indexes[0], steps)
    columns = step_columns(scope, replace(steps, starts=starts, ends=ends))
    expected = golden(name)["steps"]
    assert list(steps.labels) == [step["name"].removeprefix("ProfilerStep#") for step in expected]
    assert (columns["wall_ns"] / 1000).tolist() == pytest.approx([s["Total"] for s in expected], abs=0.1)
    driver = "cuda_driver" in scope.trace.indexes[0].categories
    assert driver == (name == OF_DRIVER)
    rest = ("Runtime", "CpuOp", "Other") if driver else ()
    for role in (role for role in (*ROLES, "Other") if role not in rest):
        ours = (columns[f"split_{role.lower()}_ns"] / 1000).tolist()
        assert ours == pytest.approx([step[role] for step in expected], abs=0.1), role
    together = sum(columns[f"split_{role.lower()}_ns"] for role in rest) / 1000
    assert together == pytest.approx(np.array([sum(step[r] for r in rest) for step in expected]), abs=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_ours_are_as_the_host_marked_them(name: str, corpus_cache: Path) -> None:
    """Without lengthening, the walls differ from TensorBoard's, except where steps waited for their work."""
    scope, steps = marked(name, corpus_cache)
    walls = (step_columns(scope, steps)["wall_ns"] / 1000).tolist()
    alike = walls == pytest.approx([step["Total"] for step in golden(name)["steps"]], abs=0.1)
    assert alike == (name == NAMES[-1])


def test_what_marks_a_step_is_no_op_in_it(corpus_cache: Path) -> None:
    """A profiler of 2021 writes its steps as ops: the time between ops is Other all the same."""
    scope, steps = marked(OF_2021, corpus_cache)
    index = scope.trace.indexes[0]
    assert set(index.column("slices.category")[steps.positions].tolist()) == {
        index.categories.index("Operator")
    }
    columns = step_columns(scope, steps)
    assert (columns["split_other_ns"] > 0).all()
    assert (columns["cpu_busy_ns"] < columns["wall_ns"]).all()
