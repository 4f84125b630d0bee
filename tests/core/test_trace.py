"""The front door: what a Trace answers, walking its slices, and their table, against brute force."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus import CORPUS, for_files, traces
from tests.events import complete, index_of
from tests.small_index import L, S, write_index
from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import UnreadableError
from tracelane.core.index.format import LaneKind, RowKind
from tracelane.core.index.store import Index
from tracelane.core.query.flows import flows_in, flows_out
from tracelane.core.query.lookup import (
    ancestors,
    child_at,
    children,
    count_children,
    locate_slice,
    nearest,
    next_after,
    previous_before,
    row_starts,
    slice_at,
)
from tracelane.core.query.views import SliceId, lane_title, plain, process_title
from tracelane.core.tables.frame.scope import Chunk, Scope
from tracelane.core.trace import Trace, open_trace


def traced(folder: Path, *sources: list[L], **more) -> Trace:
    for number, lanes in enumerate(sources):
        write_index(folder / str(number), lanes, **more)
    return Trace([Index.open(folder / str(number)) for number in range(len(sources))])


@pytest.mark.parametrize(
    ("pid", "name", "labels", "title"),
    [
        ("1488737", "python", "CPU", "python 1488737 · CPU"),
        ("0", "python", "AIU 0", "python 0 · AIU 0"),
        ('"Spans"', "Spans", "", "Spans"),
        ('"Spans"', "", "", "Spans"),
        ("7", "", "", "process 7"),
        ("7", " ", "GPU 7", "process 7 · GPU 7"),
        ("-1", "", "", "process -1"),
        ('""', "", "", "(no process)"),
        ("null", "", "", "(no process)"),
        ("null", "renderer", "", "renderer"),
        ("17", "MTIA 17", "MTIA 17", "MTIA 17"),
    ],
)
def test_process_titles(pid: str, name: str, labels: str, title: str) -> None:
    """A process is called by name, number and labels, string pids without quotes."""
    assert process_title(pid, name, labels) == title


@pytest.mark.parametrize(
    ("kind", "tid", "name", "ids", "title"),
    [
        (LaneKind.THREAD, "7", "stream 7 ", 0, "stream 7"),
        (LaneKind.THREAD, "401", " ", 0, "thread 401"),
        (LaneKind.THREAD, '"stream 7"', "", 0, "stream 7"),
        (LaneKind.THREAD, "null", "", 0, "(no thread)"),
        (LaneKind.THREAD, "18446744073709551615", "", 0, "thread 18446744073709551615"),
        (LaneKind.ASYNC, '"0x3"', "net", 1, "net 0x3"),
        (LaneKind.ASYNC, "", "net", 40, "net (40 ids)"),
        (LaneKind.ASYNC, '"a"', "", 1, "async a"),
        (LaneKind.COUNTER, "", "Power", 0, "Power"),
        (LaneKind.COUNTER, "3", "Power", 0, "Power 3"),
        (LaneKind.THREAD, "1", "\x1b[2Jx", 0, "⟨U+001B⟩[2Jx"),
    ],
)
def test_lane_titles(kind: LaneKind, tid: str, name: str, ids: int, title: str) -> None:
    """A lane is called by its name, where it has none by its number, and never harms the terminal."""
    assert lane_title(kind, tid, name, ids) == title
    assert plain('"a\\u001bb"') == "a⟨U+001B⟩b"


def test_lanes_rows_and_processes_fit_together(tmp_path: Path) -> None:
    """Every lane lies in its process, every row in its lane, across sources."""
    first = [L(slices=[S(0, 10), S(2, 3)], instants=[(4, "i", "")], name="a"), L(tid="2", slices=[S(0, 1)])]
    second = [L(pid="9", series={"w": [(0, 1.0)], "v": [(5, 2.0)]}, kind=LaneKind.COUNTER, name="power")]
    trace = traced(tmp_path, first, second)
    assert len(trace.lanes) == 3 and [lane.index for lane in trace.lanes] == [0, 1, 2]
    assert trace.lanes[-1] is trace.lanes[2] and len(trace.lanes[0:2]) == 2
    with pytest.raises(IndexError):
        trace.lanes[3]
    for process in trace.processes:
        assert all(trace.lanes[number].process == process for number in process.lanes)
    kinds = [[row.kind for row in trace.rows(lane)] for lane in trace.lanes]
    slices, instants, samples = RowKind.SLICES, RowKind.INSTANTS, RowKind.SAMPLES
    assert kinds == [[slices, slices, instants], [slices], [samples, samples]]
    assert [row.series for row in trace.rows(2)] == ["w", "v"]
    assert trace.row(0, 1).depth == 1 and trace.rows(2)[1].lane == 2 and trace.rows(2)[1].source == 1
    assert trace.span == (0, 10)


def test_clocks_move_lanes_and_nothing_else(tmp_path: Path) -> None:
    """Under an offset every query gives and takes shifted times for that source or process only."""
    lanes = [L(slices=[S(100, 10, "cpu")], pid="1"), L(slices=[S(100, 10, "gpu")], pid="0")]
    trace = traced(tmp_path, lanes)
    clocks = Clocks().shifted((0, "0"), 1000)
    cpu, gpu = trace.row(0, 0), trace.row(1, 0)
    edges = [100, 110, 1100, 1110]
    assert trace.cells(cpu, edges, clocks).count.tolist() == [1, 0, 0]
    assert trace.cells(gpu, edges, clocks).count.tolist() == [0, 0, 1]
    assert trace.bounds(gpu, 0, clocks) == (1100, 1110) and trace.bounds(gpu, 0) == (100, 110)
    assert trace.slice_at(gpu, 1105, clocks) == 0 and trace.slice_at(gpu, 105, clocks) is None
    assert trace.span_at(clocks) == (100, 1110)
    assert [len(trace.spans(row, trace.cells(row, edges, clocks))) for row in (cpu, gpu)] == [1, 1]


def test_slices_are_found_by_identity_from_anywhere(tmp_path: Path) -> None:
    """Identity, row and index lead to each other; parent, child and ancestors are identities too."""
    lanes = [L(slices=[S(0, 100, "a"), S(10, 50, "b"), S(20, 5, "c"), S(70, 5, "d")])]
    trace = traced(tmp_path, lanes)
    a, b, c, d = (SliceId(0, n) for n in range(4))
    for slice_id in (a, b, c, d):
        location = trace.find(slice_id)
        assert location is not None and trace.slice_id(*location) == slice_id
    assert trace.parent(c) == b and trace.ancestors(c) == [b, a] and trace.parent(a) is None
    assert trace.child_at(a, 72) == d and trace.child_at(a, 15) == b and trace.child_at(d, 72) is None
    assert trace.children(a) == [b, d]
    assert trace.find(SliceId(0, 99)) is None and trace.find(SliceId(5, 0)) is None
    assert trace.detail(SliceId(0, 99)) is None
    detail = trace.detail(b)
    assert detail is not None
    assert (detail.name, detail.position, detail.duration, detail.self_time) == ("b", 1, 50, 45)
    assert (detail.children, detail.overlap, detail.unclosed, detail.clamped) == (1, False, False, False)


def test_instants_and_samples_have_details(tmp_path: Path) -> None:
    """Marks and counter samples are found by their event's ordinal and described."""
    trace = traced(tmp_path, [L(instants=[(5, "mark", "cat")], series={"w": [(1, 2.0), (4, 3.5)]})])
    samples, instants = trace.rows(0)
    assert (trace.name(instants, 0), *trace.instant(instants, 0)) == ("mark", "cat", "i")
    assert (samples.series, trace.sample(samples, 1)) == ("w", 3.5)
    assert (trace.bounds(instants, 0), trace.bounds(samples, 1)) == ((5, 5), (4, 4))
    assert trace.find_instant(0, trace.ordinal(instants, 0)) == (instants, 0)
    assert trace.find_instant(0, trace.ordinal(samples, 1)) == (samples, 1)
    assert trace.find_instant(0, 10**6) is None and trace.find_instant(3, 0) is None
    assert trace.label(instants, 0) == "mark" and trace.name(samples, 0) == "w"


def test_flows_are_identities(tmp_path: Path) -> None:
    """Arrows name the slices at both ends, None where there is none."""
    lanes = [L(slices=[S(0, 5), S(10, 5)])]
    trace = traced(tmp_path, lanes, flows=[(0, 1, "ac2g"), (None, 1, "ac2g")])
    assert [(f.category, f.target) for f in trace.flows_out(SliceId(0, 0))] == [("ac2g", SliceId(0, 1))]
    assert {f.source for f in trace.flows_in(SliceId(0, 1))} == {SliceId(0, 0), None}


DAY = 86400 * 10**9
SINCE_1970 = 16 * 10**17
LATE = [S(SINCE_1970 + i * 1000, 900, category="cpu_op") for i in range(100)]
BULK = [S(i * 1000, 900, category="cpu_op") for i in range(100)]


@pytest.mark.parametrize(
    ("lanes", "opening", "others"),
    [
        ([L(slices=BULK)], (0, 99_900), 0),
        # A pause, however long, is none of another clock.
        ([L(slices=[S(-64 * DAY, 5), *BULK, S(64 * DAY, 5)])], (-64 * DAY, 64 * DAY + 5), 0),
        ([L(slices=BULK), L(tid="2", slices=[S(DAY, 5)])], (0, DAY + 5), 0),
        ([L(slices=BULK), L(tid="2", slices=[S(5 * 10**9, 5, category="kernel")])], (0, 5 * 10**9 + 5), 0),
        ([L(slices=BULK), L(tid="2", slices=[S(-500, 5, category="kernel")])], (-500, 99_900), 0),
        ([L(slices=BULK, instants=[(DAY, "i", "")])], (0, DAY + 1), 0),
        # Times since 1970 among others, and others among these.
        ([L(slices=[S(0, 5), *LATE])], (SINCE_1970, SINCE_1970 + 99_900), 1),
        ([L(slices=[*BULK, S(SINCE_1970, 5)])], (0, 99_900), 1),
        ([L(slices=LATE), L(tid="2", slices=BULK[:9])], (SINCE_1970, SINCE_1970 + 99_900), 9),
        ([L(slices=LATE, instants=[(0, "i", "")])], (SINCE_1970, SINCE_1970 + 99_900), 0),
        ([L(slices=BULK), L(tid="2", slices=[S(-64 * DAY, 128 * DAY, category="Trace")])], (0, 99_900), 0),
        ([L(slices=[S(5, 1000, category="Trace")])], (5, 1005), 0),
        ([L(instants=[(7, "i", ""), (9, "i", "")])], (7, 10), 0),
        ([L(slices=BULK, instants=[(200_000, "i", "")])], (0, 200_001), 0),
        (
            [L(slices=[S(0, 0)], instants=[(t, "i", "") for t in (10**6, 2 * 10**6)])],
            (0, 2 * 10**6 + 1),
            0,
        ),
        ([], (0, 0), 0),
    ],
)
def test_the_opening_window(tmp_path: Path, lanes: list[L], opening: tuple[int, int], others: int) -> None:
    """The first window has all but what stands on another clock, and whole-window spans."""
    fresh = [
        L(
            slices=[S(s.start, s.duration, s.name, s.category) for s in lane.slices],
            instants=lane.instants,
            tid=lane.tid,
        )
        for lane in lanes
    ]
    trace = traced(tmp_path, fresh)
    assert trace.opening_span == opening and trace.slices_elsewhere == others


def test_steps_are_those_of_the_host(tmp_path: Path) -> None:
    """Steps come in time order from annotations; the device's copies count only where there are no others."""
    host = L(slices=[S(100 * n, 90, f"ProfilerStep#{n}", "user_annotation") for n in (2, 1)])
    device = L(tid="7", slices=[S(50, 400, "ProfilerStep#1", "gpu_user_annotation")])
    trace = traced(tmp_path / "both", [host, device])
    assert [(step.label, step.start, step.end) for step in trace.steps] == [("1", 100, 190), ("2", 200, 290)]
    shifted = trace.steps_at(Clocks().shifted((0, ""), 5))
    assert [step.start for step in shifted] == [105, 205]
    only = traced(tmp_path / "device", [L(slices=[S(50, 400, "ProfilerStep#1", "gpu_user_annotation")])])
    assert [step.label for step in only.steps] == ["1"]


def test_folders_stand_for_their_traces(tmp_path: Path) -> None:
    """A folder opens as one trace of several sources; one without traces is refused in a line."""
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(2):
        event = {"ph": "X", "name": f"r{rank}", "pid": rank, "tid": 1, "ts": rank, "dur": 1}
        (folder / f"rank{rank}.json").write_text(json.dumps([event]), encoding="utf-8")
    (folder / "notes.txt").write_text("no trace", encoding="utf-8")
    trace = open_trace(folder, index_dir=tmp_path / "cache")
    assert [Path(source.path).name for source in trace.sources] == ["rank0.json", "rank1.json"]
    assert len(trace.lanes) == 2
    (folder / "config.json").write_text("{}", encoding="utf-8")
    trace = open_trace(folder, index_dir=tmp_path / "cache")
    assert len(trace.sources) == 2 and "config.json" in trace.sources[0].notes[0]
    page = folder / "page.json"
    page.write_text("<!DOCTYPE html><html></html>", encoding="utf-8")
    assert len(open_trace(folder, index_dir=tmp_path / "cache").sources) == 2
    with pytest.raises(UnreadableError, match="page"):
        open_trace([folder, page], index_dir=tmp_path / "cache")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnreadableError, match="directory without traces"):
        open_trace(tmp_path / "empty", index_dir=tmp_path / "cache")


def test_importing_core_is_cheap() -> None:
    """`import tracelane.core` loads neither numpy nor the front door."""
    code = "import sys, tracelane.core; print('numpy' in sys.modules, 'tracelane.core.trace' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    ).stdout
    assert said == "False False\n"


@pytest.mark.slow
@for_files("path", traces("**/*.json*"))
def test_every_lane_of_every_corpus_file_is_seen(path: Path, corpus_cache: Path) -> None:
    """Over the whole span no lane is blank, and each cell's count and spans agree, whatever the file is."""
    try:
        trace = open_trace([path], index_dir=corpus_cache)
    except UnreadableError as error:
        assert "\n" not in str(error)
        return
    start, end = trace.span
    edges = [start + i * (end + 1 - start) // 80 for i in range(81)]
    for lane in trace.lanes[:200]:
        assert trace.lane_cells(lane, edges).count.sum() > 0, lane.title
        for row in trace.rows(lane)[:50]:
            if row.kind is RowKind.SLICES:
                cells = trace.cells(row, edges)
                drawn = sum(span.right - span.left for span in trace.spans(row, cells))
                assert drawn == int((cells.count > 0).sum()) > 0, lane.title
    trace.close()


def test_launch_delay(tmp_path: Path) -> None:
    """A kernel's delay runs from its launch's end to its start, moved with the clocks; others have none."""
    events = [
        complete(0, 10, "launch", cat="cuda_runtime", pid=7, tid=7, args={"correlation": 1}),
        complete(12, 20, "before", cat="kernel", pid=0, tid=1),
        complete(35, 5, "kernel", cat="kernel", pid=0, tid=1, args={"correlation": 1}),
    ]
    trace = Trace([index_of(events, tmp_path)])
    launch, before, kernel = (SliceId(0, ordinal) for ordinal in range(3))
    assert trace.launch_delay(kernel) == (25_000, 22_000)
    assert trace.launch_delay(kernel, Clocks().shifted((0, "0"), -30_000)) == (-5_000, None)
    assert trace.launch_delay(before) is None
    assert trace.launch_delay(launch) is None


nests = st.lists(
    st.tuples(st.integers(0, 60), st.one_of(st.just(0), st.integers(0, 40))), min_size=1, max_size=14
)


def opened(folder: Path, lanes: list[L], **more) -> Index:
    write_index(folder, lanes, **more)
    return Index.open(folder)


def in_row(index: Index, number: int) -> list[tuple[int, int]]:
    row = index.rows[number]
    first, count = int(row["first"]), int(row["count"])
    starts = index.column("slices.start")[first : first + count].tolist()
    return [(s, s + d) for s, d in zip(starts, index.duration(range(first, first + count)).tolist())]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(nests, st.integers(-3, 110))
def test_moves_in_a_row_equal_brute_force(tmp_path_factory: pytest.TempPathFactory, pairs, time) -> None:
    """What is at a time, next, before and nearest is what looking at every slice of the row finds."""
    index = opened(tmp_path_factory.mktemp("i"), [L(slices=[S(a, d) for a, d in pairs])])
    for number in range(len(index.rows)):
        row = in_row(index, number)
        covering = [i for i, (a, b) in enumerate(row) if a <= time < b or a == time]
        assert slice_at(index, number, time) == (covering[-1] if covering else None)
        after = [i for i, (a, _) in enumerate(row) if a > time]
        before = [i for i, (a, _) in enumerate(row) if a < time]
        assert next_after(index, number, time) == (after[0] if after else None)
        assert previous_before(index, number, time) == (before[-1] if before else None)
        closest = nearest(index, number, time)
        away = [0 if a <= time <= b else min(abs(a - time), abs(b - time)) for a, b in row]
        assert closest is not None and away[closest] == min(away)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(nests)
def test_children_are_those_whose_parent_it_is(tmp_path_factory: pytest.TempPathFactory, pairs) -> None:
    """Children, their count and the child at a time agree with the parent column, overlaps included."""
    index = opened(tmp_path_factory.mktemp("i"), [L(slices=[S(a, d) for a, d in pairs])])
    parents = index.column("slices.parent").tolist()
    for position in range(len(parents)):
        own = [p for p, parent in enumerate(parents) if parent == position]
        assert sorted(children(index, position)) == own
        assert count_children(index, position) == len(own)
        for child in own:
            inner = child_at(index, position, index.start(child))
            assert inner is not None and parents[inner] == position
        if not own:
            assert child_at(index, position, index.start(position)) is None
        number, at = locate_slice(index, position)
        assert int(index.rows[number]["first"]) + at == position


def test_ancestors_come_innermost_first(tmp_path: Path) -> None:
    """The way outward is parent by parent up to the top of the lane."""
    index = opened(tmp_path, [L(slices=[S(0, 100, "a"), S(1, 50, "b"), S(2, 10, "c"), S(60, 5, "d")])])
    names = index.strings(index.column("slices.name"))
    assert [names[p] for p in ancestors(index, names.index("c"))] == ["b", "a"]
    assert len(ancestors(index, names.index("c"), limit=1)) == 1


def test_flows_are_found_from_both_ends(tmp_path: Path) -> None:
    """One start with many ends, chains and unbound ends come out at the right slices."""
    lane = L(slices=[S(i * 10, 5, ordinal=i) for i in range(6)])
    arrows = [
        (0, 3, "ac2g"),
        (0, 4, "ac2g"),
        (1, 2, "fwdbwd"),
        (2, 3, "ac2g"),
        (None, 5, "ac2g"),
        (5, None, "ac2g"),
    ]
    index = opened(tmp_path, [lane], flows=arrows)
    ordinals = dict(enumerate(index.column("slices.ordinal").tolist()))
    for position, ordinal in ordinals.items():
        out = {(ordinals.get(f.target_position), f.category) for f in flows_out(index, position)}
        into = {(ordinals.get(f.source_position), f.category) for f in flows_in(index, position)}
        assert out == {(b, c) for a, b, c in arrows if a == ordinal}
        assert into == {(a, c) for a, b, c in arrows if b == ordinal}
    assert len(flows_out(index, 0, limit=1)) == 1


def test_marks_and_samples_are_walked_alike(tmp_path: Path) -> None:
    """Instants and samples have the same next, previous and nearest."""
    index = opened(tmp_path, [L(instants=[(5, "i", ""), (9, "i", "")], series={"w": [(1, 2.0), (4, 3.0)]})])
    for number in range(2):
        starts = row_starts(index, number).tolist()
        assert next_after(index, number, starts[0]) == 1
        assert previous_before(index, number, starts[1]) == 0
        assert nearest(index, number, -100) == 0 and nearest(index, number, 100) == 1


EVENTS = [
    complete(0, 100, "step 1"),
    complete(10, 30, "gemm"),
    complete(20, 5, "copy"),
    complete(60, 20, "gemm"),
]


@pytest.fixture
def chunk(tmp_path: Path) -> Chunk:
    """A step, two gemms in it, and a copy in the first of these; the range cuts the step at both ends."""
    scope = Scope(Trace([index_of(EVENTS, tmp_path)]), (5_000, 90_000))
    (chunk,) = scope.chunks()
    return chunk


def test_taken_slices_keep_their_columns(chunk: Chunk) -> None:
    """By mask and by place the same; what the range cuts stays cut; all of them are the same object."""
    mask = np.array([True, False, False, True])
    subset = chunk.take(mask)
    assert subset.index.strings(subset.names) == ["step 1", "copy"]
    assert subset.durations.tolist() == [85_000, 5_000] and subset.cut.tolist() == [0]
    assert subset.self_times.tolist() == chunk.self_times[mask].tolist() == [35_000, 5_000]
    again = chunk.take(np.array([3, 0]))
    assert again.positions.tolist() == chunk.positions[[3, 0]].tolist()
    assert chunk.take(np.ones(4, np.bool_)).positions is chunk.positions


def work_and_annotations(trace: Trace) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Return the rows, by source, with work that no work contains, and those with annotations of devices that
    none contains.
    """
    work, above = set[tuple[int, int]](), set[tuple[int, int]]()
    for source, index in enumerate(trace.indexes):
        for row in index.rows[index.rows["kind"] == RowKind.SLICES]:
            first, number = int(row["first"]), int(np.flatnonzero(index.rows["first"] == row["first"])[0])
            categories = index.column("slices.category")[first : first + int(row["count"])]
            for at, category in enumerate(categories.tolist()):
                parents, parent = [], index.parent(first + at)
                while parent is not None:
                    parents.append(index.categories[int(index.column("slices.category")[parent])])
                    parent = index.parent(parent)
                is_annotation = index.categories[category] == "gpu_user_annotation"
                if set(parents) <= {"gpu_user_annotation"}:
                    (above if is_annotation else work).add((source, number))
    return work, above


def test_work_keeps_its_row_below_annotations(tmp_path: Path) -> None:
    """Work stands in the same row whether or not an annotation of its device lies above it."""
    annotation = {"cat": "gpu_user_annotation", "pid": 0, "tid": 7}
    kernel = {"cat": "kernel", "pid": 0, "tid": 7}
    events = [
        complete(0, 10, "step", **annotation),
        complete(1, 5, "forward", **annotation),
        *(complete(at, 2, f"k{at}", **kernel) for at in (2, 7, 20)),
        complete(30, 10, "k30", **kernel),
        complete(32, 3, "inside", **annotation),
        complete(33, 1, "child", **kernel),
    ]
    index = index_of(events, tmp_path)
    rows = {}
    for depth, row in enumerate(index.rows):
        for position in range(int(row["first"]), int(row["first"]) + int(row["count"])):
            rows[index.string(int(index.column("slices.name")[position]))] = depth
    assert rows == {"step": 0, "forward": 1, "k2": 2, "k7": 2, "k20": 2, "k30": 2, "inside": 3, "child": 4}


@for_files(
    "path",
    [
        "hta_a100_resnet_ddp_nccl",
        "tl_h100_qwen_infer",
        "hta_gpu_user_annotation",
    ],
)
def test_rows_of_devices_hold_work_or_annotations(path: str, corpus_cache: Path) -> None:
    """No row of a device has both, work within work aside."""
    trace = open_trace(CORPUS / "gpu" / f"{path}.json.gz", index_dir=corpus_cache)
    work, above = work_and_annotations(trace)
    assert work and above and not work & above
