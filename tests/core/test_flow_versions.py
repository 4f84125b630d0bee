"""Flows of both versions, and each key and phase of the format: read, or counted as not read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.events import index_of, metadata
from tests.reading import index_contents
from tracelane.core.index.format import LaneRole
from tracelane.core.index.indexing import ingest_index
from tracelane.core.index.options import IndexOptions
from tracelane.core.index.store import Index
from tracelane.core.query.args import read_event
from tracelane.core.query.chain import chain_of
from tracelane.core.query.launches import launches_of
from tracelane.core.read.source import open_source

HOST, GPU = {"pid": 701, "tid": 55}, {"pid": 1, "tid": 13}
NAMES = [
    metadata("process_name", 1, name="/device:GPU:0"),
    metadata("thread_name", 1, 13, name="Stream #13(Compute)"),
    metadata("process_name", 701, name="/host:CPU"),
]


def slice_of(phase: str, ts: int, where: dict[str, Any], **keys: Any) -> list[dict[str, Any]]:
    """Return a slice of 5 µs as one event (X), or as two of which the first (B) or last (E) has the keys."""
    event = {"name": f"n{ts}", "ts": ts, **where}
    if phase == "X":
        return [{"ph": "X", "dur": 5, **event, **keys}]
    begin, end = {"ph": "B", **event}, {"ph": "E", **event, "ts": ts + 5}
    (begin if phase == "B" else end).update(keys)
    return [begin, end]


def names_of(index: Index) -> list[str]:
    return [index.string(int(number)) for number in index.column("slices.name")]


def arrows(index: Index) -> set[tuple[str, str]]:
    names = names_of(index)
    pairs = zip(index.column("flows.source").tolist(), index.column("flows.target").tolist())
    return {(names[source], names[target]) for source, target in pairs}


@pytest.mark.parametrize("bind_id", [7, "0x7", "a"])
@pytest.mark.parametrize("phase", ["X", "B"])
def test_flows_of_version_2_lead_from_slice_to_slice(phase: str, bind_id: Any, tmp_path: Path) -> None:
    """A slice that a flow leaves, one that it passes, one that it comes to: two arrows, and one launch."""
    events = [
        *NAMES,
        *slice_of(phase, 0, HOST, bind_id=bind_id, flow_out=True),
        *slice_of(phase, 10, HOST, bind_id=bind_id, flow_in=True, flow_out=True),
        *slice_of(phase, 30, GPU, bind_id=bind_id, flow_in=True),
        *slice_of(phase, 50, GPU, bind_id=bind_id),
    ]
    index = index_of(events, tmp_path)
    assert arrows(index) == {("n0", "n10"), ("n10", "n30")}
    report = index.read_report
    assert report["flows"]["bind_id"] == {
        "starts": 1, "steps": 1, "ends": 1, "paired": 1, "orphan_starts": 0, "orphan_ends": 0,
    }  # fmt: skip
    assert report["flow_events"] == 0 and report["without_time"] == 0
    names = names_of(index)
    launches = launches_of(index)
    assert [names[at] for at in launches.kernels.tolist()] == ["n30"]
    assert [names[link.position] for link in chain_of(index, names.index("n30"))] == ["n30", "n10"]


def test_an_end_binds_too(tmp_path: Path) -> None:
    """The E of a pair may carry the flow as well as its B."""
    events = [
        *slice_of("E", 0, HOST, bind_id=1, flow_out=True),
        *slice_of("B", 10, HOST, bind_id=1, flow_in=True),
    ]
    assert index_of(events, tmp_path).read_report["flows"]["bind_id"]["paired"] == 1


@pytest.mark.parametrize("steps", [1, 3])
def test_a_flow_may_end_at_its_last_step(steps: int, tmp_path: Path) -> None:
    """rocprof writes no end: the last step is it, and its arrow a launch."""
    events: list[dict[str, Any]] = [*NAMES, *slice_of("X", 0, HOST)]
    events.append({"ph": "s", "id": 0, "name": "dep", "cat": "DataFlow", **HOST, "ts": 0})
    for number in range(steps):
        at = 10 * (number + 1)
        events += slice_of("X", at, GPU)
        events.append({"ph": "t", "id": 0, "name": "dep", "cat": "DataFlow", **GPU, "ts": at})
    index = index_of(events, tmp_path)
    assert index.read_report["flows"]["DataFlow"] == {
        "starts": 1, "steps": steps - 1, "ends": 1, "paired": 1, "orphan_starts": 0, "orphan_ends": 0,
    }  # fmt: skip
    names = names_of(index)
    launches = launches_of(index)
    assert names[launches.launch_of(names.index("n10"))[0] or 0] == "n0"


def test_arrows_on_the_host_make_no_launch(tmp_path: Path) -> None:
    """A flow of version 2 between slices of the host is an arrow and no more."""
    other = {"pid": 701, "tid": 56}
    events = [
        *NAMES,
        *slice_of("X", 0, HOST, bind_id=1, flow_out=True),
        *slice_of("X", 9, other, bind_id=1, flow_in=True),
    ]
    index = index_of(events, tmp_path)
    assert arrows(index) == {("n0", "n9")} and not len(launches_of(index).kernels)


def test_names_hold_for_pids_in_quotes(tmp_path: Path) -> None:
    """rocprof gives a name to the process 6, in which "6" works: they are one process, and a device."""
    events = [metadata("process_name", 6, name="GPU0"), *slice_of("X", 0, {"pid": "6", "tid": "1"})]
    index = index_of([*events, *slice_of("X", 9, {"pid": "2", "tid": "1"})], tmp_path)
    processes = {index.string(int(one["pid"])): index.string(int(one["name"])) for one in index.processes}
    assert processes == {'"6"': "GPU0", '"2"': ""}
    assert sorted(index.lanes["role"].tolist()) == sorted([LaneRole.HOST, LaneRole.DEVICE])


PHASES = "BEXiIRCbnestfSTpFMPONDVvcr()=,?"
"""Those of the Trace Event Format, and one that nobody knows."""
KEYS: dict[str, Any] = {
    "tts": 3, "tdur": 1, "cname": "good", "id": "0x1", "id2": {"local": "0x2"}, "scope": "s", "bp": "e",
    "s": "p", "sf": 7, "esf": 8, "stack": ["a", "b"], "estack": ["c"], "bind_id": "0x3", "flow_in": True,
    "flow_out": True, "args": {"x": 1}, "cat": "c", "use_async_tts": 1, "icount": 5, "v": [1],
}  # fmt: skip


@pytest.mark.parametrize("phase", PHASES)
def test_every_phase_is_counted(phase: str, tmp_path: Path) -> None:
    """One event of each phase, with every key: it stands in the report once, and both readers agree."""
    event = {"ph": phase, "name": "n", "ts": 1, "dur": 2, **HOST, **KEYS}
    index = index_of([event], tmp_path / "one")
    report = index.read_report
    terms = (
        "slices", "pairs", "instant_events", "counter_events", "flow_events", "metadata", "async_events",
        "unmatched_begin", "unmatched_end", "without_time", "empty", "not_objects", "unreadable",
    )  # fmt: skip
    assert report["counts"][f"phase.{phase}"] == 1 and report["events"] == 1
    assert sum(int(report[term]) for term in terms) == 1
    path = tmp_path / "t.json"
    path.write_text(json.dumps([event]), encoding="utf-8")
    assert index_contents(path, tmp_path, "native") == index_contents(path, tmp_path, "python")


@pytest.mark.parametrize("key", KEYS)
def test_every_key_can_be_read_again(key: str, tmp_path: Path) -> None:
    """What no column holds is in the event's details, as it stands in the file."""
    event = {"ph": "X", "name": "n", "ts": 1, "dur": 2, **HOST, key: KEYS[key]}
    path = tmp_path / "t.json"
    path.write_text(json.dumps([event]), encoding="utf-8")
    index = ingest_index(open_source(path), IndexOptions(tmp_path / "index"))
    again, problem = read_event(index, 0)
    assert problem is None and again is not None and again[key] == KEYS[key]
