"""The panel that lists what a search found, and going on from the selection to all that is like it."""

from __future__ import annotations

from functools import partial

from tracelane.core.base.progress import CancelledCallback
from tracelane.core.base.units import format_moment
from tracelane.core.export.formats import text_in_unit
from tracelane.core.query.args import Arguments, json_value_text
from tracelane.core.query.filter import quoted
from tracelane.core.query.hits import Hits
from tracelane.core.query.scan import term_for
from tracelane.core.tables.frame.table import Table
from tracelane.core.tables.host.slice_table import hit_table

from ..actions.scene import Refusal
from ..draw.things import Thing
from ..panels.panel import Panel
from ..panels.table import TablePane
from ..stage import Controller, Stage, does, fills
from ..widgets.table import ColumnView
from .panels import PanelController, event_arguments_of
from .searching import SearchController

PANEL = "hits"
WIDTHS = {"start_ns": 16, "duration_ns": 12, "lane": 20, "category": 16, "self_ns": 12}
"""Cells of the columns; the name takes what is left."""


class HitsController(Controller):
    """Commands on what was found, and on what there is to search for of the selection."""

    def __init__(self, app: Stage, panels: PanelController, searching: SearchController) -> None:
        super().__init__(app)
        self.panels = panels
        self.searching = searching
        self._listed: Hits | None = None

    @does("hits")
    def do_hits(self) -> None:
        if not self.store.session.search and not self.store.session.filter:
            raise Refusal("no search yet: {search} starts one")
        self.panels.show(PANEL)
        panel = self.app.main.query_one(Panel)
        if panel.display:
            self.app.main.set_focus(panel.body(PANEL))

    def follow(self) -> None:
        """Update the list with the hits found so far, if it is on show."""
        if self.store.session.panel == PANEL:
            self.panels.panel_soon()

    @fills(PANEL)
    def fill(self) -> None:
        pane = self.app.main.query_one(f"#{PANEL}", TablePane)
        state = self.store.now.search
        hits = state.hits if self.store.session.search else state.left
        if hits is self._listed and hits is not None:
            return
        listed = self._listed
        if hits is None:
            if self.store.session.search or self.store.session.filter:
                pane.say("searching…")
            else:
                pane.say_alone("no search yet: {search} starts one")
                self._listed = None
        elif state.looked_through is None or listed is None or listed.filter != hits.filter:
            # While it goes on the first hits stay listed: rows that change under the cursor help nobody.
            table = partial(hit_table, self.store.trace, hits)
            self.app.jobs.ask("table", table, partial(self._have_listed, hits))

    def _have_listed(self, hits: Hits, hit_rows: Table) -> None:
        if self.panels.shows_panel and self.store.session.panel == PANEL:
            self._listed = hits
            pane = self.app.main.query_one(f"#{PANEL}", TablePane)
            pane.show(hit_rows, hit_columns(hit_rows), "")

    # -- all that is like the selection ---------------------------------------------------------------------

    @does("same-name")
    def do_same_name(self) -> None:
        """Search for all slices with the selected one's name; from its details, for what is picked there."""
        focused = self.app.main.focused
        if focused is not None and focused.id == "details":
            self.do_same_value()
            return
        thing = self._selected_thing()
        self.searching.search_for("name=" + quoted(self.store.trace.name(thing.row, thing.index)))

    @does("same-value")
    def do_same_value(self) -> None:
        thing = self._selected_thing()

        def arguments(_: CancelledCallback) -> Arguments:
            return self.panels.arguments.get(thing.id) or event_arguments_of(self.store.trace, thing)

        self.app.jobs.ask("pick", arguments, partial(self._pick_alike, thing))

    def _selected_thing(self) -> Thing:
        thing = self.store.selected
        if thing.slice is None:
            raise Refusal("only slices are searched for")
        return thing

    def _pick_alike(self, thing: Thing, arguments: Arguments) -> None:
        detail = self.store.trace.detail(thing.slice) if thing.slice is not None else None
        if detail is None:
            return
        choices = [("name", detail.name, "name=" + quoted(detail.name))]
        if detail.category:
            choices.append(("category", detail.category, "cat:" + quoted(detail.category)))
        choices.append(("lane", thing.lane.title, "lane:" + quoted(thing.lane.title)))
        for key, value in arguments.merged.items():
            term = term_for(key, value)
            if term is not None:
                choices.append((key, json_value_text(value), term))
        columns = [
            ColumnView("What", 24, lambda row: choices[row][0]),
            ColumnView("Value", 0, lambda row: choices[row][1]),
        ]
        self.app.offer_rows(
            "All slices with the same",
            columns,
            len(choices),
            "Enter searches",
            lambda row: self.searching.search_for(choices[row][2]),
        )


def hit_columns(table: Table) -> list[ColumnView]:
    """Return the columns of a list of slices; starts count from the start of the trace."""
    columns = []
    for column in table.columns:

        def written(row: int, key: str = column.key) -> str:
            if key == "start_ns":
                return format_moment(int(table.numbers(key)[row]))
            return text_in_unit(table.column(key), table.value(row, key))

        keys, right = partial(table.sort_keys, column), column.unit != "text"
        columns.append(ColumnView(column.heading, WIDTHS.get(column.key, 0), written, right=right, keys=keys))
    return columns
