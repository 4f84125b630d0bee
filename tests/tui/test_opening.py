"""What opens first, and folded: devices and what launches to them are on the first screen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.core.findings_traces import op, trace_of
from tests.corpus import CORPUS, file, for_files, needs
from tests.tui.fake_trace import LaneSpec, fake_trace
from tests.tui.small_file import small_file
from tracelane.core.index.format import RowKind
from tracelane.core.query.filter import parse
from tracelane.core.trace import Trace, open_trace
from tracelane.core.trace.hit_search import matches
from tracelane.core.trace.lane_order import drawn_device_lanes
from tracelane.tui.actions.lanes import next_preset, toggle_frames
from tracelane.tui.actions.view import first_session
from tracelane.tui.draw.lane_choice import PRESETS, toggle_fold
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import LineKind, lane_key
from tracelane.tui.draw.opening import MIN_HOST_ROWS, with_devices_in_view
from tracelane.tui.fitting import fit_to_screen
from tracelane.tui.session import FOLD_ROWS, RowKey, Session, Viewport
from tracelane.tui.steps import step_marks

SESSION = Session(Viewport(0, 1_000_000, 100), 0)
LABELS = ("CPU", "AIU 0")


def tops(trace: Trace, session: Session, process: int) -> list[int]:
    """The lines of the first rows of a process's lanes."""
    layout = Layout(trace, session)
    ys = [layout.y_of(RowKey(lane_key(trace.lanes[number]), 0)) for number in trace.processes[process].lanes]
    return [y for y in ys if y is not None]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 3, 40])
@pytest.mark.parametrize("rows", [1, 4, 5, 9, 60])
@pytest.mark.parametrize("height", [8, 16, 17, 18, 40, 200])
def test_device_lanes_are_on_the_first_screen(threads: int, rows: int, height: int) -> None:
    """All device lanes are in view and come first; where not all lanes fit, as deep as there is room."""
    trace = fake_trace(
        [LaneSpec(f"t{i}", rows=rows) for i in range(threads)],
        [LaneSpec("stream 0", rows=2), LaneSpec("stream 1", rows=30)],
        labels=LABELS,
    )
    session = with_devices_in_view(trace, SESSION, height)
    first, second = tops(trace, session, 1)
    assert second < height
    assert first == 1 and Layout(trace, session).line(0).process == trace.processes[1]  # type: ignore[union-attr]
    if session.device_rows < FOLD_ROWS:
        deeper = session._replace(device_rows=session.device_rows + 1)
        assert tops(trace, deeper, 1)[1] + MIN_HOST_ROWS > height


@for_files(
    "path",
    [
        "gpu/hta_a100_resnet_ddp_nccl.json.gz",
        "gpu/tl_h100_qwen_infer.json.gz",
        "gpu/tl_torch_compile_triton.json.gz",
        "gpu/tl_vllm_capture_python_functions.pt.trace.json.gz",
        "gpu/tl_vllm_decode_cudagraph_exec.json.gz",
        "aiu/mlp_trace.json",
        *("cuda/inference.pt.trace.json.gz", "cuda/stacks.pt.trace.json.gz"),
    ],
)
@pytest.mark.parametrize("size", [(80, 24), (120, 35), (200, 50)])
def test_devices_and_their_launching_thread_are_seen(
    path: str, size: tuple[int, int], corpus_cache: Path
) -> None:
    """The lanes of all devices and the thread that launches most are on the first screen of real traces,
    devices above all other lanes.
    """
    trace = open_trace(file(path), index_dir=corpus_cache)
    fit = fit_to_screen(trace, first_session(trace, 64), *size, has_marks=False)
    threads = trace.launching_lanes
    expected = {number for number in drawn_device_lanes(trace) if trace.lanes[number].slices}
    expected |= {max(threads, key=threads.__getitem__)} if threads else set()
    layout = Layout(trace, fit.session)
    assert expected
    for number in expected:
        y = layout.y_of(RowKey(lane_key(trace.lanes[number]), 0))
        assert y is not None and y < fit.lanes, trace.lanes[number].title
    lanes = [line.lane for line in layout.lines(0, layout.height) if line.lane is not None]
    is_device = [lane.index in drawn_device_lanes(trace) for lane in lanes]
    assert is_device == sorted(is_device, reverse=True)


@needs(CORPUS)
def test_lanes_that_begin_with_kernels_are_devices(corpus_cache: Path) -> None:
    """Without names of processes and threads, lanes of kernels are told apart by what they hold."""
    trace = open_trace(CORPUS / "gpu/tl_vllm_decode_cudagraph_exec.json.gz", index_dir=corpus_cache)
    devices = drawn_device_lanes(trace)
    assert {trace.lanes[number].process.title for number in devices} == {"process 2"}


def test_without_devices_nothing_gives_way() -> None:
    """Host lanes alone open as deep as ever."""
    trace = fake_trace([LaneSpec("main", rows=20)], [LaneSpec("worker", rows=20)])
    assert with_devices_in_view(trace, SESSION, 10) == SESSION


def test_the_cursor_opens_where_the_first_step_begins(tmp_path: Path) -> None:
    """Also where that is the beginning of the trace; without steps it is in the middle."""
    trace = open_trace(small_file(tmp_path), index_dir=tmp_path / "index")
    first = step_marks(trace, trace.clocks)[0]
    assert first_session(trace, 80).cursor == first.start == trace.opening_span[0]
    session = first_session(trace_of([op(0, 9), op(20, 3)], tmp_path / "other"), 80)
    assert session.cursor == session.viewport.edge(40)


def test_presets() -> None:
    """Each preset shows its lanes in its order, and the key goes on to one that shows others."""
    trace = fake_trace([LaneSpec("main", rows=2)], [LaneSpec("stream 0")], labels=LABELS)
    titles = {}
    for preset in PRESETS:
        layout = Layout(trace, SESSION._replace(preset=preset))
        titles[preset] = [line.title for line in layout.lines(0, layout.height)]
    assert titles["everything"][:2] == ["process 1", "stream 0"] and "main" in titles["everything"]
    assert titles["devices"] == titles["launching"] == ["process 1", "stream 0", "1 lane hidden"]
    assert titles["file"][:2] == ["process 0", "main"]
    devices = next_preset(trace, SESSION._replace(preset="everything"))
    assert devices.preset == "devices"
    assert next_preset(trace, devices).preset == "file"  # "launching" would show the same


@needs(CORPUS)
def test_outermost_python_frames_are_one_line(corpus_cache: Path) -> None:
    """Frames that span a thread stand in one line that says how many, also with slivers beside them; opening
    the lane shows each.
    """
    path = CORPUS / "gpu/tl_vllm_capture_python_functions.pt.trace.json.gz"
    trace = open_trace(path, index_dir=corpus_cache)
    session = first_session(trace, 60)
    layout = Layout(trace, session)
    folded = [line for line in layout.lines(0, layout.height) if line.frames]
    lines = [line for line in folded if line.depth > line.frames.start]  # of chains the first is drawn
    assert {len(line.frames) for line in lines} == {17, 20, 22}
    for line in lines:
        assert line.lane is not None
        index = trace.indexes[line.lane.source]
        extent = line.lane.end - line.lane.start
        for depth in line.frames:
            row = index.rows[line.lane.rows[depth]]
            durations = index.duration(np.arange(int(row["count"])) + int(row["first"]))
            siblings_ns = int(durations.sum() - durations.max())
            if depth <= line.depth:
                assert durations.max() >= 0.99 * extent and siblings_ns <= 0.01 * extent
            assert layout.y_of(RowKey(lane_key(line.lane), depth)) == layout.y_of(line.row_key)  # type: ignore[arg-type]
        opened = Layout(trace, session._replace(unfolded=frozenset({lane_key(line.lane)})))
        assert opened.height > layout.height
        assert not any(other.frames for other in opened.lines(0, opened.height) if other.lane == line.lane)


@needs(CORPUS)
def test_a_filter_closes_up_the_rows_that_it_empties(corpus_cache: Path) -> None:
    """Without Python frames a thread has no empty row, and every slice that is left has its row."""
    path = CORPUS / "gpu/tl_h100_qwen_infer.json.gz"
    trace = open_trace(path, index_dir=corpus_cache)
    session = toggle_frames(trace, first_session(trace, 60))
    assert session.filter == "-cat:python_function"
    left = matches(trace, parse(session.filter), session.clocks)
    unfolded = frozenset(lane_key(lane) for lane in trace.lanes)
    session = session._replace(unfolded=unfolded, show_quiet=True)
    layout = Layout(trace, session, left)
    rows = [line for line in layout.lines(0, layout.height) if line.kind is LineKind.ROW and line.lane]
    drawn = {(line.lane.source, line.lane.rows[line.depth]) for line in rows if line.lane is not None}
    for lane in trace.lanes:
        for number in lane.rows:
            is_slices = trace.indexes[lane.source].rows[number]["kind"] == RowKind.SLICES
            if is_slices and not lane.process.aside:
                assert ((lane.source, number) in drawn) == bool(len(left.in_row(lane.source, number)))
    assert toggle_frames(trace, session).filter == ""


def test_the_profilers_own_notes_open_folded() -> None:
    """What is no process is one line, and opens and folds as any other."""
    trace = fake_trace([LaneSpec("main")], [LaneSpec("PyTorch Profiler", rows=2)])
    notes = trace.processes[1]._replace(pid='"Spans"', name="", title="Spans", aside=True)
    trace.processes = (trace.processes[0], notes)
    line = Layout(trace, SESSION).line(2)
    assert line is not None and line.folded and line.title == "Spans"
    opened = toggle_fold(SESSION, line, trace)
    assert Layout(trace, opened).height == 2 + 3
    title = Layout(trace, opened).line(2)
    assert title is not None and Layout(trace, toggle_fold(opened, title, trace)).height == 2 + 1
