"""The screen of the viewer: what stands where, and which parts give way when there is little room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from ..commands.table import COMMANDS
from ..draw.room import LOW_MESSAGE, Room, Strips, room_of
from ..fitting import Fitted
from ..lanes.canvas import LaneCanvas
from ..lanes.strips import Minimap, PathStrip, Ruler, Verdict
from ..panels.panel import Panel
from ..widget_message import WidgetMessage
from ..widgets.bars import Bar, Footer, MessageLine
from ..widgets.prompt import Prompt


def bindings() -> list[BindingType]:
    """Return the table's commands as bindings, with ids so that users can remap them. Those without a key
    have one that no terminal sends, which the settings may replace.
    """
    return [
        Binding(
            ",".join(entry.keys) or f"none-{entry.id}",
            f"app.command('{entry.id}')",
            entry.title,
            show=False,
            id=entry.id,
        )
        for entry in COMMANDS
    ]


class MainScreen(Screen[None]):
    """Header, verdict, minimap, ruler, path, lanes, panel, messages and what is typed, footer."""

    DEFAULT_CSS = """
    MainScreen { layout: vertical; overflow: hidden; layers: base above; }
    MainScreen.-asking > MessageLine { offset-y: -1; }
    MainScreen > #header { background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings()
    AUTO_FOCUS = "LaneCanvas"

    class Composed(WidgetMessage):
        """All widgets are there."""

    class Focused(WidgetMessage):
        """Another part of the screen takes the keys."""

    class Relaid(WidgetMessage):
        """The screen has another size."""

    def __init__(self, keys: list[tuple[str, str]], fit: Fitted, queries: Sequence[str] = ()) -> None:
        """Make the screen; `keys` are what the footer shows, `fit` says how much room each part has at first,
        so that the first frame needs no second one; `queries` are the names of saved ones.
        """
        super().__init__()
        self._keys = keys
        self._fit = fit
        self._queries = queries

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        yield Verdict(id="verdict")
        yield Minimap(id="minimap")
        yield Ruler(id="ruler")
        yield PathStrip(id="path")
        yield LaneCanvas(id="lanes")
        yield Panel(self._queries, id="panel")
        yield Footer(self._keys, id="footer")
        yield MessageLine()
        yield Prompt(id="prompt")

    @property
    def is_asking(self) -> bool:
        """Whether a line to type in is open. Asked of every key, so without a search for the line."""
        return self.has_class("-asking")

    def on_mount(self) -> None:
        self._give(self._fit.room, maximised=False)
        self.post_message(self.Composed())

    def give_room(self, panel_lines: int, maximised: bool, empty: bool, strips: Strips, lanes: int) -> None:
        """Share the height out among the parts: the panel gets what strips and lanes, of so many lines,
        leave, and what a message takes.
        """
        lines = self.size.height
        room = room_of(lines, panel_lines, maximised, empty, strips)
        if not maximised:
            room = room.with_spare(lines, lanes)
            room = room.with_message(lines, self.query_one(MessageLine).lines)
        self._give(room, maximised)

    def _give(self, room: Room, maximised: bool) -> None:
        for name, lines in (
            ("#header", room.header),
            ("#footer", room.footer),
            ("#minimap", room.minimap),
            ("#verdict", room.verdict),
            ("#ruler", room.ruler),
            ("#path", room.path),
            ("#panel", room.panel),
        ):
            part = self.query_one(name)
            part.display = lines > 0
            part.styles.height = max(1, lines)
        self.query_one("#lanes").display = not maximised
        self.query_one("#footer").styles.margin = (room.message, 0, 0, 0)
        for line in (self.query_one(MessageLine), self.query_one(Prompt)):
            line.styles.margin = (0, 0, room.footer, 0)
        self.query_one(MessageLine).styles.max_height = "60%" if room.message else LOW_MESSAGE

    def on_descendant_focus(self) -> None:
        self.post_message(self.Focused())

    def on_resize(self, event: events.Resize) -> None:
        self.post_message(self.Relaid())
