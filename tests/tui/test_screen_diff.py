"""Only what changes is sent to the terminal, and it shows what textual has drawn: letters and colours."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.tui.walk import Recorder, walk
from tracelane.core.demo.trace import write_demo
from tracelane.core.trace import open_trace
from tracelane.tui.terminal.screen_diff import MOVE, RESET, ScreenDiff

SIZE = (30, 6)
TOKEN = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|\n|[^\x1b\n]")
COLOURS = ("38;5;110", "48;5;233", "48;5;240", "38;2;1;2;3", "31", "97", "44", "103", "1", "4", "7", "1;33")
SEED = 1


class Screen:
    """A terminal that knows colours: nothing but what frames need, and anything else is an error."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], tuple[str, ...]] = {}
        self._x = self._y = 0
        self._style: dict[str, str] = {}

    def show(self, text: str) -> None:
        at = 0
        while at < len(text):
            token = TOKEN.match(text, at)
            assert token is not None, text[at:]
            at = token.end()
            if token[2] == "m":
                self._draw_with(token[1].split(";"))
            elif token[2] == "H":
                self._y, self._x = (int(number) - 1 for number in token[1].split(";"))
            elif token[2] == "G":
                self._x = int(token[1]) - 1
            elif token[2] == "C":
                self._x += int(token[1] or 1)
            elif token[0] != "\n":
                assert token[2] is None, token[0]
                self._write(token[0])

    def _draw_with(self, numbers: list[str]) -> None:
        while numbers:
            first = numbers.pop(0)
            if first in ("38", "48"):
                rest = [numbers.pop(0) for _ in range(2 if numbers[0] == "5" else 4)]
                self._style["letter" if first == "38" else "cell"] = ";".join((first, *rest))
            elif first == "0":
                self._style.clear()
            elif first in ("39", "49"):
                self._style.pop("letter" if first == "39" else "cell", "")
            elif len(first) > 1:
                self._style["letter" if first[-2] in "39" else "cell"] = first
            else:
                self._style[first] = first

    def _write(self, character: str) -> None:
        width = cell_len(character)
        for x in range(self._x - 1, self._x + width):  # half of a wide letter goes with the other half
            if cell_len(self.cells.get((self._y, x), (" ",))[0]) > 1 and x != self._x + width - 1:
                self.cells.pop((self._y, x))
        style = self._style
        if character == " " and not set(style) - {"letter", "cell"}:
            style = {key: value for key, value in style.items() if key == "cell"}
        self.cells[self._y, self._x] = (character, *sorted(f"{key} {value}" for key, value in style.items()))
        self._x += width


def piece(text: str, colours: str = "") -> str:
    return f"\x1b[{colours}m{text}{RESET}" if colours else text


def line(y: int, *pieces: str, x: int = 0) -> str:
    return f"\x1b[{y + 1};{x + 1}H" + "".join(pieces) + "\n"


def frame(*lines: str) -> str:
    return "".join(lines).removesuffix("\n") + "\x1b[1;1H"


def random_line(chance: random.Random, y: int, alphabet: str) -> str:
    x, pieces, left = 0, [], SIZE[0]
    if chance.random() < 0.3:
        x = chance.randrange(SIZE[0])
        left -= x
    while left > 0:
        count = min(left, chance.randrange(1, 9))
        text = "".join(chance.choice(alphabet) for _ in range(count))
        while cell_len(text) > left:
            text = text[:-1]
        if not text:
            break
        left -= cell_len(text)
        pieces.append(piece(text, chance.choice(("", *COLOURS, ";".join(chance.sample(COLOURS[:3], 2))))))
    return line(y, *pieces, x=x)


@pytest.mark.slow
@pytest.mark.parametrize("alphabet", ["ab  ░│", "ab  ░│" + "語", "a  e\u0301"])
def test_what_is_sent_shows_the_same(alphabet: str) -> None:
    """Frame after frame the screen looks as if all had been sent, wide and combining letters included."""
    chance = random.Random(SEED)
    drawn, seen, diff = Screen(), Screen(), ScreenDiff()
    for _ in range(300):
        lines = sorted(chance.sample(range(SIZE[1]), chance.randrange(1, SIZE[1] + 1)))
        text = frame(*(random_line(chance, y, alphabet) for y in lines))
        drawn.show(text)
        seen.show(diff.update_for(text, SIZE))
        assert seen.cells == drawn.cells


@pytest.mark.slow
async def test_what_is_sent_of_the_viewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moves, zooms, panels and other screens look as textual drew them, and take a fraction of the bytes."""
    drawn, seen = Screen(), Screen()
    sizes = [0, 0]
    write = Recorder.write

    def both(self: Recorder, data: str) -> None:
        before = len(self.written)
        write(self, data)
        sent = "".join(self.written[before:])
        if not MOVE.match(data):
            assert sent == data
            return
        drawn.show(data)
        seen.show(sent)
        sizes[0] += len(data.encode())
        sizes[1] += len(sent.encode())
        assert seen.cells == drawn.cells

    monkeypatch.setattr(Recorder, "write", both)
    trace = open_trace(write_demo(tmp_path)[0], index_dir=tmp_path / "index")
    await walk(trace, ["w", "w", "d", "d", "a", "down", "enter", "C", "3", "question_mark"], counting=False)
    assert 0 < 2 * sizes[1] < sizes[0]


def test_what_stays_is_not_sent() -> None:
    """Of the same frame again only the cursor is sent; of a changed letter only that."""
    diff = ScreenDiff()
    text = frame(line(1, piece("kernel", "48;5;233"), piece("  ", "38;5;1;48;5;233")))
    assert "kernel" in diff.update_for(text, SIZE)
    assert diff.update_for(text, SIZE) == "\x1b[1;1H"
    other = text.replace("kernel", "kennel").replace("38;5;1;", "38;5;2;")  # blanks have no letter's colour
    assert diff.update_for(other, SIZE) == f"\x1b[2;3H\x1b[48;5;233mn{RESET}\x1b[1;1H"


def test_a_colour_that_comes_again_and_again() -> None:
    """A line that two colours share is drawn colour by colour: each is named once."""
    pieces = [piece(character, colour) for character, colour in (("x", "48;5;233"), ("y", "48;5;240")) * 8]
    sent = ScreenDiff().update_for(frame(line(2, *pieces)), SIZE)
    assert sent.count("48;5;233") == sent.count("48;5;240") == 1
    assert len(sent) < len(frame(line(2, *pieces))) / 2


def test_of_a_frame_on_every_line_what_changes_is_sent() -> None:
    """A new layout draws all lines; of those that stay as they were nothing is sent."""
    diff = ScreenDiff()
    lines = [line(y, piece(f"line {y}", "48;5;233")) for y in range(SIZE[1])]
    first = diff.update_for(frame(*lines), SIZE)
    assert first.count("line") == SIZE[1]
    assert diff.update_for(frame(*lines), SIZE) == "\x1b[1;1H"
    lines[1] = line(1, piece("LINE 1", "48;5;233"))
    assert diff.update_for(frame(*lines), SIZE) == f"\x1b[2;1H\x1b[48;5;233mLINE{RESET}\x1b[1;1H"


def test_what_is_not_known_is_sent() -> None:
    """After another size, and when told to forget, a frame is sent as to a new terminal."""
    diff = ScreenDiff()
    text = frame(line(1, piece("kernel", "48;5;233")))
    first = diff.update_for(text, SIZE)
    assert diff.update_for(text, (SIZE[0] + 1, SIZE[1])) == first
    diff.forget()
    assert diff.update_for(text, (SIZE[0] + 1, SIZE[1])) == first


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x1b[6n",
        "\x1b[?2026h",
        "\x1b]52;c;YQ==\x07",
        frame(line(1, piece("x" * (SIZE[0] + 1), "1"))),
        frame(line(SIZE[1], piece("x", "1"))),
        frame(line(1, piece("x", "38;5"))),
        frame(line(1, piece("x", "38:5:1"))),
        frame(line(1, piece("\x1b]8;id=1;http://x\x1b\\x", "1"))),
        frame(line(1, "\x1b[1m\x1b[4mx" + RESET)),
    ],
)
def test_what_is_no_frame_is_left_as_it_is(text: str) -> None:
    """Anything but a frame that fits is sent as it is, and what was shown is no longer relied on."""
    diff = ScreenDiff()
    known = frame(line(1, piece("kernel", "48;5;233")))
    first = diff.update_for(known, SIZE)
    assert diff.update_for(text, SIZE) == text
    assert diff.update_for(known, SIZE) == (
        first if text.startswith("\x1b[2") or "x" in text else "\x1b[1;1H"
    )
