"""The kernel table: against HTA's exact numbers and against plain Python statistics."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.core.hta import EXACT, RANKS, golden, opened, rule_050
from tests.corpus import needs_corpus, needs_goldens
from tracelane.core.base.short_names import short_names
from tracelane.core.tables.kernels import kernels
from tracelane.core.tables.scope import Scope

WORDS = {"COMPUTATION": "compute", "COMMUNICATION": "communication", "MEMORY": "memory"}


@needs_corpus
@needs_goldens
@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_rows_equal_the_exact_reference(name: str, rank: str, corpus_cache: Path) -> None:
    """Per name the count, sum, min, max are exact; mean and deviation to rounding; the type is HTA's."""
    table = kernels(Scope(opened(name, rank, corpus_cache), allocations=True), rule=rule_050)
    expected = {row["name"]: row for row in golden(name)["per_rank"][rank][EXACT]["kernels"]}
    rows = {str(row["name"]): row for row in table.rows()}
    assert rows.keys() == expected.keys()
    for label, row in rows.items():
        theirs = expected[label]
        exact = (theirs["count"], theirs["sum"], theirs["min"], theirs["max"])
        assert (row["count"], row["total_ns"], row["min_ns"], row["max_ns"]) == exact
        assert row["mean_ns"] == pytest.approx(theirs["mean"], abs=1e-6)
        if row["count"] == 1:
            assert row["stdev_ns"] is None
        else:
            assert row["stdev_ns"] == pytest.approx(theirs["std"], rel=1e-9, abs=1e-6)
        assert row["type"] == WORDS[theirs["kernel_type"]]
    totals = table.data["total_ns"]
    assert all(a >= b for a, b in pairwise(totals)), "most time first"


@needs_corpus
@needs_goldens
def test_groups_hold_the_same_time(corpus_cache: Path) -> None:
    """By short name, stream or type the rows hold the same slices; jumps lead to the longest of a row."""
    trace = opened("hta_a100_resnet_ddp_nccl", "0", corpus_cache)
    by_name = kernels(Scope(trace))
    for by in ("short", "stream", "type"):
        table = kernels(Scope(trace), by)
        assert int(np.sum(table.data["count"])) == by_name.totals["count"]
        assert int(np.sum(table.data["total_ns"])) == by_name.totals["total_ns"]
    types = {str(row["name"]): row["type"] for row in kernels(Scope(trace), "stream").rows()}
    assert {name.split()[-1]: kind for name, kind in types.items()} == {"7": "mixed", "40": "communication"}
    assert by_name.positions is not None
    index = trace.indexes[0]
    for row, position in zip(by_name.rows(), by_name.positions.tolist()):
        assert index.string(int(index.column("slices.name")[position])) == row["name"]
        assert int(index.duration([position])[0]) == row["max_ns"]
    short = kernels(Scope(trace), "short")
    assert sorted(short.data["name"]) == sorted(short_names(sorted(by_name.texts("name"))))
