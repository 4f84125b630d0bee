"""The help screen: every command with its keys, by group."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from ..commands import COMMANDS, GROUPS, LINES, MOUSE
from ..keys import shown_keys
from ..times import READINGS
from .answer import AnswerScreen

KEY_WIDTH = 16
TWO_COLUMNS_FROM = 150
PALETTE = "(palette)"
FRAME = 6
"""Cells that border, padding and scroll bar take."""


def help_blocks(remapped: Mapping[str, str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the help as blocks: a heading and (key, text) pairs."""
    blocks = [
        (
            group,
            [
                (shown_keys(entry, remapped) or PALETTE, entry.help)
                for entry in COMMANDS
                if entry.group == group
            ],
        )
        for group in GROUPS
    ]
    blocks.append(("Mouse", list(MOUSE)))
    blocks.append(("Command line", [(f":{name}", text) for name, text in LINES]))
    blocks.append(("Times", [("", READINGS)]))
    return blocks


def help_text(width: int, remapped: Mapping[str, str]) -> Text:
    """Return the whole help for a width in cells, in two columns where there is room."""
    blocks = help_blocks(remapped)
    if width < TWO_COLUMNS_FROM:
        return Text("\n").join(_lines(blocks, width))
    half = width // 2 - 1
    heights = list(accumulate(len(_lines([block], half)) for block in blocks))
    split = next(number for number, height in enumerate(heights, 1) if height >= heights[-1] / 2)
    left = _lines(blocks[:split], half)
    right = _lines(blocks[split:], half)
    lines = []
    for number in range(max(len(left), len(right))):
        line = left[number].copy() if number < len(left) else Text()
        line.append(" " * (half + 2 - line.cell_len))
        if number < len(right):
            line.append_text(right[number])
        lines.append(line)
    return Text("\n").join(lines)


def _lines(blocks: list[tuple[str, list[tuple[str, str]]]], width: int) -> list[Text]:
    lines: list[Text] = []
    for heading, pairs in blocks:
        lines.append(Text(heading, style="bold underline"))
        for key, text in pairs:
            lines.extend(_pair(key or " ", text, width))
        lines.append(Text(""))
    return lines


def _pair(key: str, text: str, width: int) -> list[Text]:
    room = max(10, width - KEY_WIDTH)
    words: list[str] = [""]
    for word in text.split(" "):
        if words[-1] and len(words[-1]) + 1 + len(word) > room:
            words.append(word)
        else:
            words[-1] = f"{words[-1]} {word}" if words[-1] else word
    lines = []
    if len(key) >= KEY_WIDTH:
        lines.append(Text(key, style="bold"))
        key = ""
    for number, line in enumerate(words):
        left = (key if number == 0 else "").ljust(KEY_WIDTH)
        lines.append(Text.assemble((left, "bold"), line))
    return lines


class HelpScreen(AnswerScreen[None]):
    """All keys; any of the closing keys leaves it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: 94%; max-width: 190; height: auto; max-height: 94%;
        border: round $primary; background: $surface; padding: 0 1;
    }
    HelpScreen Static { width: 1fr; height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "Close", show=False)
    ]

    def __init__(self, remapped: Mapping[str, str]) -> None:
        """Show the keys with the user's own in place."""
        super().__init__()
        self._remapped = remapped

    def compose(self) -> ComposeResult:
        """Make the frame; the text follows once the width is known."""
        with VerticalScroll() as frame:
            frame.border_title = "All keys"
            frame.border_subtitle = "Esc closes"
            yield Static()

    def on_resize(self) -> None:
        """Lay the text out anew."""
        width = min(190, self.size.width * 94 // 100) - FRAME
        self.query_one(Static).update(help_text(max(20, width), self._remapped))
