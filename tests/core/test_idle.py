"""Gaps of streams and their classes: against HTA's exact numbers and on small traces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.core.hta import EXACT, RANKS, golden, opened
from tests.corpus import needs_corpus, needs_goldens
from tracelane.core.index.format import NONE
from tracelane.core.tables.idle import CLASSES, gap_table, idle, idle_table
from tracelane.core.tables.scope import Scope


@needs_corpus
@needs_goldens
@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_classes_equal_the_exact_reference(name: str, rank: str, corpus_cache: Path) -> None:
    """Per stream the rows, the idle time, and ns and number of gaps of each class are exact."""
    expected = golden(name)["per_rank"][rank][EXACT]["idle_breakdown"]
    idle_times = idle(Scope(opened(name, rank, corpus_cache), allocations=True))
    assert {stream.stream.replace(" ", "") for stream in idle_times.streams} == expected.keys()
    for stream in idle_times.streams:
        theirs = expected[stream.stream.replace(" ", "")]
        assert stream.slices == theirs["rows"]
        assert stream.idle_ns == theirs["total_idle"]
        for number, kind in enumerate(CLASSES):
            class_ = theirs.get(kind, {"idle": 0, "gaps": 0})
            assert stream.of_class(number) == (class_["idle"], class_["gaps"]), (stream.stream, kind)


@needs_corpus
@needs_goldens
def test_longest_gaps_tell_what_ended_them(corpus_cache: Path) -> None:
    """The listed gaps are the longest, each from the end of one slice to the start of the next, and a host
    wait names a launch that began inside the gap.
    """
    trace = opened("hta_a100_resnet_ddp_nccl", "0", corpus_cache)
    idle_times = idle(Scope(trace))
    lengths = np.sort(np.concatenate([stream.ends - stream.starts for stream in idle_times.streams]))[::-1]
    table = gap_table(idle_times, 25)
    assert table.data["gap_ns"].tolist() == lengths[:25].tolist()  # type: ignore[union-attr]
    assert table.positions is not None
    index = trace.indexes[0]
    waits = [row for row in table.rows() if row["class"] == "host_wait"]
    assert waits
    for row in waits:
        assert 0 < row["launch_after_ns"] <= row["gap_ns"]  # type: ignore[operator]
    for row, position in zip(table.rows(), table.positions.tolist()):
        assert index.start(position) - idle_times.origin == row["start_ns"] + row["gap_ns"]  # type: ignore[operator]
        assert row["launch"].startswith("cuda") and row["host"]  # type: ignore[union-attr]
    for stream in idle_times.streams:
        columns = index.column("slices.start")
        assert (columns[stream.after] == stream.ends).all()
        assert (columns[stream.before] + index.duration(stream.before) == stream.starts).all()
        assert (stream.launches != NONE).all()
    assert sum(table.data["gap_ns"].tolist()) <= idle_table(idle_times).totals["idle_ns"]  # type: ignore[operator,union-attr]


@needs_corpus
@needs_goldens
def test_the_limit_of_a_kernel_wait_can_be_set(corpus_cache: Path) -> None:
    """With no limit at all every gap that the host did not cause is "other"; the host's stay the same."""
    scope = Scope(opened("tl_h100_qwen_infer", "0", corpus_cache))
    (usual,), (strict,) = idle(scope).streams, idle(scope, 0).streams
    assert strict.of_class(1) == (0, 0)
    assert strict.of_class(2) == usual.of_class(1)
    assert strict.of_class(0) == usual.of_class(0)
