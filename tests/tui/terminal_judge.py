"""Judges what bytes do to a terminal beyond showing text, by an emulator and by their sequences."""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Callable
from functools import partial
from typing import Any

import pyte

from tests.tui.hostile_traces import COLOUR

QUIET = frozenset({"draw", "linefeed", "carriage_return", "select_graphic_rendition", "erase_in_line"})
SEQUENCE = re.compile(
    r"\x1b\[(?P<csi>[0-?]*[ -/]*)(?P<final>[@-~])"
    r"|\x1b\](?P<osc>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1b(?P<string>[PX^_])[^\x1b]*\x1b\\"
    r"|\x1b(?P<escape>[ -/]*[0-~]?)"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])"
)
POINTER, CLIPBOARD = "22", "52"
"""The operating system commands that the viewer sends: the shape of the pointer, what is copied."""
PLACING = frozenset("mHGCK")
"""Final characters of sequences that only colour, place or erase what is drawn, whatever their numbers."""
MODES = ("?7", "?25", "?1000", "?1003", "?1004", "?1006", "?1015", "?1049", "?2004", "?2026")
"""Modes it sets and takes back: wrapping, cursor, mouse, focus, second screen, pasting, whole frames."""
QUESTIONS = {("n", "6"), ("p", "?2026$"), ("p", "?2048$")}
"""Where the cursor is, and whether the terminal knows two modes."""
KEYBOARD = {("u", ">25"), ("u", "<")}
"""How keys are reported, and as before."""


class Acts:
    """A listener of pyte that notes everything a terminal would do beyond showing text."""

    def __init__(self) -> None:
        self.acts: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in pyte.Stream.events:
            raise AttributeError(name)
        return partial(self._note, name)

    def _note(self, name: str, *values: Any, **_: Any) -> None:
        if name not in QUIET or (name == "select_graphic_rendition" and values == (38, 5, 199)):
            self.acts.append((name, values))


def acts_of(data: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    """Return what bytes do to a terminal other than showing lines of text in colours."""
    listener = Acts()
    pyte.ByteStream(listener).feed(data)  # type: ignore[arg-type]
    return listener.acts


def active_in(text: str) -> set[str]:
    """Return the characters of a text that are no text: controls, formats, what is not assigned."""
    categories = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    return {each for each in text if each != "\n" and unicodedata.category(each) in categories}


def colours_in(text: str) -> str:
    """Return the numbers of all sequences that set colours."""
    return " ".join(re.findall("\x1b\\[([0-9;]*)m", text))


def foreign_in(data: bytes) -> set[str]:
    """Return the sequences and controls that a viewer never sends, whatever a trace holds."""
    sequences = {("h", mode) for mode in MODES} | {("l", mode) for mode in MODES} | QUESTIONS | KEYBOARD
    foreign = set()
    for match in SEQUENCE.finditer(data.decode()):
        final, command = match["final"], match["osc"]
        if final is not None:
            known = final in PLACING or (final, match["csi"]) in sequences
        elif command is not None:
            known = command.partition(";")[0] in (POINTER, CLIPBOARD)
        else:
            known = match[0] in "\r\n"
        if not known:
            foreign.add(ascii(match[0]))
    return foreign


def copied_texts(data: bytes) -> list[str]:
    """Return what bytes put into the clipboard."""
    commands = [match["osc"].split(";") for match in SEQUENCE.finditer(data.decode()) if match["osc"]]
    return [base64.b64decode(parts[2]).decode() for parts in commands if parts[0] == CLIPBOARD]


def assert_only_draws(data: bytes) -> None:
    """Fail where a viewer sends sequences that are not its own, active characters or a foreign colour."""
    text = data.decode()
    assert not foreign_in(data), foreign_in(data)
    drawn = SEQUENCE.sub("", text)
    at = [drawn.index(each) for each in active_in(drawn)]
    assert not at, [ascii(drawn[max(0, begin - 60) : begin + 20]) for begin in at]
    assert COLOUR not in colours_in(text)
    for copied in copied_texts(data):
        assert not active_in(copied), copied
