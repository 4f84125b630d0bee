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


def kinds_of(data: bytes) -> set[tuple[str, ...]]:
    """Return the kinds of what a viewer sends besides text: of an emulator's acts the names, of sequences the
    final character, and what modes, questions and reports are about.
    """
    kinds: set[tuple[str, ...]] = {("act", name) for name, _ in acts_of(data)}
    for match in SEQUENCE.finditer(data.decode()):
        final = match["final"]
        if final is not None:
            numbers = "" if final in "mHABCDEFGJKXP@LM" else match["csi"]
            kinds.add(("csi", final, numbers))
        elif match["osc"] is not None:
            kinds.add(("osc", match["osc"].partition(";")[0]))
        else:
            kinds.add(("other", ascii(match[0])))
    return kinds


def copied_texts(data: bytes) -> list[str]:
    """Return what bytes put into the clipboard."""
    commands = [match["osc"].split(";") for match in SEQUENCE.finditer(data.decode()) if match["osc"]]
    return [base64.b64decode(parts[2]).decode() for parts in commands if parts[0] == CLIPBOARD]


def assert_only_draws(data: bytes, kinds: set[tuple[str, ...]]) -> None:
    """Fail where a viewer sends other kinds of sequences, active characters or a foreign colour."""
    text = data.decode()
    foreign = kinds_of(data) - kinds
    assert not foreign, foreign
    drawn = SEQUENCE.sub("", text)
    at = [drawn.index(each) for each in active_in(drawn)]
    assert not at, [ascii(drawn[max(0, begin - 60) : begin + 20]) for begin in at]
    assert COLOUR not in colours_in(text)
    for copied in copied_texts(data):
        assert not active_in(copied), copied
