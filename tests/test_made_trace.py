"""The benchmarks' own trace: the demo's events, as often as wanted, and no copy mixed up with another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.made_trace import pattern, write_made_trace
from tracelane.core.demo.trace import demo_files
from tracelane.core.trace import open_trace


def events_of(data: bytes) -> list[dict[str, Any]]:
    return list(json.loads(data)["traceEvents"])


def text_of(event: dict[str, Any]) -> str:
    return json.dumps(event, sort_keys=True)


def test_one_copy_is_the_demo(tmp_path: Path) -> None:
    """One copy holds the demo's events, every one and nothing else."""
    made = events_of(write_made_trace(tmp_path / "made.json", copies=1).read_bytes())
    assert sorted(map(text_of, made)) == sorted(map(text_of, events_of(demo_files()[0].data)))


def test_copies_follow_one_another(tmp_path: Path) -> None:
    """Three copies are thrice the slices one after the other: every flow is paired, none overlaps another."""
    ledgers = []
    for copies in (1, 3):
        path = write_made_trace(tmp_path / f"{copies}.json", copies=copies)
        trace = open_trace(path, index_dir=tmp_path / "index", workers=1)
        ledgers.append(trace.sources[0].ledger)
        assert not trace.indexes[0].lanes["overlapping"].any()
        trace.close()
    assert ledgers[1]["events"] - ledgers[0]["events"] == 2 * pattern().events
    for category, flows in ledgers[1]["flows"].items():
        assert flows["paired"] == 3 * ledgers[0]["flows"][category]["paired"]
        assert flows["orphan_starts"] == flows["orphan_ends"] == 0


def test_size_as_asked_for(tmp_path: Path) -> None:
    """A size is met within a copy, and steps are numbered on."""
    size = 3_000_000
    path = write_made_trace(tmp_path / "made.json", size=size)
    assert abs(path.stat().st_size - size) < pattern().copy_bytes
    steps = {event["name"] for event in events_of(path.read_bytes()) if "ProfilerStep" in event["name"]}
    assert len(steps) > 3
