"""The frame of device work: its parts, its columns and its groups, against plain loops over the rows."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.events import complete, index_of
from tracelane.core.tables.frame import Frame, Words
from tracelane.core.tables.frame_columns import COLUMNS, GIVEN, NEVER, work_of
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Trace


@pytest.fixture
def work(tmp_path: Path) -> Frame:
    """The work of two devices with two streams each: launches, copies, gaps, and work that overlaps."""
    chance = random.Random(5)
    events: list[dict[str, Any]] = []
    for number in range(60):
        at, args = number * 20, {"correlation": number, "stream": 7 + number % 2}
        events.append(complete(at, 5, "cudaLaunchKernel", "cuda_runtime", args={"correlation": number}))
        name, category = chance.choice([("gemm", "kernel"), ("Memcpy DtoH", "gpu_memcpy"), ("add", "kernel")])
        start, length = at + chance.randrange(60), chance.randrange(1, 40)
        events.append(
            complete(start, length, name, category, pid=number % 4 // 2, tid=args["stream"], args=args)
        )
    return work_of(Scope(Trace([index_of(events, tmp_path)])))


def values_of(work: Frame, key: str) -> list[Any]:
    """Return a column as Python values."""
    values: list[Any] = getattr(work, key).tolist()
    return values


@pytest.mark.parametrize("key", [*GIVEN, *COLUMNS])
def test_a_column_is_the_same_in_a_part(work: Frame, key: str) -> None:
    """Chosen rows have the values that they have in the whole, whichever is asked first."""
    rows = np.random.default_rng(7).permutation(len(work))[:25]
    first = values_of(work[rows], key)
    assert first == [values_of(work, key)[row] for row in rows.tolist()] == values_of(work[rows][:], key)


def test_order_on_a_stream(work: Frame) -> None:
    """`reach`, `before` and `gap` are what a loop over each stream finds, in a frame of some rows as well."""
    for frame in (work, work.separate(np.arange(0, len(work), 3))):
        rows = zip(*(values_of(frame, key) for key in ("stream", "start", "end", "position", "reach", "gap")))
        ends: dict[int, int] = {}
        for stream, start, end, _, reach, gap in sorted(rows):
            assert reach == ends.get(stream, NEVER)
            assert gap == max(0, start - ends.get(stream, start))
            ends[stream] = max(end, reach)
        known = frame[frame.reach != NEVER]
        at = [values_of(work, "position").index(position) for position in values_of(known, "before")]
        assert (work.end[at] == known.reach).all()


def test_a_column_put_in_place_holds_below(work: Frame) -> None:
    """What `plus` gives stands in all parts of it, and not where it was taken from."""
    other = work.plus(gap_class=np.full(len(work), 9))
    assert set(values_of(other[::2].top("dur", 5), "gap_class")) == {9}
    assert 9 not in values_of(work, "gap_class")
    with pytest.raises(AttributeError, match="no column 'gapp'"):
        work.gapp  # noqa: B018


@pytest.mark.parametrize("keys", [("name",), ("stream",), ("device", "type"), ("name", "stream_name")])
def test_groups_are_those_of_a_plain_loop(work: Frame, keys: tuple[str, ...]) -> None:
    """Counts, sums and statistics by one or two columns are those of a dictionary; no row makes no group."""
    plain: dict[Any, list[int]] = defaultdict(list)
    for *key, ns in zip(*(values_of(work, key) for key in keys), values_of(work, "dur")):
        plain[tuple(key)].append(ns)
    groups = work.group(*keys)
    grouped = {
        tuple(values_of(part, key)[0] for key in keys): values_of(part, "dur") for part in groups.parts
    }
    assert grouped == plain and groups.size == len(plain)
    assert groups.sums(work.dur).tolist() == [sum(grouped[key]) for key in grouped]
    assert groups.statistics_of("dur")["max_ns"].tolist() == [max(grouped[key]) for key in grouped]
    slowest = groups.one_row("end", "position")
    assert slowest.end.tolist() == [part.end.min() for part in groups.parts]
    nothing = work[:0]
    assert (nothing.group(*keys).size, nothing.each().size, nothing.together().size) == (0, 0, 1)


def test_equal_texts_are_one_group(work: Frame) -> None:
    """Texts that are written twice make one group, in the order in which they appear by device."""
    words = Words(np.arange(len(work)), ["even" if row % 2 == 0 else "odd" for row in range(len(work))])
    groups = work.plus(row=words).group("row")
    assert [part.row.tolist()[0] for part in groups.parts] == ["even", "odd"]
    assert groups.counts.tolist() == [30, 30]
