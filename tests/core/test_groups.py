"""Columns put together, and what is answered of distinct numbers, held against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.base.arrays import I64
from tracelane.core.query.groups import concatenated_columns, dense, of_distinct

PARTS = st.lists(st.lists(st.tuples(st.integers(0, 99), st.booleans()), max_size=4), max_size=4)
NUMBERS = st.lists(st.one_of(st.integers(-9, 9), st.sampled_from([-(1 << 40), 1 << 40])), max_size=12)


@given(PARTS, st.integers(0, 3))
def test_columns_are_those_of_the_parts(parts: list[list[tuple[int, bool]]], spare: int) -> None:
    """Rows follow each other in order, each column with its type, whether there is room for more or not."""
    rows = [row for part in parts for row in part]
    pieces = [
        (np.array([a for a, _ in part], np.uint8), np.array([b for _, b in part], np.bool_)) for part in parts
    ]
    columns = concatenated_columns(iter(pieces), len(rows) + spare)
    assert len(columns) == (2 if parts else 0)
    assert list(zip(*(column.tolist() for column in columns))) == rows
    assert [column.dtype for column in columns] == ([np.uint8, np.bool_] if parts else [])


@given(NUMBERS)
def test_distinct_numbers_are_asked_once(numbers: list[int]) -> None:
    """Near and far numbers, which are told apart in two ways: each has the answer to itself."""
    heard: list[int] = []

    def answers(distinct: I64) -> I64:
        heard.extend(distinct.tolist())
        return distinct * 3

    assert of_distinct(np.array(numbers, np.int64), answers).tolist() == [3 * number for number in numbers]
    assert heard == sorted(set(numbers))


@given(NUMBERS)
def test_dense_numbers_are_places_among_the_distinct(numbers: list[int]) -> None:
    """What numbers are, by their places: the numbers themselves."""
    rows, distinct = dense(np.array(numbers, np.int64))
    assert distinct.tolist() == sorted(set(numbers))
    assert distinct[rows].tolist() == numbers


@pytest.mark.parametrize("dtype", ["u1", "u4", "i4"])
def test_answers_have_the_type_of_answers(dtype: str) -> None:
    """Numbers of a small type may have large answers."""
    values = np.array([7, 0, 7], dtype)
    assert of_distinct(values, lambda distinct: distinct + (1 << 40)).tolist() == [
        (1 << 40) + v for v in (7, 0, 7)
    ]
