"""The virtual table: sorting, moving and choosing without making rows."""

from __future__ import annotations

import re

import numpy as np
import pytest
from textual.app import App, ComposeResult

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
            ColumnView("key", 8, lambda row: str(row % 1000), right=True, keys=keys),
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
            ColumnView(f"c{number}", 8, lambda row, number=number: f"{number}:{row}", keys=np.arange(2))
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
