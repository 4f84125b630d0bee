"""What a terminal would show: just enough of one to read back what the viewer draws."""

from __future__ import annotations

import codecs
import re

from rich.cells import cell_len

SEQUENCE = re.compile(
    r"\x1b(?:\[([<-?]?)([0-9;:]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Za-z0-9]|[=>78M])"
)
BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[()])?$")
NOT_DRAWN = "\ufffd"
PANEL = "1 Details"
"""What the panel begins with."""
NOTICE = "Esc closes"
"""What stands behind a notice, which lies over the panel's tabs."""


def lanes_of(text: str) -> str:
    """Return a screen's lines between header and panel."""
    panel = min(at for at in (text.find(PANEL), text.find(NOTICE), len(text)) if at >= 0)
    return "\n".join(text[: text.rindex("\n", 0, panel)].split("\n")[1:])


class TerminalScreen:
    """Places text by cursor moves, colours are passed over; cells never written to hold `NOT_DRAWN`."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.lines = columns, lines
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""
        self.modes: set[str] = set()  # private modes that are set, such as "1049"
        self._clear()

    @property
    def text(self) -> str:
        """The screen's lines."""
        return "\n".join("".join(line) for line in self._cells)

    @property
    def lanes(self) -> str:
        """The lines of the viewer between header and panel: what comes in later changes only those around."""
        return lanes_of(self.text)

    def feed(self, data: bytes) -> None:
        """Take what was sent."""
        text = self._rest + self._decode(data)
        self._rest = ""
        at = 0
        while at < len(text):
            start = text.find("\x1b", at)
            self._write(text[at : start if start >= 0 else len(text)])
            if start < 0:
                break
            if match := SEQUENCE.match(text, start):
                self._control(*match.groups(default=""))
                at = match.end()
            elif BEGUN.match(text, start):
                self._rest = text[start:]
                break
            else:
                at = start + 1

    def _clear(self) -> None:
        self._cells = [[NOT_DRAWN] * self.columns for _ in range(self.lines)]
        self._x = self._y = 0

    def _control(self, private: str, numbers: str, final: str) -> None:
        if private == "?" and final in "hl":
            for mode in numbers.split(";"):
                (self.modes.add if final == "h" else self.modes.discard)(mode)
                if mode == "1049":
                    self._clear()
        elif not private and final == "H":
            line, _, column = numbers.partition(";")
            self._y, self._x = int(line or 1) - 1, int(column or 1) - 1
        elif not private and final == "G":
            self._x = int(numbers or 1) - 1
        elif not private and final == "d":
            self._y = int(numbers or 1) - 1
        elif not private and final == "A":
            self._y -= int(numbers or 1)
        elif not private and final == "B":
            self._y += int(numbers or 1)
        elif not private and final == "D":
            self._x -= int(numbers or 1)
        elif not private and final == "C":
            self._x += int(numbers or 1)

    def _write(self, text: str) -> None:
        inside = 0 <= self._y < self.lines and 0 <= self._x <= self.columns - len(text)
        if inside and text.isascii() and text.isprintable():
            self._cells[self._y][self._x : self._x + len(text)] = text
            self._x += len(text)
            return
        for character in text:
            if character == "\n":
                self._y += 1
            elif character == "\r":
                self._x = 0
            elif character >= " ":
                width = cell_len(character)
                if 0 <= self._y < self.lines and 0 <= self._x < self.columns:
                    line = self._cells[self._y]
                    line[self._x] = character
                    line[self._x + 1 : self._x + width] = [""] * (
                        min(self.columns, self._x + width) - self._x - 1
                    )
                self._x += width
