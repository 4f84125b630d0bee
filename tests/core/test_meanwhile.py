"""Idle time is divided by what the host does meanwhile, and rules claim parts of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.causes import CAUSES, program, write
from tests.core.findings_traces import call, kernel, launched, op, trace_of
from tests.corpus import for_files, traces
from tests.events import Event
from tracelane.core.base.arrays import EMPTY, Intervals, merge
from tracelane.core.tables.findings.facts import CaptureFacts, SourceFacts
from tracelane.core.tables.findings.finding import Finding, Observation
from tracelane.core.tables.findings.judge import RULES, claims_of, findings
from tracelane.core.tables.findings.meanwhile import ACTIVITIES, Activity, meanwhile
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Trace, open_trace

SPANS = st.lists(st.tuples(st.integers(-50, 450_000), st.integers(0, 200_000)), max_size=6)


def _set(spans: Sequence[tuple[int, int]]) -> Intervals:
    starts = np.array([start for start, _ in spans], np.int64)
    return merge(starts, starts + np.array([length for _, length in spans], np.int64))


@settings(max_examples=60, deadline=None)
@given(st.lists(SPANS, min_size=8, max_size=8), SPANS)
def test_parts_of_a_gap_add_up_to_it(
    layers: list[list[tuple[int, int]]], gaps: list[tuple[int, int]]
) -> None:
    """Of each moment one thing is said: the first of the activities that hold then, else nothing."""
    window = (0, 600_000)
    own: dict[Activity, Intervals] = {name: _set(spans) for name, spans in zip(ACTIVITIES, layers)}
    parts = meanwhile(own, window)
    idle = _set(gaps).clipped(*window)
    split = parts.split(idle)
    assert (sum(split.values()) == idle.ends - idle.starts).all()
    several = parts.of("loader", "operator", "wait")
    others = parts.times["loader"].union(parts.times["operator"]).union(parts.times["wait"])
    assert (several.starts.tolist(), several.ends.tolist()) == (others.starts.tolist(), others.ends.tolist())
    moments = np.arange(500, 600_000, 7001)
    for moment in moments.tolist():
        said = [name for name, time in parts.times.items() if time.covered(*_at(moment))[0]]
        holding = [name for name in ACTIVITIES[:-1] if own[name].covered(*_at(moment))[0]]
        assert len(said) == 1
        assert said[0] == (holding or ["nothing"])[0] or said == ["operator"]  # a usual pause


def _at(moment: int) -> tuple[np.ndarray, np.ndarray]:
    return np.array([moment]), np.array([moment + 1])


def _rounds(between: Sequence[Event], rounds: int = 8) -> list[Event]:
    """Rounds of 10 ms: work of 2 ms that the host waits for, then something, then the next launch."""
    events: list[Event] = []
    for n in range(rounds):
        at = 10_000 * n
        events += [
            *launched(at, 5, at + 10, 2000),
            op(at, 15, "aten::mm"),
            call(at + 20, 2000, "cudaStreamSynchronize"),
        ]
        events += [{**one, "ts": one["ts"] + at + 2100} for one in between]
    return events


def _losses(trace: Trace) -> dict[str, Finding]:
    return {one.rule: one for one in findings(Scope(trace)).losses}


def test_who_sleeps_after_a_wait_is_not_told_to_wait_less(tmp_path: Path) -> None:
    """A synchronisation claims what the host needs to wait and to enqueue again, not what it sleeps then."""
    slept = _losses(trace_of(_rounds([]), tmp_path / "slept"))
    assert "sync-in-loop" not in slept and slept["host-pause"].claimed_ns > 7 * 7_500_000
    busy = [op(100 * n, 95, "aten::add_") for n in range(78)]
    worked = _losses(trace_of(_rounds(busy), tmp_path / "worked"))
    assert worked["sync-in-loop"].claimed_ns > 7 * 7_900_000
    half = _losses(trace_of(_rounds(busy[:39]), tmp_path / "half"))
    assert 7 * 3_900_000 < half["sync-in-loop"].claimed_ns < 8 * 4_100_000


LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@pytest.mark.parametrize(
    ("between", "rule"),
    [
        ([op(0, 7000, LOADER)], "dataloader"),
        ([call(0, 7000, "cudaMalloc")], "device-allocations"),
        ([op(0, 7000, "backend_compile (dynamo_timed)")], "compile-time"),
        ([], "host-pause"),
    ],
)
def test_a_gap_belongs_to_what_fills_it(between: list[Event], rule: str, tmp_path: Path) -> None:
    """What the host does after a wait is told of the idle time, not the wait that came before."""
    losses = _losses(trace_of(_rounds(between), tmp_path))
    whole = 7 * 7_900_000
    assert losses[rule].claimed_ns > 0.8 * whole
    assert "sync-in-loop" not in losses or losses["sync-in-loop"].claimed_ns < 0.15 * whole


def _before_first(names: Sequence[tuple[float, str]]) -> list[Event]:
    """Work of 10 µs each; of each kernel the pause before its launch in ms."""
    events, at = [], 100.0
    for pause, name in names:
        at += 1000 * pause
        events += launched(at, 5, at + 10, 10, name)
        at += 25
    return events


COPY, TRITON = (0.01, "vectorized_elementwise_kernel"), "triton_poi_fused_add_0"


@pytest.mark.parametrize(
    ("names", "compiled_ms"),
    [
        ([COPY, COPY, (400, TRITON), COPY, (0.1, TRITON)], 400),
        ([COPY, (400, TRITON), COPY, (300, "triton_red_fused_sum_1"), COPY], 700),
        ([COPY, (400, TRITON), COPY, (190, TRITON), COPY], 400),
        ([COPY, (400, TRITON), COPY, (210, TRITON), COPY], 0),  # it pauses anyway
        ([COPY, (210, "gemm"), COPY, (400, TRITON), COPY], 0),
        ([COPY, COPY, (400, "ampere_sgemm_32x32"), COPY], 0),  # not compiled by Triton
        ([COPY, COPY, (9, TRITON), COPY], 0),  # too short
    ],
)
def test_before_a_first_launch_of_triton_the_host_compiles(
    names: list[tuple[float, str]], compiled_ms: float, tmp_path: Path
) -> None:
    """A gap that ends with a compiled kernel's first launch is told as compiling, unless such pauses are
    usual in the program.
    """
    losses = _losses(trace_of(_before_first(names), tmp_path))
    claimed = losses["compile-time"].claimed_ns / 1e6 if "compile-time" in losses else 0
    assert claimed == pytest.approx(compiled_ms, rel=0.01)


def test_a_first_use_is_within_the_runtime(tmp_path: Path) -> None:
    """An operator that takes long the first time is told as first use where its call does, or where it takes
    memory and so makes a context: not where its own code takes the time.
    """

    def steps(first: Sequence[Event]) -> list[Event]:
        events = list(first)
        for n in range(5):
            at = 6_000.0 + 600 * n
            for m in range(5):
                begin = at + 100 * m
                events += [op(begin, 20, "aten::add"), *launched(begin + 5, 5, begin + 30, 60, "add")]
        return events

    own = steps([op(0, 5000, "aten::add"), *launched(4980, 5, 5010, 60, "add")])
    assert "first-use" not in _losses(trace_of(own, tmp_path / "own"))
    within = steps([op(0, 5000, "aten::add"), *launched(10, 4980, 5010, 60, "add"), kernel(0, 1, "memset")])
    assert _losses(trace_of(within, tmp_path / "within"))["first-use"].claimed_ns > 4_900_000
    context = steps([op(0, 5000, "aten::empty"), kernel(0, 1, "memset")])
    assert _losses(trace_of(context, tmp_path / "context"))["first-use"].claimed_ns > 4_900_000


def _claimed_once(trace: Trace) -> None:
    capture = CaptureFacts(Scope(trace))
    for source in range(len(trace.indexes)):
        for part in capture.parts(source):
            facts = SourceFacts(part, 0, capture)
            observations = {
                id: outcome
                for id, rule in RULES.items()
                if isinstance(outcome := rule.outcome(facts), Observation)
            }
            claims = claims_of(observations, {}, {})
            if not facts.has_devices:
                continue
            idle = facts.busy.union(facts.waiting).gaps(*facts.span)
            length = idle.ends - idle.starts
            claimed = np.zeros(len(idle), np.int64)
            split = facts.meanwhile.split(idle)
            assert (sum(split.values()) == length).all()
            for id, claim in claims.items():
                inside = claim.time.covered(idle.starts, idle.ends)
                claimed += inside
                if RULES[id].meanwhile:
                    assert (inside <= sum(split[name] for name in RULES[id].meanwhile)).all(), id
                assert RULES[id].first or claim.ns <= max(claim.time.length, 1) or claim.observation.ns
            assert (claimed <= length).all()


@for_files("path", traces("gpu/*", "verdicts/*.json*", "cases/verdicts/*.json", "cases/strangers/*.json"))
def test_claims_of_a_gap_are_no_more_than_the_gap(path: Path, corpus_cache: Path) -> None:
    """What the rules claim of one gap adds up to no more than the gap, and each claims only of what it is
    about: waits of waiting, loaders of loading.
    """
    _claimed_once(open_trace(path, index_dir=corpus_cache))


@pytest.mark.slow
@pytest.mark.parametrize("cause", CAUSES)
def test_claims_of_a_gap_in_made_programs(cause: str, tmp_path: Path) -> None:
    """The same of programs with one known cause."""
    _claimed_once(open_trace(write(program(3, cause), tmp_path / "traces"), index_dir=tmp_path / "index"))


def test_nothing_to_do_is_no_time() -> None:
    """An empty window has no parts."""
    parts = meanwhile({}, (5, 5))
    assert all(not len(time) or not time.length for time in parts.times.values())
    assert all(not ns.sum() for ns in parts.split(EMPTY).values())
