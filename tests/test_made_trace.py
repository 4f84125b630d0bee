"""The benchmarks' own trace: the demo's events, as often as wanted, and no copy mixed up with another."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from benchmarks.made_trace import pattern, write_made_ranks, write_made_trace
from tracelane.core.demo.trace import demo_files
from tracelane.core.trace import open_trace


def events_of(data: bytes) -> list[dict[str, Any]]:
    return list(json.loads(data)["traceEvents"])


def text_of(event: dict[str, Any]) -> str:
    return json.dumps(event, sort_keys=True)


def test_one_copy_is_the_demo(tmp_path: Path) -> None:
    """One copy holds the demo's events, every one and nothing else."""
    events = events_of(write_made_trace(tmp_path / "made.json", copies=1).read_bytes())
    assert sorted(map(text_of, events)) == sorted(map(text_of, events_of(demo_files()[0].data)))


def wall_times(data: bytes) -> list[str]:
    """Return all events with exact stamps since 1970."""
    whole = json.loads(data, parse_float=Decimal)
    base = Decimal(whole.get("baseTimeNanoseconds", 0)) / 1000
    return [
        json.dumps(event | {"ts": event["ts"] + base}, sort_keys=True, default=str)
        for event in whole["traceEvents"]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("form", [{}, {"epoch": True}, {"one_line": True}, {"name": "made.json.gz"}])
def test_every_form_is_the_same_trace(tmp_path: Path, form: dict[str, Any]) -> None:
    """Compressed, on one line, or with stamps since 1970: the same events at the same wall times."""
    form = dict(form)
    path = write_made_trace(tmp_path / form.pop("name", "made.json"), copies=1, **form)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    assert (text.count(b"\n") == 0) == bool(form.get("one_line"))
    assert (b"baseTimeNanoseconds" in text) != bool(form.get("epoch"))
    assert Counter(wall_times(text)) == Counter(wall_times(demo_files()[0].data))


@pytest.mark.slow
def test_copies_follow_one_another(tmp_path: Path) -> None:
    """Three copies are thrice the slices one after the other: every flow is paired, none overlaps another."""
    reports = []
    for copies in (1, 3):
        path = write_made_trace(tmp_path / f"{copies}.json", copies=copies)
        trace = open_trace(path, index_dir=tmp_path / "index")
        reports.append(trace.sources[0].read_report)
        assert not trace.indexes[0].lanes["overlapping"].any()
        trace.close()
    assert reports[1]["events"] - reports[0]["events"] == 2 * pattern().events
    for category, flows in reports[1]["flows"].items():
        assert flows["paired"] == 3 * reports[0]["flows"][category]["paired"]
        assert flows["orphan_starts"] == flows["orphan_ends"] == 0


@pytest.mark.slow
def test_size_as_asked_for(tmp_path: Path) -> None:
    """A size is met within a copy, and steps are numbered on."""
    size = 3_000_000
    path = write_made_trace(tmp_path / "made.json", size=size)
    assert abs(path.stat().st_size - size) < pattern().copy_bytes
    steps = {event["name"] for event in events_of(path.read_bytes()) if "ProfilerStep" in event["name"]}
    assert len(steps) > 3


def test_made_ranks_are_those_of_one_run(tmp_path: Path) -> None:
    """Each file says which rank it is, and all take part in each collective."""
    trace = open_trace(write_made_ranks(tmp_path / "run", 3), index_dir=tmp_path / "index")
    assert [member.rank for member in trace.members] == [0, 1, 2]
    matched = trace.alignment.matched
    assert matched is not None and len(matched) and set(matched.who.sizes.tolist()) == {3}
    trace.close()
