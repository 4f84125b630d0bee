"""The host's calls of some names as a frame: which there are, what lies around each, and their own time."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.events import complete, index_of
from tracelane.core.base.clock import Clocks
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.call_columns import calls_named, members_around
from tracelane.core.trace import Trace

EVENTS = [
    complete(0, 100, "call outer", "cpu_op"),
    complete(10, 50, "between", "cpu_op"),
    complete(20, 30, "call inner", "cpu_op"),
    complete(25, 5, "call leaf", "cpu_op"),
    complete(70, 20, "call inner", "cpu_op"),
    complete(75, 5, "call kernel", "kernel"),
    complete(110, 5, "mine", "own"),
]


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Two sources: the calls of EVENTS, and of these only the last ones."""
    (tmp_path / "b").mkdir()
    return Trace([index_of(EVENTS, tmp_path), index_of(EVENTS[4:], tmp_path / "b")])


def test_calls_are_those_of_the_host(trace: Trace) -> None:
    """Calls are chosen by name among the host's, or a category is added, of each source by start."""
    calls = calls_named(Scope(trace), "call")
    assert list(zip(calls.source.tolist(), calls.name.tolist())) == [
        *((0, name) for name in ("call outer", "call inner", "call leaf", "call inner")),
        (1, "call inner"),
    ]
    assert calls.rank.tolist() == ["0"] * 4 + ["1"]
    assert calls_named(Scope(trace), "call", re.compile("call l.*")).name.tolist() == ["call leaf"]
    assert calls_named(Scope(trace), "mine").name.tolist() == []
    assert calls_named(Scope(trace), "mine", category="own").name.tolist() == ["mine"] * 2
    assert calls_named(Scope(trace), "no such", category="own", whole=True).name.tolist() == ["mine"] * 2
    some = calls_named(Scope(trace, source=0, where=lambda index, at: index.duration(at) > 20_000), "call")
    assert some.name.tolist() == ["call outer", "call inner"]


def test_a_range_has_what_begins_in_it(trace: Trace) -> None:
    """A call counts where it begins, with its whole time, whatever the range cuts."""
    begun = calls_named(Scope(trace, (20_000, 70_000), source=0), "call")
    assert begun.name.tolist() == ["call inner", "call leaf"]
    assert begun.dur.tolist() == [30_000, 5_000] and begun.start.tolist() == [20_000, 25_000]


def test_what_lies_around_is_of_the_same_calls(trace: Trace) -> None:
    """The nearest call around, and the time that none inside takes, leave out what was not asked for; both
    stay when rows are chosen.
    """
    calls = calls_named(Scope(trace), "call")
    assert calls.around.tolist() == [-1, 0, 1, 0, -1]
    assert calls.own_ns.tolist() == [50_000, 25_000, 5_000, 20_000, 20_000]
    last = calls[calls.source == 1]
    assert last.around.tolist() == [-1] and last.row.tolist() == [4]
    assert calls.union().length == 120_000 - 20_000
    outer = calls[np.isin(calls.row, [0, 4])]
    assert members_around(calls, outer, itself=True).tolist() == [0, 0, 0, 0, 4]
    assert members_around(calls, outer).tolist() == [-1, 0, 0, 0, -1]
    assert members_around(calls, calls[:0]).tolist() == [-1] * 5


def test_no_calls_have_all_columns(trace: Trace) -> None:
    """Of a name that is not there every column is empty."""
    none = calls_named(Scope(trace, clocks=Clocks()), "no such")
    assert [len(getattr(none, key)) for key in ("dur", "around", "own_ns", "row")] == [0] * 4
    assert none.name.tolist() == none.rank.tolist() == []
