"""Ids of processes and threads that are numbers in some events of a file and texts in others."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.events import metadata, open_events
from tracelane.core.tables.device.launches import analyse_launches
from tracelane.core.tables.frame.scope import Scope

Event = dict[str, Any]
CALL = "hipLaunchKernel"


def _events(slices: type, arrows: type, names: type) -> list[Event]:
    """Make four launches of 3 µs each, whose kernel begins 5 µs after; ids are of a type by event."""
    events = [
        metadata("process_name", names(2), name="CPU HIP API"),
        metadata("process_name", names(6), name="GPU0"),
    ]
    for number in range(4):
        call, work = 100 * number, 100 * number + 8
        ends = (("s", call, 2, 517), ("t", work, 6, 1))
        events += [
            {
                "ph": "X",
                "name": "hipLaunchKernel",
                "pid": slices(2),
                "tid": slices(517),
                "ts": call,
                "dur": 3,
            },
            {"ph": "X", "name": f"k{number}", "pid": slices(6), "tid": slices(1), "ts": work, "dur": 20},
        ]
        for ph, ts, pid, tid in ends:
            ids = {"id": number, "pid": arrows(pid), "tid": arrows(tid)}
            events.append({"ph": ph, "cat": "DataFlow", "name": "dep", "ts": ts, **ids})
    return events


@pytest.mark.parametrize(("slices", "arrows", "names"), product((int, str), repeat=3))
def test_launches_are_the_same(slices: type, arrows: type, names: type, tmp_path: Path) -> None:
    """Whoever writes ids of arrows as numbers and those of slices as texts means the same threads."""
    table = analyse_launches(Scope(open_events(tmp_path, _events(slices, arrows, names))))["launches"]
    assert table.texts("name") == [CALL]
    assert (table.numbers("count").tolist(), table.numbers("delay_ns").tolist()) == ([4], [4 * 5000])


def test_threads_with_slices_stay_apart(tmp_path: Path) -> None:
    """Threads 1 and "1" that both hold slices are two lanes, and arrows stay where they were written."""
    slices = [{"ph": "X", "name": str(tid), "pid": 1, "tid": tid, "ts": 0, "dur": 9} for tid in (1, "1", 2)]
    arrows = [
        {"ph": ph, "id": 1, "cat": "ac2g", "name": "x", "ts": 1, "pid": 1, "tid": tid, "bp": "e"}
        for ph, tid in (("s", 2), ("f", "1"))
    ]
    trace = open_events(tmp_path, [*slices, *arrows])
    assert [lane.slices for lane in trace.lanes] == [1, 1, 1]
    (index,) = trace.indexes
    target = int(index.column("flows.target")[0])
    assert index.string(int(index.column("slices.name")[target])) == "1"
    assert trace.lanes[[lane.tid for lane in trace.lanes].index('"1"')].slices == 1
