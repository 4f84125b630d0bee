"""The virtual table and its cells: sorting, choosing, decimals aligned, bars, and PyTorch's own ops text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from textual.app import App, ComposeResult

from tests.corpus import CORPUS, GOLDENS, needs
from tests.json_tables import flat
from tests.tui.cli_process import tracelane_here
from tests.tui.driver import open_viewer, press_keys, wait_until_idle
from tests.tui.small_file import small_file
from tracelane.core.base.colours import key_of
from tracelane.core.tables.frame.schema import Column, TableSchema
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.table import Table
from tracelane.core.tables.host.ops import ops, sort_column
from tracelane.core.trace import open_trace
from tracelane.tui.draw.palette import Look
from tracelane.tui.lanes.look import palette_of
from tracelane.tui.panels.table import TablePane, columns_of, written_in
from tracelane.tui.text.ops_table import memory_text, ops_text, torch_time_text
from tracelane.tui.widgets.table import ColumnView, VirtualTable

ROWS = 1_000_000


class Host(App[None]):
    """Holds a table of a million rows and remembers what was asked for and chosen."""

    def __init__(self, rows: int = ROWS) -> None:
        super().__init__()
        self.rows = rows
        self.fetched: set[int] = set()
        self.chosen: list[int] = []

    def compose(self) -> ComposeResult:
        yield VirtualTable()

    def on_mount(self) -> None:
        keys = np.arange(self.rows) % 1000

        def text(row: int) -> str:
            self.fetched.add(row)
            return f"row {row}\x1b[31m"

        columns = [
            ColumnView("name", 0, text),
            ColumnView("key", 8, lambda row: str(row % 1000), right=True, keys=lambda: keys),
        ]
        self.query_one(VirtualTable).show(columns, self.rows)
        self.query_one(VirtualTable).focus()

    def on_virtual_table_row_chosen(self, event: VirtualTable.RowChosen) -> None:
        self.chosen.append(event.row)


async def test_only_visible_rows_are_asked_for() -> None:
    """A million rows cost what the screen shows, at the start and at the end."""
    app = Host()
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press("end")
        await pilot.pause()
        table = app.query_one(VirtualTable)
        assert table.row == ROWS - 1
        assert len(app.fetched) <= 60
        last = "".join(segment.text for segment in table.render_line(19))
        assert f"row {ROWS - 1}" in last
        assert "\x1b" not in last


async def test_sorting_keeps_the_cursor_and_the_order_of_equals() -> None:
    """Sorted either way the cursor stays on its row, and equal rows keep their order."""
    app = Host(3000)
    async with app.run_test(size=(60, 20)) as pilot:
        table = app.query_one(VirtualTable)
        await pilot.press("down", "down")
        table.sort(1)
        assert table.row == 2
        await pilot.press("home", "enter", "down", "enter", "down", "enter")
        table.sort(1, descending=True)
        await pilot.press("home", "enter", "down", "enter")
        await pilot.pause()
        assert app.chosen == [0, 1000, 2000, 999, 1999]


async def test_mouse_sorts_and_chooses() -> None:
    """A click on a heading sorts, again the other way; a click on the row under the cursor chooses it."""
    app = Host(3000)
    async with app.run_test(size=(60, 20)) as pilot:
        for _ in range(2):
            await pilot.click(VirtualTable, offset=(52, 0))
            await pilot.press("home")
            await pilot.click(VirtualTable, offset=(3, 1))
            await pilot.pause()
        assert app.chosen == [999, 0]


async def test_the_mouse_takes_what_it_points_at() -> None:
    """A click on a heading sorts by its column, one on a row moves the cursor there, scrolled or not."""
    app = Host(3000)
    async with app.run_test(size=(60, 20)) as pilot:
        table = app.query_one(VirtualTable)
        keys, names = np.arange(3000), ("first", "second", "third")
        columns = [ColumnView(name, size, str, keys=lambda: keys) for name, size in zip(names, (12, 8, 10))]
        table.show([*columns, ColumnView("rest", 0, str)], 3000)
        await pilot.pause()
        heading = "".join(segment.text for segment in table.render_line(0))
        for number, name in enumerate(names):
            for x in (heading.index(name), heading.index(name) + len(name) - 1):
                await pilot.click(VirtualTable, offset=(x, 0))
                assert table.sorted_by is not None and table.sorted_by[0] == number
        table.sort(0, descending=False)
        for top in (0, 7, 100):
            table.scroll_to(y=top, animate=False, immediate=True)
            await pilot.pause()
            for y in (1, 2, 9):
                await pilot.click(VirtualTable, offset=(3, y))
                assert table.row == top + y - 1 and table.scroll_offset.y == top


async def test_keys_sort() -> None:
    """The right arrow sorts by the next column that can be, numbers greatest first; Space the other way."""
    app = Host(3000)
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press("right", "home", "enter", "space", "home", "enter", "left", "right", "enter")
        await pilot.pause()
        assert app.chosen == [999, 0, 0]
        assert app.query_one(VirtualTable).sorted_by == (1, False)


@pytest.mark.parametrize("size", [(1, 1), (10, 2), (200, 50)])
async def test_empty_and_small(size: tuple[int, int]) -> None:
    """An empty table, and one with hardly any room, are drawn and answer to keys."""
    for rows in (0, 1):
        app = Host(rows)
        async with app.run_test(size=size) as pilot:
            await pilot.press("down", "up", "end", "enter", "pagedown")
            assert app.query_one(VirtualTable).row == (0 if rows else None)


class Narrow(App[None]):
    """Six columns of ten cells in a place for three of them."""

    def compose(self) -> ComposeResult:
        """Make the table."""
        columns = [
            ColumnView(
                f"c{number}", 8, lambda row, number=number: f"{number}:{row}", keys=lambda: np.arange(2)
            )
            for number in range(6)
        ]
        table = VirtualTable()
        yield table
        self.call_after_refresh(table.show, columns, 2)


@pytest.mark.parametrize(
    ("presses", "seen", "more"),
    [
        (0, ["c0", "c1", "c2"], "›"),
        (3, ["c0", "c1", "c2"], "›"),
        (4, ["c0", "c2", "c3"], "‹›"),
        (6, ["c0", "c4", "c5"], "‹"),
    ],
)
async def test_sorting_brings_columns_into_view(presses: int, seen: list[str], more: str) -> None:
    """The column sorted by is in view beside the first, only whole columns are, and marks tell of others."""
    async with Narrow().run_test(size=(32, 5)) as pilot:
        await pilot.pause()
        table = pilot.app.query_one(VirtualTable)
        table.focus()
        await pilot.press(*["right"] * presses)
        heading = table.render_line(0).text
        columns = [word for word in heading.split() if word.startswith("c")]
        assert columns == seen
        assert heading.rstrip().endswith(more)
        assert [word.split(":")[0] for word in table.render_line(1).text.split()] == [n[1:] for n in seen]


class Wide(App[None]):
    """A name, then more numbers than there is room for."""

    def compose(self) -> ComposeResult:
        """Make the table."""
        columns = [ColumnView("name", 0, lambda row: "a name of this length", least=12)]
        columns += [ColumnView(f"c{number}", 6, lambda row: "123456", right=True) for number in range(4)]
        table = VirtualTable()
        yield table
        self.call_after_refresh(table.show, columns, 1)


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (43, ["a name of this length", "123456", "123456"]),  # 45 % of 43 cells, and what is left over
        (54, ["a name of this length", *["123456"] * 3]),
    ],
)
async def test_room_left_over_goes_to_the_name(width: int, row: list[str]) -> None:
    """Cells that no further column fits into widen the first open one; marks cover no heading."""
    async with Wide().run_test(size=(width, 5)) as pilot:
        table = pilot.app.query_one(VirtualTable)
        while not table.row_count:
            await pilot.pause()
        assert re.split(" {2,}", table.render_line(1).text.rstrip()) == row
        assert len(table.render_line(1).text) == width
        heading = table.render_line(0).text
        assert heading.split()[: len(row)] == ["name", *(f"c{number}" for number in range(len(row) - 1))]
        assert heading.endswith(" ›")


@pytest.mark.parametrize(
    ("width", "text"),
    [(60, "autograd::engine::evaluate_function: MulBackward0"), (30, "MulBackward0"), (10, "MulBackwa…")],
)
async def test_names_that_do_not_fit_drop_what_all_share(width: int, text: str) -> None:
    """The end of a name tells more than the prefix that many have in common."""
    app = Host(1)
    async with app.run_test(size=(width, 6)) as pilot:
        name = "autograd::engine::evaluate_function: MulBackward0"
        app.query_one(VirtualTable).show([ColumnView("name", 0, lambda row: name)], 1)
        await pilot.pause()
        line = "".join(segment.text for segment in app.query_one(VirtualTable).render_line(1))
        assert line.strip() == text


LENGTHS = [0, 512, 1_000, 37_097, 28_160_000, 310_566_123, 4_200_000_000, 59_999_999_999]
A100 = "gpu/hta_a100_resnet_ddp_nccl.json.gz"


def table_of(unit, values: list) -> Table:
    columns = (Column("name", "name", "text"), Column("value", "value", unit))
    names = [f"n{number}" for number in range(len(values))]
    return Table.from_arrays(
        TableSchema("t", "T", columns, read_by="value"),
        "whole trace",
        {"name": names, "value": np.array(values)},
    )


def test_decimals_of_durations_align() -> None:
    """Right-aligned, the decimal points of all durations below a minute stand at one place, and so do the
    units; nothing is rounded.
    """
    table = table_of("ns", LENGTHS)
    texts = [written_in(table, table.columns[1], value) for value in LENGTHS]
    point_offsets = {len(text) - text.index(".") for text in texts if "." in text}
    units = {len(text) - re.search(r"[nµm]?s *$", text).start() for text in texts}
    assert len(point_offsets) == 1 and units == {2}
    assert [text.split() for text in texts[3:5]] == [["37.097", "µs"], ["28.160", "ms"]]


@pytest.mark.parametrize("count", [1, 3, 201, 46_171])
def test_no_moment_is_cut(count: int) -> None:
    """However many rows there are, a moment has room for its last digit and its unit."""
    column = Column("start_ns", "at", "ns", moment=True)
    times = np.arange(count) * 15_791_203 + 7
    table = Table.from_arrays(TableSchema("t", "T", (column,)), "", {"start_ns": times})
    (view,) = columns_of(table)
    assert max(len(view.text(row)) for row in (0, count // 2, count - 1)) <= view.width


@pytest.mark.parametrize(
    ("unit", "values", "parts"),
    [
        ("share", [0.5, 1.0, 0.0, 1.7], [0.5, 1.0, 0.0, 1.0]),
        ("ns", [10, 5, 0], [1.0, 0.5, 0.0]),
        ("count", [0, 0], [0.0, 0.0]),
    ],
)
async def test_bars_are_as_long_as_what_they_tell(
    unit, values: list, parts: list[float], tmp_path: Path
) -> None:
    """A share's bar takes that part of its cell, another value's its part of the greatest; the cursor's row
    has none, so that its text can be read.
    """
    table = table_of(unit, values)
    async with open_viewer(open_trace(_small(tmp_path))) as (app, pilot):
        await press_keys(app, pilot, "t")
        pane = next(pane for pane in app.query(TablePane) if pane.shown_table is not None)
        rows = pane.table
        rows.show(columns_of(table), len(values))
        rows.cursor = len(values) - 1
        (_, _), (number, size) = rows._placed(rows._width)
        colour = rows.get_component_rich_style("table--bar").bgcolor
        for row, part in enumerate(parts):
            strip = rows.render_line(row + 1)
            cells = sum(s.cell_length for s in strip if s.style is not None and s.style.bgcolor == colour)
            assert cells == (0 if row == rows.cursor else round(part * size)), (row, number)


def _small(folder: Path) -> Path:
    path = folder / "t.json"
    path.write_text('[{"ph":"X","name":"a","cat":"cpu_op","pid":1,"tid":1,"ts":0,"dur":5}]', encoding="utf-8")
    return path


@needs(CORPUS)
@pytest.mark.slow
async def test_names_have_the_colour_of_their_slices(corpus_cache: Path) -> None:
    """Before each name stands the colour in which the lanes draw the slice that the row leads to."""
    trace = open_trace(CORPUS / A100, index_dir=corpus_cache)
    async with open_viewer(trace) as (app, pilot):
        await press_keys(app, pilot, "t")
        pane = next(pane for pane in app.query(TablePane) if pane.shown_table is not None)
        table, palette, index = pane.shown_table, palette_of(app.main), trace.indexes[0]
        swatch = columns_swatch(pane)
        seen = set()
        for row in range(len(table)):
            position = int(table.positions[row])
            category = index.categories[int(index.column("slices.category")[position])]
            name = index.string(int(index.column("slices.name")[position]))
            assert swatch(row) == palette.style(key_of(category, name), Look.BAR)
            seen.add(swatch(row))
        assert len(seen) > 3


def columns_swatch(pane: TablePane):
    return next(column.swatch for column in pane.table._columns if column.swatch is not None)


@needs(CORPUS)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("panel", "expected"),
    [
        ("time", ["Device", "Busy %", "Compute", "Idle"]),
        ("kernels", ["Name", "Total", "Share", "Count"]),
        ("idle", ["Stream", "Idle", "Host wait %", "Kernel wait %"]),
        ("gaps", ["Before it", "Ended by", "Idle", "Mostly"]),
        ("launches", ["Launch call", "Delay median", "Calls", "Launches"]),
        ("steps", ["Step", "Wall", "CUDA busy", "CUDA idle"]),
        ("ops", ["Name", "Self CPU", "CUDA total", "CPU total"]),
        ("tree", ["Name", "Total", "Self", "Calls"]),
        ("table", ["Name", "Self", "Total", "Count"]),
        ("lanes-busy", ["Lane", "Busy", "Busy share", "Count"]),
        ("copies", ["Memory", "Bytes", "Time", "Bandwidth"]),
    ],
)
async def test_what_people_look_for_is_seen_at_80_columns(
    panel: str, expected: list[str], corpus_cache: Path
) -> None:
    """At 80 columns a name has 45 % of the width, and beside it stand the three columns that matter most,
    whichever column the rows are sorted by first; ‹ and › tell that there are others.
    """
    trace = open_trace(CORPUS / A100, index_dir=corpus_cache)
    async with open_viewer(trace, (80, 24)) as (app, pilot):
        app.action_panel(panel)
        await wait_until_idle(app, pilot)
        if panel == "tree":
            await pilot.press("tab", "tab")  # from the flame to the list
        rows = app.main.query_one(f"#{panel}", TablePane).table
        heading = rows.render_line(0).text
        titles = [column.title for column in rows._columns]
        drawn = {titles[number]: size for number, size in rows._placed(rows._width)}
        assert set(expected) <= set(drawn), heading
        assert all(title in heading for title in drawn)
        if expected[0] in ("Name", "Launch call", "Lane"):
            assert drawn[expected[0]] >= rows._width * 45 // 100
        hidden = [number for number, title in enumerate(titles) if title not in drawn]
        last = max(number for number, title in enumerate(titles) if title in drawn)
        assert ("›" in heading) == (max(hidden, default=0) > last)
        assert ("‹" in heading) == any(number < last for number in hidden)


@pytest.mark.parametrize("sorted_by", range(8))
def test_the_column_sorted_by_is_always_drawn(sorted_by: int) -> None:
    """Where there is no room for all, that one takes the room of a chief one, and no cell is lost."""
    ranks = (0, 1, 0, 3, 0, 2, 0, 0)
    views = [ColumnView(f"c{n}", 9 * (n != 1), str, chief=rank) for n, rank in enumerate(ranks)]
    table = VirtualTable()
    table._columns, table._sorted_by = views, (sorted_by, True)
    for width in range(30, 90):
        placed = table._placed(width)
        numbers = [number for number, _ in placed]
        assert {1, sorted_by} <= set(numbers) and numbers == sorted(numbers)
        assert sum(size for _, size in placed) + 2 * (len(placed) - 1) <= width


FOLDER = GOLDENS / "key_averages"
TABLES = {"cpu_time_total_default_width_row_limit_20": "cpu_time_total"}
FLOPS = re.compile(r"(?<=  )(-{12}|Total MFLOPs| *(--|[0-9.]+))  $")


@needs(GOLDENS)
@pytest.mark.parametrize(
    "name", ["ka_compile_breaks_mem_shapes", "ka_mlp_sched_shapes_mem", "ka_mlp_sched_stack_mem_verbose"]
)
def test_text_is_that_of_torch(name: str, corpus_cache: Path) -> None:
    """The printed table equals torch's, but for FLOPs, which a trace does not hold."""
    golden = json.loads((FOLDER / f"{name}.golden.json").read_bytes())
    trace = open_trace(next(FOLDER.glob(f"{name}.pt.trace.json*")), index_dir=corpus_cache)
    table = ops(Scope(trace))
    for title, key in TABLES.items():
        expected = golden["tables"][title].splitlines()
        if "with_flops" in golden["profile_options"]:
            expected = [FLOPS.sub("", line) for line in expected]
        lines = ops_text(table, table.order(sort_column(key)), 20).splitlines()
        assert lines == expected


@pytest.mark.parametrize(
    ("ns", "text"), [(0, "0.000us"), (999, "0.999us"), (1_500_000, "1.500ms"), (2_000_000_000, "2.000s")]
)
def test_times(ns: int, text: str) -> None:
    """Units change at 1000 us and at a second."""
    assert torch_time_text(ns) == text


@pytest.mark.parametrize(
    ("count", "text"), [(-12, "-12 B"), (1024, "1.00 KB"), (-2_097_152, "-2.00 MB"), (1 << 31, "2.00 GB")]
)
def test_memory(count: int, text: str) -> None:
    """Units are of 1024, with a sign where memory was released."""
    assert memory_text(count) == text


@pytest.mark.slow
def test_a_step_is_one_of_those_found(tmp_path: Path) -> None:
    """Without the profiler's marks --step means what `tracelane steps` finds; a wrong one is told."""
    path = tmp_path / "regions.json"
    names = ("Torch-Compiled Region: 0/0", "aten::mm")
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 100 * i, "dur": dur}
        for i in range(3)
        for name, dur in zip(names, (90, 10 + i))
    ]
    path.write_text(json.dumps(events), encoding="utf-8")
    more = ("--format", "json", "--index-dir", str(tmp_path / "cache"))
    answer = flat(json.loads(tracelane_here("ops", str(path), "--step", "2", *more).stdout))
    assert [(row["name"], row["cpu_total_ns"]) for row in answer["ops"]] == [
        (names[0], 90_000),
        (names[1], 12_000),
    ]
    wrong = tracelane_here("ops", str(path), "--step", "7", *more)
    assert wrong.returncode == 64 and "0 to 2" in wrong.stderr


@pytest.mark.slow
def test_the_command_prints_every_format(tmp_path: Path) -> None:
    """Table with the device's word and footer; JSON with its keys; a wrong sort key is wrong usage."""
    path, more = str(small_file(tmp_path)), ("--index-dir", str(tmp_path / "cache"))
    table = tracelane_here("ops", path, *more).stdout
    assert "Self AIU" in table and "Self AIU time total: 61.000us" in table
    answer = flat(json.loads(tracelane_here("ops", path, "--format", "json", "--step", "1", *more).stdout))
    assert answer["scope"].startswith("step 1")
    (step, linear, *_) = answer["ops"]
    assert (step["name"], step["annotation"], linear["name"]) == ("ProfilerStep*", True, "aten::linear")
    assert (linear["calls"], linear["cpu_total_ns"], linear["device_total_ns"]) == (1, 60_000, 30_500)
    assert tracelane_here("ops", path, "--format", "csv", *more).stdout.startswith("name,calls,cpu_total_ns")
    assert tracelane_here("ops", path, "--format", "md", *more).stdout.startswith("**Ops**")
    only = flat(json.loads(tracelane_here("ops", path, "--where", "cat:kernel", "--json", *more).stdout))
    assert [row["on_device"] for row in only["ops"]] == [True] * 2 and "filtered" in only["scope"]
    wrong = tracelane_here("ops", path, "--sort", "nonsense", *more)
    assert wrong.returncode == 64 and "self_cpu_time_total" in wrong.stderr
