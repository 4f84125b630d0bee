"""Ranges, baselines and gaps by key and mouse, and the tables that speak of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import CASES, CORPUS, file, for_files, needs
from tests.events import complete, index_of, open_events
from tests.tui.driver import message, open_viewer, press_keys, screen_text, wait_until_idle
from tests.tui.small_file import events
from tests.tui.small_trace import MS, START
from tracelane.core.query.steps import STEP_NAME
from tracelane.core.query.views import SliceId
from tracelane.core.tables.device.gap import gap_of, work_gaps
from tracelane.core.tables.device.idle import idle
from tracelane.core.tables.frame.frame import Frame
from tracelane.core.tables.frame.frame_columns import gap_rows
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.work_device import GAP_CLASSES
from tracelane.core.tables.host.range_table import range_table
from tracelane.core.tables.path.critical_path import critical_path
from tracelane.core.tables.registry import PANELS
from tracelane.core.tables.selection import Selection
from tracelane.core.trace import RowKind, Trace, open_trace
from tracelane.core.trace.devices import devices
from tracelane.core.trace.step_choice import find_steps
from tracelane.tui import steps as module
from tracelane.tui.actions import gaps
from tracelane.tui.actions.scene import Refusal, Scene
from tracelane.tui.actions.view import first_session, view_of
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import lane_key
from tracelane.tui.draw.path_line import DrawnPath
from tracelane.tui.draw.things import thing_by_id
from tracelane.tui.lanes.canvas import LaneCanvas
from tracelane.tui.lanes.strips import PathStrip
from tracelane.tui.panels.surroundings import gap_fields
from tracelane.tui.panels.table import TablePane
from tracelane.tui.session import GapId, RowKey, Session
from tracelane.tui.steps import step_at, step_marks
from tracelane.tui.times import parse_span, stamps_of, time_frame
from tracelane.tui.widgets.table import VirtualTable

LAUNCH = next(n for n, event in enumerate(events()) if event["name"] == "launch")


async def test_a_range_follows_the_cursor_until_it_ends(file_trace: Trace) -> None:
    """v begins at the cursor, moves draw the range out either way, v ends it, Esc drops it."""
    async with open_viewer(file_trace) as (app, pilot):
        await pilot.press(*["right"] * 6, "v")
        begin = app.session.cursor
        assert app.session.range == (begin, app.session.viewport.edge(app.session.viewport.cell(begin) + 1))
        await pilot.press("right", "right", "right")
        assert app.session.range == (begin, app.session.cursor)
        await pilot.press(*["left"] * 5)
        assert app.session.range == (app.session.cursor, begin)
        await pilot.press("v")
        final = app.session.range
        await pilot.press("left")
        assert app.session.range == final
        await pilot.press("escape")
        assert app.session.range is None
        await pilot.press("v", "right", "escape", "right")
        assert app.session.range is None


async def test_the_selection_becomes_the_range(file_trace: Trace) -> None:
    """r takes the selected slice's time; with nothing selected that of the step at the cursor, if any."""
    async with open_viewer(file_trace) as (app, pilot):
        await pilot.press("home", "r")
        assert app.session.range == (file_trace.steps[0].start, file_trace.steps[0].end)
        app.store.show(app.session._replace(range=None, cursor=file_trace.span[1]))
        await pilot.press("r")
        assert "nothing is selected" in message(app)
        app.action_jump(0, LAUNCH)
        await pilot.press("r")
        thing = app.store.selected
        assert app.session.range == (thing.start, thing.end)


async def test_the_table_speaks_of_the_range(file_trace: Trace) -> None:
    """3 shows the whole trace's names, then those of the range; sorting stays; Enter goes to the longest."""
    async with open_viewer(file_trace, (120, 50)) as (app, pilot):
        await press_keys(app, pilot, "t", "t")
        pane = app.main.query_one("#table", TablePane)
        assert pane.shown_table is not None and "whole trace" in screen_text(app)
        assert pane.shown_table.totals["slices"] == len(file_trace.indexes[0].column("slices.start"))
        rows = pane.query_one(VirtualTable)
        assert rows.sorted_by == (4, True)
        rows.sort(2, descending=True)
        app.action_jump(0, LAUNCH)
        await press_keys(app, pilot, "r")
        assert pane.shown_table.scope.startswith("range +") and rows.sorted_by == (2, True)
        assert pane.shown_table.totals["slices"] < len(file_trace.indexes[0].column("slices.start"))
        assert app.focused is rows
        rows.cursor = 0
        row = rows.row
        await pilot.press("enter")
        await pilot.pause()
        assert row is not None and pane.shown_table.positions is not None
        ordinal = file_trace.indexes[0].column("slices.ordinal")[pane.shown_table.positions[row]]
        assert app.session.selection == SliceId(0, int(ordinal))


@pytest.mark.slow
async def test_only_narrows_the_table(file_trace: Trace) -> None:
    """With `:only` the table counts the lanes shown and says how many they are."""
    async with open_viewer(file_trace, (120, 50)) as (app, pilot):
        await pilot.press("t", "t", ":")
        await press_keys(app, pilot, *"only stream", "enter")
        table = app.main.query_one("#table", TablePane).shown_table
        assert table is not None and " lanes" in table.scope
        assert set(table.data["category"]) == {"kernel"}


async def test_a_filter_narrows_the_table(file_trace: Trace) -> None:
    """With `:filter` the table counts what matches, and says that it is filtered."""
    async with open_viewer(file_trace, (120, 50)) as (app, pilot):
        await pilot.press("t", "t", ":")
        await press_keys(app, pilot, *"filter cat:kernel", "enter")
        await wait_until_idle(app, pilot)
        table = app.main.query_one("#table", TablePane).shown_table
        assert table is not None and table.scope.endswith("filtered")
        assert set(table.data["category"]) == {"kernel"}


async def test_kept_and_dropped(trace: Trace) -> None:
    """The command keeps the step at the cursor, else the range; the same again is dropped, Esc drops it last,
    u brings it back.
    """
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        app.store.show(app.session._replace(cursor=trace.span[1]))
        app.run_command("baseline")
        await pilot.pause()
        assert app.session.baseline is None and "step at the cursor" in message(app)
        first, second = trace.steps[:2]
        app.store.show(app.session._replace(cursor=first.start))
        app.run_command("baseline")
        await pilot.pause()
        assert app.session.baseline == (first.start, first.end)
        assert "╞" in screen_text(app) and "baseline" in screen_text(app)
        app.run_command("baseline")
        await pilot.pause()
        assert app.session.baseline is None and "Baseline cleared" in message(app)
        app.run_command("baseline")
        await pilot.press(">", "r")
        app.run_command("baseline")
        assert app.session.baseline == app.session.range == (second.start, second.end)
        await pilot.press("escape")
        assert app.session.range is None and app.session.baseline is not None
        await pilot.press("escape")
        assert app.session.baseline is None
        await pilot.press("u")
        assert app.session.baseline == (second.start, second.end)


async def test_an_annotation_before_the_step(trace: Trace) -> None:
    """Of a selection an annotation is kept, of any other slice the step around the cursor."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        step = trace.steps[1]
        app.action_jump(step.id.source, step.id.ordinal)
        app.run_command("baseline")
        await pilot.pause()
        assert app.session.baseline == (step.start, step.end)
        app.action_jump(0, 14)
        app.run_command("baseline")
        await pilot.pause()
        assert app.session.baseline is None
        app.run_command("baseline")
        await pilot.pause()
        assert app.session.baseline == (step.start, step.end)


def without_number(name: str) -> str:
    """A step's name without its number."""
    return STEP_NAME if name.startswith(STEP_NAME) else name


@pytest.mark.slow
async def test_every_table_grows_changes(trace: Trace) -> None:
    """With another range on show, each table has Δ columns and says against what, steps in one row; with the
    same range none.
    """
    async with open_viewer(trace, (220, 50)) as (app, pilot):
        first, second = trace.steps[:2]
        app.store.show(app.session._replace(cursor=first.start))
        app.run_command("baseline")
        await pilot.press(">", "r")
        for name in (name for name, (_, panel) in PANELS.items() if panel.is_compared):
            app.action_panel(name)
            await wait_until_idle(app, pilot)
            table = app.main.query_one(f"#{name}", TablePane).shown_table
            assert table is not None and any(column.change for column in table.columns), name
            assert "against step " in table.scope and "step" in table.scope.split("against")[0], name
            assert "Δ" in screen_text(app), name
        app.action_panel("table")
        await wait_until_idle(app, pilot)
        shown_table = app.main.query_one("#table", TablePane).shown_table
        assert shown_table is not None
        now, past = (
            {
                without_number(row["name"]): row
                for row in range_table(Scope(trace, (step.start, step.end))).rows()
            }
            for step in (second, first)
        )
        assert [row["presence"] for row in shown_table.rows() if STEP_NAME in row["name"]] == ["both"]
        for row in shown_table.rows():
            name = without_number(row["name"])
            sides = [int(side[name]["total_ns"] or 0) if name in side else 0 for side in (now, past)]
            assert row["total_ns_delta"] == sides[0] - sides[1]
        app.run_command("baseline")
        await pilot.pause()
        await wait_until_idle(app, pilot)
        plain = app.main.query_one("#table", TablePane).shown_table
        assert plain is not None and not any(column.change for column in plain.columns)


async def test_changes_are_sorted_by_size(trace: Trace) -> None:
    """Sorting by a Δ column puts the largest change first, whatever its sign."""
    async with open_viewer(trace, (160, 50)) as (app, pilot):
        app.store.show(app.session._replace(range=(START, START + 14 * MS)))
        app.run_command("baseline")
        await press_keys(app, pilot, "escape", "t", "t")
        pane = app.main.query_one("#table", TablePane)
        table = pane.shown_table
        assert table is not None and table.scope.startswith("whole trace against range")
        titles = [column.title for column in pane.table._columns]
        pane.table.sort(titles.index("Δ total"), descending=True)
        sizes = [abs(int(table.value(row, "total_ns_delta") or 0)) for row in pane.table.order.tolist()]
        assert sizes == sorted(sizes, reverse=True)


async def test_from_gap_to_gap(trace: Trace) -> None:
    """i goes to the next gap of the row, → to what ends it, r makes it the range; the last one says so."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        app.action_jump(0, 4)
        await pilot.press("i")
        assert app.session.selection == GapId(0, 14)
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        for part in (
            "gap of 7 ms",
            "host wait: the host was late",
            "in 2 of 4 steps, 7 ms median",
            "launchKernel",
            "aten::linear",
        ):
            assert part in text, part
        await pilot.press("r")
        assert app.session.range == (START + 9 * MS, START + 16 * MS)
        await pilot.press("escape", "i")
        assert app.session.selection == GapId(0, 24)
        await pilot.press("left")
        assert app.session.selection == SliceId(0, 14)
        await pilot.press("i", "right")
        assert app.session.selection == SliceId(0, 24)
        await pilot.press("i", "i")
        assert "no gap" in message(app)
        await press_keys(app, pilot, "y")


async def test_the_longest(trace: Trace) -> None:
    """I goes to the longest gap of the row, within the range if there is one."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        app.action_jump(0, 24)
        await pilot.press("I")
        assert app.session.selection == GapId(0, 14)
        app.action_jump(0, 24)
        await pilot.press("r")
        await pilot.press("I")
        assert "no gap in the work of this lane, in the range" in message(app)


async def test_a_click_between_two_slices(trace: Trace) -> None:
    """A click on the empty space between two slices selects the gap, drawn as such."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        app.action_jump(0, 4)
        canvas = app.main.query_one(LaneCanvas)
        y = app.store.layout_now.y_of(app.session.focus) - app.session.scroll  # type: ignore[arg-type, operator]
        x = canvas.size.width - canvas.time_cells + app.session.viewport.cell(START + 12 * MS)
        await pilot.click(canvas, offset=(x, y))
        assert app.session.selection == GapId(0, 14)
        await pilot.pause()
        assert "─ host late" in canvas.render_line(y).text
        await pilot.press("up", "escape")


@pytest.mark.parametrize("gap_us", [5, 500, 5_000])
async def test_a_narrow_gap_is_zoomed_to(tmp_path: Path, gap_us: int) -> None:
    """A gap of fewer than three cells, in which nothing would be seen, gets room; a wider one does not."""
    kernels = [(0, 5_000), (5_000 + gap_us, 5_000), (10_000 + gap_us, 90_000)]
    events = [
        complete(ts, dur, f"k{ts}", "kernel", pid=0, tid=7, args={"stream": 7, "device": 0})
        for ts, dur in kernels
    ]
    trace = open_events(tmp_path, events)
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        before = app.session.viewport
        await pilot.press("I")
        view = app.session.viewport
        assert isinstance(app.session.selection, GapId)
        assert gap_us * 1000 * view.width >= 3 * view.span
        assert (view == before) == (gap_us * 1000 * before.width >= 3 * before.span)


MAX = 120
"""Gaps of a lane that are walked; the longest traces have thousands."""

A100 = "gpu/hta_a100_resnet_ddp_nccl.json.gz"
TRACES = (
    *("cuda/gloo.pt.trace.json.gz", "cuda/inference.pt.trace.json.gz"),
    A100,
    "gpu/hta_gpu_user_annotation.json.gz",
    "gpu/hta_mtia_inference_rank0.json.gz",
    "gpu/tl_h100_qwen_infer.json.gz",
    "gpu/tl_mi300_resnet_train_rank0of8.json.gz",
    "gpu/tl_vllm_decode_cudagraph_exec.json.gz",
    "gpu/kineto2021_resnet50_strtid_memory.pt.trace.json.gz",
    "aiu/spyre_torch_profiler/decode_bmm__upstream-main__adnan-cdx-spyre-dev-pf_2294891.1781947844789580072.pt.trace.json",
    "aiu/sample_flex_3062_job_4.json",
    "multirank/dlrm_8gpu_ranks0-3",
)


def scene_on(trace: Trace, row: RowKey, start: int) -> Scene:
    """Return the viewer's state with a row in focus, zoomed in so far that every gap is a cell wide."""
    session = first_session(trace, 200)
    session = session._replace(focus=row, cursor=start, clocks=trace.clocks)
    session = session._replace(viewport=view_of(start, start + 200, 200))
    layout = Layout(trace, session)
    return Scene(trace, session, layout, 40)


def walked(trace: Trace, scene: Scene) -> list[Session]:
    """Return the sessions at each gap, from the first on."""
    sessions: list[Session] = []
    while len(sessions) < MAX:
        try:
            session = gaps.next_one(scene)
        except Refusal:
            break
        sessions.append(session)
        scene = scene._replace(session=session._replace(viewport=scene.session.viewport))
    return sessions


def gaps_by_end(work: Frame) -> dict[GapId, tuple[int, int, str]]:
    """Return by the gap's identity its start, end and class, of all that `idle` counts."""
    rows = {}
    for part in gap_rows(work).by("source"):
        ordinals = part.index.column("slices.ordinal")[part.position].tolist()
        columns = (ordinals, part.reach.tolist(), part.start.tolist(), part.gap_class.tolist())
        for ordinal, start, end, kind in zip(*columns):
            rows[GapId(part.source_number, ordinal)] = (start, end, GAP_CLASSES[kind])
    return rows


@pytest.mark.slow
@for_files("name", TRACES)
def test_the_gaps_walked_are_those_of_idle(name: str, corpus_cache: Path) -> None:
    """Every gap that `i` selects is one of `idle`, of its length and class; all lanes together have all of
    them where the trace is small, and `I` finds the longest.
    """
    trace = open_trace(file(name), index_dir=corpus_cache)
    expected = gaps_by_end(idle(Scope(trace, clocks=trace.clocks)))
    assert expected
    met: set[GapId] = set()
    complete = True
    for number in sorted({lane for device in devices(trace) for lane in device.lanes}):
        lane = trace.lanes[number]
        rows = [row for row in trace.rows(lane) if row.kind is RowKind.SLICES]
        key = RowKey(lane_key(lane), rows[-1].depth)
        start = lane.start + trace.clocks.offset(lane.source, lane.pid) - 1
        scene = scene_on(trace, key, start)
        sessions = walked(trace, scene)
        complete &= len(sessions) < MAX
        for session in sessions:
            assert isinstance(session.selection, GapId)
            thing = thing_by_id(trace, session.clocks, session.selection)
            assert thing is not None
            gap = gap_of(trace, thing.row, thing.index, session.clocks)
            assert gap is not None
            assert (thing.start, thing.end) == (gap.start, gap.end)
            assert expected[session.selection] == (gap.start, gap.end, gap.kind)
            met.add(session.selection)
        if sessions:
            longest = gaps.select_longest_gap(scene).selection
            of_work = work_gaps(trace, lane.index, trace.clocks)
            assert isinstance(longest, GapId) and of_work is not None
            start, end, _ = expected[longest]
            assert end - start == max((of_work.ends - of_work.starts).tolist())
    assert met and met <= expected.keys()
    if complete:
        assert met == expected.keys()
    trace.close()


@needs(CORPUS)
async def test_the_longest_gap_says_what_idle_says(corpus_cache: Path) -> None:
    """The longest gap of the A100's compute stream is 15.998 ms long, ended by a copy that came late."""
    trace = open_trace(CORPUS / A100, index_dir=corpus_cache)
    lane = next(lane for lane in trace.lanes if lane.tid == "7" and lane.process.labels.startswith("GPU"))
    async with open_viewer(trace, (140, 50)) as (app, pilot):
        row = trace.rows(lane)[-1]
        app.action_jump(row.source, trace.ordinal(row, 0))
        await press_keys(app, pilot, "I")
        text = screen_text(app)
        fields = gap_fields(trace, stamps_of(trace, app.session), app.store.selected)
    for part in ("gap of 15.998 ms", "host wait: the host was late", "cudaMemcpyAsync"):
        assert part in text, part
    labels = [field.label for field in fields]
    assert labels[:4] == ["length", "class", "ended by", "launched by"] and labels[-1] == "before it"


@needs(CASES)
def test_an_annotation_on_a_device_is_no_work(tmp_path: Path) -> None:
    """Below an annotation that spans kernels with gaps, the gaps are those between the kernels."""
    trace = open_trace([CASES / "adversarial" / "gpu_ann.json"], index_dir=tmp_path)
    expected = gaps_by_end(idle(Scope(trace)))
    (device,) = devices(trace)
    (number,) = device.lanes
    key = RowKey(lane_key(trace.lanes[number]), 0)
    sessions = walked(trace, scene_on(trace, key, trace.lanes[number].start - 1))
    assert {session.selection for session in sessions} == expected.keys()
    trace.close()


@needs(CORPUS)
@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_path_is_shown_and_walked(size: tuple[int, int], corpus_cache: Path) -> None:
    """shift+→ finds it and goes along it; details say what released each segment; :critical removes it."""
    trace = open_trace(CORPUS / "gpu" / "hta_cuda_event_sync.json.gz", index_dir=corpus_cache)
    path = critical_path(Selection(step=100).scope(trace))
    async with open_viewer(trace, size) as (app, pilot):

        async def press(key: str) -> None:
            await press_keys(app, pilot, key)

        await press("shift+right")
        assert message(app).startswith("critical path 3.154 ms: host 74.6 %")
        assert "path step 100" in screen_text(app)
        walked = []
        while True:
            await press("shift+right")
            if "of 44" not in message(app):
                break
            number = int(message(app).split()[0]) - 1
            assert path.segments.starts[number] <= app.session.cursor < path.segments.ends[number]
            walked.append(message(app))
        assert message(app) == "the critical path ends here"
        assert "36 of 44: kernel 36 µs, released by its launch" in walked
        await press("shift+left")
        assert app.session.cursor < int(path.segments.starts[-1])
        assert "critical path" in screen_text(app)
        strip = app.main.query_one(PathStrip)
        await pilot.click(PathStrip, offset=(strip.size.width - 1, 0))
        await wait_until_idle(app, pilot)
        app.run_command("critical")
        await wait_until_idle(app, pilot)
        assert "path step" not in screen_text(app) and not strip.display


@needs(CORPUS)
async def test_the_path_follows_the_steps(corpus_cache: Path) -> None:
    """Another step that is gone to has its path; a range that is drawn keeps the one on show."""
    trace = open_trace(CORPUS / "gpu" / "hta_a100_resnet_ddp_nccl.json.gz", index_dir=corpus_cache)
    async with open_viewer(trace) as (app, pilot):
        for key, title in (("shift+right", "path step 4"), (">", "path step 5"), ("w", "path step 5")):
            await press_keys(app, pilot, key)
            assert title in screen_text(app)


@needs(CORPUS)
def test_cells_show_what_takes_most_of_them(corpus_cache: Path) -> None:
    """Of each cell the kind with most time, by brute force; runs neither overlap nor leave the path."""
    trace = open_trace(CORPUS / "gpu" / "tl_h100_qwen_infer.json.gz", index_dir=corpus_cache)
    path = critical_path(Selection(step=6).scope(trace))
    drawn, one = DrawnPath(trace, "path", path, path.names), path.segments
    low, high = int(one.starts[0]), int(one.ends[-1])
    for start, stop in (
        (low, high),
        (low - 5_000_000, low + 9_000_000),
        (low + 20_000_000, low + 20_090_000),
    ):
        edges = np.linspace(start, stop, 61).astype(np.int64)
        runs = drawn.runs(edges)
        assert all(run.right <= after.left for run, after in pairwise(runs))
        keys = {cell: run.key for run in runs for cell in range(run.left, run.right)}
        for cell, (left, right) in enumerate(zip(edges.tolist(), edges[1:].tolist())):
            times = np.maximum(0, np.minimum(one.ends, right) - np.maximum(one.starts, left))
            assert (cell in keys) == bool(times.any())
            kernels = int(times[one.kinds == 4].sum())
            if 2 * kernels > right - left:
                assert keys[cell] == "kernel"


@pytest.mark.slow
async def test_a_name_becomes_the_step(trace: Trace) -> None:
    """The selected op's name becomes the step: ruler, > and the table follow; again: as found."""
    async with open_viewer(trace, (160, 50)) as (app, pilot):
        await pilot.press("5")
        app.action_jump(0, 1)
        app.run_command("steps-by-name")
        assert app.session.steps == "aten::linear" and "4 steps" in message(app)
        op = app.store.selected
        app.store.show(app.session._replace(cursor=op.start, selection=None, range=None))
        await pilot.press(">", "r")
        start, end = app.session.range or (0, 0)
        assert (start - op.start, end - start) == (10_000_000, op.end - op.start)
        await pilot.press(">")
        assert app.session.range == (start + 10_000_000, end + 10_000_000)
        await press_keys(app, pilot, "escape", "escape")
        table = app.main.query_one("#steps", TablePane).shown_table
        assert table is not None and "aten::linear" in table.notes[0] and len(table) == 4
        assert "step 1" in screen_text(app)
        app.action_jump(0, 11)
        app.run_command("steps-by-name")
        assert app.session.steps == "" and "as they are found" in message(app)
        await pilot.press(":", *"steps nothing", "enter")
        assert "no slice is called nothing" in message(app)
        await pilot.press(":", *"steps aten::t", "enter")
        assert app.session.steps == "aten::t"
        await pilot.press(":", *"steps", "enter")
        assert app.session.steps == ""


@for_files("name", ["gpu/tl_vllm_decode_cudagraph_exec.json.gz", "gpu/hta_a100_resnet_ddp_nccl.json.gz"])
def test_what_is_found_is_what_is_typed(name: str, corpus_cache: Path) -> None:
    """The steps that the analyses find are those of the ruler, of `step:` and of `step:nth:`."""
    trace = open_trace(file(name), index_dir=corpus_cache)
    steps = find_steps(trace, 0)
    assert steps is not None
    marks = step_marks(trace, trace.clocks)
    assert [(mark.start, mark.end) for mark in marks] == list(zip(steps.starts.tolist(), steps.ends.tolist()))
    frame = time_frame(trace)
    for number in (0, -1):
        assert parse_span(f"step:nth:{number}", frame) == marks[number][1:]
    assert parse_span(f"step:{marks[0].label}", frame) == marks[0][1:]
    assert step_at(marks, marks[-1].start) == marks[-1] and step_at(marks, marks[-1].end) is None


def test_very_many_names_do_not_hold_up_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace of very many names is not looked through before it is drawn, unless a name is given."""
    events = [complete(10 * i, 5, "step", "user_annotation") for i in range(3)]
    index = index_of(events, tmp_path / "index")
    trace = Trace([index])
    assert len(step_marks(trace, trace.clocks)) == 3
    monkeypatch.setattr(module, "MANY_NAMES", 0)
    trace = Trace([index])  # marks are kept with a trace
    assert not step_marks(trace, trace.clocks) and len(step_marks(trace, trace.clocks, "step")) == 3
