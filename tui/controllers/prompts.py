"""Commands that ask or list: go to, the command line, help, palette, what is hidden, the theme."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.ids import SliceId
from tracelane.core.base.units import format_count
from tracelane.core.export.marks import Mark

from ..actions import lanes, view
from ..actions.colours import colouring
from ..actions.refusal import Refusal
from ..actions.table import RULERS
from ..clock import time_frame
from ..command_line import completions, parse_order
from ..config import DARK_THEME, LIGHT_THEME
from ..lanes.canvas import LaneCanvas
from ..screens.palette import Commands
from ..screens.pick import PickScreen
from ..session import InstantId
from ..session_store import SessionStore
from ..stage import Stage
from ..things import thing_by_id
from ..widgets.prompt import Prompt
from ..widgets.table import ColumnView
from .cutting import CutController
from .device_clocks import DeviceClockController
from .logs import LogController
from .marks import MarkController
from .saving import SaveController
from .searching import SearchController
from .steps import StepController

NUMBER = re.compile(r"#(?:(\d+):)?(\d[\d, ]*)")
"""An event by its number as the details show it, of several files with the file's number before it."""


class PromptController:
    """Commands that open a line, a list or a screen."""

    def __init__(
        self,
        app: Stage,
        store: SessionStore,
        marking: MarkController,
        searching: SearchController,
        logs: LogController,
        steps: StepController,
        saving: SaveController,
        cutting: CutController,
        device_clocks: DeviceClockController,
    ) -> None:
        """Work on a store, and show what comes of it."""
        self.app = app
        self.store = store
        self.marking = marking
        self.searching = searching
        self.logs = logs
        self.steps = steps
        self.saving = saving
        self.cutting = cutting
        self.device_clocks = device_clocks

    def commands(self) -> Mapping[str, Callable[[], object]]:
        """Return what carries out each of its commands."""
        return {
            "go-to": self.do_go_to,
            "command-line": self.do_command_line,
            "theme": self.do_theme,
            "palette": self.do_palette,
            "help": self.do_help,
            "hidden": self.do_hidden,
        }

    def do_go_to(self) -> None:
        """Ask for a time."""
        self.app.main.query_one(Prompt).ask(
            "goto", "go to ", "+12.5ms  @µs as in the file  09:28:06.1  step:4  mark:NAME  #slice number"
        )

    def do_command_line(self) -> None:
        """Ask for a command."""
        self.app.main.query_one(Prompt).ask(
            "command", ":", "only REGEX, goto TIME, hide REGEX, show all, …", completions()
        )

    def left(self) -> None:
        self.app.main.set_focus(self.app.main.query_one(LaneCanvas))

    def answered(self, message: Prompt.Answered) -> None:
        self.left()
        self.app.say("")
        try:
            if message.purpose == "goto":
                self._go_to(message.text)
            elif message.purpose == "search":
                self.searching.search_for(message.text)
            elif message.purpose == "mark":
                self.marking.mark(message.text)
            elif message.purpose == "marks":
                self.marking.add_marks(message.text)
            elif message.purpose == "smi":
                self.logs.open_log(message.text)
            else:
                self._order(message.text)
        except (Refusal, TracelaneError) as refusal:
            self.app.say(str(refusal))

    def _go_to(self, text: str) -> None:
        from ..times import parse_span

        if (number := NUMBER.fullmatch(text.strip())) is not None:
            self._go_to_event(int(number[1] or 0), int(re.sub(r"\D", "", number[2])))
            return
        session = self.store.session
        frame = time_frame(
            self.store.trace, session.clocks, session.zone, self.marking.marks_seen, session.steps
        )
        start, end = parse_span(text, frame)
        if text.strip().startswith("mark:"):
            self.marking.go_to_mark(Mark(start, end))
        else:
            self.store.go(view.go_to(self.store.trace, self.store.session, start))

    def _go_to_event(self, source: int, ordinal: int) -> None:
        """Select what the event with this number is drawn as."""
        clocks = self.store.session.clocks
        kinds = (SliceId, InstantId)
        found = (thing_by_id(self.store.trace, clocks, kind(source, ordinal)) for kind in kinds)
        thing = next((thing for thing in found if thing is not None), None)
        if thing is None:
            raise Refusal(
                f"event {format_count(ordinal)} is not drawn: no slice, instant or sample begins in it"
            )
        self.store.select(thing)

    def _order(self, line: str) -> None:
        order = parse_order(line)
        trace, session, lines = self.store.trace, self.store.session, self.store.lane_lines
        if order.verb == "command":
            self.app.run_command(order.text)
        elif order.verb == "goto":
            self._go_to(order.text)
        elif order.verb == "filter":
            self.searching.filter_by(order.text)
        elif order.verb == "only":
            self.searching.move_by_titles(lanes.only, order.text)
        elif order.verb == "hide":
            self.searching.move_by_titles(lanes.hide_matching, order.text)
        elif order.verb == "show":
            self.store.go(lanes.show_all(trace, session, lines))
        elif order.verb == "quiet":
            self.store.go(replace(session, show_quiet=not session.show_quiet))
        elif order.verb == "ruler":
            if order.text not in RULERS:
                raise UsageError(f"the ruler can be {', '.join(RULERS)}")
            self.store.go(replace(session, ruler=order.text))
        elif order.verb == "colour":
            self.store.go(replace(session, colour_by=colouring(trace, order.text)))
        elif order.verb == "marks":
            self.marking.add_marks(order.text)
        elif order.verb == "steps":
            self.steps.take_for_steps(order.text)
        elif order.verb == "save":
            self.saving.save(order.text)
        elif order.verb == "cut":
            self.cutting.cut_to(order.text)
        elif order.verb == "smi":
            self.logs.open_log(order.text)
        elif order.verb == "smi-offset":
            self.logs.set_lag(order.text)
        elif order.verb == "device-offset":
            self.device_clocks.set_device_offset(order.text)
        elif order.verb == "theme":
            self._set_theme(order.text)

    def _set_theme(self, name: str) -> None:
        name = {"dark": DARK_THEME, "light": LIGHT_THEME}.get(name, name)
        if name not in self.app.available_themes:
            raise UsageError(f"themes: {', '.join(sorted(self.app.available_themes))}")
        self.app.theme = name

    def do_theme(self) -> None:
        """Change between dark and light."""
        self.app.theme = LIGHT_THEME if self.app.current_theme.dark else DARK_THEME

    def do_palette(self) -> None:
        """Show all commands."""
        if self.app.screen is self.app.main:
            self.app.push_screen(Commands(id="--command-palette"))

    def do_help(self) -> None:
        """Show all keys."""
        from ..screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self.app.config.keys))

    def do_hidden(self) -> None:
        """List what is hidden; choosing a line shows it again."""
        things = lanes.hidden_things(self.store.trace, self.store.session)
        if not things:
            raise Refusal("nothing is hidden")
        columns = [
            ColumnView("Hidden", 0, lambda row: things[row].title),
            ColumnView(
                "Lanes",
                8,
                lambda row: format_count(things[row].lanes) if things[row].lanes else "",
                right=True,
            ),
            ColumnView("By", 10, lambda row: things[row].kind),
        ]

        def chosen(row: int | None) -> None:
            if row is not None:
                self.store.go(
                    lanes.shown_again(
                        self.store.trace, self.store.session, things[row : row + 1], self.store.lane_lines
                    )
                )

        self.app.push_screen(PickScreen("Hidden", columns, len(things), hint="Enter shows it again"), chosen)
