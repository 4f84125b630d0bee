"""The sparse table of ranks and collectives agrees with a plain one; small groups cost what they hold."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.base.arrays import I64
from tracelane.core.trace.alignment import fitted_offsets
from tracelane.core.trace.attendance import Attendance, medians
from tracelane.core.trace.collectives import Collectives, match

CELLS = st.dictionaries(
    st.tuples(st.integers(0, 6), st.integers(0, 4)), st.integers(-(10**6), 10**6), min_size=1
)


def table_of(cells: dict[tuple[int, int], int]) -> tuple[Attendance, I64]:
    """Return cells as a table whose collectives are numbered without holes, and their values."""
    rows = sorted({row for row, _ in cells})
    keys = sorted(cells)
    collective = np.array([rows.index(row) for row, _ in keys], np.int64)
    who = Attendance(len(rows), 5, collective, np.array([rank for _, rank in keys], np.int64))
    return who, np.array([cells[key] for key in keys], np.int64)


@given(CELLS)
def test_reductions_are_those_of_a_plain_table(cells: dict[tuple[int, int], int]) -> None:
    """Least, most, sum and the entries of a rank, against dictionaries."""
    who, values = table_of(cells)
    plain = [
        [value for key, value in sorted(cells.items()) if key[0] == row]
        for row in sorted({k[0] for k in cells})
    ]
    assert who.least(values).tolist() == [min(row) for row in plain]
    assert who.most(values).tolist() == [max(row) for row in plain]
    assert who.sums(values).tolist() == [sum(row) for row in plain]
    for rank in range(5):
        assert sorted(values[who.of_rank(rank)].tolist()) == sorted(
            v for (_, r), v in cells.items() if r == rank
        )
    middles, counts = medians(who.collective, values, who.collectives)
    assert counts.tolist() == [len(row) for row in plain]
    assert all(abs(m - statistics.median(row)) < 1 for m, row in zip(middles.tolist(), plain))


@pytest.mark.slow
@given(CELLS, st.sets(st.integers(0, 40)))
def test_taken_collectives_have_two_ranks_at_least(cells: dict[tuple[int, int], int], out: set[int]) -> None:
    """Entries that are left alone go with those that were left out."""
    who, values = table_of(cells)
    mask = np.array([at not in out for at in range(len(who))], np.bool_)
    subset, left = who.take(mask)
    assert all(subset.sizes > 1)
    by_row: dict[int, list[int]] = {}
    for at in np.flatnonzero(mask).tolist():
        by_row.setdefault(int(who.collective[at]), []).append(int(values[at]))
    assert values[left].tolist() == [value for row in by_row.values() if len(row) > 1 for value in row]


def pipeline(ranks: int) -> list[Collectives]:
    """Return ranks in a row, each sharing ten collectives with the next, rank n's clock n µs ahead."""
    by_rank = []
    for rank in range(ranks):
        groups = [(f"pp_{at}", "all_reduce") for at in (rank - 1, rank) if 0 <= at < ranks - 1]
        family = np.repeat(np.arange(len(groups), dtype=np.int64), 10)
        number = np.tile(np.arange(10, dtype=np.int64), len(groups))
        ends = 10**6 * (1 + number) + 1000 * rank
        by_rank.append(
            Collectives(
                np.arange(len(ends), dtype=np.int64),
                ends - 500,
                ends,
                tuple(groups),
                family,
                number,
                (True,) * len(groups),
            )
        )
    return by_rank


@pytest.mark.parametrize("ranks", [2, 7, 1024])
def test_ranks_in_a_row_are_aligned_over_each_other(ranks: int) -> None:
    """Every rank is reached over the one before it; a table of 1,024 ranks by 10,230 collectives would take
    84 MB a column.
    """
    matched = match(pipeline(ranks))
    assert len(matched) == 10 * (ranks - 1) and len(matched.who) == 2 * len(matched)
    clocks = fitted_offsets(matched, [0] * ranks)
    assert [clock.offset_ns for clock in clocks] == [-1000 * rank for rank in range(ranks)]
    assert {clock.residual_ns for clock in clocks} == {0}
