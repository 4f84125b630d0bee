"""The pane below the lanes: a line of tabs and one of the panels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import AwaitMount, Widget

from tracelane.core.tables.analysis import Tab
from tracelane.core.tables.registry import ANALYSES, PANELS, TABS

from ..commands.table import command, key_text, keys_of
from ..draw.glyphs import fit_middle
from ..keys import NO_KEYS, remapped_in, said
from ..widget_message import WidgetMessage
from ..widgets.bars import GAP, Bar
from ..widgets.table import VirtualTable
from ..widgets.text_pane import TextPane, follow_size
from .findings import FindingsPane
from .overview import DetailsPane
from .table import TablePane
from .tree import TreePane


class TabGroup(NamedTuple):
    """The panels of one command, whose key shows them: pressed again the next."""

    command: str  # its id; "" for panels that none shows in turn
    short: str  # what the tab is called where there is little room
    panels: tuple[tuple[str, str], ...]  # name and title of each, the first one first


def _group(tab: Tab) -> TabGroup:
    panels = [(panel.name, panel.title) for row in ANALYSES if row.tab == tab.name for panel in row.panels]
    if tab.name == "table":  # device work first, where there is a device
        panels.sort(key=lambda panel: "devices" not in PANELS[panel[0]][1].needs)
    if tab.name == "tree":
        panels.append((TREE_SLICES, "Slices"))
    return TabGroup(f"panel-{tab.name}", tab.short, tuple(panels))


BEFORE_QUERY = ("tree",)
"""The tabs that stand before that of queries."""
TREES = tuple(panel.name for row in ANALYSES if row.tab == "tree" for panel in row.panels)
"""Panels that draw a call tree."""
QUERY = "query"
"""The panel of the query that was typed last; `query-1` is that of the first saved one, and so on."""
TREE_SLICES = "tree-slices"
"""The panel that lists the slices of a call of such a tree."""
GROUPS = (
    TabGroup("panel-details", "Det", (("details", "Details"),)),
    TabGroup("panel-findings", "Find", (("findings", "Findings"), ("problems", "What was read"))),
    *(_group(tab) for tab in TABS if tab.name in BEFORE_QUERY),
    TabGroup("panel-query", "SQL", ((QUERY, "Query"),)),
    *(_group(tab) for tab in TABS if tab.name not in BEFORE_QUERY),
    TabGroup("hits", "Hits", (("hits", "Hits"),)),
    TabGroup("", "", (("legend", "Legend"),)),
)
TITLES = {"panel-table": "Table", "panel-tree": "Tree"}
"""Titles of tabs, by command, whose panels show one thing in several ways."""
MIN_NAME = 5
"""Characters of the chosen panel's title at least."""
NO_TABLES = ("details", "findings", "problems", "legend")
"""The panels that are not tables."""


def groups_with(queries: Sequence[str]) -> tuple[TabGroup, ...]:
    """Return the panels with one for each saved query, by their names."""
    saved = tuple((f"{QUERY}-{number}", name) for number, name in enumerate(queries, 1))
    return tuple(
        group._replace(panels=(*group.panels, *saved)) if (QUERY, "Query") in group.panels else group
        for group in GROUPS
    )


def next_panel(
    command_id: str,
    panel: str,
    groups: Sequence[TabGroup] = GROUPS,
    absent: Collection[str] = (),
    by: int = 1,
) -> str:
    """Return the panel that a command shows while another is on show: the first of its group that the trace
    has something for, or the next such (`by` -1: the one before) where one of the group is on show.
    """
    names = [name for group in groups if group.command == command_id for name, _ in group.panels]
    if panel not in names:
        return _first(names, absent)
    live = [name for name in names if name not in absent or name == panel]
    return live[(live.index(panel) + by) % len(live)]


def _first(names: Sequence[str], absent: Collection[str]) -> str:
    return next((name for name in names if name not in absent), names[0])


def tabs(
    chosen: str,
    width: int,
    all_groups: Sequence[TabGroup] = GROUPS,
    empty: Collection[str] = (),
    hint: str = "",
    remapped: Mapping[str, str] = NO_KEYS,
) -> tuple[Text, ...]:
    """Return the tabs, those of the chosen one's key beside it; where there is little room by short names,
    with the chosen one's name alone, cut if need be, or all by their keys. Those that are `empty`, or of
    which all panels are, are dim; `hint` stands behind them where there is room.
    """
    groups = [group for group in all_groups if group.command or chosen in dict(group.panels)]
    keys = [_key(group, remapped) for group in groups]
    at = [chosen in dict(group.panels) for group in groups].index(True)
    for names in (LONG, SHORT, NONE):
        line = [_tab(group, key, chosen, names, empty) for group, key in zip(groups, keys)]
        gap = GAP if names == LONG else " "
        others = sum(len(tab) + len(gap) for number, tab in enumerate(line) if number != at)
        if others + len(line[at]) <= width:
            break
        own = _chosen_tab(groups[at], keys[at], chosen, width - others, empty)
        if names != LONG and others + len(own) <= width:
            line[at] = own
            break
    else:
        line[at] = own
        while len(line) > 1 and sum(len(tab) + 1 for tab in line) > width + 1:
            del line[-1 if line[-1] is not own else -2]  # the chosen one stays
    bar = Text(gap).join(line)
    with_hint = (bar, Text(hint, "dim"))
    return with_hint if len(bar) + len(GAP) + len(hint) <= width else (bar,)


LONG, SHORT, NONE = range(3)
"""Which names of tabs are written."""


def _key(group: TabGroup, remapped: Mapping[str, str]) -> str:
    """Return what stands before a tab: the first key that shows it, and a blank."""
    keys = keys_of(command(group.command), remapped) if group.command else ()
    return f"{key_text(keys[0])} " if keys else ""


def _tab(group: TabGroup, key: str, chosen: str, names: int, empty: Collection[str]) -> Text:
    titles = dict(group.panels)
    first_title = group.panels[0][1]
    if chosen not in titles:
        name = (TITLES.get(group.command, first_title), group.short, "")[names]
        style = "dim" if all(panel in empty for panel in titles) else ""
        return _link(f"{key}{name}".rstrip(), _first(list(titles), empty), style)
    line = Text(key, "bold")
    for number, (name, title) in enumerate(titles.items()):
        if number:
            line.append("·", "dim")
        other = "dim" if name in empty else "underline"
        line.append_text(_link(title, name, "reverse bold" if name == chosen else other))
    return line


def _chosen_tab(group: TabGroup, key: str, chosen: str, width: int, empty: Collection[str]) -> Text:
    """Return the chosen panel's tab in so many cells: its name alone, and which of its key it is."""
    names = [name for name, _ in group.panels if name not in empty or name == chosen]
    position = f" {names.index(chosen) + 1}/{len(names)}" if len(names) > 1 else ""
    room = max(MIN_NAME, width - len(key) - len(position))
    title = fit_middle(dict(group.panels)[chosen], room).rstrip()
    return Text(key, "bold").append_text(_link(title + position, chosen, "reverse bold"))


def _link(text: str, name: str, style: str = "") -> Text:
    return Text(text, style).on(click=f"app.panel('{name}')")


def new_pane(name: str) -> Widget:
    if name == "findings":
        return FindingsPane(id=name)
    if name == "problems":
        return VirtualTable(id=name, empty="nothing was read")
    if name in TREES:
        return TreePane(id=name)
    if name == "details":
        return DetailsPane(id=name)
    return TextPane(id=name) if name in NO_TABLES else TablePane(id=name)


class Panel(Vertical):
    """Shows one of the panels at a time; each is made when it is shown first."""

    DEFAULT_CSS = """
    Panel { height: 8; background: $surface; }
    Panel > Bar { background: $panel; color: $foreground; }
    Panel > .-hidden { display: none; }
    """

    _chosen = "details"

    def __init__(self, queries: Sequence[str] = (), *, id: str | None = None) -> None:
        """Make the pane; `queries` are the names of saved queries, a panel each."""
        super().__init__(id=id)
        self.groups = groups_with(queries)
        self.absent: frozenset[str] = frozenset()
        """Panels that the trace has nothing for."""

    class PaneAdded(WidgetMessage):
        """A panel that is shown for the first time can be filled."""

    def compose(self) -> ComposeResult:
        yield Bar(id="tabs")
        yield new_pane(self._chosen)

    def choose(self, name: str) -> None:
        self._chosen = name
        if not self.is_attached:  # the viewer closes
            return
        panes = {pane.id: pane for pane in self.children if pane.id != "tabs"}
        for each, pane in panes.items():
            pane.set_class(each != name, "-hidden")
        if name not in panes:
            self.call_next(self._tell_when, self.mount(new_pane(name)))
        self._show_tabs()

    async def _tell_when(self, mounted: AwaitMount) -> None:
        await mounted
        self.post_message(self.PaneAdded())

    def on_table_pane_rows_changed(self) -> None:
        self._show_tabs()

    def dim_absent(self, names: Collection[str]) -> None:
        self.absent = frozenset(names)
        self._show_tabs()

    def on_mount(self) -> None:
        follow_size(self, self._show_tabs)

    def _show_tabs(self) -> None:
        for bar in self.query("#tabs").results(Bar):  # gone while the App closes
            bar.pieces = tabs(
                *(self._chosen, self.size.width, self.groups, self._empty()),
                said(self, "{maximise} maximises"),
                remapped_in(self),
            )

    def _empty(self) -> set[str]:
        """Return the panels that are known to show nothing: of those not seen yet hits and queries."""
        panes = {pane.id: pane for pane in self.query(TablePane)}
        tables = {name: pane.shown_table for name, pane in panes.items() if name is not None}
        known = {name for name, table in tables.items() if table is not None and not len(table)}
        return known | self.absent | ({QUERY, "hits"} - tables.keys())

    def body(self, name: str) -> Widget:
        pane = self.query_one(f"#{name}")
        return pane.first_focus if isinstance(pane, TablePane) else pane

    def focus_after(self, name: str, focused: Widget) -> Widget | None:
        pane = self.query_one(f"#{name}")
        return pane.focus_after(focused) if isinstance(pane, TablePane) else None
