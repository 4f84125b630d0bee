"""The host's slices in the time that is looked at are cut to it, whichever side they reach beyond."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.findings_traces import op, trace_of
from tracelane.core.tables.findings.facts import SourceFacts
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.peers.skew import RankPart

SLICES = {"early": (0, 10), "around": (20, 100), "inner": (40, 20), "late": (130, 10)}
"""Names with start and duration, µs; "inner" lies in "around"."""


@pytest.mark.parametrize("window", [(0, 140), (0, 200), (0, 110), (5, 140), (5, 135), (50, 55), (125, 128)])
def test_the_host_is_cut_to_the_window(window: tuple[int, int], tmp_path: Path) -> None:
    """Each slice is there with its part of the window, none that lies outside, and no self time beyond."""
    facts = SourceFacts(RankPart(Scope(trace_of([op(*one, name) for name, one in SLICES.items()], tmp_path))))
    low, high = (1000 * edge for edge in window)
    facts.capture.__dict__["window"] = low, high
    host = facts.host
    parts = {
        name: (max(low, 1000 * start), min(high, 1000 * (start + duration)))
        for name, (start, duration) in SLICES.items()
    }
    expected = {name: part for name, part in parts.items() if part[0] < part[1]}
    labels = [host.label(number) for number in host.name.tolist()]
    assert dict(zip(labels, zip(host.starts.tolist(), host.ends.tolist()))) == expected
    assert (host.self_ns <= host.ends - host.starts).all()
