"""Traces of Perfetto (protobuf) are read as JSON that says the same; its vectors give what they expect."""

from __future__ import annotations

import ast
import csv
import gzip
import json
import os
import textwrap
import zlib
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import CORPUS, for_files
from tests.packets import (
    BEGIN,
    COUNTER,
    END,
    INSTANT,
    MAIN,
    STATE,
    described,
    event,
    legacy,
    named,
    packet,
    process,
    snapshot,
    thread,
)
from tests.perfetto_engine import ask_perfetto, needs_engine
from tests.tui.cli_process import tracelane_here
from tracelane.core.demo.trace import write_demo
from tracelane.core.export.perfetto import write_perfetto
from tracelane.core.export.protobuf import (
    bytes_field,
    double_field,
    fixed_field,
    number_field,
    text_field,
)
from tracelane.core.index.format import NONE
from tracelane.core.index.store import Index
from tracelane.core.read.inflate import PlainReader
from tracelane.core.read.perfetto import perfetto_reader
from tracelane.core.read.perfetto_values import source_place
from tracelane.core.read.source import open_source
from tracelane.core.tables.doctor.doctor import analyse_doctor
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import open_trace

CASES: dict[str, tuple[Sequence[bytes], Sequence[Sequence[Any]], str]] = {
    # packets; (phase, name, ns, pid, tid, arguments or None) of each event but metadata; words of the problem
    "slices": (
        [MAIN, event(1000, BEGIN, name="a"), event(1500, INSTANT, name="i"), event(2003, END)],
        [("B", "a", 1000, 5, 7), ("i", "i", 1500, 5, 7), ("E", None, 2003, 5, 7)],
        "",
    ),
    "names by number": (
        [
            MAIN,
            packet(named(2, (3, "gemm")), named(1, (1, "kernel"), (2, "x")), named(3, (9, "grid"))),
            event(
                10, INSTANT, number_field(10, 3), bytes_field(3, b"\1\2"), bytes_field(4, b"\x08\x09\x20\x05")
            ),
            packet(clears=True),
            event(20, INSTANT, number_field(10, 3), number_field(11, 1)),
        ],
        [("i", "gemm", 10, 5, 7, {"grid": 5}), ("i", "name 3", 20, 5, 7)],
        "",
    ),
    "names lost": (
        [packet(described(1, thread(5, 7, "main")), sequence=2), event(1, INSTANT, name="a", sequence=2)],
        [],
        "2 × packet whose names were lost before it",
    ),
    "a track of its own": (
        [
            MAIN,
            packet(described(2, process(5, "python"))),
            packet(described(3, name="queue", parent=2)),
            event(1, INSTANT, name="q", track=3),
            event(2, INSTANT, name="p", track=2),
            packet(described(4, name="GPU")),
            packet(described(6, name="copies", parent=4)),
            event(3, INSTANT, name="c", track=6),
            event(4, INSTANT, name="nowhere", track=99),
        ],
        [
            ("i", "q", 1, 5, "track 3"),
            ("i", "p", 2, 5, "track 2"),
            ("i", "c", 3, "track 4", "track 6"),
            ("i", "nowhere", 4, "track 99", "track 99"),
        ],
        "",
    ),
    "the usual track, clock and counter": (
        [
            MAIN,
            packet(
                described(8, bytes_field(8, number_field(4, 10) + number_field(5, 1)), name="n", parent=1)
            ),
            packet(snapshot((6, 5000), (64, 100))),
            packet(
                bytes_field(
                    59, number_field(58, 64) + bytes_field(11, number_field(11, 1) + number_field(31, 8))
                )
            ),
            event(7, INSTANT, number_field(12, 4), name="a", track=None),
            event(3, INSTANT, number_field(12, -1), name="b", track=None),
        ],
        [
            ("C", "n", 5007, 5, 7, {"n": 40}),
            ("i", "a", 5007, 5, 7),
            ("C", "n", 5010, 5, 7, {"n": 30}),
            ("i", "b", 5010, 5, 7),
        ],
        "",
    ),
    "clocks": (
        [
            MAIN,
            packet(snapshot((3, 100), (6, 5000), main=6)),
            event(130, INSTANT, name="a", clock=3),
            event(130, INSTANT, name="b", clock=9),
        ],
        [("i", "a", 5030, 5, 7)],
        "packet by a clock that is not known (9)",
    ),
    "counters": (
        [
            packet(described(4, bytes_field(8, b""), name="power"), clears=True),
            event(1, COUNTER, double_field(44, 1.5), track=4),
            event(2, COUNTER, number_field(30, -2), track=4),
            event(3, COUNTER, number_field(30, 1), track=5),
        ],
        [
            ("C", "power", 1, "track 4", "track 4", {"power": 1.5}),
            ("C", "power", 2, "track 4", "track 4", {"power": -2}),
        ],
        "value of a counter that is not described",
    ),
    "states": (
        [
            MAIN,
            packet(described(2, name="s", parent=1)),
            *(event(at, STATE, track=2, name=name) for at, name in ((1, "on"), (4, "off"), (6, ""))),
        ],
        [
            ("B", "on", 1, 5, "track 2"),
            ("E", None, 4, 5, "track 2"),
            ("B", "off", 4, 5, "track 2"),
            ("E", None, 6, 5, "track 2"),
        ],
        "",
    ),
    "flows": (
        [
            MAIN,
            event(1, INSTANT, fixed_field(47, 12), name="a"),
            event(2, INSTANT, fixed_field(47, 12), name="b"),
            event(3, INSTANT, fixed_field(48, 12), name="c"),
            event(4, INSTANT, fixed_field(47, 12), name="d"),
        ],
        [
            *(("i", "a", 1, 5, 7), ("s", "flow", 1, 5, 7), ("i", "b", 2, 5, 7), ("t", "flow", 2, 5, 7)),
            *(("i", "c", 3, 5, 7), ("f", "flow", 3, 5, 7), ("i", "d", 4, 5, 7), ("s", "flow", 4, 5, 7)),
        ],
        "",
    ),
    "older events": (
        [
            MAIN,
            event(1000, 0, legacy("X", number_field(3, 4)), name="x"),
            event(2000, 0, legacy("b", number_field(11, 77)), name="y"),
            event(3000, 0, legacy("I", number_field(18, 8), number_field(19, 9)), name="z"),
        ],
        [("X", "x", 1000, 5, 7), ("b", "y", 2000, 5, 7), ("I", "z", 3000, 8, 9)],
        "",
    ),
    "older flows": (
        [
            MAIN,
            *(
                event(at, 0, legacy("X", number_field(8, 1), number_field(13, way)), name="x")
                for at, way in ((1, 2), (2, 1), (3, 3), (4, 1))
            ),
        ],
        [
            (phase, name, at, 5, 7)
            for at, way in enumerate("sftf", 1)
            for phase, name in (("X", "x"), (way, "flow"))
        ],
        "",
    ),
    "arguments": (
        [
            MAIN,
            event(
                1,
                INSTANT,
                bytes_field(
                    4, text_field(10, "d") + bytes_field(11, text_field(10, "k") + number_field(4, -3))
                ),
                bytes_field(
                    4, text_field(10, "d") + bytes_field(11, text_field(10, "l") + double_field(5, 0.5))
                ),
                bytes_field(4, text_field(10, "n") + double_field(5, float("nan"))),
                bytes_field(
                    4,
                    text_field(10, "list") + bytes_field(12, text_field(6, "x")) + bytes_field(12, b"\x10\1"),
                ),
                bytes_field(4, text_field(10, "j") + text_field(9, '{"a":[1]}')),
                bytes_field(24, b"abc"),
                name="a",
            ),
        ],
        [
            (
                *("i", "a", 1, 5, 7),
                {
                    "d": {"k": -3, "l": 0.5},
                    "n": "nan",
                    "list": ["x", True],
                    "j": {"a": [1]},
                    "field 24": "3 bytes",
                },
            )
        ],
        "",
    ),
    "packed packets": (
        [
            MAIN,
            packet(bytes_field(50, zlib.compress(event(1, INSTANT, name="a") + event(2, INSTANT, name="b")))),
        ],
        [("i", "a", 1, 5, 7), ("i", "b", 2, 5, 7)],
        "",
    ),
    "damaged packed packets": (
        [MAIN, packet(bytes_field(50, b"no deflate")), event(1, INSTANT, name="a")],
        [("i", "a", 1, 5, 7)],
        "damaged packet",
    ),
    "others": (
        [
            MAIN,
            packet(bytes_field(1, b"ftrace")),
            packet(bytes_field(777, b"?")),
            event(1, INSTANT, name="a"),
        ],
        [("i", "a", 1, 5, 7)],
        "ftrace_events; packet of field 777",
    ),
    "a damaged packet": (
        [MAIN, bytes_field(1, b"\x5a\x7f\x01"), event(1, INSTANT, name="a")],
        [("i", "a", 1, 5, 7)],
        "damaged packet (a field that is longer than its message)",
    ),
    "a damaged file": (
        [MAIN, event(1, INSTANT, name="a"), b"\xff\xff\xff", event(2, INSTANT, name="b")],
        [("i", "a", 1, 5, 7)],
        "on is not a packet",
    ),
    "a cut file": (
        [MAIN, event(1, INSTANT, name="a"), event(2, INSTANT, name="b")[:-3]],
        [("i", "a", 1, 5, 7)],
        "bytes are not a whole packet",
    ),
}


def events_of(path: Path) -> tuple[list[dict[str, Any]], str]:
    """Return the events that a file is read as, and what was passed over."""
    stream = open_source(path).open()
    parts = []
    while part := stream.read(1000):
        parts.append(part)
    problems = stream.problems
    stream.close()
    events: list[dict[str, Any]] = json.loads(b"".join(parts))["traceEvents"]
    return events, problems[0].message if problems else ""


@pytest.mark.parametrize("name", CASES)
def test_packets_become_events(name: str, tmp_path: Path) -> None:
    """Each kind of packet becomes the events that Perfetto means by it; what cannot be read is counted."""
    packets, expected, problem = CASES[name]
    path = tmp_path / "a.pftrace"
    path.write_bytes(b"".join(packets))
    events, words = events_of(path)
    got = [
        (one["ph"], one.get("name"), round(one["ts"] * 1000), one["pid"], one["tid"], one.get("args"))
        for one in events
        if one["ph"] != "M"
    ]
    assert got == [(*row, None)[:6] for row in expected]
    assert problem in words and bool(problem) == bool(words)


def test_kinds_that_are_not_read_are_no_damage(tmp_path: Path) -> None:
    """Packets of other kinds are a note; where there is nothing else the headline names them."""
    path = tmp_path / "a.pftrace"
    path.write_bytes(b"".join([MAIN, packet(bytes_field(1, b"ftrace")), event(1, INSTANT, name="a")]))
    doctor = analyse_doctor(Scope(open_trace(path, index_dir=tmp_path)))["doctor"]
    assert (doctor.texts("rule"), doctor.texts("severity")) == (["not-read"], ["note"])
    assert doctor.texts("text") == ["1 packet of kinds that are not read"]
    path.write_bytes(b"".join([MAIN, packet(bytes_field(1, b"ftrace"))]))
    (said,) = findings(Scope(open_trace(path, index_dir=tmp_path))).findings
    assert said.text == "all that the file holds is of kinds that are not read: ftrace_events"


NOT_COMPARED = {
    *("a damaged packet", "a damaged file", "damaged packed packets"),  # the engine reads nothing of them
    *("older events", "names by number"),  # whose events it moves to other threads, or leaves out
}


@needs_engine
@pytest.mark.parametrize("name", sorted(CASES.keys() - NOT_COMPARED))
def test_perfettos_engine_reads_the_same(name: str, tmp_path: Path) -> None:
    """Of packets of all kinds the engine has the slices that we have, and the values of counters."""
    path = tmp_path / "a.pftrace"
    path.write_bytes(b"".join(CASES[name][0]))
    slices, counters = ask_perfetto(
        path,
        "select ts, case when dur < 0 then 0 else dur end, name from slice order by ts, name",
        "select ts, value from counter order by ts",
    )
    trace = open_trace(path, index_dir=tmp_path / "index")
    index = trace.indexes[0]
    own = []
    for table in ("slices", "instants"):
        starts = index.column(f"{table}.start").tolist()
        names = index.strings(index.column(f"{table}.name"))
        durations = index.column("slices.duration").tolist() if table == "slices" else [0] * len(starts)
        own += [(start, duration, text or None) for start, duration, text in zip(starts, durations, names)]
    if name != "states":  # which the engine keeps in a table of their own
        assert sorted(own, key=str) == sorted(slices, key=str)
    assert [value for _, value in counters] == index.column("samples.value").tolist()
    trace.close()


COMPARED = ("kernels", "ops", "breakdown", "launches", "idle", "steps", "copies")


def rows_of(output: str) -> dict[str, list[str]]:
    """Return the rows of each table of a command, in an order that lanes do not matter to."""
    tables = json.loads(output or '{"tables": {}}')["tables"]
    return {name: sorted(map(json.dumps, table["rows"])) for name, table in tables.items()}


def check_own_export(path: Path, folder: Path) -> None:
    """A trace that was exported for Perfetto and read again gives the same tables."""
    trace = open_trace(path, index_dir=folder / "index")
    out = folder / f"{path.name.partition('.')[0]}.pftrace"
    write_perfetto(Scope(trace, clocks=trace.clocks), out)
    trace.close()
    for command in COMPARED:
        before, after = (
            tracelane_here(command, str(one), "--json", "--index-dir", str(folder / "index"))
            for one in (path, out)
        )
        assert after.returncode == before.returncode, command
        assert after.stdout or command != "kernels"
        assert rows_of(after.stdout) == rows_of(before.stdout), command


def test_an_export_gives_the_same_tables(tmp_path: Path) -> None:
    """What is written of the demo for Perfetto is read again as it was."""
    check_own_export(write_demo(tmp_path / "demo")[0], tmp_path)


@pytest.mark.corpus
@for_files("name", ["tl_h100_qwen_infer", "tl_mi300_resnet_train_rank0of8", "hta_a100_resnet_ddp_nccl"])
def test_exports_of_real_traces_give_the_same_tables(name: str, tmp_path: Path) -> None:
    """The same holds of real traces, in which slices of one thread overlap."""
    check_own_export(CORPUS / "gpu" / f"{name}.json.gz", tmp_path)


def test_a_packed_trace_shows_its_arguments(tmp_path: Path) -> None:
    """A .pftrace in gzip is read too, and its arguments are there when asked for."""
    path = tmp_path / "a.pftrace.gz"
    argument = bytes_field(4, text_field(10, "tile") + number_field(4, 7))
    path.write_bytes(gzip.compress(MAIN + event(1, BEGIN, argument, name="a") + event(9, END)))
    done = tracelane_here(
        "sql", str(path), "--index-dir", str(tmp_path), "select name, dur, arg(id, 'tile') as g from slices"
    )
    assert done.returncode == 0, done.stderr
    assert {"a", "7"} <= set(done.stdout.split())


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        (number_field(1, 1), "thread_time"),
        (number_field(1, 2), "thread_instruction_count"),
        (number_field(1, 9), "counter"),
        (number_field(3, 1) + number_field(2, 1), "counter"),
        (b"", "counter"),
    ],
)
def test_counters_without_a_name(fields: bytes, name: str) -> None:
    """A track that counts what Perfetto has a number for is called so, any other one just a counter."""
    packets = (
        packet(described(4, bytes_field(8, fields)), clears=True),
        event(1, COUNTER, number_field(30, 5), track=4),
    )
    text = perfetto_reader(PlainReader(BytesIO(b"".join(packets)))).read(1 << 20)
    (sample,) = [one for one in json.loads(text)["traceEvents"] if one["ph"] == "C"]
    assert sample["args"] == {name: 5}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_where_an_event_stands_in_the_source(order: Sequence[int]) -> None:
    """File, function and line are known by their numbers, in whatever order they were written."""
    parts = text_field(2, "a.cc"), text_field(3, "run"), number_field(4, 17), number_field(1, 5)
    source = source_place(b"".join([*(parts[at] for at in order), parts[3]]))
    assert source == {"file": "a.cc", "function": "run", "line": 17}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_no_damage_breaks_the_reader(name: str) -> None:
    """Whatever byte of a file is changed, added, or the last, it is read as JSON to the end."""
    whole = b"".join(CASES[name][0])
    for at in range(len(whole)):
        for byte in (b"\0", b"\xff", bytes([whole[at] ^ 1])):
            for damaged in (whole[:at] + byte + whole[at + 1 :], whole[:at] + byte + whole[at:], whole[:at]):
                reader = perfetto_reader(PlainReader(BytesIO(damaged)))
                assert isinstance(json.loads(reader.read(1 << 20))["traceEvents"], list)


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
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if file.is_file() else ():
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
            text = (FOLDER / text).read_text(encoding="utf-8") if text.endswith(".textproto") else ""
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
