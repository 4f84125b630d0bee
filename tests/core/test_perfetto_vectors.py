"""Perfetto's tests of track events: their traces, as text, give the slices, counters, flows expected there.

TRACELANE_PERFETTO_TESTS names the folder test/trace_processor/diff_tests/parser/track_event of a checkout;
`pip install perfetto protobuf` brings what compiles the texts.
"""

from __future__ import annotations

import ast
import csv
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tracelane.core.index.format import NONE
from tracelane.core.index.store import Index
from tracelane.core.trace import open_trace

FOLDER = Path(os.environ.get("TRACELANE_PERFETTO_TESTS", "no such folder"))
DIFFERENT = {
    "test_track_event_with_atrace": "system events are counted, not read",
    "test_track_event_with_atrace_separate_tracks": "system events are counted, not read",
    "test_track_event_counters_counters": "thread time in fields of its own is not read",
    "test_flow_events_track_event": "instants are no ends of flows",
}
EXPECTED = (("ts", "dur", "name"), ("slice_out", "slice_in"), ("ts", "value"))
"""Columns of what is compared, the first that an expected output has."""
Case = tuple[str, str, tuple[str, ...], list[tuple[str, ...]]]


def cases() -> Iterator[Case]:
    """Yield name, trace, compared columns and expected rows of each test whose output has such columns."""
    file = FOLDER / "tests.py"
    for node in ast.walk(ast.parse(file.read_text())) if file.is_file() else ():
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
            continue
        calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
        given = {one.arg: one.value for call in calls for one in call.keywords}
        trace, output = (given[name] for name in ("trace", "out"))
        if "trace_modifier" in given or not ast.unparse(output).startswith("Csv("):
            continue
        text, expected = (ast.literal_eval(call.args[0]) for call in (trace, output))  # type: ignore[attr-defined]
        lines = textwrap.dedent(expected).strip().splitlines()
        rows = list(csv.DictReader(lines, skipinitialspace=True))
        columns = next((keys for keys in EXPECTED if {*keys} <= rows[0].keys()), None)
        if ast.unparse(trace).startswith("Path("):
            text = (FOLDER / text).read_text() if text.endswith(".textproto") else ""
        if text and columns and rows[0].get("value", "0").replace(".", "").isdigit():
            yield node.name, text, columns, [tuple(row[key] for key in columns) for row in rows]


def read(index: Index, columns: tuple[str, ...]) -> list[tuple[object, ...]]:
    """Return slices with instants, the names at both ends of flows, or samples of an index."""

    def column(name: str) -> list[int]:
        return index.column(name).astype(np.int64).tolist()  # type: ignore[no-any-return]

    names = index.strings(index.column("slices.name"))
    if columns == EXPECTED[1]:
        ends = zip(column("flows.source"), column("flows.target"))
        return [tuple(names[at] if at != NONE else "" for at in pair) for pair in ends]
    if columns == EXPECTED[2]:
        return list(zip(column("samples.start"), np.round(index.column("samples.value"), 6).tolist()))
    lengths = index.duration(np.arange(len(names))).tolist()
    instants = index.strings(index.column("instants.name"))
    return [
        *zip(column("slices.start"), lengths, names),
        *((start, 0, name) for start, name in zip(column("instants.start"), instants)),
    ]


@pytest.mark.skipif(
    not FOLDER.is_dir(), reason="TRACELANE_PERFETTO_TESTS names no checkout of Perfetto's tests"
)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case[0])
def test_what_perfetto_expects(case: Case, tmp_path: Path) -> None:
    """Equal but for what is named."""
    text_format = pytest.importorskip("google.protobuf.text_format")
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    name, text, columns, expected = case
    packets = text_format.Parse(text, protos.Trace(), allow_unknown_extension=True)
    path = tmp_path / f"{name}.pftrace"
    path.write_bytes(packets.SerializeToString())
    (index,) = open_trace(path).indexes
    as_read = {tuple(map(str, row)) for row in read(index, columns)}
    as_expected = {
        tuple(str(float(cell)) if key == "value" else cell for key, cell in zip(columns, row))
        for row in expected
    }
    assert (as_read == as_expected) is (name not in DIFFERENT), (as_read, as_expected)
