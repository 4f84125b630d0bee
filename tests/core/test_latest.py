"""The latest row of a group up to a time, against a look at every row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.tables.path.path_points import latest

SMALL = st.integers(0, 3)


@given(
    st.lists(st.tuples(SMALL, SMALL), max_size=6), st.lists(st.tuples(SMALL, st.integers(-1, 4)), max_size=5)
)
def test_the_latest_row_of_a_group(rows: list[tuple[int, int]], queries: list[tuple[int, int]]) -> None:
    """For each query it is the row of its group of the latest time up to its own, of several the smallest id;
    where there is none, no row.
    """
    groups, times = (np.array([row[at] for row in rows], np.int64) for at in range(2))
    ids = np.arange(len(rows), dtype=np.int64)[::-1].copy()
    of, until = (np.array([query[at] for query in queries], np.int64) for at in range(2))
    answers = latest(groups, times, ids, of, until).tolist()
    for (group, limit), answer in zip(queries, answers):
        able = [at for at, (own, time) in enumerate(rows) if own == group and time <= limit]
        if able:
            assert answer == max(able, key=lambda at: (rows[at][1], -int(ids[at])))
        else:
            assert answer < 0
