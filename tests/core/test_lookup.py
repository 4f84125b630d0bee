"""Walking slices: at, next, previous, nearest, parent, child, flows - against brute force."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.small_index import L, S, write_index
from tracelane.core.index.store import Index
from tracelane.core.query.flows import flows_in, flows_out
from tracelane.core.query.lookup import (
    ancestors,
    child_at,
    children,
    count_children,
    locate_slice,
    nearest,
    next_after,
    previous_before,
    row_starts,
    slice_at,
)

nests = st.lists(
    st.tuples(st.integers(0, 60), st.one_of(st.just(0), st.integers(0, 40))), min_size=1, max_size=14
)


def opened(folder: Path, lanes: list[L], **more) -> Index:
    write_index(folder, lanes, **more)
    return Index.open(folder)


def in_row(index: Index, number: int) -> list[tuple[int, int]]:
    row = index.rows[number]
    first, count = int(row["first"]), int(row["count"])
    starts = index.column("slices.start")[first : first + count].tolist()
    return [(s, s + d) for s, d in zip(starts, index.duration(range(first, first + count)).tolist())]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(nests, st.integers(-3, 110))
def test_moves_in_a_row_equal_brute_force(tmp_path_factory: pytest.TempPathFactory, pairs, time) -> None:
    """What is at a time, next, before and nearest is what looking at every slice of the row finds."""
    index = opened(tmp_path_factory.mktemp("i"), [L(slices=[S(a, d) for a, d in pairs])])
    for number in range(len(index.rows)):
        row = in_row(index, number)
        covering = [i for i, (a, b) in enumerate(row) if a <= time < b or a == time]
        assert slice_at(index, number, time) == (covering[-1] if covering else None)
        after = [i for i, (a, _) in enumerate(row) if a > time]
        before = [i for i, (a, _) in enumerate(row) if a < time]
        assert next_after(index, number, time) == (after[0] if after else None)
        assert previous_before(index, number, time) == (before[-1] if before else None)
        closest = nearest(index, number, time)
        away = [0 if a <= time <= b else min(abs(a - time), abs(b - time)) for a, b in row]
        assert closest is not None and away[closest] == min(away)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(nests)
def test_children_are_those_whose_parent_it_is(tmp_path_factory: pytest.TempPathFactory, pairs) -> None:
    """Children, their count and the child at a time agree with the parent column, overlaps included."""
    index = opened(tmp_path_factory.mktemp("i"), [L(slices=[S(a, d) for a, d in pairs])])
    parents = index.column("slices.parent").tolist()
    for position in range(len(parents)):
        own = [p for p, parent in enumerate(parents) if parent == position]
        assert sorted(children(index, position)) == own
        assert count_children(index, position) == len(own)
        for child in own:
            inner = child_at(index, position, index.start(child))
            assert inner is not None and parents[inner] == position
        if not own:
            assert child_at(index, position, index.start(position)) is None
        number, at = locate_slice(index, position)
        assert int(index.rows[number]["first"]) + at == position


def test_ancestors_come_innermost_first(tmp_path: Path) -> None:
    """The way outward is parent by parent up to the top of the lane."""
    index = opened(tmp_path, [L(slices=[S(0, 100, "a"), S(1, 50, "b"), S(2, 10, "c"), S(60, 5, "d")])])
    names = index.strings(index.column("slices.name"))
    assert [names[p] for p in ancestors(index, names.index("c"))] == ["b", "a"]
    assert len(ancestors(index, names.index("c"), limit=1)) == 1


def test_flows_are_found_from_both_ends(tmp_path: Path) -> None:
    """One start with many ends, chains and unbound ends come out at the right slices."""
    lane = L(slices=[S(i * 10, 5, ordinal=i) for i in range(6)])
    arrows = [
        (0, 3, "ac2g"),
        (0, 4, "ac2g"),
        (1, 2, "fwdbwd"),
        (2, 3, "ac2g"),
        (None, 5, "ac2g"),
        (5, None, "ac2g"),
    ]
    index = opened(tmp_path, [lane], flows=arrows)
    ordinals = dict(enumerate(index.column("slices.ordinal").tolist()))
    for position, ordinal in ordinals.items():
        out = {(ordinals.get(f.target_position), f.category) for f in flows_out(index, position)}
        into = {(ordinals.get(f.source_position), f.category) for f in flows_in(index, position)}
        assert out == {(b, c) for a, b, c in arrows if a == ordinal}
        assert into == {(a, c) for a, b, c in arrows if b == ordinal}
    assert len(flows_out(index, 0, limit=1)) == 1


def test_marks_and_samples_are_walked_alike(tmp_path: Path) -> None:
    """Instants and samples have the same next, previous and nearest."""
    index = opened(tmp_path, [L(instants=[(5, "i", ""), (9, "i", "")], series={"w": [(1, 2.0), (4, 3.0)]})])
    for number in range(2):
        starts = row_starts(index, number).tolist()
        assert next_after(index, number, starts[0]) == 1
        assert previous_before(index, number, starts[1]) == 0
        assert nearest(index, number, -100) == 0 and nearest(index, number, 100) == 1
