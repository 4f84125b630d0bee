"""Gaps that come back, grouped by what lies before and after them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.hta import opened
from tests.corpus import needs_corpus, needs_goldens
from tracelane.core.analysis.gap_groups import recurring_gaps
from tracelane.core.analysis.idle import CLASSES, idle
from tracelane.core.analysis.scope import Scope
from tracelane.core.base.short_names import short_name


@needs_corpus
@needs_goldens
@pytest.mark.parametrize("name", ["hta_a100_resnet_ddp_nccl", "tl_mi300_resnet_train_rank0of8"])
def test_groups_are_those_of_a_plain_loop(name: str, corpus_cache: Path) -> None:
    """Number, sum, maximum and class of each pair of names are what a loop over all gaps finds."""
    found = idle(Scope(opened(name, "0", corpus_cache)))
    wanted: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for stream in found.streams:
        index = stream.work.index
        names = index.column("slices.name")
        for at in range(len(stream.starts)):
            before, after = (
                short_name(index.string(int(names[int(p[at])]))) for p in (stream.before, stream.after)
            )
            ns = int(stream.ends[at] - stream.starts[at])
            wanted.setdefault((before, after), []).append((ns, int(stream.kinds[at])))
    table = recurring_gaps(found)
    rows = {(str(row["before"]), str(row["after"])): row for row in table.rows()}
    assert rows.keys() == wanted.keys() and len(rows) == len(table)
    for pair, gaps in wanted.items():
        row, lengths = rows[pair], [ns for ns, _ in gaps]
        assert (row["gaps"], row["idle_ns"], row["max_ns"]) == (len(gaps), sum(lengths), max(lengths))
        times = [sum(ns for ns, kind in gaps if kind == number) for number in range(len(CLASSES))]
        assert row["class"] == CLASSES[times.index(max(times))]
    totals = [int(value) for value in table.data["idle_ns"]]
    assert totals == sorted(totals, reverse=True)
    assert table.totals["idle_ns"] == sum(stream.idle_ns for stream in found.streams)
