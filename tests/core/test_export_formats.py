"""Exports for other programs hold what the trace holds: read back, each says the same as the index."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus import CORPUS, file, for_files
from tests.perfetto_engine import ask_perfetto, needs_engine
from tests.tui.cli_process import tracelane_here
from tests.tui.small_file import small_file
from tracelane.core.base.colours import colour_of, hexed
from tracelane.core.base.errors import MissingPackageError, UnreadableError
from tracelane.core.demo.trace import write_demo
from tracelane.core.export.perfetto import write_perfetto
from tracelane.core.export.protobuf import AnnotationEncoder, row_bytes, varint, varint_rows
from tracelane.core.export.report import html_report
from tracelane.core.export.tracks import Track, _nesting, begin_and_end, speedscope_pieces, tracks_of
from tracelane.core.query.args import arguments
from tracelane.core.query.flows import flows_between
from tracelane.core.sql.engines import has_duckdb
from tracelane.core.sql.files import write_parquet, write_sqlite
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.slice_table import NAMES, slice_table
from tracelane.core.trace import open_trace

TRACES = (
    "gpu/hta_a100_resnet_ddp_nccl.json.gz",
    "gpu/tl_vllm_decode_cudagraph_exec*",
    "gpu/tl_torch_compile_triton*",
    "aiu/mlp_trace*",
    "multirank/dlrm_8gpu_ranks0-3",
)


@pytest.fixture(scope="module")
def scopes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Scope]]:
    """The whole of a small trace, one step of it, and the demo's two ranks."""
    folder = tmp_path_factory.mktemp("export")
    small = open_trace(small_file(folder), index_dir=folder / "index")
    demo = open_trace(write_demo(folder / "demo")[:2], index_dir=folder / "index")
    first = small.steps[0]
    yield [
        Scope(small, clocks=small.clocks),
        Scope(small, (first.start, first.end), clocks=small.clocks),
        Scope(demo, clocks=demo.clocks),
    ]
    small.close()
    demo.close()


def slices_of(scope: Scope) -> list[tuple[int, int, str]]:
    """Return (start, duration, name) of all slices of a scope, whole."""
    table = slice_table(scope, ("start_ns", "duration_ns", "name"))
    return sorted(zip(table["start_ns"].tolist(), table["duration_ns"].tolist(), map(str, table["name"])))


def backward_flows(scope: Scope) -> int:
    """Return how many flows end before they begin: clocks are wrong there, and Perfetto has no such flows."""
    count = 0
    tracks = list(tracks_of(scope))
    for source, index in enumerate(scope.trace.indexes):
        own = [track for track in tracks if track.lane.source == source]
        starts = np.zeros(len(index.column("slices.start")), np.int64)
        for track in own:
            starts[track.positions] = track.starts
        flows = flows_between(index, [track.positions for track in own])
        begin, end = (index.column(f"flows.{side}")[flows].astype(np.int64) for side in ("source", "target"))
        count += int((starts[end] < starts[begin]).sum())
    return count


def check_perfetto(scope: Scope, out: Path) -> None:
    """Perfetto's engine finds the slices, flows, counters and tracks that were written."""
    done = write_perfetto(scope, out)
    slices = slices_of(scope)
    assert done.slices == len(slices)
    lanes = {track.lane.process.name for track in tracks_of(scope)} - {""}
    rows, instants, flows, counters, errors, arguments_, processes = ask_perfetto(
        out,
        "select ts, dur, name from slice",
        "select count(*) from slice where dur = 0",
        "select count(*) from flow",
        "select count(*), sum(value), min(value), max(value) from counter",
        "select name, value from stats where value > 0 and severity in ('error', 'data_loss')",
        "select count(*) from args where flat_key glob 'debug.*'",
        "select name from process where name is not null",
    )
    assert errors == []
    got = Counter((ts, dur, name or "") for ts, dur, name in rows)
    expected = Counter(slices)
    missing = expected - got
    assert not missing, list(missing.items())[:3]
    assert sum((got - expected).values()) == done.instants
    assert instants[0][0] == sum(dur == 0 for _, dur, _ in slices) + done.instants
    assert flows[0][0] == done.flows - backward_flows(scope)
    assert counters[0][0] == done.samples
    assert arguments_[0][0] > 0
    names = {str(name) for (name,) in processes}
    assert lanes <= names | {name.rpartition(" · rank ")[0] for name in names}


@needs_engine
def test_perfetto_reads_what_was_written(scopes: list[Scope], tmp_path: Path) -> None:
    """Small traces, a window, and several files come back from Perfetto's engine slice by slice."""
    for number, scope in enumerate(scopes):
        check_perfetto(scope, tmp_path / f"{number}.pftrace")


@needs_engine
def test_perfetto_has_the_arguments(scopes: list[Scope], tmp_path: Path) -> None:
    """Arguments, also nested ones, and counters have their values."""
    write_perfetto(scopes[0], tmp_path / "a.pftrace")
    dims, counters, ends = ask_perfetto(
        tmp_path / "a.pftrace",
        "select a.key, a.int_value from slice s join args a using (arg_set_id) where s.name = 'aten::linear' "
        "and a.key glob 'debug.Input Dims*' order by s.ts, a.key",
        "select ts, value from counter order by ts",
        "select a.name, b.name from flow f join slice a on a.id = f.slice_out "
        "join slice b on b.id = f.slice_in",
    )
    assert [value for _, value in dims if value is not None] == [8, 16, 16, 4] * 2
    assert counters == [(1_000_000, 20.5), (1_100_000, 21.5)]
    assert len(ends) == 2 and {source for source, _ in ends} == {"launch"}


STANDARD = (
    "select count(*) from slice s join thread_track t on t.id = s.track_id where s.dur > 0",
    "select p.name, iif(p.name in ('Spans', 'Traces') or t.name glob '*tream 0*', null, t.tid), t.name, "
    "count(*), sum(s.dur) / 100000 from slice s join thread_track k on k.id = s.track_id "
    "join thread t using (utid) join process p using (upid) where s.dur > 0 "
    "group by p.upid, t.utid order by 1, 3, 2",
    "select p.name, t.name, count(*), sum(c.value) from counter c "
    "join process_counter_track t on t.id = c.track_id join process p using (upid) group by 1, 2 order by 1",
    "select a.name, b.name, count(*) from flow f join slice a on a.id = f.slice_out "
    "join slice b on b.id = f.slice_in group by 1, 2 order by 1, 2",
    "select substr(a.key, instr(a.key, '.') + 1) as name, a.string_value, a.int_value, "
    "printf('%.9g', a.real_value) as number, count(*) from slice s join args a using (arg_set_id) "
    "where s.dur > 0 and a.key glob '*.*' and ifnull(a.string_value, '') not in ('null', '[]') "
    "group by 1, 2, 3, 4 order by 1, 2, 3, 4",
)
"""Questions that people ask Perfetto: threads of slices, counters of processes, ends of flows, arguments."""
RECORDED = [f"cuda/{name}.pt.trace.json.gz" for name in ("gloo", "activities")]
RECORDED += [
    f"cpu/torch_{name}.pt.trace.json.gz" for name in ("2.1_training", "2.13_first_call", "2.14_rank0")
]
SAME_AS_JSON = (
    "chrome/viztracer_multithread.json",
    "gpu/hta_mi250_minitoy_rocm62.json.gz",
    "gpu/tl_torch_compile_triton.json.gz",
    "aiu/mlp_trace.json",
)


def check_same_as_json(path: Path, folder: Path) -> None:
    """Perfetto answers the same of a trace's JSON and of what is written of it.

    Tids that are text, and thread 0, have other numbers; the prefix of arguments differs; of JSON the engine
    drops null and empty lists, and rounds some last digits.
    """
    text = path.read_bytes()
    plain_path = folder / "plain.json"
    plain_path.write_bytes(gzip.decompress(text) if path.suffix == ".gz" else text)
    trace = open_trace(path, index_dir=folder / "index")
    write_perfetto(Scope(trace, clocks=trace.clocks), folder / "out.pftrace")
    trace.close()
    expected, got = (ask_perfetto(one, *STANDARD) for one in (plain_path, folder / "out.pftrace"))
    assert expected[0][0][0] and len(expected[1]) > 1
    for query, before, after in zip(STANDARD, expected, got):
        assert after == before, query


@needs_engine
def test_perfetto_knows_the_threads_of_the_demo(tmp_path: Path) -> None:
    """Threads, processes, counters, flows and arguments are those that the engine makes of the JSON."""
    for number, path in enumerate([small_file(tmp_path), write_demo(tmp_path / "demo")[0]]):
        (folder := tmp_path / str(number)).mkdir()
        check_same_as_json(path, folder)


@needs_engine
@pytest.mark.slow
@for_files("name", SAME_AS_JSON)
def test_perfetto_knows_the_threads_of_real_traces(name: str, tmp_path: Path) -> None:
    """The same holds of traces of GPUs, of an AIU, and of a program with many threads."""
    check_same_as_json(file(name), tmp_path)


@needs_engine
def test_perfetto_has_what_overlaps_on_threads_too(tmp_path: Path) -> None:
    """Slices that overlap, of which the engine drops most from JSON, are all of their thread; pids and tids
    that are text or in use twice stay threads of their own with that text as their name.
    """
    events = [{"ph": "X", "name": f"s{n}", "pid": 5, "tid": 0, "ts": n, "dur": 10} for n in range(20)]
    events += [
        {"ph": "X", "name": "text", "pid": "a", "tid": tid, "ts": 1, "dur": 1} for tid in ("x", "y", "0")
    ]
    events += [{"ph": "X", "name": "big", "pid": 5, "tid": tid, "ts": 1, "dur": 1} for tid in (1 << 60, -7)]
    path = tmp_path / "overlap.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    trace = open_trace(path, index_dir=tmp_path / "index")
    write_perfetto(Scope(trace), tmp_path / "out.pftrace")
    trace.close()
    (rows,) = ask_perfetto(
        tmp_path / "out.pftrace",
        "select p.name, t.name, t.tid, count(*) from slice s join thread_track k on k.id = s.track_id "
        "join thread t using (utid) join process p using (upid) group by p.upid, t.utid order by 4, 1, 2, 3",
    )
    assert [(process, thread, count) for process, thread, _, count in rows] == [
        (None, None, 1),
        (None, None, 1),
        ("a", "0", 1),
        ("a", "x", 1),
        ("a", "y", 1),
        (None, None, 20),
    ]
    assert len({tid for _, _, tid, _ in rows}) >= 5


@needs_engine
@pytest.mark.slow
@for_files("name", TRACES)
def test_perfetto_reads_real_traces(name: str, corpus_cache: Path, tmp_path: Path) -> None:
    """Real traces come back slice by slice, whole and a window of them."""
    trace = open_trace(sorted(CORPUS.glob(name))[0], index_dir=corpus_cache)
    whole = Scope(trace, clocks=trace.clocks)
    start, end = trace.opening_span
    third = (end - start) // 3
    check_perfetto(whole, tmp_path / "whole.pftrace")
    check_perfetto(replace(whole, range=(start + third, end - third)), tmp_path / "window.pftrace")


@pytest.mark.slow
@for_files("name", [*TRACES, "odd/*", *RECORDED])
def test_tracks_nest(name: str, corpus_cache: Path) -> None:
    """On each track of a real or odd trace slices lie beside or inside each other; together all slices."""
    opened = 0
    for path in sorted(CORPUS.glob(name))[:40] or [file(name)]:
        try:
            trace = open_trace(path, index_dir=corpus_cache)
        except UnreadableError:
            continue
        opened += 1
        scope = Scope(trace, clocks=trace.clocks)
        count = 0
        for track in tracks_of(scope):
            count += len(track.positions)
            check_nesting(track)
        assert count == sum(index.length("slices.start") for index in trace.indexes)
        trace.close()
    assert opened


def check_nesting(track: Any) -> None:
    """Begins and ends of a track come in order of time, the last begun ends first."""
    open_: list[int] = []
    marks = list(zip(*begin_and_end(track)))
    times = [time for time, _, _ in marks]
    assert times == sorted(times)
    for time, begins, at in marks:
        if begins:
            assert time == track.starts[at]
            open_.append(at)
        else:
            assert open_.pop() == at and time == track.ends[at]
    assert not open_


def test_overlapping_slices_get_tracks_of_their_own(tmp_path: Path) -> None:
    """What overlaps without nesting stands on another track of its lane, with what lies in it."""
    spans = [
        ("a", 0, 10),
        ("b", 5, 10),
        ("in b", 6, 2),
        ("c", 9, 10),
        ("d", 20, 0),
        ("e", 20, 0),
        ("f", 20, 5),
    ]
    events = [{"ph": "X", "name": n, "pid": 1, "tid": 1, "ts": ts, "dur": dur} for n, ts, dur in spans]
    path = tmp_path / "overlap.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    trace = open_trace(path, index_dir=tmp_path / "index")
    tracks = list(tracks_of(Scope(trace)))
    for track in tracks:
        check_nesting(track)
    assert len(tracks) > 1 and sum(len(track.positions) for track in tracks) == len(spans)
    assert {track.title for track in tracks} == {"thread 1", "thread 1 (2)", "thread 1 (3)"}
    trace.close()


def test_speedscope_has_each_lane_as_a_profile(scopes: list[Scope]) -> None:
    """The JSON has a profile for each track whose events nest, and the time of all slices."""
    for scope in scopes:
        data = json.loads("".join(speedscope_pieces(scope, "t")))
        assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json"
        frames = [frame["name"] for frame in data["shared"]["frames"]]
        assert len(set(frames)) == len(frames)
        total = 0
        for profile in data["profiles"]:
            assert profile["type"] == "evented" and profile["unit"] == "nanoseconds"
            open_: list[tuple[int, int]] = []
            for event in profile["events"]:
                assert profile["startValue"] <= event["at"] <= profile["endValue"]
                if event["type"] == "O":
                    open_.append((event["frame"], event["at"]))
                else:
                    frame, at = open_.pop()
                    assert frame == event["frame"]
                    total += event["at"] - at
            assert not open_
        assert total == sum(dur for _, dur, _ in slices_of(scope)) > 0


def test_sqlite_has_the_views_and_arguments(scopes: list[Scope], tmp_path: Path) -> None:
    """Each view is a table, with the slices of the scope, and every argument as in the file."""
    for number, scope in enumerate(scopes):
        out = tmp_path / f"{number}.sqlite"
        write_sqlite(scope, out)
        database = sqlite3.connect(out)
        rows = database.execute("select ts, dur, name from slices").fetchall()
        assert sorted(rows) == slices_of(scope)
        assert database.execute("select count(*) from kernels k join slices s using (id)").fetchone()[0] >= 1
        if scope is scopes[0]:
            expected = Counter()
            trace = scope.trace
            for ordinal in trace.indexes[0].column("slices.ordinal").tolist():
                for key, value in arguments(trace.indexes[0], ordinal).begin.items():
                    plain = value if isinstance(value, int | float | str) else json.dumps(value)
                    expected[ordinal, key, plain] += 1
            assert Counter(database.execute("select id, key, value from args").fetchall()) == expected
        database.close()


@pytest.mark.parametrize("writer", ["pyarrow", "duckdb"])
def test_parquet_has_the_slices(
    writer: str, scopes: list[Scope], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has the rows and columns of the table of slices, whichever package writes it."""
    pytest.importorskip(writer)
    parquet = pytest.importorskip("pyarrow.parquet")
    for number, scope in enumerate(scopes):
        out = tmp_path / f"it's {number}.parquet"
        with monkeypatch.context() as patch:
            if writer == "duckdb":
                patch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
            count = write_parquet(scope, out)
        table = slice_table(scope)
        columns = parquet.read_table(out).to_pydict()
        assert count == len(table) and tuple(columns) == NAMES
        order = np.lexsort((np.array(columns["id"]), np.array(columns["start_ns"])))
        for key in NAMES:
            assert [columns[key][at] for at in order] == table[key].tolist()


def test_without_its_packages_parquet_is_refused(
    scopes: list[Scope], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says which package is missing, and no file is begun."""
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setattr("tracelane.core.sql.files.has_duckdb", lambda: False)
    with pytest.raises(MissingPackageError, match="pip install pyarrow"):
        write_parquet(scopes[0], tmp_path / "x.parquet")
    assert not list(tmp_path.iterdir())


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.links: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.links += [str(value) for name, value in attrs if name in ("src", "href", "data", "action")]


def test_a_page_stands_alone(scopes: list[Scope]) -> None:
    """The page has pictures and tables, loads nothing, and a name cannot leave its place."""
    for scope in scopes:
        page = _Page()
        text = "".join(html_report(scope, "<script>alert(1)</script>"))
        page.feed(text)
        assert page.tags["svg"] >= 1 and page.tags["table"] >= 3
        assert not page.links and "\x1b" not in text
        scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(scripts[-1].encode()).digest()).decode()
        assert len(scripts) == page.tags["script"] == 1 and f"script-src 'sha256-{digest}'" in text


def test_a_page_has_the_viewers_picture(tmp_path: Path) -> None:
    """Ranks have their titles, devices their states and the viewer's colours; who waits is hatched; columns
    of tables that matter less are for wider screens; calls of the flame have their time; sentences are there
    to their end, numbers and names break nowhere.
    """
    write_demo(tmp_path)
    trace = open_trace(sorted(tmp_path.glob("*.json")), index_dir=tmp_path / "index")
    text = "".join(html_report(Scope(trace, clocks=trace.clocks), "demo"))
    for words in (
        "rank 1 · spyre-pod-1",
        'fill="url(#waits)"',
        "waits for a peer",
        'data-name="ProfilerStep#*"',
    ):
        assert words in text
    for key in ("kernel", "collective", "python"):
        assert f'fill="{hexed(colour_of(key, dark=False))}"' in text
    assert f'stroke="{hexed(colour_of("annotation", dark=False))}"' in text
    for words, is_broken in (
        ("AIU 0 of rank 0 waits for the data loader for ", True),
        ("HCOLL_AllReduce_ring_bf16", False),
        ("157.532 ms", False),
    ):
        (style,) = set(re.findall(rf'<td[^>]*style="([^"]*)"[^>]*>{words}', text))
        assert ("nowrap" in style) is not is_broken
    assert {'<th class="b"', '<th class="c"', '<th class="d"'} <= set(re.findall(r'<th class="."', text))


@pytest.mark.slow
def test_the_command_writes_every_format(tmp_path: Path) -> None:
    """Each ending writes a file; the events of a whole trace are its own bytes, of a part those of `cut`."""
    path = small_file(tmp_path)
    for kind in ("pftrace", "speedscope.json", "folded", "sqlite", "html", "json", "json.gz"):
        out = tmp_path / f"out.{kind}"
        done = tracelane_here("export", str(path), "-o", str(out))
        assert done.returncode == 0 and str(out) in done.stdout, done.stderr
        assert out.stat().st_size > 100
    assert (tmp_path / "out.json").read_bytes() == path.read_bytes()
    assert gzip.decompress((tmp_path / "out.json.gz").read_bytes()) == path.read_bytes()
    assert "main;ProfilerStep#*;aten::linear;launch 20000" in (tmp_path / "out.folded").read_text(
        encoding="utf-8"
    )
    part = tmp_path / "part.json"
    assert tracelane_here("export", str(path), "-o", str(part), "--step", "1").returncode == 0
    names = [
        event["name"]
        for event in json.loads(part.read_text(encoding="utf-8"))["traceEvents"]
        if event["ph"] == "X"
    ]
    assert "ProfilerStep#1" in names and "ProfilerStep#0" not in names
    if has_duckdb():
        assert tracelane_here("export", str(path), "-o", str(tmp_path / "a.parquet")).returncode == 0


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """An unknown ending, a file that is there, and a folder that is not end with a line and no file."""
    path = str(small_file(tmp_path))
    (tmp_path / "there.html").write_text("mine", encoding="utf-8")
    for out, code, words in (
        ("x.docx", 64, "must end with"),
        ("there.html", 64, "is there already"),
        ("nowhere/x.html", 1, "no folder"),
    ):
        done = tracelane_here("export", path, "-o", str(tmp_path / out))
        assert done.returncode == code and words in done.stderr and done.stderr.count("\n") == 1
    assert (tmp_path / "there.html").read_text(encoding="utf-8") == "mine"


def test_numbers_of_protobuf() -> None:
    """Varints are those of the format, columns of them of one width, and other values become text."""
    assert varint(0) == b"\0" and varint(300) == b"\xac\x02" and len(varint(-1)) == 10
    numbers = [5, 300, 0, 127, 128, (1 << 62) + 1]
    rows = row_bytes(varint_rows(np.array(numbers)))
    assert [_number(row) for row in rows] == numbers and {len(row) for row in rows} == {9}
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    text = AnnotationEncoder().encode({"a": deep, "b": 1 << 70, "c": None, "d": float("nan"), "e": "\ud800"})
    assert len(text) > 50


def _number(row: bytes) -> int:
    assert all(byte & 0x80 for byte in row[:-1]) and not row[-1] & 0x80
    return sum((byte & 0x7F) << 7 * at for at, byte in enumerate(row))


def test_equal_values_of_other_types_are_written_apart() -> None:
    """1, 1.0, true and "1" of one key are told apart, also where they come again."""
    encoder = AnnotationEncoder()
    values = [1, 1.0, True, "1", [1], [1.0], [True], ["1"], "[1]", -1, (1 << 64) - 1]
    encoded = [encoder.encode({"key": value}) for value in values]
    assert len(set(encoded)) == len(values)
    assert [encoder.encode({"key": value}) for value in values] == encoded
    assert encoder.keys == {"key": 1}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), min_size=1, max_size=25))
def test_begins_and_ends_are_those_of_a_stack(spans: list[tuple[int, int]]) -> None:
    """The events of slices that nest come as from a stack, from which what is over goes before one begins."""
    ordered = sorted(
        ((start, start + length) for start, length in spans), key=lambda span: (span[0], -span[1])
    )
    starts, ends = (np.array(side, np.int64) for side in zip(*ordered))
    fits = _nesting(starts, ends)
    track = Track(SimpleNamespace(), 0, np.flatnonzero(fits), starts[fits], ends[fits])  # type: ignore[arg-type]
    open_: list[int] = []
    expected: list[tuple[int, bool, int]] = []
    for at, (start, end) in enumerate(zip(track.starts.tolist(), track.ends.tolist())):
        while open_ and (track.ends[open_[-1]] < start or (track.ends[open_[-1]] == start and end > start)):
            expected.append((int(track.ends[open_[-1]]), False, open_.pop()))
        open_.append(at)
        expected.append((start, True, at))
    expected += [(int(track.ends[at]), False, at) for at in reversed(open_)]
    assert list(zip(*begin_and_end(track))) == expected
