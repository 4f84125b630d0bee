"""HTA's own output from our columns: its rounding, its dropped rows and its row 0 are applied here."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.hta import RANKS, opened, rule_050
from tests.corpus import CORPUS, GOLDENS, needs
from tracelane.core.base.arrays import I64, AnyArray, merge
from tracelane.core.query.lookup import promoted_of
from tracelane.core.tables.device.breakdown import device_table
from tracelane.core.tables.device.idle import idle_table
from tracelane.core.tables.frame.frame import Frame
from tracelane.core.tables.frame.frame_columns import NEVER, KindRule, by_rule, work_of
from tracelane.core.tables.frame.kinds import kernel_types
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.work_device import GAP_CLASSES
from tracelane.core.trace import Trace

NEGATIVE = "tl_h100_qwen_infer"
"""Its shortest kernels get negative durations from the rounding, at which HTA stops."""
STEP = re.compile(r"ProfilerStep\s*#\d+")
LAUNCHES = {
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
}


RULES: dict[str, KindRule] = {"0.5.0": rule_050, "f4d0062": kernel_types}
"""Versions of HTA, and how each tells types of kernels: the later one as we do."""
LATER_LAUNCHES = LAUNCHES | {"cuLaunchKernelEx"}


@cache
def theirs(name: str, version: str) -> dict[str, Any]:
    """Return what a version of HTA printed."""
    return dict(json.loads((GOLDENS / "hta" / f"{name}.hta_{version}.json").read_bytes()))


def of_rank(rows: list[dict[str, Any]], rank: str) -> dict[str, Any]:
    """Return the row of a rank in one of HTA's tables."""
    return next(row for row in rows if row["rank"] == int(rank))


def up(ns: I64) -> I64:
    """Round float microseconds up, as HTA does with starts."""
    return np.array([math.ceil(time / 1000) * 1000 for time in ns.tolist()], np.int64)


def rounded(starts: I64, durations: I64) -> tuple[I64, I64]:
    """Return starts rounded up and ends rounded down to µs, from float64 stamps."""
    ends = [
        math.floor(start / 1000 + duration / 1000) * 1000
        for start, duration in zip(starts.tolist(), durations.tolist())
    ]
    return up(starts), np.array(ends, np.int64)


def hta_mask(trace: Trace, work: Frame, last_step: bool, rounding: bool) -> AnyArray:
    """Return which slices HTA keeps: those with a stream; with several steps also only those whose
    correlation a row of the host (or an annotation) has that starts before the cutoff.
    """
    has_stream = np.array([not name.startswith("tid") for name in work.streams])[work.stream]
    index = work.index
    names = index.column("slices.name")
    starts: I64 = index.column("slices.start")[:].astype(np.int64)
    stops: I64 = starts + index.durations_between(0, len(starts))
    numbers = np.array([n for n in np.unique(names).tolist() if STEP.match(index.string(n))], np.uint32)
    steps = np.flatnonzero(np.isin(names, numbers))
    if len(np.unique(names[steps])) < 2:
        return np.asarray(has_stream)
    last = steps[np.argmax(starts[steps])]
    cutoff = np.array([stops[last] if last_step else starts[last]])
    host = np.setdiff1d(np.arange(len(starts)), work.position)
    if rounding:
        begins, edge = np.ceil(starts[host] / 1000), np.ceil(cutoff / 1000)
        host = host[begins < edge]
    else:
        host = host[starts[host] < cutoff]
    values, mine = (promoted_of(index, "correlation", some, NEVER) for some in (host, work.position))
    return np.asarray(has_stream & (mine != NEVER) & np.isin(mine, values[values != NEVER]))


def their_work(trace: Trace, last_step: bool, rounding: bool, rule: KindRule = kernel_types) -> Frame:
    """Return the work of the one device as HTA sees it, allocations among it, and its launches."""
    work = work_of(Scope(trace, allocations=True))
    work = work[hta_mask(trace, work, last_step, rounding)]
    starts, ends, calls = work.start, work.end, work.call_start
    if rounding:
        starts, ends = rounded(starts, ends - starts)
        calls = up(calls)
    # A kernel whose launch the trace does not hold is joined to the first event of the file.
    ordinals = work.index.column("slices.ordinal")
    first = int(work.index.column("slices.start")[int(np.argmin(ordinals))])
    known = work.launch >= 0
    calls = np.where(known, calls, math.ceil(first / 1000) * 1000 if rounding else first)
    everything = np.arange(len(work))
    own = work.separate(everything, start=starts, end=ends, type=by_rule(work, rule))
    return own.plus(launch=np.maximum(work.launch, 0), call_start=calls)


def reversed_ns(work: Frame) -> int:
    """Return what HTA's union of the compute takes off for durations that its rounding made negative."""
    compute = work[work.is_type("compute")]
    order = np.argsort(compute.start, kind="stable")
    starts, ends = compute.start[order], compute.end[order]
    reach = np.maximum.accumulate(ends)
    opens = np.concatenate([[True], starts[1:] > reach[:-1]])
    closes = np.concatenate([opens[1:], [True]])
    theirs_ns = int((reach[closes] - starts[opens]).sum())
    return theirs_ns - merge(starts, ends).length


RUNS = [("hta_default", False, True), ("hta_include_last_step", True, True)]


@needs(CORPUS, GOLDENS)
@pytest.mark.slow
@pytest.mark.parametrize(("run", "last_step", "rounding"), RUNS, ids=[run[0] for run in RUNS])
@pytest.mark.parametrize("version", RULES)
@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_temporal_breakdown(
    name: str, rank: str, version: str, run: str, last_step: bool, rounding: bool, corpus_cache: Path
) -> None:
    """With HTA's rounding and dropped rows every µs of its temporal breakdown and the overlap is met."""
    reference = theirs(name, version)[run]
    work = their_work(opened(name, rank, corpus_cache), last_step, rounding, RULES[version])
    assert len(work) == reference["preprocessing"]["per_rank"][rank]["gpu_rows"]
    if name == NEGATIVE:
        assert "AssertionError" in reference["temporal_breakdown"]["HTA_ERROR"]
        assert int((work.dur < 0).sum()) == 22
        return
    row = of_rank(reference["temporal_breakdown"], rank)
    (times,) = device_table(work)
    for ours, key in (
        (times["kernel_time_ns"], "kernel_time(us)"),
        (times["idle_ns"], "idle_time(us)"),
        (times["compute_ns"] + reversed_ns(work), "compute_time(us)"),
    ):
        assert ours == row[key] * 1000, key
    overlap = of_rank(reference["comm_comp_overlap"], rank)["comp_comm_overlap_pctg"]
    if overlap is None:
        assert times["comm_compute_overlap_share"] is None
    else:
        assert times["comm_compute_overlap_share"] == pytest.approx(overlap / 100, abs=0.00006)


@needs(CORPUS, GOLDENS)
@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_without_rounding(name: str, rank: str, corpus_cache: Path) -> None:
    """Without its rounding HTA gives our exact numbers, but for the float64 stamps it adds up.

    The later version rounds whatever it is asked: this run of it tells what the one before told.
    """
    reference = theirs(name, "0.5.0")["hta_no_rounding_include_last_step"]
    work = their_work(opened(name, rank, corpus_cache), True, False, rule_050)
    row = of_rank(reference["temporal_breakdown"], rank)
    (times,) = device_table(work)
    assert times["kernel_time_ns"] == pytest.approx(row["kernel_time(us)"] * 1000, abs=1)
    assert times["idle_ns"] == pytest.approx(row["idle_time(us)"] * 1000, abs=200)
    assert times["compute_ns"] == pytest.approx(row["compute_time(us)"] * 1000, abs=200)


@needs(CORPUS, GOLDENS)
@pytest.mark.slow
@pytest.mark.parametrize(("run", "last_step", "rounding"), RUNS, ids=[run[0] for run in RUNS])
@pytest.mark.parametrize("version", RULES)
@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_idle_breakdown(
    name: str, rank: str, version: str, run: str, last_step: bool, rounding: bool, corpus_cache: Path
) -> None:
    """Per stream and class the idle time is HTA's, its row 0 for kernels without a launch included."""
    rows = theirs(name, version)[run]["idle_time_breakdown"][rank]
    expected = {(str(row["stream"]), row["idle_category"]): row["idle_time"] for row in rows}
    work = their_work(opened(name, rank, corpus_cache), last_step, rounding)
    actual = {
        (row["stream"], kind): row[f"{kind}_ns"] / 1000 for row in idle_table(work) for kind in GAP_CLASSES
    }
    assert expected
    for key in actual.keys() | expected.keys():
        assert actual.get(key, 0) == pytest.approx(expected.get(key) or 0, abs=0.005), key


@needs(CORPUS, GOLDENS)
@pytest.mark.parametrize("version", RULES)
@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_kernel_sums(name: str, rank: str, version: str, corpus_cache: Path) -> None:
    """The sum of each kernel's µs is HTA's."""
    rows = theirs(name, version)["hta_default"]["gpu_kernel_breakdown_all_kernels(num_kernels=1e6)"][
        "kernels"
    ]
    expected = {row["name"]: row["sum (us)"] for row in rows if row["rank"] == int(rank)}
    work = their_work(opened(name, rank, corpus_cache), False, True)
    sums = np.zeros(len(work.name.texts), np.int64)
    np.add.at(sums, work.name.codes, work.dur)
    ours = dict(zip(work.name.texts, (sums // 1000).tolist()))
    assert {name: ours[name] for name in expected} == expected


@needs(CORPUS, GOLDENS)
@pytest.mark.parametrize("version", RULES)
@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_launch_statistics(name: str, rank: str, version: str, corpus_cache: Path) -> None:
    """Number, sums, short kernels and outliers of launches are HTA's, for the calls whose names it knows."""
    expected = theirs(name, version)["hta_default"]["cuda_kernel_launch_stats"][rank]
    known = LAUNCHES if version == "0.5.0" else LATER_LAUNCHES
    work = their_work(opened(name, rank, corpus_cache), False, True)
    index = work.index
    names = work.names_of("launch").tolist()
    trace_side = np.array([name in known for name in names], np.bool_) & (work.launch != 0)
    call_starts, call_ends = rounded(
        index.column("slices.start")[work.launch].astype(np.int64), index.duration(work.launch)
    )
    call = (call_ends - call_starts)[trace_side]
    kernel = work.dur[trace_side]
    delay = np.maximum(0, work.start - call_ends)[trace_side]
    assert len(call) == expected["n"]
    if len(call):
        for ours, key in ((call, "cpu_duration"), (kernel, "gpu_duration"), (delay, "launch_delay")):
            assert int(ours.sum()) == expected[key]["sum"] * 1000, key
        assert int((kernel < call).sum()) == expected["short_gpu_kernels"]
        assert int((call > 50_000).sum()) == expected["runtime_outliers_gt50us"]
        assert int((delay > 100_000).sum()) == expected["launch_delay_outliers_gt100us"]
