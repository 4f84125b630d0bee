"""The lists that typing filters: all commands by task with their keys, and the traces that can be opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from textwrap import wrap
from typing import ClassVar, Final, NamedTuple

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_bytes

from ..commands.table import GROUPS, MOUSE, ONE_PANEL, FocusedPart, with_keys
from ..config import DARK_THEME, Config
from ..keys import OWN_KEYS, PANE_COMMANDS, keys_text
from ..themes import THEMES
from ..times import READINGS
from ..widgets.prompt import LineInput
from ..widgets.table import GAP, ColumnView, VirtualTable
from ..widgets.text_pane import follow_size
from .answer import AnswerScreen, PickScreen

PALETTE: Final = "·"
"""Stands for the keys of a command that has none: it is run from this list, or typed after a colon."""
USED_SHOWN = 8
"""Commands that are listed first where the most used come first."""
TITLE_SHARE = 0.3
"""How much of the width names of commands take."""
MAX_TITLE = 34
MIN_TEXT = 20
SCROLL_BAR = 1
HELP_SHARE, MAX_CELLS, HELP_FRAME = 94, 110, 4
"""How much of the screen the list of keys takes (%), its most cells, and those of its border and padding."""
IN_TITLE, IN_WORDS, IN_HELP = 4.0, 2.0, 1.0
AT_START = 1.5
"""What a word of the query scores by where it is found: times this at the start of a word there."""
WHOLE_NAME = 100.0
FLOOR = IN_HELP
"""What scores less is not listed."""
ONE_PANEL_SHARE = 0.5
"""Of its score, by which a panel's command is listed: its title has the words of two names."""


class HelpRow(NamedTuple):
    """A line of the list: a heading where `command_id` and `keys` are empty."""

    task: str
    title: str
    keys: str = ""
    help: str = ""
    command_id: str = ""
    words: str = ""  # by which people look for it besides
    name: str = ""  # of the command, as the documents have it
    is_rest: bool = False  # whether it is the rest of a row above that takes several lines

    @property
    def is_heading(self) -> bool:
        """Whether it only names the task of the rows below it."""
        return not self.keys and not self.is_rest


def help_rows(remapped: Mapping[str, str]) -> list[HelpRow]:
    """Return all rows without headings, by task: commands with their keys, what may be typed, the mouse."""
    rows = []
    for group in GROUPS:
        for entry in group.commands:
            words = f"{entry.words} {entry.id}"
            if not entry.is_typed:
                keys = keys_text(entry, remapped) or PALETTE
                rows.append(HelpRow(group.task, entry.title, keys, entry.help, entry.id, words, entry.title))
            for form, text in entry.forms:
                typed = f":{entry.typed_name} {form}"
                rows.append(HelpRow(group.task, typed, PALETTE, text, entry.id, words, entry.title))
    rows += [HelpRow("Mouse", name, PALETTE, text) for name, text in MOUSE]
    rows.append(HelpRow("Times", "Times, as they are typed", PALETTE, READINGS))
    return [row._replace(help=with_keys(row.help, remapped)) for row in rows]


def pane_rows(rows: Sequence[HelpRow], part: FocusedPart) -> list[HelpRow]:
    """Return the keys of the part of the screen that has the arrows, and the commands used most there."""
    own = [HelpRow("", title, keys, text) for keys, title, text in OWN_KEYS[part]]
    return [*own, *_rows_of(rows, PANE_COMMANDS[part])]


def _rows_of(rows: Sequence[HelpRow], ids: Sequence[str]) -> list[HelpRow]:
    of_id = {row.command_id: row for row in reversed(rows)}
    return [of_id[one] for one in ids if one in of_id]


def listed(
    rows: Sequence[HelpRow], query: str, used: Sequence[str] = (), pane: Sequence[HelpRow] = ()
) -> list[HelpRow]:
    """Return the rows that a query leaves, the ones that fit it best first; without a query all of them below
    the headings of their tasks, before them those of the `pane` and those `used` most.
    """
    if query.strip():
        scored = [(score(row, query), row) for row in rows]
        fitting = [
            (fit * (ONE_PANEL_SHARE if row.task == ONE_PANEL else 1), row)
            for fit, row in scored
            if fit >= FLOOR
        ]
        return [
            row for _, row in sorted(fitting, key=lambda pair: (-pair[0], pair[1].command_id not in used))
        ]
    listing: list[HelpRow] = []
    for heading, first in (("Here", pane), ("Used most", _rows_of(rows, used[:USED_SHOWN]))):
        listing += [HelpRow("", heading), *first] if first else []
    for row in rows:
        if (
            not listing
            or listing[-1].task != row.task
            or (listing[-1].is_heading and listing[-1].title != row.task)
        ):
            listing.append(HelpRow(row.task, row.task))
        listing.append(row)
    return listing


def wrapped(rows: Sequence[HelpRow], title_cells: int, help_cells: int) -> list[HelpRow]:
    """Return the lines that rows take where titles and texts have so many cells."""
    lines = []
    for row in rows:
        titles = [row.title] if row.is_heading else wrap(row.title, title_cells)
        pairs = zip_longest(titles, wrap(row.help, help_cells), fillvalue="")
        for number, (title, text) in enumerate(pairs):
            keys = "" if number else row.keys
            lines.append(row._replace(title=title, keys=keys, help=text, is_rest=number > 0))
    return lines


def score(row: HelpRow, query: str) -> float:
    """Return how well a row fits: every word of the query must stand in it somewhere, else 0. The name of the
    command itself goes before all.
    """
    total = WHOLE_NAME if " ".join(query.lower().split()) == row.name.lower() else 0.0
    texts = (
        *((row.title, IN_TITLE), (row.name, IN_TITLE), (row.keys, IN_TITLE)),
        *((row.words, IN_WORDS), (row.help, IN_HELP)),
    )
    for word in query.lower().split():
        best = 0.0
        for text, weight in texts:
            text = text.lower()
            if word in text:
                at_start = any(part.startswith(word) for part in text.replace("-", " ").split())
                best = max(best, weight * (AT_START if at_start else 1.0))
        if not best:
            return 0.0
        total += best
    return total


class FilterLine(LineInput):
    """A line above a list: what is typed filters the list, the keys that no text needs walk in it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,ctrl+p,shift+tab", "screen.move(-1)", show=False),
        Binding("down,ctrl+n,tab", "screen.move(1)", show=False),
        Binding("pageup", "screen.page(-1)", show=False),
        Binding("pagedown", "screen.page(1)", show=False),
        Binding("escape,ctrl+c", "close", show=False),
    ]

    def action_close(self) -> None:
        """Close its own screen: `screen.dismiss` closes whichever is on top by then, the last one too."""
        self.screen.dismiss()


class ListBelow(VirtualTable, can_focus=False):
    """The list below the line, which has the keys: a click on a row leaves them to it."""


class HelpScreen(AnswerScreen[str | None]):
    """Answers with the id of a command to run, or None."""

    DEFAULT_CSS = f"""
    HelpScreen > Vertical {{
        width: {HELP_SHARE}%; max-width: {MAX_CELLS}; height: {HELP_SHARE}%; max-height: 16;
        border: round $primary; background: $surface; padding: 0 1;
    }}
    HelpScreen Input {{ height: 1; border: none; padding: 0; background: $surface; }}
    """
    AUTO_FOCUS = "Input"

    def __init__(
        self, remapped: Mapping[str, str], used: Sequence[str] = (), part: FocusedPart | None = None
    ) -> None:
        """List the commands with the user's own keys, first those of a part of the screen, then those `used`
        most.
        """
        super().__init__()
        self._all = help_rows(remapped)
        self._used = used
        self._pane = pane_rows(self._all, part) if part else []
        self._rows: list[HelpRow] = []

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = "All keys"
            frame.border_subtitle = "type to filter · ↑↓ choose · Enter runs · Esc closes"
            yield FilterLine(placeholder="type to filter: idle, thread, arrow, zoom …", compact=True)
            yield ListBelow(empty="no command fits: fewer letters?")

    def on_mount(self) -> None:
        self._list()  # for the width that it will have, so that it is drawn once
        follow_size(self.query_one(VirtualTable), self._list)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._list()

    def _list(self) -> None:
        if not self.query(VirtualTable):  # closed before it was filled
            return
        table = self.query_one(VirtualTable)
        cells = min(MAX_CELLS, self.app.size.width * HELP_SHARE // 100)
        width = table.size.width or max(0, cells - HELP_FRAME)
        rows = listed(self._all, self.query_one(Input).value, self._used, self._pane)
        keys = max(len("Keys"), *(len(row.keys) for row in rows)) if rows else len("Keys")
        title = min(MAX_TITLE, round(width * TITLE_SHARE)) or MAX_TITLE
        text = max(MIN_TEXT, width - SCROLL_BAR - title - keys - 2 * GAP)
        self._rows = rows = wrapped(rows, title, text)

        def style(row: int) -> str:
            return "table--title" if rows[row].is_heading else ""

        columns = [
            ColumnView("Command", title, lambda row: rows[row].title, style=style),
            ColumnView("Keys", keys, lambda row: rows[row].keys),
            ColumnView("What it does", text, lambda row: rows[row].help),
        ]
        table.show(columns, len(rows))
        self._skip(1)

    def _skip(self, by: int) -> None:
        """Leave headings and the rest of a text in one direction, else the other."""
        table = self.query_one(VirtualTable)
        for step in (by, -by):
            while self._rows and not self._rows[table.cursor].keys:
                before = table.cursor
                table.cursor += step
                if table.cursor == before:
                    break

    def action_move(self, by: int) -> None:
        if self._rows:
            self.query_one(VirtualTable).cursor += by
            self._skip(1 if by > 0 else -1)

    def action_page(self, by: int) -> None:
        if self._rows:
            self.query_one(VirtualTable).action_page(by)
            self._skip(1 if by > 0 else -1)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._answer(self.query_one(VirtualTable).row)

    def on_virtual_table_row_chosen(self, event: VirtualTable.RowChosen) -> None:
        event.stop()
        if event.is_current:
            self._skip(-1)  # a click may have met the rest of a text
            self._answer(self.query_one(VirtualTable).row)

    def _answer(self, row: int | None) -> None:
        if row is not None and self._rows[row].command_id:
            self.dismiss(self._rows[row].command_id)


UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


class ListedTrace(NamedTuple):
    """A file or folder that can be opened."""

    path: str
    size: int
    age_s: float
    ranks: int  # files in a folder, 0 for a file


class TraceListScreen(PickScreen):
    """Answers with the number of the trace chosen, or None."""

    DEFAULT_CSS = "TraceListScreen { align: center middle; }"
    longest = 20
    _seen: Sequence[int] | None = None  # the rows that the typed words leave; None: all

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = self._heading
            frame.border_subtitle = f"type to filter · ↑↓ choose · {self._hint} · Esc closes"
            yield FilterLine(compact=True)
            yield ListBelow(empty="no such trace: fewer letters?")

    @property
    def first_focus(self) -> Widget:
        """What takes the keys: the line, which leaves the arrows to the list."""
        return self.query_one(Input)

    def on_input_changed(self, event: Input.Changed) -> None:
        """List the traces in whose rows all words stand that are typed."""
        event.stop()
        words = event.value.lower().split()
        texts = [" ".join(column.text(row) for column in self._columns).lower() for row in range(self._rows)]
        self._seen = seen = [row for row, text in enumerate(texts) if all(word in text for word in words)]
        columns = [_of_rows(column, seen) for column in self._columns]
        self.query_one(VirtualTable).show(columns, len(seen))

    def action_move(self, by: int) -> None:
        self.query_one(VirtualTable).cursor += by

    def action_page(self, by: int) -> None:
        self.query_one(VirtualTable).action_page(by)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one(VirtualTable).action_choose()

    def on_virtual_table_row_chosen(self, event: VirtualTable.RowChosen) -> None:
        event.stop()
        event.prevent_default()
        self.dismiss(event.row if self._seen is None else self._seen[event.row])


class TraceList(App[int | None]):
    """Ends with the number of the trace chosen, None for none."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, traces: Sequence[ListedTrace], config: Config) -> None:
        super().__init__()
        self._traces = traces
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = config.theme if config.theme in self.available_themes else DARK_THEME

    def action_redraw(self) -> None:
        self.screen.refresh(layout=True)

    def on_mount(self) -> None:
        traces = self._traces
        columns = [
            ColumnView("Trace", 0, lambda row: safe(traces[row].path)),
            ColumnView("Size", 10, lambda row: format_bytes(traces[row].size), right=True),
            ColumnView("Age", 8, lambda row: age_text(traces[row].age_s), right=True),
            ColumnView("Ranks", 6, lambda row: f"{traces[row].ranks or ''}", right=True),
        ]
        self.push_screen(TraceListScreen("Open a trace", columns, len(traces), hint="Enter opens"), self.exit)


def _of_rows(column: ColumnView, rows: Sequence[int]) -> ColumnView:
    return replace(column, text=lambda row: column.text(rows[row]))


def age_text(seconds: float) -> str:
    """Return an age in its largest unit: "3 h"; "now" below a minute."""
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= size), (0, ""))
    return f"{int(seconds // size)} {unit}" if size else "now"
