"""Events without a pid are the program where there is nothing else; beside others they are notes. Processes
whose pids are written alike are told apart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.events import Event, event, index_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import BY_NAME
from tracelane.core.trace import trace_of

FRAMES = [("outer", 0, 10), ("inner", 2, 4)]


def frames(**of: Any) -> list[Event]:
    return [{**event("X", ts, name, dur=dur, tid=1), "cat": "cpu_op", **of} for name, ts, dur in FRAMES]


def without_pid(events: list[Event]) -> list[Event]:
    return [{key: value for key, value in one.items() if key != "pid"} for one in events]


@pytest.mark.parametrize(
    ("events", "names"),
    [
        (without_pid(frames()), {"outer", "inner"}),
        (frames(pid=None), {"outer", "inner"}),
        (frames(pid=""), {"outer", "inner"}),
        ([*frames(pid="", cat="Trace"), event("X", 0, "own", dur=3, pid=7, tid=1)], {"own"}),
    ],
    ids=["none", "null", "empty", "beside"],
)
def test_what_has_no_pid(events: list[Event], names: set[str], tmp_path: Path) -> None:
    """The call tree and the critical path hold what there is."""
    scope = Scope(trace_of("t.json", index_of(events, tmp_path)))
    tree = BY_NAME["tree"].run(scope)["tree"]
    assert set(tree.texts("name")) == names
    path = BY_NAME["critical_path"].run(scope)["segments"]
    assert names <= set(path.texts("name"))


def test_a_number_and_its_text_are_two_processes(tmp_path: Path) -> None:
    """Pids 7 and "7" have a title each; a text alone needs no quotes."""
    events = [*frames(pid=7), *frames(pid="7"), *frames(pid="8")]
    titles = [process.title for process in trace_of("t.json", index_of(events, tmp_path)).processes]
    assert sorted(titles) == ["process 7", 'process 7 ("7")', "process 8"]
