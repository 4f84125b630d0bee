"""Sorting by several keys: as numpy's lexsort has it, whatever ties there are and however large keys are."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelane.core.index.order import grouped_by, order_by, settle_ties

SPANS = st.sampled_from([0, 1, 5, 1000, 1 << 40, (1 << 62) - 1])


@settings(max_examples=300, deadline=None)
@given(SPANS, st.integers(0, 70), st.integers(0, 1 << 20))
def test_equals_lexsort(span: int, n: int, seed: int) -> None:
    """Ties of two, of many and none go by the further keys, then by place, at any magnitude."""
    pick = np.random.default_rng(seed)
    first = pick.integers(-span, span + 1, n)
    second, place = pick.integers(0, 3, n), pick.permutation(n).astype(np.uint32)
    assert order_by(first, second, place).tolist() == np.lexsort((place, second, first)).tolist()
    assert order_by(first).tolist() == np.argsort(first, kind="stable").tolist()
    assert order_by(place).tolist() == np.argsort(place).tolist()
    first.sort()
    settled, want = settle_ties(first, second, place), np.lexsort((place, second, first)).tolist()
    assert (list(range(n)) if settled is None else settled.tolist()) == want


@settings(max_examples=200, deadline=None)
@given(SPANS, st.integers(0, 70), st.integers(0, 1 << 20))
def test_groups_of_some_entries(span: int, n: int, seed: int) -> None:
    """Some entries of a table stand by their keys, and each group begins where the first key changes."""
    pick = np.random.default_rng(seed)
    key = pick.integers(-span, span + 1, n)
    second, place = pick.integers(0, 3, n), pick.permutation(n)
    some = np.flatnonzero(pick.random(n) < 0.6)
    order, first = grouped_by(some, key, second, place)
    assert order.tolist() == sorted(some.tolist(), key=lambda i: (key[i], second[i], place[i]))
    values = key[order].tolist()
    assert first.tolist() == [i for i in range(len(values)) if i == 0 or values[i] != values[i - 1]]
