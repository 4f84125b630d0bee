"""The panel below the lanes: which one is shown, what is in it, copying from it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.style import Style
from textual.containers import Vertical
from textual.timer import Timer

from tracelane.core.base.progress import CancelledCallback
from tracelane.core.base.safe_text import safe_lines
from tracelane.core.query.args import Arguments
from tracelane.core.tables.registry import PANELS
from tracelane.core.trace import Trace

from ..actions.clocks import on_log, read_out
from ..actions.scene import Refusal
from ..draw.things import Thing
from ..lanes.canvas import LaneCanvas
from ..lanes.look import glyphs, palette_of
from ..panels.findings import read_report_columns
from ..panels.overview import DetailsPane
from ..panels.panel import Panel, next_panel
from ..read_report import ReadReportRow, read_report_rows
from ..screens.answer import CopiedText
from ..session import Selectable, Session
from ..stage import Controller, Recent, Stage, does, fills, hears
from ..times import stamps_of
from ..widgets.table import VirtualTable
from ..widgets.text_pane import TextPane

if TYPE_CHECKING:
    from ..draw.path_line import DrawnPath
    from ..draw.states import DrawnStates
    from ..panels.details import Details

PANEL_DELAY = 0.1
"""Seconds without a move after which the side panels follow."""
MAX_ARGUMENTS = 64
NO_ROOM = "no room for the panel: {maximise} gives it the screen"


def event_arguments_of(trace: Trace, thing: Thing) -> Arguments:
    """Read the arguments of what is selected from the file."""
    if thing.slice is not None:
        return trace.arguments(thing.slice)
    return trace.event_arguments(thing.id.source, thing.id.ordinal)


def _sample_read(trace: Trace, session: Session) -> object:
    """Return what the sample that is read out depends on, on the row of a log."""
    return (session.cursor, session.focus) if on_log(trace, session) else None


class PanelController(Controller):
    def __init__(self, app: Stage) -> None:
        super().__init__(app)
        self._states: DrawnStates | None = None
        self._path: DrawnPath | None = None
        self._panel_timer: Timer | None = None
        self._detailed: tuple[Thing, Details] | None = None
        self.arguments: Recent[Selectable, Arguments] = Recent(MAX_ARGUMENTS)
        self._panel_before = "details"
        self._takes_arrows = ""  # the panel that is to have the arrows as soon as it is there
        self._read_report: list[ReadReportRow] = []

    @does("copy")
    def do_copy(self) -> None:
        if isinstance(self.app.main.focused, VirtualTable) and self.store.session.panel in PANELS:
            self.app.run_command("copy-table")
        else:
            self._copy_details(self.store.selected)

    def _copy_details(self, thing: Thing) -> None:
        """Copy the selection as JSON, arguments included, and show the text."""
        from ..panels.details import details_json

        def text(_: CancelledCallback) -> str:
            details = self._details_of(thing)
            arguments = self.arguments.get(thing.id)
            if arguments is None and details.has_arguments:
                arguments = event_arguments_of(self.store.trace, thing)
            return details_json(details, thing, arguments)

        self.app.jobs.ask("copy", text, self._copied)

    @does("copy-view")
    def do_copy_view(self) -> None:
        from ..view_line import view_line

        self._copied(view_line(self.store.trace, self.store.session))

    def _copied(self, text: str) -> None:
        text = safe_lines(text)
        is_copied = self.app.copied(text)
        title = "Copied, where the terminal allows it (OSC 52)" if is_copied else "More than terminals copy"
        self.app.push_screen(CopiedText(title, text))

    def panel_soon(self) -> None:
        """Let the panel follow once the keys are at rest."""
        if self._panel_timer is not None:
            self._panel_timer.stop()
        self._panel_timer = self.app.set_timer(PANEL_DELAY, self._fill_now)

    def _fill_now(self) -> None:
        if self.shows_panel:
            self.fill()

    @property
    def shows_panel(self) -> bool:
        """Whether the panel exists: timers and workers may still call while the App closes."""
        if not self.app.composed:
            return False
        panes = [
            pane for pane in self.app.main.query(f"#{self.store.session.panel}").results() if pane.is_mounted
        ]
        # A pane's table goes before the pane does.
        return any(not isinstance(pane, Vertical) or pane.query(VirtualTable) for pane in panes)

    @hears(TextPane.Resized)
    def _pane_resized(self, _: TextPane.Resized) -> None:
        self.panel_soon()

    @hears(Panel.PaneAdded)
    def fill_new(self, _: Panel.PaneAdded) -> None:
        if self._panel_timer is not None:
            self._panel_timer.stop()
        self._fill_now()
        self._give_arrows()

    def fill(self) -> None:
        self.app.fillers[self.store.session.panel]()

    @fills("legend")
    def _fill_legend(self) -> None:
        from ..panels.legend import legend_text

        pane = self.app.main.query_one("#legend", TextPane)
        pane.show(legend_text(self.store.trace, palette_of(pane), glyphs(), pane.text_width))

    @fills("problems")
    def _fill_read_report(self) -> None:
        rows = read_report_rows(self.store.trace.files)
        if rows != self._read_report:  # the cursor stays where it is as long as nothing else is told
            self._read_report = rows
            self.app.main.query_one("#problems", VirtualTable).show(read_report_columns(rows), len(rows))

    @fills("details", follows=_sample_read)
    def _fill_details(self) -> None:
        thing = self.store.scene.selected
        if thing is None:
            thing = read_out(self.store.trace, self.store.session, self.store.layout_now)
        if thing is None:
            self._detailed = None
            pane = self.app.main.query_one("#details", DetailsPane)
            if blocks := self.app.overview():
                pane.show_overview(blocks)
            else:
                pane.show(self.app.hint())
            return
        self._detailed = thing, self._details_of(thing)
        self._show_details()
        if self._detailed[1].has_arguments and self.arguments.get(thing.id) is None:
            read = partial(event_arguments_of, self.store.trace, thing)
            self.app.jobs.ask("arguments", lambda _: read(), partial(self._have_arguments, thing.id))

    def _details_of(self, thing: Thing) -> Details:
        from ..panels.details import details_of

        trace, session = self.store.trace, self.store.session
        details = details_of(trace, stamps_of(trace, session), thing, session.range, self._states, self._path)
        return details.with_keys(self.app.with_keys)

    def know(self, states: DrawnStates | None, path: DrawnPath | None) -> None:
        """Say of collectives how long they wait, of slices what a critical path has of them, if known."""
        self._states, self._path = states, path
        if self.store.session.panel == "details":
            self.panel_soon()

    def _show_details(self, top: bool = True) -> None:
        if self._detailed is None:
            return
        from ..panels.details import DetailsStyles, details_text

        thing, details = self._detailed
        pane = self.app.main.query_one("#details", TextPane)
        palette = palette_of(pane)
        look = DetailsStyles(
            Style(bold=True),
            Style(color=palette.dim.color, dim=not palette.coloured),
            Style(underline=True, color=palette.step.color),
            Style(color=palette.accent_plain.color, bold=True),
        )
        pane.show(details_text(details, self.arguments.get(thing.id), pane.text_width, look), top=top)

    def _have_arguments(self, identity: Selectable, arguments: Arguments) -> None:
        self.arguments.put(identity, arguments)
        shows_details = self.shows_panel and self.store.session.panel == "details"
        if shows_details and self._detailed is not None and self._detailed[0].id == identity:
            self._show_details(top=False)

    def show(self, name: str) -> None:
        self.store.show(self.store.session._replace(panel=name))

    @hears(VirtualTable.RowChosen, "problems")
    def read_report_row_chosen(self, message: VirtualTable.RowChosen) -> None:
        """Show a row of the read report in full in the message line."""
        row = self._read_report[message.row]
        self.app.say(f"{row.source} {row.what}: {row.text}".strip())

    @does("panel-details", "panel-details")
    @does("panel-findings", "panel-findings")
    @does("panel-query", "panel-query")
    def turn_to(self, command_id: str) -> None:
        """Show the panel of a command, or the next one of it."""
        panel = self.app.main.query_one(Panel)
        self.show_or_say(next_panel(command_id, self.store.session.panel, panel.groups, panel.absent))

    @does("panel-back")
    def do_panel_back(self) -> None:
        panel, name = self.app.main.query_one(Panel), self.store.session.panel
        command_id = next(group.command for group in panel.groups if name in dict(group.panels))
        self.show_or_say(next_panel(command_id, name, panel.groups, panel.absent, by=-1))

    def show_or_say(self, name: str) -> None:
        """Show a panel and give it the arrows, or say that there is no room for it."""
        self.show(name)
        self._takes_arrows = name
        self.app.call_after_refresh(self._give_arrows)

    def _give_arrows(self) -> None:
        """Let the panel that a key showed have the arrows, once it is there."""
        name = self._takes_arrows
        if not name or not self.app.composed or name != self.store.session.panel:
            return
        panel = self.app.main.query_one(Panel)
        if not panel.display:
            self.app.say(NO_ROOM)
        elif self.shows_panel:
            self._takes_arrows = ""
            self.app.give_arrows(panel.body(name))

    @does("legend")
    def do_legend(self) -> None:
        if self.store.session.panel != "legend":
            self._panel_before = self.store.session.panel
            self.show("legend")
        else:
            self.show(self._panel_before)

    @does("maximise")
    def do_maximise(self) -> None:
        self.app.maximised = not self.app.maximised

    @does("other-pane")
    def do_other_pane(self) -> None:
        main = self.app.main
        panel = main.query_one(Panel)
        canvas = main.query_one(LaneCanvas)
        name = self.store.session.panel
        to_panel = main.focused is canvas or main.focused is None
        if to_panel and not panel.display:
            raise Refusal(NO_ROOM)
        behind = panel.focus_after(name, main.focused) if main.focused is not None else None
        to_panel = to_panel or self.app.maximised
        main.set_focus(behind or (panel.body(name) if to_panel else canvas))
