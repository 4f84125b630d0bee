"""Tables by step: what a step's rows count, against the raw events."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete, index_of
from tracelane.core.base.errors import UsageError
from tracelane.core.tables.attribution import by_step
from tracelane.core.tables.kernels import kernels
from tracelane.core.tables.ops import ops
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.step_spans import step_spans
from tracelane.core.trace import Trace, open_trace

REAL = "gpu/hta_a100_resnet_ddp_nccl.json.gz"


def _raw() -> list[dict[str, Any]]:
    with gzip.open(CORPUS / REAL) as stream:
        events = json.load(stream, parse_float=Fraction)["traceEvents"]
    return [event for event in events if event.get("ph") == "X"]


def _steps(events: list[dict[str, Any]]) -> dict[str, tuple[Fraction, Fraction]]:
    return {
        event["name"].removeprefix("ProfilerStep#"): (event["ts"], event["ts"] + event["dur"])
        for event in events
        if event["name"].startswith("ProfilerStep#") and event["cat"] == "user_annotation"
    }


@pytest.mark.slow
@needs_corpus
def test_ops_of_each_step(corpus_cache: Path) -> None:
    """Each step's rows count the ops that lie in it, sorted by itself; the step stands first."""
    events = _raw()
    spans = _steps(events)
    scope = Scope(open_trace(CORPUS / REAL, index_dir=corpus_cache))
    table = by_step(scope, ops).sort("calls")
    names = Counter(event["name"] for event in events if event["cat"] == "cpu_op")
    # PyTorch leaves out an op that is the only child of one of its own name.
    plain = {row["name"] for row in ops(scope).rows() if names[str(row["name"])] == row["calls"]}
    assert len(plain) > 50
    expected: Counter[tuple[str, str]] = Counter()
    for event in events:
        for step, (start, end) in spans.items():
            inside = event["ts"] < end and event["ts"] + event["dur"] > start
            if event["name"] in plain and event["cat"] == "cpu_op" and inside:
                expected[step, event["name"]] += 1
    rows = list(table.rows())
    assert {(row["step"], row["name"]): row["calls"] for row in rows if row["name"] in plain} == expected
    steps = [row["step"] for row in rows]
    assert list(dict.fromkeys(steps)) == list(spans)
    assert steps == sorted(steps)
    for step in set(steps):
        calls = [row["calls"] for row in rows if row["step"] == step]
        assert calls == sorted(calls, reverse=True)  # type: ignore[type-var]
    assert table.positions is not None
    assert table.sources is not None
    assert len(table.positions) == len(table.sources) == len(table)


def test_steps_of_several_sources(tmp_path: Path) -> None:
    """The k-th step of a name is one step over all ranks, from its first start to its last end."""
    ranks = [
        [complete(100 * n + shift, 50, f"iteration_{n}", cat="user_annotation") for n in (1, 2)]
        for shift in (0, 10)
    ]
    steps = step_spans(Trace([index_of(events, tmp_path / str(at)) for at, events in enumerate(ranks)]))
    assert steps is not None
    assert steps.labels == ("1", "2")
    assert (steps.starts.tolist(), steps.ends.tolist()) == ([100_000, 200_000], [160_000, 260_000])
    times = np.array([99_999, 100_000, 159_999, 160_000, 200_000, 260_000], np.int64)
    assert steps.holding(times).tolist() == [-1, 0, 0, -1, 1, -1]


def test_no_steps(tmp_path: Path) -> None:
    """A trace without steps says so."""
    scope = Scope(Trace([index_of([complete(0, 1)], tmp_path)]))
    with pytest.raises(UsageError, match="no steps"):
        by_step(scope, kernels)
