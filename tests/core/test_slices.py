"""The slice table: columns stay together, names are tried once, times are those between other slices."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.events import complete, index_of
from tracelane.core.query.groups import Groups
from tracelane.core.tables.scope import Chunk, Scope
from tracelane.core.trace import Trace

EVENTS = [
    complete(0, 100, "step 1"),
    complete(10, 30, "gemm"),
    complete(20, 5, "copy"),
    complete(60, 20, "gemm"),
]


@pytest.fixture
def chunk(tmp_path: Path) -> Chunk:
    """A step, two gemms in it, and a copy in the first of these; the range cuts the step at both ends."""
    scope = Scope(Trace([index_of(EVENTS, tmp_path)]), (5_000, 90_000))
    (chunk,) = scope.chunks()
    return chunk


def test_taken_slices_keep_their_columns(chunk: Chunk) -> None:
    """By mask and by place the same; what the range cuts stays cut; all of them are the same object."""
    mask = np.array([True, False, False, True])
    subset = chunk.take(mask)
    assert [subset.texts[at] for at in subset.name.tolist()] == ["step 1", "copy"]
    assert subset.durations.tolist() == [85_000, 5_000] and subset.cut.tolist() == [0]
    assert subset.self_times.tolist() == chunk.self_times[mask].tolist() == [35_000, 5_000]
    again = chunk.take(np.array([3, 0]))
    assert again.positions.tolist() == chunk.positions[[3, 0]].tolist()
    assert chunk.take(np.ones(4, np.bool_)).positions is chunk.positions


def test_names_group_and_match(chunk: Chunk) -> None:
    """A pattern finds slices by name; the names of slices number their texts."""
    assert np.flatnonzero(chunk.named(re.compile("gemm|copy"))).tolist() == [1, 2, 3]
    groups = Groups(chunk.name, len(chunk.texts))
    total = dict(zip(chunk.texts, groups.sums(chunk.durations).tolist()))
    assert total == {"step 1": 85_000, "gemm": 50_000, "copy": 5_000}
    none = chunk.take(np.zeros(4, np.bool_))
    assert not len(none) and not none.named(re.compile("gemm")).any() and none.texts == ()


def test_what_lies_around_is_of_the_same_slices(chunk: Chunk) -> None:
    """The nearest slice around, and the time that none inside takes, leave out what was not taken."""
    assert chunk.around.tolist() == [-1, 0, 0, 1]
    assert chunk.own_ns.tolist() == [35_000, 25_000, 20_000, 5_000]
    outer = chunk.take(np.array([True, False, True, True]))
    assert outer.around.tolist() == [-1, 0, 0]
    assert outer.own_ns.tolist() == [60_000, 20_000, 5_000]
    assert chunk.union().length == 85_000 and chunk.union(np.array([1, 2])).length == 50_000
