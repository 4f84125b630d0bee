"""The overview that the panel of details shows while nothing is selected: rows that lead to places."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Offset

from tests.core.findings_traces import launched, op, step, trace_of
from tests.core.test_device_state import open_ranks
from tests.corpus import file, for_files, traces
from tests.tui.driver import message, open_viewer, press_keys, screen_text, wait_until_idle
from tracelane.core.tables.findings.finding import Evidence
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.overview.overview import overview, saved_overview
from tracelane.core.tables.overview.rows import stored_overview
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.device_shares import device_facts
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.palette import Depth, Palette
from tracelane.tui.panels.overview import (
    DetailsPane,
    OverviewLook,
    bar_cells_of,
    fact_columns,
    row_text,
    strip_cells,
)
from tracelane.tui.steps import StepMark, deviation_levels, step_marks
from tracelane.tui.text.overview import FactBlock, FactRow, fact_blocks

SIZE = (120, 40)
MAX_BLANK = 4
"""Rows of a screen of SIZE that may be blank, or repeat another."""
FRAMES = " │▐█▕┃"
WORDS = re.compile("[a-z]{3}")
MAX_BYTES = 40 << 20
ENDINGS = (".json", ".gz", ".zip")
NO_TRACE = {"empty.json", "html_not_json.json"}
FILES = [
    path
    for path in traces("**/*")
    if path.name.endswith(ENDINGS) and path.name not in NO_TRACE and path.stat().st_size < MAX_BYTES
]


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Three steps, the last of which takes twice as long: its second kernel is launched 700 µs late."""
    events = [step(n, 1000 * n, 900) for n in range(2)] + [step(2, 2000, 1800)]
    for n in range(3):
        events += [op(1000 * n + 1, 98, "aten::mm"), *launched(1000 * n + 5, 5, 1000 * n + 20, 300, "gemm")]
    events += [op(2400, 650, "aten::item"), *launched(3060, 5, 3070, 200, "relu")]
    return trace_of(events, tmp_path)


def counted(trace: Trace) -> Scope:
    return Scope(trace, clocks=trace.clocks)


def test_device_work_and_idle_time_lead_to_places(trace: Trace) -> None:
    """Kernels by the time that they take, each with its longest run; why the device is idle, with the longest
    time and what the host did then.
    """
    scope = counted(trace)
    groups = overview(scope, device_facts(scope).states.of_devices)
    work = [(row.name, row.amount, row.calls) for row in groups["work"]]
    assert work == [("gemm", 900_000, 3), ("relu", 200_000, 1)]
    relu = groups["work"][1].evidence
    assert relu is not None and (relu.start, relu.end) == (3_070_000, 3_270_000) and relu.slice is not None
    late = next(row for row in groups["idle"] if row.name == "host_wait")
    assert late.evidence is not None and (late.evidence.start, late.evidence.end) == (2_320_000, 3_070_000)
    assert late.text == "aten::item"
    assert ("aten::item", 650_000, 1) in [(row.name, row.amount, row.calls) for row in groups["ops"]]


def test_ranks_by_lateness(tmp_path: Path) -> None:
    """The rank that the others wait for comes first, with the time from the first to the last arrival."""
    trace = open_ranks(tmp_path, 2, 2)
    scope = counted(trace)
    rows = overview(scope, device_facts(scope).states.of_devices)["ranks"]
    last, first = rows
    assert last.amount == first.waited_ns > 0 and first.amount == 0
    assert last.evidence is not None and last.amount % (last.evidence.end - last.evidence.start) == 0
    assert last.text == f"last in {last.calls} of 20" and first.text == "never last"


def test_steps_of_a_host_that_runs_ahead(tmp_path: Path) -> None:
    """Where a host enqueues steps long before they are done, a step takes what its device needs."""
    events = []
    for n in range(4):
        events += [step(n, 100 * n, 90), *launched(100 * n + 5, 5, 1000 * n + 20, 1000)]
    trace = trace_of(events, tmp_path)
    scope = counted(trace)
    groups = overview(scope, device_facts(scope).states.of_devices)
    (row,) = groups["steps"]
    assert (row.amount, row.calls) == (1_000_000, 4)
    blocks = list(fact_blocks(trace, groups, step_marks(trace, trace.clocks), None))
    (block,) = [one for one in blocks if "steps" in one.title]
    assert block.title == "4 steps, each enqueued in 90 µs (median), of 1 ms on the device"
    assert [bool(one.steps) for one in block.rows] == [True]


def test_it_is_stored(trace: Trace) -> None:
    """What was counted once is read the next time, as it was."""
    scope = counted(trace)
    assert stored_overview(scope) is None
    groups = saved_overview(scope, device_facts(scope).states.of_devices)
    assert stored_overview(scope) == groups and len(groups) > 2


ROWS = st.builds(lambda count: tuple(FactRow(f"row {n}", "1 ms") for n in range(count)), st.integers(1, 40))
BLOCKS = st.lists(st.builds(FactBlock, st.just("title"), ROWS, st.booleans(), st.booleans()), max_size=7)


@given(BLOCKS, st.integers(20, 200), st.integers(1, 60))
def test_lines_are_shared_out(blocks: list[FactBlock], width: int, height: int) -> None:
    """No column is higher than the panel, rows keep their order, and what is spare fills what is empty."""
    columns = fact_columns(blocks, width, height)
    for column in columns:
        assert len(column.lines) <= height
        for block in {id(block): block for block, _ in column.lines}.values():
            rows = [row for of, row in column.lines if of is block and row is not None]
            assert rows == list(block.rows[: len(rows)]) and rows
    ids = {id(block) for column in columns for block, _ in column.lines}
    spare = [block for block in blocks if block.spare and id(block) not in ids]
    assert not spare or all(column.left <= 1 for column in columns)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=300), st.integers(1, 120))
def test_a_strip_has_all_steps(lengths: list[int], width: int) -> None:
    """It has no more cells than there are, and the longest step is in it, as high as any cell."""
    starts = [2000 * n for n in range(len(lengths))]
    steps = [StepMark(str(n), start, start + size) for n, (start, size) in enumerate(zip(starts, lengths))]
    cells = strip_cells(steps, width)
    assert 0 < len(cells) <= width
    longest = max(steps, key=lambda one: one.end - one.start)
    assert max(cell.level for cell in cells) in {cell.level for cell in cells if cell.step == longest}


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=50))
def test_a_step_is_as_high_as_it_deviates(lengths: list[int]) -> None:
    """The median is in the middle, longer steps never lower than shorter ones, and what deviates by a tenth
    of a fifth from it looks like it.
    """
    usual = sorted(lengths)[len(lengths) // 2]
    levels = dict(zip(lengths, deviation_levels(lengths, usual)))
    assert levels[usual] == 4 and set(levels.values()) <= set(range(1, 9))
    assert [levels[one] for one in sorted(levels)] == sorted(levels.values())
    assert all(level == 4 for one, level in levels.items() if abs(one - usual) <= usual // 50)


@pytest.mark.parametrize(
    ("lengths", "levels"),
    [([100, 101, 99], (4, 4, 4)), ([100, 100, 120], (4, 4, 8)), ([100, 100, 150], (4, 4, 8)),
     ([100, 100, 125, 150], (1, 1, 4, 8)), ([10, 100, 100, 900, 190], (1, 4, 4, 8, 8))],
)  # fmt: skip
def test_levels_of_steps(lengths: list[int], levels: tuple[int, ...]) -> None:
    """Noise is flat, a fifth more fills the cell, and one that takes very long leaves the others theirs."""
    assert deviation_levels(lengths, sorted(lengths)[len(lengths) // 2]) == levels


@pytest.mark.parametrize("width", [30, 60])
def test_no_number_of_a_row_is_cut(width: int) -> None:
    """Bytes take more cells than times; the names of a block begin in one column."""
    rows = FactRow("init", "1023.9 KiB", "3.3 %"), FactRow("forward", "5.44 MiB", "47.5 %")
    block = FactBlock("Memory", rows)
    look = OverviewLook(Palette(Depth.NONE), UNICODE)
    lines = [row_text(row, block, width, look, 5).plain for row in rows]
    assert all(row.value in line and len(line) == width for row, line in zip(rows, lines))
    assert lines[0].index("init") == lines[1].index("forward")


@pytest.mark.parametrize("width", [48, 57, 63])
def test_names_come_before_bars(width: int) -> None:
    """Two names that are cut do not read the same, a short note stands in full or not at all, and bars give
    up cells for both, as many in each row.
    """
    names = "matmul_bf16xbf16xmxfp4_16x128x256x1", "matmul_bf16xbf16xmxfp4_32x128x256x1", "relu"
    rows = [FactRow(name, "1 ms", "50 %", bar=1.0, note="10 runs") for name in names]
    block = FactBlock("Device work", tuple(rows))
    look = OverviewLook(Palette(Depth.NONE), UNICODE)
    lines = [row_text(row, block, width, look, bar_cells_of([block], width)).plain for row in rows]
    assert len(set(lines)) == 3 and all(len(line) == width for line in lines)
    assert "relu  10 runs" in lines[2]
    assert all(line.count("10 runs") == line.count("10") for line in lines)
    assert {line.count("█") for line in lines} == {6}
    short = FactBlock("Device work", (FactRow("relu", "1 ms", "50 %", bar=1.0),))
    assert bar_cells_of([short], width) > 6 == bar_cells_of([short, block], width)


async def test_keys_choose_a_row_and_go_there(trace: Trace) -> None:
    """Tab gives it the arrows; Enter selects the longest run of a kernel, or shows the step."""
    async with open_viewer(trace, SIZE) as (app, pilot):
        pane = app.main.query_one(DetailsPane)
        labels = [row.label for row in pane.rows]
        assert labels[:2] == ["gemm", "relu"]
        await press_keys(app, pilot, "tab", "down")
        assert "relu" in screen_text(app).splitlines()[-2]  # in full, in the line of messages
        await press_keys(app, pilot, "enter")
        assert app.session.selection is not None and app.session.cursor == 3_070_000
        assert message(app).startswith("longest relu, 200 µs")
        await press_keys(app, pilot, "escape", "escape", "escape")
        await wait_until_idle(app, pilot)
        assert [row.label for row in pane.rows] == labels
        await press_keys(app, pilot, "tab", *["down"] * labels.index("step 2"), "enter")
        view = app.session.viewport
        assert view.start <= 2_000_000 and view.end >= 3_800_000


async def test_a_row_that_a_resize_took_is_chosen_no_more(trace: Trace) -> None:
    """On a screen that became too low for the chosen row, keys choose among those that are left."""
    low = (SIZE[0], 16)
    async with open_viewer(trace, low) as (app, pilot):
        pane = app.main.query_one(DetailsPane)
        left = len(pane.rows)
        await pilot.resize_terminal(*SIZE)
        await wait_until_idle(app, pilot)
        assert 0 < left < len(pane.rows)
        await press_keys(app, pilot, "tab", *["down"] * left)
        await pilot.resize_terminal(*low)
        await wait_until_idle(app, pilot)
        assert len(pane.rows) == left
        await press_keys(app, pilot, "right", "left", "enter")
        assert app.session.selection is None
        await press_keys(app, pilot, "up", "enter")
        assert app.session.cursor != 0


async def test_the_mouse_does_the_same(trace: Trace) -> None:
    """A row says over which the mouse is in full what it says in short, and a click goes where Enter goes."""
    async with open_viewer(trace, SIZE) as (app, pilot):
        pane = app.main.query_one(DetailsPane)
        lines = screen_text(app).splitlines()
        y = next(n for n, line in enumerate(lines) if "relu" in line and n > pane.region.y)
        at = Offset(lines[y].index("relu"), y) - pane.region.offset
        await pilot.hover(pane, at)
        await wait_until_idle(app, pilot)
        assert "relu" in screen_text(app).splitlines()[-2]
        await pilot.click(pane, at)
        await wait_until_idle(app, pilot)
        assert app.session.selection is not None and app.session.cursor == 3_070_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cpu/torch_2.13_training.pt.trace.json.gz", "cuda/stacks.pt.trace.json.gz"])
async def test_every_row_leads_somewhere(name: str, tmp_path: Path) -> None:
    """Whatever a row leads to, what takes time can be seen afterwards: its time lies in the view, or a panel
    lists it.
    """
    trace = open_trace(file(name), index_dir=tmp_path)
    async with open_viewer(trace, (120, 60)) as (app, pilot):
        rows, first = app.main.query_one(DetailsPane).rows, app.session
        targets = [row.target for row in rows if row.target is not None]
        assert len(targets) > 10
        for target in targets:
            app.store.show(first)
            app.main.query_one(DetailsPane).post_message(DetailsPane.RowChosen(target))
            await wait_until_idle(app, pilot)
            view = app.session.viewport
            if isinstance(target, Evidence):
                assert view.start <= target.start and target.end <= view.end and target.start < target.end
            else:
                assert app.session != first


async def test_a_low_screen_has_the_first_rows(tmp_path: Path) -> None:
    """With one line for it the panel has what takes most of the device's time, and why it is idle."""
    events = [op(50 * n, 40, f"aten::part{n}") for n in range(24)]
    outer = [op(0, 3000 - n, f"aten::outer{n}") for n in range(30)]  # of two kinds: no row repeats another
    events = [one | {"cat": ("cpu_op", "cuda_runtime")[n % 2]} for n, one in enumerate(outer)] + events
    trace = trace_of([*events, *launched(5, 5, 20, 300, "gemm"), *launched(2000, 5, 2010, 9, "g")], tmp_path)
    async with open_viewer(trace, (100, 24)) as (app, _):
        pane = app.main.query_one(DetailsPane)
        assert pane.size.height == 1
        text = screen_text(app).splitlines()[pane.region.y]
        assert "gemm" in text and "idle: host late" in text


@for_files("path", FILES)
@pytest.mark.slow
async def test_no_half_of_the_screen_is_mute(path: Path, corpus_cache: Path) -> None:
    """On a roomy screen hardly a row of any trace is blank, or repeats another."""
    async with open_viewer(open_trace(path, index_dir=corpus_cache), SIZE) as (app, _):
        lines = [line.strip(FRAMES) for line in screen_text(app).splitlines()]
        says = Counter(line for line in lines if WORDS.search(line))
        repeated = sum(count - 1 for count in says.values() if count > 1)
        assert lines.count("") + repeated <= MAX_BLANK, screen_text(app)
