"""Computed lanes of the first picture: kept beside the index, made again where what is kept is not sound."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.events import write_demo_without_counters
from tracelane.core.base.private import read_sealed_json, write_sealed_json
from tracelane.core.logs import counters
from tracelane.core.logs.counters import with_cheap_lanes
from tracelane.core.logs.kept_lanes import kept_file
from tracelane.core.logs.more_sources import Counter
from tracelane.core.trace import Trace, open_trace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_demo_without_counters(tmp_path / "demo")
    return tmp_path


def opened(folder: Path) -> Trace:
    return open_trace(folder / "demo", index_dir=folder / "index")


def lanes_of(trace: Trace) -> list[Counter]:
    return with_cheap_lanes(trace).computed.counters


def same(one: list[Counter], other: list[Counter]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(np.asarray(mine), np.asarray(theirs))
        for pair in zip(one, other)
        for mine, theirs in zip(*pair)
    )


def test_lanes_are_made_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened again, a trace has the lanes that were made of it, to the bit, and nothing is made."""
    lanes = lanes_of(opened(folder))
    assert len(lanes) > 2 and all(len(one.starts) for one in lanes)
    monkeypatch.setattr(counters, "memory_counters", None)
    assert same(lanes, lanes_of(opened(folder)))


def backwards(text: str) -> str:
    return base64.b64encode(np.frombuffer(base64.b64decode(text), "<i8")[::-1].tobytes()).decode()


WRONG: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "nothing": lambda _: None,
    "another kind of value": lambda _: {"kind": 1},
    "a lane without samples": lambda lanes: [lanes[0] | {"starts": None}],
    "fewer values than times": lambda lanes: [lanes[0] | {"values": lanes[0]["values"][:32]}],
    "half a number": lambda lanes: [lanes[0] | {"starts": lanes[0]["starts"][:8]}],
    "times backwards": lambda lanes: [lanes[0] | {"starts": backwards(lanes[0]["starts"])}, *lanes[1:]],
    "no such file": lambda lanes: [lanes[0] | {"source": 7}],
    "a file before the first": lambda lanes: [lanes[0] | {"source": -1}],
    "no such process": lambda lanes: [lanes[0] | {"process": 99}],
    "a number for a title": lambda lanes: [lanes[0] | {"title": 3}],
    "a field too many": lambda lanes: [lanes[0] | {"more": 3}],
    "no text": lambda lanes: [lanes[0] | {"values": "é"}],
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_sound_is_made_again(name: str, folder: Path) -> None:
    """Whatever stands in the file in place of lanes, those of the trace are shown."""
    lanes, path = lanes_of(opened(folder)), kept_file(opened(folder))
    assert path is not None
    write_sealed_json(path, WRONG[name](read_sealed_json(path)))
    assert same(lanes, lanes_of(opened(folder)))


def test_a_damaged_file_is_made_again(folder: Path) -> None:
    """So it is where the file is cut or gone."""
    lanes, path = lanes_of(opened(folder)), kept_file(opened(folder))
    assert path is not None
    path.write_bytes(path.read_bytes()[:100])
    assert same(lanes, lanes_of(opened(folder)))
    path.unlink()
    assert same(lanes, lanes_of(opened(folder)))


def test_lanes_of_some_files_are_not_kept(folder: Path) -> None:
    """While more files are coming nothing is left for each of them: it is the lanes of all that are kept."""
    trace = opened(folder)
    some = Trace(trace.indexes, trace.members, missing=frozenset({1}))
    assert len(lanes_of(some)) and kept_file(some) is None
    assert not list(folder.glob("index/**/lanes-*"))
    assert lanes_of(trace) and len(list(folder.glob("index/**/lanes-*"))) == 1


def test_many_samples_are_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes as long to read as to make leaves no file."""
    monkeypatch.setattr("tracelane.core.logs.kept_lanes.MAX_SAMPLES", 3)
    trace = opened(folder)
    path = kept_file(trace)
    assert lanes_of(trace) and path is not None and not path.exists()
