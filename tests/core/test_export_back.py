"""What is written for Perfetto is read again by its own reader here: the same slices and arguments."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tui.small_file import events
from tracelane.core.export.perfetto import write_perfetto
from tracelane.core.query.args import arguments
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Trace, open_trace

VALUES: dict[str, Any] = {
    "zero": 0,
    "one": 1,
    "minus": -7,
    "edge": (1 << 63) - 1,
    "least": -(1 << 63),
    "beyond": (1 << 64) - 1,
    "half": 0.5,
    "tiny": -2.5e-9,
    "yes": True,
    "no": False,
    "text": "été ✓",
    "digits": "12",
    "list": [3, 4.5, "five", [6]],
    "map": {"a": 1, "b": {"c": [2, 3]}},
}


def small(folder: Path) -> Path:
    """Write the small trace with an argument of each kind."""
    more = {"ph": "X", "cat": "cpu_op", "name": "all", "pid": 7, "tid": 9, "ts": 1001.5, "dur": 3.25}
    path = folder / "small.json"
    path.write_text(json.dumps({"traceEvents": [*events(), more | {"args": VALUES}]}), encoding="utf-8")
    return path


def slices_of(trace: Trace) -> Counter[tuple[int, int, str, str]]:
    """Return (start after the first, length, name, arguments) of each slice."""
    index = trace.indexes[0]
    starts = index.column("slices.start").astype(np.int64)
    positions = np.arange(len(starts))
    names = index.strings(index.column("slices.name"))
    ordinals = index.column("slices.ordinal").tolist()
    args = [
        json.dumps(arguments(index, ordinal)[0], sort_keys=True).replace('"[]"', "[]") for ordinal in ordinals
    ]
    first = int(min(starts)) if len(starts) else 0
    return Counter(zip((starts - first).tolist(), index.duration(positions).tolist(), names, args))


@pytest.mark.slow
def test_slices_and_arguments_come_back(tmp_path: Path) -> None:
    """Each slice has its time, length, name and arguments, whole numbers and fractions told apart; but an
    empty list within a list is a text there.
    """
    trace = open_trace(small(tmp_path), index_dir=tmp_path / "before")
    done = write_perfetto(Scope(trace), tmp_path / "out.pftrace")
    again = open_trace(tmp_path / "out.pftrace", index_dir=tmp_path / "after")
    before, after = slices_of(trace), slices_of(again)
    assert done.slices == sum(before.values())
    assert not before - after
    names = {lane.process.name for lane in trace.lanes if lane.slices}
    assert names <= {lane.process.name for lane in again.lanes}
