"""A promoted number of many slices at once is that of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.index.store import Index
from tracelane.core.query.lookup import promoted_of

NEVER = -(1 << 63)
SPAN = 400
"""Positions of which few and many are looked up: both ways are tried."""


@dataclass(frozen=True)
class Columns:
    """The columns of an index that hold one argument."""

    of: dict[str, np.ndarray]

    def column(self, name: str) -> np.ndarray:
        """Return a column by name."""
        return self.of[name]


def index_of(known: dict[int, Any], dtype: str, of: str) -> Index:
    holders = sorted(known)
    value = "value" if of == "position" else f"{of}_value"
    columns = {f"promoted.key.{of}": np.array(holders, np.uint32)}
    columns[f"promoted.key.{value}"] = np.array([known[at] for at in holders], dtype)
    return cast("Index", Columns(columns))


@given(
    st.dictionaries(st.integers(0, SPAN), st.integers(0, 200), max_size=60),
    st.one_of(
        st.lists(st.integers(0, SPAN), max_size=90), st.lists(st.sampled_from([0, 7, SPAN]), max_size=3)
    ),
    st.sampled_from(["u1", "u4", "i8", "f8"]),
    st.sampled_from([0, -1, NEVER]),
    st.sampled_from(["position", "instant"]),
)
def test_each_slice_has_its_own_number(
    known: dict[int, int], positions: list[int], dtype: str, missing: int, of: str
) -> None:
    """In any order, however often and however many: its number, or what stands for none."""
    for chosen in (positions, sorted(positions), sorted(known)):
        numbers = promoted_of(index_of(known, dtype, of), "key", np.array(chosen, np.int64), missing, of)
        assert numbers.tolist() == [known.get(at, missing) for at in chosen]
        assert numbers.dtype == np.result_type(np.dtype(dtype), np.int64)
