"""The header line, the panel's tab line and the footer: one line of text each."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from ..draw.labels import fit_middle

GAP = "  "
LEAST_PATH = 24
"""A path is not shortened further: too little of it would be left to know it by."""


class Bar(Widget):
    """One line of pieces; those that do not fit are left out from the end, the first is cut."""

    DEFAULT_CSS = """
    Bar { height: 1; width: 1fr; padding: 0; link-style: none; link-style-hover: underline; }
    """

    # Texts of other style but the same letters compare as equal, so every assignment draws.
    pieces: reactive[tuple[Text, ...]] = reactive((), always_update=True)

    def __init__(self, pieces: Sequence[Text] = (), *, id: str | None = None) -> None:
        """Make a bar of pieces, the most important first."""
        super().__init__(id=id)
        self.set_reactive(Bar.pieces, tuple(pieces))

    def render(self) -> Text:
        """Put in as many pieces as there is room for."""
        return fit_pieces(self.pieces, self.size.width)


def fit_pieces(pieces: Sequence[Text], width: int) -> Text:
    """Return the pieces side by side, the first always (cut if need be), the others as long as they fit."""
    line = Text(no_wrap=True, overflow="ellipsis", end="")
    for piece in pieces:
        if line.cell_len and line.cell_len + len(GAP) + piece.cell_len > width:
            continue
        if line.cell_len:
            line.append(GAP)
        line.append_text(piece)
    line.truncate(max(1, width), overflow="ellipsis")
    return line


def with_short_path(message: str, width: int) -> str:
    """Return a message with its longest path shortened in the middle, so that it fits if it can."""
    over = cell_len(message) - width
    paths = [word for word in message.split(" ") if "/" in word]
    if over <= 0 or not paths:
        return message
    path = max(paths, key=cell_len)
    room = max(LEAST_PATH, cell_len(path) - over)
    return message if room >= cell_len(path) else message.replace(path, fit_middle(path, room))


class Footer(Widget):
    """A few keys; or, until the next key, what happened."""

    DEFAULT_CSS = """
    Footer { height: 1; width: 1fr; background: $footer-background; color: $footer-foreground; }
    Footer > .footer--key { color: $footer-key-foreground; text-style: bold; }
    Footer > .footer--message { color: $text-warning; }
    """
    COMPONENT_CLASSES = {"footer--key", "footer--message"}  # noqa: RUF012 - as Textual declares it

    message: reactive[str] = reactive("")
    keys: reactive[tuple[tuple[str, str], ...]] = reactive(())

    def __init__(self, keys: Sequence[tuple[str, str]], *, id: str | None = None) -> None:
        """Make a footer of (key, title) pairs."""
        super().__init__(id=id)
        self.set_reactive(Footer.keys, tuple(keys))

    def render(self) -> Text:
        """Draw the message if there is one, else the keys."""
        if self.message:
            width = max(1, self.size.width)
            style = self.get_component_rich_style("footer--message", partial=True)
            text = Text(with_short_path(self.message, width), style=style)
            text.truncate(width, overflow="ellipsis")
            return text
        style = self.get_component_rich_style("footer--key", partial=True)
        return fit_pieces(
            [Text.assemble((key, style), " ", title) for key, title in self.keys], self.size.width
        )
