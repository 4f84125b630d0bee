"""Results that are held so that going back shows them at once: few, and no more than memory has room for."""

from __future__ import annotations

import pytest

from tracelane.tui.stage import Recent


@pytest.mark.parametrize(
    ("sizes", "held"),
    [
        ((1, 1, 1, 1), "bcd"),
        ((4, 4, 4), "bc"),
        ((1, 1, 9), "bc"),
        ((9, 1), "ab"),
        ((20,), "a"),
        ((9, 20), "b"),
    ],
)
def test_few_results_are_held(sizes: tuple[int, ...], held: str) -> None:
    """The newest stay: up to three, which are no larger than 10 together, unless the last alone is."""
    recent: Recent[str, int] = Recent(3, lambda size: size, 10)
    for key, size in zip("abcd", sizes):
        recent.put(key, size)
        assert recent.get(key) == size
    assert "".join(key for key in "abcd" if recent.get(key) is not None) == held


def test_without_sizes_the_number_alone_counts() -> None:
    """The oldest goes; a result that is put again counts as new."""
    recent: Recent[str, str] = Recent(2)
    for key in "abac":
        recent.put(key, key)
    assert [recent.get(key) for key in "abc"] == ["a", None, "c"]
