"""Arithmetic on columns, held against plain loops over whole numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.base.arrays import (
    I64,
    MAX,
    MIN,
    Intervals,
    add_at,
    added_up,
    added_upwards,
    concatenated_ranges,
    distinct,
    distinct_rows,
    mean_of,
    means_of,
    merge,
    places_in,
    run_starts,
    running_sums,
    sorted_groups,
    sum_of,
    sums_between,
)

SMALL = st.integers(-9, 9)
LARGE = st.one_of(st.sampled_from([MIN, MAX, 1 << 62, -(1 << 62), 1 << 61, 1 << 31]), st.integers(MIN, MAX))
NUMBERS = st.one_of(st.lists(SMALL, max_size=9), st.lists(LARGE, max_size=9))


def column(values: list[int]) -> I64:
    return np.array(values, np.int64)


def in_range(total: int) -> int:
    """Return a sum as int64 holds it: at its edge where it lies beyond."""
    return min(max(total, MIN), MAX)


@given(NUMBERS, st.data())
def test_sums_are_exact_or_at_the_edge(values: list[int], data: st.DataObject) -> None:
    """Sums of all, of runs, of ranges and up to each value are those of whole numbers; none wraps around."""
    array, size = column(values), len(values)
    assert sum_of(array) == sum_of(values) == in_range(sum(values))
    assert running_sums(array).tolist() == [in_range(sum(values[: at + 1])) for at in range(size)]
    low, high = sorted(data.draw(st.tuples(st.integers(0, size), st.integers(0, size))))
    assert sums_between(array, column([low]), column([high])).tolist() == [in_range(sum(values[low:high]))]
    if values:
        begins = sorted({0} | data.draw(st.sets(st.integers(0, size - 1))))
        ends = [*begins[1:], size]
        expected = [in_range(sum(values[begin:end])) for begin, end in zip(begins, ends)]
        assert added_up(array, column(begins)).tolist() == expected
        if MIN < sum(values) < MAX:
            assert mean_of(array) == sum(values) / size


def test_of_sums_at_the_edge_no_mean_is_told() -> None:
    """A total that stays at the limit may be any beyond it; nothing is divided by none."""
    means = means_of(column([MAX, MAX - 1, 7, 0]), column([2, 1, 2, 0])).tolist()
    assert np.isnan(means[0]) and means[1:] == [float(MAX - 1), 3.5, 0.0]


@given(st.lists(st.tuples(st.integers(0, 3), LARGE), max_size=6), st.lists(LARGE, min_size=4, max_size=4))
def test_values_are_added_where_they_belong(pairs: list[tuple[int, int]], before: list[int]) -> None:
    """Each value goes to its own sum; all others stay as they were."""
    sums = column(before)
    add_at(sums, column([at for at, _ in pairs]), column([value for _, value in pairs]))
    more = [in_range(sum(value for at, value in pairs if at == number)) for number in range(len(before))]
    assert sums.tolist() == [in_range(old + added) for old, added in zip(before, more)]


@given(st.lists(st.tuples(SMALL, st.integers(-1, 30)), max_size=9))
def test_a_node_has_the_sum_of_what_is_below(nodes: list[tuple[int, int]]) -> None:
    """The total of a node is its own and its children's totals."""
    own = [value for value, _ in nodes]
    parents = [min(parent, at - 1) for at, (_, parent) in enumerate(nodes)]
    totals = added_upwards(column(own), column(parents)).tolist()
    for at, total in enumerate(totals):
        assert total == own[at] + sum(totals[child] for child, parent in enumerate(parents) if parent == at)


@given(st.lists(st.tuples(SMALL, st.integers(0, 4)), max_size=6))
def test_ranges_follow_one_another(ranges: list[tuple[int, int]]) -> None:
    """All numbers of the first range come before those of the second."""
    expected = [number for first, count in ranges for number in range(first, first + count)]
    starts, counts = column([first for first, _ in ranges]), column([count for _, count in ranges])
    assert concatenated_ranges(starts, counts).tolist() == expected


@given(
    st.lists(SMALL),
    st.lists(SMALL),
    st.sampled_from([("i8", 0), ("i8", MIN + 100), ("i8", MAX - 100), ("u4", 100), ("u8", (1 << 64) - 101)]),
    st.sampled_from([1, 1000]),
)
def test_places_are_where_values_stand(
    members: list[int], values: list[int], numbers: tuple[str, int], spread: int
) -> None:
    """A value's place is the first index at which it stands, -1 where it is not there: near and far numbers,
    which are found in two ways, of any type.
    """
    dtype, base = numbers
    ascending = np.array([base + (at * spread if base == 0 else at) for at in sorted(members)], dtype)
    keys = np.array([base + (at * spread if base == 0 else at) for at in values], dtype)
    expected = [int(np.flatnonzero(ascending == one)[0]) if one in ascending else -1 for one in keys]
    assert places_in(ascending, keys).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), SMALL), max_size=9))
def test_groups_are_runs_of_the_order(rows: list[tuple[int, int, int]]) -> None:
    """Rows are ordered by their keys, then within; a group is a run of equal keys, numbered from 0."""
    first, second, inner = (column([row[at] for row in rows]) for at in range(3))
    order, groups = sorted_groups((first, second), (inner,))
    ordered = [rows[at] for at in order.tolist()]
    assert ordered == sorted(rows)
    keys = sorted({row[:2] for row in rows})
    numbers = [keys.index(row[:2]) for row in ordered]
    begins = [at for at in range(len(rows)) if at == 0 or numbers[at] != numbers[at - 1]]
    assert run_starts(first[order], second[order]).tolist() == begins
    assert (groups - groups[:1]).tolist() == numbers


@given(NUMBERS)
def test_distinct_values_are_in_order(values: list[int]) -> None:
    """Each value is there once, the least first."""
    assert distinct(column(values)).tolist() == sorted(set(values))


@given(st.lists(st.tuples(SMALL, LARGE), max_size=9))
def test_distinct_rows_are_in_order(rows: list[tuple[int, int]]) -> None:
    """Each row is there once, ordered by its first value, then by its second."""
    first, second = distinct_rows(*(column([row[at] for row in rows]) for at in (0, 1)))
    assert list(zip(first.tolist(), second.tolist())) == sorted(set(rows))


SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=8)


def time_of(spans: list[tuple[int, int]]) -> Intervals:
    return merge(*(column([span[at] for span in spans]) for at in (0, 1)))


def moments(times: Intervals) -> set[int]:
    """Return the whole ns of a set of time, whose form is looked at: in order, apart from each other."""
    edges = np.stack([times.starts, times.ends], axis=1).ravel()
    assert edges.dtype == np.int64 and (np.diff(edges) > 0).all()
    return {ns for low, high in edges.reshape(-1, 2).tolist() for ns in range(low, high)}


@given(SPANS, SPANS, st.integers(-2, 22), st.integers(-2, 22))
def test_sets_of_time_are_sets_of_moments(
    spans: list[tuple[int, int]], others: list[tuple[int, int]], low: int, high: int
) -> None:
    """Union, intersection, difference, gaps, clipping are those of the moments; reversed spans have none."""
    one, other = ({ns for span in each for ns in range(*span)} for each in (spans, others))
    time, more, window = time_of(spans), time_of(others), set(range(low, high))
    assert moments(time) == one and moments(time.union(more)) == one | other
    assert moments(time.intersection(more)) == one & other and moments(time.without(more)) == one - other
    assert moments(time.clipped(low, high)) == one & window
    assert moments(time.gaps(low, high)) == window - one
    assert time.length == len(one) and time.covered(column([low]), column([max(low, high)])) == len(
        one & window
    )
