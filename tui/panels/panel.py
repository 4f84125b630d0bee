"""The pane below the lanes: a line of tabs and one of the panels."""

from __future__ import annotations

from typing import NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widget import AwaitMount, Widget

from tracelane.core.tables.registry import ANALYSES, TABS, Tab

from ..widgets.bars import GAP, Bar
from ..widgets.table import VirtualTable
from ..widgets.text_pane import TextPane
from .findings import FindingsPane
from .table import TablePane


class TabGroup(NamedTuple):
    """The panels of one key: pressing it again shows the next of them."""

    key: str
    short: str  # what the tab is called where there is little room
    panels: tuple[tuple[str, str], ...]  # name and title of each, the first one first


def _group(tab: Tab) -> TabGroup:
    panels = [(panel.name, panel.title) for row in ANALYSES if row.tab == tab.name for panel in row.panels]
    return TabGroup(tab.key, tab.short, tuple(panels))


GROUPS = (
    TabGroup("1", "Det", (("details", "Details"),)),
    TabGroup("2", "Find", (("findings", "Findings"), ("problems", "What was read"))),
    *map(_group, TABS),
    TabGroup("z", "Fnd", (("hits", "Found"),)),
    TabGroup("L", "", (("legend", "Legend"),)),
)
NO_TABLES = ("details", "findings", "problems", "legend")
"""Panels that are no table."""


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
    return (*full, Text("T maximises", "dim"))


def _tab(group: TabGroup, chosen: str, short: bool) -> Text:
    titles = dict(group.panels)
    title = titles.get(chosen, group.short if short else group.panels[0][1])
    name = chosen if chosen in titles else group.panels[0][0]
    if chosen in titles and len(titles) > 1:  # pressing its key again shows the next
        title += f" {list(titles).index(chosen) + 1}/{len(titles)}"
    return Text(f"{group.key} {title}".rstrip(), "reverse bold" if chosen in titles else "").on(
        click=f"app.panel('{name}')"
    )


def made_pane(name: str) -> Widget:
    """Return a new, empty pane for a panel."""
    if name == "findings":
        return FindingsPane(id=name)
    if name == "problems":
        return VirtualTable(id=name, empty="nothing was read")
    return TextPane(id=name) if name in NO_TABLES else TablePane(id=name)


class Panel(Vertical):
    """Shows one of the panels at a time; each is made when it is shown first."""

    DEFAULT_CSS = """
    Panel { height: 8; background: $surface; }
    Panel > Bar { background: $panel; color: $foreground; }
    Panel > .-hidden { display: none; }
    """

    _chosen = "details"

    class Made(Message):
        """A panel that is shown for the first time can be filled."""

    def compose(self) -> ComposeResult:
        """Make the tabs, and the panel that is shown first."""
        yield Bar(id="tabs")
        yield made_pane(self._chosen)

    def choose(self, name: str) -> None:
        """Show a panel by its name."""
        self._chosen = name
        panes = {pane.id: pane for pane in self.children if pane.id != "tabs"}
        for each, pane in panes.items():
            pane.set_class(each != name, "-hidden")
        if name not in panes:
            self.call_next(self._tell_when, self.mount(made_pane(name)))
        self._show_tabs()

    async def _tell_when(self, mounted: AwaitMount) -> None:
        await mounted
        self.post_message(self.Made())

    def on_resize(self) -> None:
        """Fit the tabs into the new width."""
        self._show_tabs()

    def _show_tabs(self) -> None:
        self.query_one("#tabs", Bar).pieces = tabs(self._chosen, self.size.width)

    def body(self, name: str) -> Widget:
        """Return the widget of a panel."""
        found = self.query_one(f"#{name}")
        return found.table if isinstance(found, TablePane | FindingsPane) else found
