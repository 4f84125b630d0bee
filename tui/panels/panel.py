"""The pane below the lanes: a line of tabs and one of the panels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ..widgets.bars import GAP, Bar
from ..widgets.table import VirtualTable
from .table import TablePane


class Group(NamedTuple):
    """The panels of one key: pressing it again shows the next of them."""

    key: str
    short: str  # what the tab is called where there is little room
    panels: tuple[tuple[str, str], ...]  # name and title of each, the first one first


GROUPS = (
    Group("1", "Det", (("details", "Details"),)),
    Group("2", "Read", (("problems", "What was read"),)),
    Group("3", "Ops", (("ops", "Ops"),)),
    Group("4", "Kern", (("kernels", "Kernels"),)),
    Group("5", "Step", (("steps", "Steps"),)),
    Group("6", "Time", (("time", "Time"),)),
    Group("7", "Mem", (("memory", "Memory"), ("memory-peak", "At the peak"), ("copies", "Copies"))),
    Group("t", "Tab", (("table", "Table"), ("lanes-busy", "Lanes"))),
    Group("L", "Leg", (("legend", "Legend"),)),
)
NO_TABLES = ("details", "problems", "legend")
"""Panels that are no table of an analysis; viewer/tables.py has one for each of the others."""
SMALL_SCREEN = 30
"""Below this many lines the panel takes at most SMALL_PANEL lines."""
SMALL_PANEL = 8
EMPTY_PANEL = 2
ROOMY_SCREEN = 40
"""From so many lines on an empty panel keeps its room, so that selecting does not move the lanes."""
LEAST_LANES = 6
"""Lines that the panel leaves to the lanes; where it cannot, it is not shown."""


def panel_height(lines: int, wanted: int, maximised: bool, empty: bool = False) -> int:
    """Return how many lines the panel takes of what header and footer leave of the screen, 0: none.

    But on a roomy screen an empty panel takes no more than its tabs and one line that says how to fill it.
    """
    if maximised:
        return lines
    if empty and lines < ROOMY_SCREEN:
        height = EMPTY_PANEL
    elif lines < SMALL_SCREEN:
        height = min(wanted, SMALL_PANEL)
    else:
        height = max(wanted, lines // 4)
    height = min(height, lines - LEAST_LANES)
    return height if height >= 2 else 0


def panel_names() -> list[str]:
    """Return the names of all panels."""
    return [name for group in GROUPS for name, _ in group.panels]


def next_panel(key: str, shown: str) -> str:
    """Return the panel that a key shows, given which one is shown: the group's first, then the next of it."""
    names = [name for group in GROUPS if group.key == key for name, _ in group.panels]
    return names[(names.index(shown) + 1) % len(names)] if shown in names else names[0]


def tabs(chosen: str, width: int) -> tuple[Text, ...]:
    """Return the tabs, by their short names where the full ones do not fit; the chosen one in full."""
    full = [_tab(group, chosen, short=False) for group in GROUPS]
    if sum(len(tab) + len(GAP) for tab in full) > width:
        return (Text(" ").join(_tab(group, chosen, short=True) for group in GROUPS),)
    return (*full, Text("T maximises · Tab: arrows here", "dim"))


def _tab(group: Group, chosen: str, short: bool) -> Text:
    titles = dict(group.panels)
    title = titles.get(chosen) or (group.short if short else group.panels[0][1])
    name = chosen if chosen in titles else group.panels[0][0]
    return Text(f"{group.key} {title}", "reverse bold" if chosen in titles else "").on(
        click=f"app.panel('{name}')"
    )


class TextPane(VerticalScroll, can_focus=True):
    """Text that scrolls and is laid out anew when its width changes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "turn(-1)", show=False),
        Binding("down", "turn(1)", show=False),
        Binding("pageup", "turn(-1, True)", show=False),
        Binding("pagedown", "turn(1, True)", show=False),
        Binding("home", "turn(-1000000)", show=False),
        Binding("end", "turn(1000000)", show=False),
        Binding("left,right,enter", "turn(0)", show=False),
    ]
    DEFAULT_CSS = """
    TextPane { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    TextPane > Static { width: 1fr; height: auto; }
    """

    @dataclass
    class Resized(Message):
        """The pane has another width."""

        pane: TextPane

        @property
        def control(self) -> TextPane:
            """The pane."""
            return self.pane

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        """Make an empty pane."""
        super().__init__(id=id, classes=classes)
        self._cells = 0

    def compose(self) -> ComposeResult:
        """Make the text."""
        yield Static()

    @property
    def text_width(self) -> int:
        """Cells of a line, room for the scroll bar left."""
        return max(10, self.size.width - 3)

    def show(self, text: Text, *, top: bool = True) -> None:
        """Show a text, from its first line on unless told otherwise."""
        self.query_one(Static).update(text)
        if top:
            self.scroll_to(0, 0, animate=False, immediate=True)

    def action_turn(self, by: int, pages: bool = False) -> None:
        """Scroll by lines or pages; where all is seen already, the key does not go on to the lanes."""
        lines = by * max(1, self.size.height - 1) if pages else by
        self.scroll_to(y=self.scroll_offset.y + lines, animate=False)

    def on_resize(self, event: events.Resize) -> None:
        """Ask for a text of the new width."""
        if event.size.width != self._cells:
            self._cells = event.size.width
            self.post_message(self.Resized(self))


class Panel(Vertical):
    """Shows one of the panels at a time."""

    DEFAULT_CSS = """
    Panel { height: 8; background: $surface; }
    Panel > Bar { background: $panel; color: $foreground; }
    Panel > .-hidden { display: none; }
    """

    _chosen = "details"

    def compose(self) -> ComposeResult:
        """Make all panels; they are filled when they are shown."""
        yield Bar(id="tabs")
        yield TextPane(id="details")
        yield VirtualTable(id="problems", classes="-hidden", empty="nothing was read")
        for name in panel_names():
            if name not in NO_TABLES:
                yield TablePane(id=name, classes="-hidden")
        yield TextPane(id="legend", classes="-hidden")

    def choose(self, name: str) -> None:
        """Show a panel by its name."""
        for each in panel_names():
            self.query_one(f"#{each}").set_class(each != name, "-hidden")
        self._chosen = name
        self._show_tabs()

    def on_resize(self) -> None:
        """Fit the tabs into the new width."""
        self._show_tabs()

    def _show_tabs(self) -> None:
        self.query_one("#tabs", Bar).pieces = tabs(self._chosen, self.size.width)

    def body(self, name: str) -> Widget:
        """Return the widget of a panel."""
        found = self.query_one(f"#{name}")
        return found.table if isinstance(found, TablePane) else found
