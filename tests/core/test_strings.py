"""Strings of several tables become one table, numbered in the order of first use."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.loops import BOTH, loops_of
from tracelane.core.index import batches as module
from tracelane.core.index.batches import SourceStrings
from tracelane.core.index.column_files import ColumnFiles
from tracelane.core.read.batch import string_table

TEXTS = [["", "b", "a", "naïve ☃"], [""], ["", "a", "x" * 3000, "b", "c"]]


def source_strings(kind: str, tables: list[list[str]]) -> SourceStrings:
    encoded = [string_table([text.encode() for text in texts], []) for texts in tables]
    return SourceStrings(encoded, loops_of(kind), np.empty)


def written(strings: SourceStrings, kind: str, folder: Path) -> list[str]:
    with ColumnFiles(folder, "u1") as columns:
        strings.write(columns.writer("blob", "u1"), columns.writer("offset", "i8"), loops_of(kind))
        columns.finish()
        blob, offsets = columns.read("blob").tobytes(), columns.read("offset").tolist()
    return [blob[a:b].decode() for a, b in pairwise(offsets)]


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("piece", [1, 10, 1 << 16])
def test_numbers_follow_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, piece: int
) -> None:
    """Texts are numbered as they are used first, whichever table has them, and written by number."""
    monkeypatch.setattr(module, "STRING_PIECE", piece)
    strings = source_strings(kind, TEXTS)
    strings.use(2, np.array([4, 1], np.uint32))
    strings.use(0, np.array([2, 1, 3], np.uint32))
    strings.use(2, np.array([1, 3, 2], np.uint32))
    assert [numbers.tolist() for numbers in strings.maps[:3]] == [
        [0, 3, 2, 4], [0], [0, 2, 5, 3, 1]
    ]  # fmt: skip
    assert strings.numbers(["b", "new", "", "newer", "new"]).tolist() == [3, 6, 0, 7, 6]
    texts = ["", "c", "a", "b", "naïve ☃", "x" * 3000, "new", "newer"]
    assert written(strings, kind, tmp_path) == texts
    assert [strings.text(number) for number in range(strings.count)] == texts


@pytest.mark.parametrize("kind", BOTH)
def test_without_any_string(tmp_path: Path, kind: str) -> None:
    """The empty string is always there, as number 0."""
    strings = source_strings(kind, [])
    assert strings.count == 1 and strings.numbers([""]).tolist() == [0]
    assert written(strings, kind, tmp_path) == [""]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    texts=st.lists(st.text(max_size=12), max_size=40, unique=True),
    uses=st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 39), max_size=20)), max_size=8),
)
def test_tables_do_not_matter(texts: list[str], uses: list[tuple[int, list[int]]]) -> None:
    """The same uses give the same numbers, whatever the tables in which the texts stand, in C too."""
    texts = ["", *(text for text in texts if text)]
    orders = [list(range(len(texts))), [0, *range(len(texts) - 1, 0, -1)]]
    tables = [[texts[number] for number in order] for order in orders]
    results = []
    for kind in BOTH:
        for given_tables in ([tables[0]], tables, [tables[1], tables[0], tables[1]]):
            strings = source_strings(kind, given_tables)
            for table, some in uses:
                table %= len(given_tables)
                where = [given_tables[table].index(texts[one]) for one in some if one < len(texts)]
                strings.use(table, np.array(list(dict.fromkeys(where)), np.uint32))
            results.append([strings.text(number) for number in range(strings.count)])
    want = dict.fromkeys(["", *(texts[one] for _, some in uses for one in some if one < len(texts))])
    assert all(result == list(want) for result in results)


def test_many_strings() -> None:
    """The hash table grows, and every text is found again."""
    texts = ["", *(f"name {number}" for number in range(20_000))]
    strings = source_strings("native", [texts, texts[::-1][:-1]])
    for at in range(1, len(texts), 700):
        strings.use(0, np.arange(at, min(at + 700, len(texts)), dtype=np.uint32))
    assert strings.count == len(texts)
    strings.use(1, np.arange(len(texts) - 1, dtype=np.uint32))
    assert strings.count == len(texts)
    assert strings.numbers(texts).tolist() == list(range(len(texts)))
