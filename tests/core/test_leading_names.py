"""The name that takes most time among the slices of a window: exact, or said to be of a sample."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.small_index import L, S, write_index
from tracelane.core.index.store import Index
from tracelane.core.query.leading_names import BLOCK_READ, LeadingName, RowSlices, leading_names

NAMES = ("gemm", "copy", "relu")


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> tuple[RowSlices, list[S]]:
    """A row of 6,000 slices with pauses, in which a name that is rare at first takes most time at last."""
    chance, at, slices = np.random.default_rng(3), 1_000, []
    for number in range(6_000):
        name = NAMES[int(chance.integers(3))] if number < 4_000 else NAMES[number % 4 % 3]
        ns = int(chance.integers(0, 50)) * (3 if name == "copy" and number > 4_000 else 1)
        slices.append(S(at, ns, name))
        at += ns + int(chance.integers(0, 30))
    folder = tmp_path_factory.mktemp("index") / "index"
    write_index(folder, [L(slices, one_row=True)])
    index = Index.open(folder)
    return RowSlices(index, 0, index.column("slices.start")[:]), slices


def plain(slices: list[S], left: int, right: int) -> tuple[Counter[str], int]:
    """Return the ns of each name inside a window, and how many slices touch it."""
    totals: Counter[str] = Counter()
    count = 0
    for one in slices:
        inside = min(one.end, right) - max(one.start, left)
        if inside > 0 or left <= one.start < right:
            count += 1
            totals[one.name] += max(0, inside)
    return totals, count


@pytest.mark.slow
@given(st.lists(st.integers(0, 300_000), min_size=2, max_size=8, unique=True))
def test_the_name_and_its_share_are_exact(row: tuple[RowSlices, list[S]], edges: list[int]) -> None:
    """Of windows whose slices are all read, name, share and count are what adding up one by one gives."""
    edges.sort()
    slices, listed = row
    for lead, left, right in zip(leading_names(slices, edges[:-1], edges[1:]), edges, edges[1:]):
        totals, count = plain(listed, left, right)
        assert lead.is_exact and lead.slices == count
        if not sum(totals.values()):
            assert lead.name == -1 and lead.share == 0
            continue
        name = slices.index.string(lead.name)
        assert totals[name] == max(totals.values())
        assert lead.share == pytest.approx(totals[name] / sum(totals.values()))


def test_a_sample_is_said_and_stays_while_panning(row: tuple[RowSlices, list[S]]) -> None:
    """Of more slices than may be read a sample says so, is near the truth, and reads the same blocks after a
    step to the side.
    """
    slices, listed = row
    whole = (0, listed[-1].end + 1)
    (lead,) = leading_names(slices, [whole[0]], [whole[1]], most=8 * BLOCK_READ)
    totals, count = plain(listed, *whole)
    assert not lead.is_exact and lead.slices == count
    assert abs(lead.share - totals[slices.index.string(lead.name)] / sum(totals.values())) < 0.1
    (aside,) = leading_names(slices, [listed[9].start], [whole[1]], most=8 * BLOCK_READ)
    assert aside.name == lead.name and abs(aside.share - lead.share) < 0.01


def test_a_filtered_row_counts_what_is_left(row: tuple[RowSlices, list[S]]) -> None:
    """Of a row of which a filter leaves some slices, only these count."""
    slices, listed = row
    left = np.array([i for i, one in enumerate(listed) if one.name == "relu"], np.int64)
    some = RowSlices(slices.index, 0, slices.starts[left], left)
    (lead,) = leading_names(some, [0], [listed[-1].end])
    assert lead == LeadingName(lead.name, 1.0, len(left), True)
    assert slices.index.string(lead.name) == "relu"
