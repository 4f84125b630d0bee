"""The header line, the panel's tab line, the footer: one line of text each; and what is said."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from ..draw.room import LOW_MESSAGE, MESSAGE_FROM
from ..keys import said
from ..widget_message import WidgetMessage

GAP = "  "


class Bar(Widget):
    """One line of pieces; those that do not fit are left out from the end, the first is cut."""

    DEFAULT_CSS = """
    Bar { height: 1; width: 1fr; padding: 0; link-style: none; link-style-hover: underline; }
    """

    # Texts of other style but the same letters compare as equal, so every assignment draws.
    pieces: reactive[tuple[Text, ...]] = reactive((), always_update=True)

    def __init__(self, pieces: Sequence[Text] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.set_reactive(Bar.pieces, tuple(pieces))

    def render(self) -> Text:
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


class Footer(Widget):
    """What keys do just now, the most useful first."""

    DEFAULT_CSS = """
    Footer { height: 1; width: 1fr; background: $footer-background; color: $footer-foreground; }
    Footer > .footer--key { color: $footer-key-foreground; text-style: bold; }
    """
    COMPONENT_CLASSES = {"footer--key"}  # noqa: RUF012 - as Textual declares it

    keys: reactive[tuple[tuple[str, str], ...]] = reactive(())

    def __init__(self, keys: Sequence[tuple[str, str]], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.set_reactive(Footer.keys, tuple(keys))

    def render(self) -> Text:
        style = self.get_component_rich_style("footer--key", partial=True)
        return fit_pieces(
            [Text.assemble((key, style), " ", title) for key, title in self.keys], self.size.width
        )


class MessageLine(Widget):
    """What is said, on a line of its own above the footer, and where that does not do over the last lines of
    the panel, which grows where it has not so many, so that no lane is hidden; cut on low screens alone.

    An answer to a key goes with the next command. Notices stay until they are dismissed one by one: the
    newest is shown, with how many there are. What the mouse is over comes before notices, after answers.
    """

    DEFAULT_CSS = """
    MessageLine {
        layer: above; dock: bottom; margin: 0 0 1 0; width: 1fr; height: auto;
        background: $footer-background; color: $text-warning; display: none;
    }
    """
    answer: reactive[str] = reactive("", layout=True)
    notices: reactive[tuple[str, ...]] = reactive((), layout=True)
    hovered: reactive[str] = reactive("", layout=True)

    class Grown(WidgetMessage):
        """What is said takes another number of lines."""

    def __init__(self) -> None:
        super().__init__()
        self._lines_before = 0

    @property
    def lines(self) -> int:
        """How many lines it takes to say all of it."""
        if not self.text or self._is_hover:
            return int(bool(self.text))
        width, height = self.app.size
        lines = len(self.render().wrap(self.app.console, max(1, width), overflow="fold"))
        return lines if height >= MESSAGE_FROM else min(lines, LOW_MESSAGE)

    @property
    def text(self) -> str:
        return self.answer or self.hovered or (self.notices[-1] if self.notices else "")

    @property
    def _is_hover(self) -> bool:
        return bool(self.hovered) and not self.answer

    def _show(self) -> None:
        self.display, lines = bool(self.text), self.lines
        if lines != self._lines_before:
            self._lines_before = lines
            self.post_message(self.Grown())

    watch_answer = watch_hovered = watch_notices = _show

    def render(self) -> Text:
        if self._is_hover:  # a line, whatever it names: nothing moves under the mouse
            return Text(self.text, no_wrap=True, overflow="ellipsis")
        text = Text(self.text, overflow="fold")
        if self.answer:
            return text
        count = len(self.notices)
        closes = said(self, "  {close} closes")
        return text.append(closes if count < 2 else f"{closes}, {count - 1} more", "dim")
