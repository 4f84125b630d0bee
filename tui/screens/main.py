"""The screen of the viewer: what stands where, and which parts give way when there is little room."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen

from ..commands import COMMANDS
from ..lanes.canvas import LaneCanvas
from ..lanes.minimap import Minimap
from ..lanes.ruler import Ruler
from ..panels.panel import Panel, panel_height
from ..widgets.bars import Bar, Footer
from ..widgets.prompt import Prompt

MINIMAP_FROM = 14
"""Lines of screen from which on the minimap is shown."""
TALL_MINIMAP_FROM = 40
HEADER_FROM = 4
FOOTER_FROM = 3


def bindings() -> list[BindingType]:
    """Return the table's commands as bindings, with ids so that users can remap them."""
    return [
        Binding(",".join(entry.keys), f"app.command('{entry.id}')", entry.title, show=False, id=entry.id)
        for entry in COMMANDS
        if entry.keys
    ]


class MainScreen(Screen[None]):
    """Header, minimap, ruler, lanes, panel, prompt, footer."""

    DEFAULT_CSS = """
    MainScreen { layout: vertical; overflow: hidden; }
    MainScreen > #header { background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings()
    AUTO_FOCUS = "LaneCanvas"

    class Composed(Message):
        """All widgets are there."""

    class Relaid(Message):
        """The screen has another size."""

    def __init__(self, keys: list[tuple[str, str]]) -> None:
        """Make the screen; `keys` are what the footer shows."""
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        """Put the parts one below the other."""
        yield Bar(id="header")
        yield Minimap(id="minimap")
        yield Ruler(id="ruler")
        yield LaneCanvas(id="lanes")
        yield Panel(id="panel")
        yield Prompt(id="prompt")
        yield Footer(self._keys, id="footer")

    def on_mount(self) -> None:
        """Tell the App."""
        self.post_message(self.Composed())

    def give_room(self, wanted: int, maximised: bool, empty: bool) -> None:
        """Share the height out: the lanes come first, then footer, header, panel, minimap."""
        lines = self.size.height
        header, footer = lines >= HEADER_FROM, lines >= FOOTER_FROM
        minimap = 0 if lines < MINIMAP_FROM else 2 if lines >= TALL_MINIMAP_FROM else 1
        for name, shown in (
            ("#header", header),
            ("#footer", footer),
            ("#minimap", minimap and not maximised),
            ("#ruler", lines > FOOTER_FROM and not maximised),
            ("#lanes", not maximised),
        ):
            self.query_one(name).display = bool(shown)
        self.query_one("#minimap").styles.height = max(1, minimap)
        left = max(0, lines - header - footer)
        panel = self.query_one(Panel)
        height = panel_height(left, wanted, maximised, empty)
        panel.display = height > 0
        panel.styles.height = max(1, height)

    def on_resize(self, event: events.Resize) -> None:
        """Tell the App."""
        self.post_message(self.Relaid())
