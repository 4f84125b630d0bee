"""Sets of time, against sets of single nanoseconds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.base.intervals import Intervals, merge

PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


def _set(pairs: list[tuple[int, int]]) -> set[int]:
    return {t for a, b in pairs for t in range(a, b)}


def _merged(pairs: list[tuple[int, int]]) -> Intervals:
    return merge(np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64))


def _points(intervals: Intervals) -> set[int]:
    assert (intervals.starts < intervals.ends).all()
    assert (intervals.starts[1:] > intervals.ends[:-1]).all()
    return {t for a, b in zip(intervals.starts, intervals.ends) for t in range(int(a), int(b))}


@given(PAIRS, PAIRS)
def test_set_algebra_is_that_of_points(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    """Union, intersection, difference and length are those of the sets of single nanoseconds."""
    x, y = _merged(a), _merged(b)
    assert _points(x) == _set(a)
    assert x.length == len(_set(a))
    assert _points(x.intersection(y)) == _set(a) & _set(b)
    assert _points(x.union(y)) == _set(a) | _set(b)
    assert _points(x.without(y)) == _set(a) - _set(b)


@given(PAIRS, st.integers(0, 60), st.integers(0, 60))
def test_windows(pairs: list[tuple[int, int]], low: int, high: int) -> None:
    """Clipping, gaps and covered time of a window count the window's nanoseconds."""
    x, window = _merged(pairs), set(range(low, high))
    assert _points(x.clipped(low, high)) == _set(pairs) & window
    if low < high:
        assert _points(x.gaps(low, high)) == window - _set(pairs)
        covered = x.covered(np.array([low], np.int64), np.array([high], np.int64))
        assert covered.tolist() == [len(_set(pairs) & window)]


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60)), max_size=12),
    st.lists(st.integers(-20, 300), min_size=1, max_size=8),
)
def test_what_lies_before_a_moment(intervals: list[tuple[int, int]], times: list[int]) -> None:
    """What is covered before a moment counts each ns once, however the intervals overlap."""
    starts = np.array([a for a, _ in intervals], np.int64)
    ends = np.array([a + d for a, d in intervals], np.int64)
    moments = {t for a, d in intervals for t in range(a, a + d)}
    expected = [sum(m < t for m in moments) for t in times]
    assert merge(starts, ends).before(np.array(times, np.int64)).tolist() == expected
