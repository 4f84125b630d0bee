"""Gaps that come back, grouped by what lies before and after them."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from tests.core.hta import opened
from tests.corpus import needs_corpus, needs_goldens
from tracelane.core.base.short_names import comparable_name
from tracelane.core.query.lookup import locate_slice
from tracelane.core.tables.gap import gap_of
from tracelane.core.tables.gap_groups import recurrence, recurring_gaps
from tracelane.core.tables.idle import CLASSES, idle
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.step_spans import step_spans


@needs_corpus
@needs_goldens
@pytest.mark.parametrize("name", ["hta_a100_resnet_ddp_nccl", "tl_mi300_resnet_train_rank0of8"])
def test_groups_are_those_of_a_plain_loop(name: str, corpus_cache: Path) -> None:
    """Number, sum, maximum, class and steps of each pair of names are what a loop over all gaps finds."""
    trace = opened(name, "0", corpus_cache)
    idle_times = idle(Scope(trace))
    expected: dict[tuple[str, str], list[tuple[int, int]]] = {}
    begun: dict[tuple[str, str], set[str]] = {}
    for stream in idle_times.streams:
        index = stream.work.index
        names = index.column("slices.name")
        for at in range(len(stream.starts)):
            before, after = (
                comparable_name(index.string(int(names[int(p[at])]))) for p in (stream.before, stream.after)
            )
            ns = int(stream.ends[at] - stream.starts[at])
            expected.setdefault((before, after), []).append((ns, int(stream.kinds[at])))
            steps = begun.setdefault((before, after), set())
            steps |= {step.label for step in trace.steps if step.start <= stream.starts[at] < step.end}
    table = recurring_gaps(idle_times, step_spans(trace))
    assert table.totals["steps"] == len(trace.steps)
    rows = {(str(row["before"]), str(row["after"])): row for row in table.rows()}
    assert rows.keys() == expected.keys() and len(rows) == len(table)
    for pair, gaps in expected.items():
        row, lengths = rows[pair], [ns for ns, _ in gaps]
        assert (row["gaps"], row["idle_ns"], row["max_ns"]) == (len(gaps), sum(lengths), max(lengths))
        times = [sum(ns for ns, kind in gaps if kind == number) for number in range(len(CLASSES))]
        assert row["steps"] == len(begun[pair])
        assert row["class"] == CLASSES[times.index(max(times))]
    totals = [int(value) for value in table.data["idle_ns"]]
    assert totals == sorted(totals, reverse=True)
    assert table.totals["idle_ns"] == sum(stream.idle_ns for stream in idle_times.streams)
    assert "steps" not in recurring_gaps(idle_times).data


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("name", ["hta_a100_resnet_ddp_nccl", "tl_mi300_resnet_train_rank0of8"])
def test_one_gap_through_the_steps(name: str, corpus_cache: Path) -> None:
    """How often a gap comes back, in how many steps and how long, is what a loop over its stream finds; its
    bounds and class are those of the idle breakdown.
    """
    trace = opened(name, "0", corpus_cache)
    steps = [(step.start, step.end) for step in trace.steps]
    stream = max(idle(Scope(trace)).streams, key=lambda stream: stream.slices)
    index = stream.work.index
    names = [
        tuple(map(comparable_name, index.strings(index.column("slices.name")[[before, after]])))
        for before, after in zip(stream.before.tolist(), stream.after.tolist())
    ]
    checked = 0
    for at in range(0, len(stream.starts), max(1, len(stream.starts) // 40)):
        number, slot = locate_slice(index, int(stream.after[at]))
        row = trace.row_number(stream.work.device.source, number)
        gap = gap_of(trace, row, slot)
        assert gap is not None and gap.kind == CLASSES[int(stream.kinds[at])]
        assert (gap.start, gap.end) == (int(stream.starts[at]), int(stream.ends[at]))
        alike = [
            (int(stream.starts[n]), int(stream.ends[n])) for n in range(len(names)) if names[n] == names[at]
        ]
        inside = [any(low <= start < high for start, _ in alike) for low, high in steps]
        repeats = recurrence(trace, row, slot, steps)
        assert (repeats.count, repeats.steps, repeats.of) == (len(alike), sum(inside), len(steps))
        assert repeats.median_ns == statistics.median(end - start for start, end in alike)
        checked += 1
    assert checked > 10
