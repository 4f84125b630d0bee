"""Gaps of streams and their classes: against HTA's exact numbers and on small traces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.core.hta import EXACT, RANKS, golden, opened
from tests.corpus import needs_corpus, needs_goldens
from tracelane.core.tables.frame_columns import GAP_CLASSES, gap_rows
from tracelane.core.tables.idle import gap_table, idle, idle_table
from tracelane.core.tables.scope import Scope


@needs_corpus
@needs_goldens
@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_classes_equal_the_exact_reference(name: str, rank: str, corpus_cache: Path) -> None:
    """Per stream the rows, the idle time, and ns and number of gaps of each class are exact."""
    expected = golden(name)["per_rank"][rank][EXACT]["idle_breakdown"]
    rows = {
        row["stream"].replace(" ", ""): row
        for row in idle_table(idle(Scope(opened(name, rank, corpus_cache), allocations=True)))
    }
    assert rows.keys() == expected.keys()
    for stream, row in rows.items():
        theirs = expected[stream]
        assert row["slices"] == theirs["rows"]
        assert row["idle_ns"] == theirs["total_idle"]
        for kind in GAP_CLASSES:
            class_ = theirs.get(kind, {"idle": 0, "gaps": 0})
            assert (row[f"{kind}_ns"], row[f"{kind}_gaps"]) == (class_["idle"], class_["gaps"]), (
                stream,
                kind,
            )


@needs_corpus
@needs_goldens
def test_longest_gaps_tell_what_ended_them(corpus_cache: Path) -> None:
    """The listed gaps are the longest, each from the end of one slice to the start of the next, and a host
    wait names a launch that began inside the gap.
    """
    trace = opened("hta_a100_resnet_ddp_nccl", "0", corpus_cache)
    work = idle(Scope(trace))
    gaps = gap_rows(work)
    lengths = np.sort(gaps.gap)[::-1]
    table = gap_table(work, 25)
    assert table.data["gap_ns"].tolist() == lengths[:25].tolist()  # type: ignore[union-attr]
    assert table.positions is not None
    index = trace.indexes[0]
    waits = [row for row in table.rows() if row["class"] == "host_wait"]
    assert waits
    for row in waits:
        assert 0 < row["launch_after_ns"] <= row["gap_ns"]
    for row, position in zip(table.rows(), table.positions.tolist()):
        assert index.start(position) == row["start_ns"] + row["gap_ns"]
        assert row["launch"].startswith("cuda") and row["host"]
    columns = index.column("slices.start")
    assert (columns[gaps.position] == gaps.start).all()
    assert (columns[gaps.before] + index.duration(gaps.before) == gaps.reach).all()
    assert (gaps.launch >= 0).all()
    assert sum(table.data["gap_ns"].tolist()) <= idle_table(work).totals["idle_ns"]  # type: ignore[union-attr]


@needs_corpus
@needs_goldens
def test_the_limit_of_a_kernel_wait_can_be_set(corpus_cache: Path) -> None:
    """With no limit at all every gap that the host did not cause is "other"; the host's stay the same."""
    scope = Scope(opened("tl_h100_qwen_infer", "0", corpus_cache))
    (usual,), (strict,) = idle_table(idle(scope)), idle_table(idle(scope, 0))
    for what in ("ns", "gaps"):
        assert strict[f"kernel_wait_{what}"] == 0
        assert strict[f"other_{what}"] == usual[f"kernel_wait_{what}"]
        assert strict[f"host_wait_{what}"] == usual[f"host_wait_{what}"]
