"""The header line, the panel's tab line, the footer: one line of text each; and what is said."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

GAP = "  "


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


class Footer(Widget):
    """What keys do just now, the most useful first."""

    DEFAULT_CSS = """
    Footer { height: 1; width: 1fr; background: $footer-background; color: $footer-foreground; }
    Footer > .footer--key { color: $footer-key-foreground; text-style: bold; }
    """
    COMPONENT_CLASSES = {"footer--key"}  # noqa: RUF012 - as Textual declares it

    keys: reactive[tuple[tuple[str, str], ...]] = reactive(())

    def __init__(self, keys: Sequence[tuple[str, str]], *, id: str | None = None) -> None:
        """Make a footer of (key, title) pairs."""
        super().__init__(id=id)
        self.set_reactive(Footer.keys, tuple(keys))

    def render(self) -> Text:
        """Draw as many keys as there is room for."""
        style = self.get_component_rich_style("footer--key", partial=True)
        return fit_pieces(
            [Text.assemble((key, style), " ", title) for key, title in self.keys], self.size.width
        )


class MessageLine(Widget):
    """What is said, over the tabs of the panel, or over a panel that has nothing to show; never cut.

    An answer to a key goes with the next command; a notice stays until it is dismissed.
    """

    DEFAULT_CSS = """
    MessageLine {
        layer: above; dock: bottom; margin: 0 0 1 0; width: 1fr; height: auto; max-height: 60%;
        background: $footer-background; color: $text-warning; display: none;
    }
    """
    answer: reactive[str] = reactive("", layout=True)
    notices: reactive[tuple[str, ...]] = reactive((), layout=True)

    @property
    def text(self) -> str:
        """What is to be read."""
        return self.answer or "\n".join(self.notices)

    def watch_answer(self) -> None:
        """Show the line, or nothing."""
        self.display = bool(self.text)

    def watch_notices(self) -> None:
        """Show the line, or nothing."""
        self.display = bool(self.text)

    def render(self) -> Text:
        """Draw all of it, on as many lines as it takes."""
        text = Text(self.text, overflow="fold")
        return text if self.answer else text.append("  Esc closes", "dim")
