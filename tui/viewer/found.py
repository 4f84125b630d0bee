"""The panel that lists what a search found, and going on from the selection to all that is like it."""

from __future__ import annotations

import numpy as np
from textual.worker import get_current_worker

from tracelane.core.base.errors import Cancelled
from tracelane.core.base.units import format_ns
from tracelane.core.export.formats import shown
from tracelane.core.query.args import Arguments
from tracelane.core.query.filter import quoted
from tracelane.core.query.hits import Hits
from tracelane.core.query.scan import term_for, text_of
from tracelane.core.tables.found import FoundTable, found_table
from tracelane.core.trace import Trace

from ..actions.refusal import Refusal
from ..config import Config
from ..panels.panel import Panel
from ..panels.table import TablePane
from ..screens.pick import PickScreen
from ..session import Session
from ..things import Thing
from ..widgets.table import Column
from .background import background
from .searching import Searching
from .tables import Tables

PANEL = "hits"
WIDTHS = {"start_ns": 16, "dur_ns": 12, "lane": 20, "category": 16, "self_ns": 12}
"""Cells of the columns; the name takes what is left."""


class Found(Tables, Searching):
    """Commands on what was found, and on what there is to search for of the selection."""

    def __init__(self, trace: Trace, session: Session | None, config: Config) -> None:
        """Hold which hits are listed."""
        super().__init__(trace, session, config)
        self._listed: Hits | None = None

    def do_hits(self) -> None:
        """List what was found, else what the filter leaves, and move the arrows there."""
        if not self.session.search and not self.session.filter:
            raise Refusal("nothing is searched for: / asks what")
        self.action_panel(PANEL)
        panel = self.main.query_one(Panel)
        if panel.display:
            self.main.set_focus(panel.body(PANEL))

    def found_changed(self) -> None:
        """List what was found by now, if it is listed."""
        super().found_changed()
        if self.session.panel == PANEL:
            self.panel_soon()

    def _fill_panel(self) -> None:
        if self.session.panel == PANEL:
            self._fill_found()
        else:
            super()._fill_panel()

    def _fill_found(self) -> None:
        pane = self.main.query_one(f"#{PANEL}", TablePane)
        hits = self.hits if self.session.search else self.left
        if hits is self._listed and hits is not None:
            return
        listed = self._listed
        if hits is None:
            waits = self.session.search or self.session.filter
            pane.say("searching…" if waits else "nothing is searched for: / asks what")
            if not waits:
                self._listed = None
        elif self.looked_through is None or listed is None or listed.filter != hits.filter:
            # While it goes on the first hits stay listed: rows that change under the cursor help nobody.
            self._list_found(hits)

    @background("table")
    def _list_found(self, hits: Hits) -> None:
        """Put the hits in order away from the screen."""
        worker = get_current_worker()
        try:
            found = found_table(self.trace, hits, lambda: worker.is_cancelled)
        except Cancelled:
            return
        if not worker.is_cancelled:
            self.call_from_thread(self._have_listed, hits, found)

    def _have_listed(self, hits: Hits, found: FoundTable) -> None:
        if self.shows_panel and self.session.panel == PANEL:
            self._listed = hits
            pane = self.main.query_one(f"#{PANEL}", TablePane)
            pane.show(found.table, _columns(found), "")

    # -- all that is like the selection ---------------------------------------------------------------------

    def do_same_name(self) -> None:
        """Search for all slices of the selected one's name; from its details, for what is picked there."""
        focused = self.main.focused
        if focused is not None and focused.id == "details":
            self.do_same_value()
            return
        thing = self._selected_thing()
        self.search_for("name=" + quoted(self.trace.name(thing.row, thing.index)))

    def do_same_value(self) -> None:
        """Pick the name, the category or an argument of the selection and search for all that have it."""
        self._read_for_pick(self._selected_thing())

    def _selected_thing(self) -> Thing:
        thing = self.selected
        if thing.slice is None:
            raise Refusal("only slices are searched for")
        return thing

    @background("pick")
    def _read_for_pick(self, thing: Thing) -> None:
        """Read the arguments from the file, away from the screen."""
        arguments = self._arguments.get(thing.id) or self._read_arguments(thing)
        if not get_current_worker().is_cancelled:
            self.call_from_thread(self._pick_alike, thing, arguments)

    def _pick_alike(self, thing: Thing, arguments: Arguments) -> None:
        found = self.trace.detail(thing.slice) if thing.slice is not None else None
        if found is None:
            return
        choices = [("name", found.name, "name=" + quoted(found.name))]
        if found.category:
            choices.append(("category", found.category, "cat:" + quoted(found.category)))
        choices.append(("lane", thing.lane.title, "lane:" + quoted(thing.lane.title)))
        for key, value in arguments.merged.items():
            term = term_for(key, value)
            if term is not None:
                choices.append((key, text_of(value), term))
        columns = [
            Column("What", 24, lambda row: choices[row][0]),
            Column("Value", 0, lambda row: choices[row][1]),
        ]

        def chosen(row: int | None) -> None:
            if row is not None:
                self.search_for(choices[row][2])

        self.push_screen(
            PickScreen("All slices with the same", columns, len(choices), hint="Enter searches"), chosen
        )


def _columns(found: FoundTable) -> list[Column]:
    table = found.table
    columns = []
    for column in table.columns:
        text = column.unit == "text"

        def written(row: int, key: str = column.key) -> str:
            if key == "start_ns":
                start = int(table.data[key][row])
                return ("-" if start < 0 else "+") + format_ns(abs(start), 9)
            return shown(table.column(key), table.value(row, key))

        keys = found.ranks[column.key] if text else np.asarray(table.data[column.key])
        columns.append(Column(column.heading, WIDTHS.get(column.key, 0), written, right=not text, keys=keys))
    return columns
