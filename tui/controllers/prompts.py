"""Commands that ask or list: go to, the command line, help, palette, what is hidden, the theme."""

from __future__ import annotations

import re
from functools import partial

from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.numbers import whole_number
from tracelane.core.base.units import format_count
from tracelane.core.query.views import SliceId

from ..actions import lanes, ranges, view
from ..actions.lanes import colouring
from ..actions.scene import Refusal
from ..actions.table import RULERS
from ..command_line import completions, parse_order
from ..commands.table import COMMANDS
from ..config import DARK_THEME, LIGHT_THEME
from ..draw.things import thing_by_id
from ..lanes.canvas import LaneCanvas
from ..session import InstantId
from ..stage import Commands, Controller, does, hears
from ..widgets.prompt import Prompt
from ..widgets.table import ColumnView

LISTING = ("palette", "help", "command-line", "close", "close-or-quit")
"""Commands left out of the list of commands: they open such lists."""
NUMBER = re.compile(r"#(?:(\d+):)?(\d[\d, ]*)")
"""An event by its number as the details show it, of several files with the file's number before it."""


class PromptController(Controller):
    def commands(self) -> Commands:
        """Return what carries out each of its commands; those that are typed ask for their argument."""
        typed = {entry.id: partial(self.ask_for, entry.id) for entry in COMMANDS if entry.is_typed}
        return {**super().commands(), **typed}

    @does("go-to")
    def do_go_to(self) -> None:
        self.app.main.query_one(Prompt).ask(
            "go-to", "go to ", "+12.5ms  @µs as in the file  09:28:06.1  step:4  mark:NAME  #slice number"
        )

    @does("command-line", "")
    def ask_for(self, command_id: str) -> None:
        """Ask for a command, or for the argument of one."""
        proposed = f"{command_id} " if command_id else ""
        self.app.main.query_one(Prompt).ask(
            "command-line", ":", "only REGEX, goto TIME, hide REGEX, show all, …", completions(), proposed
        )

    @hears(Prompt.Left)
    def left(self, _: Prompt.Left) -> None:
        self._give_arrows_back()
        self.app.main.query_one(Prompt).pass_on()

    @hears(Prompt.Answered)
    def answered(self, message: Prompt.Answered) -> None:
        self._give_arrows_back()
        self.app.say("")
        run = self._run_line if message.purpose == "command-line" else self.app.verbs[message.purpose]
        try:
            run(message.text)
        except (Refusal, TracelaneError) as refusal:
            self.app.say(str(refusal))
        self.app.main.query_one(Prompt).pass_on()

    def _give_arrows_back(self) -> None:
        self.app.main.set_focus(self.app.main.query_one(LaneCanvas))

    def _run_line(self, line: str) -> None:
        order = parse_order(line)
        if order.argument is None:
            self.app.run_command(order.id)
        else:
            self.app.verbs[order.id](order.argument)

    @does("go-to", typed=True)
    def go_to(self, text: str) -> None:
        from ..times import parse_span

        if (number := NUMBER.fullmatch(text.strip())) is not None:
            self._go_to_event(whole_number(number[1] or "0"), whole_number(re.sub(r"\D", "", number[2])))
            return
        session = self.store.session
        frame = self.store.time_frame
        if text.strip().isdigit():  # a time has a unit, so this is a step
            text = f"step:{text.strip()}"
        start, end = parse_span(text, frame)
        if text.strip().startswith("mark:"):
            self.store.go(ranges.gone_to(self.store.trace, session, start, end))
        else:
            session = view.go_to(self.store.trace, self.store.session, start)
            is_step = text.strip().startswith("step:")
            self.store.go(session._replace(aim="step") if is_step else session)

    def _go_to_event(self, source: int, ordinal: int) -> None:
        """Select what the event with this number is drawn as."""
        clocks = self.store.session.clocks
        kinds = (SliceId, InstantId)
        drawn = (thing_by_id(self.store.trace, clocks, kind(source, ordinal)) for kind in kinds)
        thing = next((thing for thing in drawn if thing is not None), None)
        if thing is None:
            raise Refusal(
                f"event {format_count(ordinal)} is not drawn: no slice, instant or sample begins in it"
            )
        self.store.select(thing)

    @does("ruler", typed=True)
    def choose_ruler(self, text: str) -> None:
        if text not in RULERS:
            raise UsageError(f"the ruler can be {', '.join(RULERS)}")
        self.store.go(self.store.session._replace(ruler=text))

    @does("colour", typed=True)
    def colour_by(self, text: str) -> None:
        self.store.go(self.store.session._replace(colour_by=colouring(self.store.trace, text)))

    @does("theme", typed=True)
    def choose_theme(self, name: str) -> None:
        name = {"dark": DARK_THEME, "light": LIGHT_THEME}.get(name, name)
        if name not in self.app.available_themes:
            raise UsageError(f"themes: {', '.join(sorted(self.app.available_themes))}")
        self.app.theme = name

    @does("show-all")
    def do_show_all(self) -> None:
        self.store.go(lanes.show_all(self.store.trace, self.store.session, self.store.now.lane_lines))

    @does("quiet")
    def do_quiet(self) -> None:
        self.store.go(self.store.session._replace(show_quiet=not self.store.session.show_quiet))

    @does("theme")
    def do_theme(self) -> None:
        self.app.theme = LIGHT_THEME if self.app.current_theme.dark else DARK_THEME

    @does("palette")
    @does("help", True)
    def _list_commands(self, of_part: bool = False) -> None:
        from ..screens.lists import HelpScreen

        part = self.app.focused_part if of_part else None
        used = [one for one, _ in self.app.used.most_common() if one not in LISTING]

        def chosen(command_id: str | None) -> None:
            if command_id is not None:
                self.app.run_command(command_id)

        if self.app.screen is self.app.main:
            self.app.push_screen(HelpScreen(self.app.config.keys, used, part), chosen)

    @does("messages")
    def do_messages(self) -> None:
        said = self.app.messages[::-1]
        if not said:
            raise Refusal("no messages yet")
        columns = [ColumnView("Message", 0, lambda row: said[row])]
        title, hint = "Messages, the newest first", "Enter shows it again"
        self.app.offer_rows(title, columns, len(said), hint, lambda row: self.app.say(said[row]))

    @does("hidden")
    def do_hidden(self) -> None:
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

        def chosen(row: int) -> None:
            rows = things[row : row + 1]
            self.store.go(
                lanes.shown_again(self.store.trace, self.store.session, rows, self.store.now.lane_lines)
            )

        self.app.offer_rows("Hidden", columns, len(things), "Enter shows it again", chosen)
