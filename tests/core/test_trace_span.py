"""How far a trace reaches: no event of it lies outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.events import complete, event, open_events


@pytest.mark.parametrize(
    ("more", "span"),
    [
        ([], (1_000, 11_000)),
        ([event("i", 11, "at the end", s="t")], (1_000, 11_001)),
        ([event("i", 11, "of another thread", s="t", tid=9)], (1_000, 11_001)),
        ([event("i", 1, "at the start", s="t")], (1_000, 11_000)),
        ([event("i", 0.5, "before", s="t")], (500, 11_000)),
        ([complete(11, 0, "empty")], (1_000, 11_001)),
        ([complete(2, 9, "as long")], (1_000, 11_000)),
        ([event("C", 11, "counter", args={"n": 1})], (1_000, 11_001)),
    ],
)
def test_every_event_lies_within(
    more: list[dict[str, object]], span: tuple[int, int], tmp_path: Path
) -> None:
    """The span ends after the last slice, and one ns after what begins there."""
    assert open_events(tmp_path, [complete(1, 10, "slice"), *more]).span == span
