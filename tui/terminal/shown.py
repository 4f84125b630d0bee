"""What a terminal shows, and the shortest text that turns it into the next frame."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, TypeAlias

import numpy as np

Pen: TypeAlias = tuple[str, str, str]
"""How letters are drawn: attributes, the letter's colour, the cell's, each as in `CSI … m`. A blank without
attributes has no letter's colour: any will do.
"""

PLAIN: Final[Pen] = ("", "39", "49")
RESET: Final = "\x1b[0m"
BEGINS: Final = "\x1b["
MOVE: Final = re.compile(r"\x1b\[(\d+);(\d+)H([^\x1b]*)")
CONTROL: Final = re.compile(r"[\0-\x1f\x7f-\x9f]")
LETTER_COLOUR: Final = re.compile(r"3[0-79]|9[0-7]")
CELL_COLOUR: Final = re.compile(r"4[0-79]|10[0-7]")
ATTRIBUTE: Final = re.compile(r"[1-9]|21|53")
COLOUR_NUMBERS: Final = {"5": 3, "2": 5}
"""How many numbers a colour takes that begins with 38 or 48: one of 256; red, green and blue."""
WORTH_A_MOVE: Final = 4
"""So many cells that stay as they are cost no less when written again than a move over them."""
COLOUR_BYTES, MOVE_BYTES, RETURN_BYTES = 12, 4, 8
"""What a change of colour takes, a move on a line to the right, and one to anywhere."""
UTF_32: Final = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
BLANK: Final = ord(" ")


def _narrow() -> np.ndarray:
    found = np.zeros(1 << 16, np.bool_)
    for first, last in (
        (0x20, 0x7E),
        (0xA0, 0xAC),
        (0xAE, 0x2FF),
        (0x2010, 0x2027),
        (0x2190, 0x2319),
        (0x2500, 0x25FC),
    ):
        found[first : last + 1] = True
    return found


NARROW: Final = _narrow()
"""Letters that take one cell wherever they stand, by their number; of others nothing is taken for granted."""


@dataclass
class Frame:
    """A frame as textual writes it: pieces of text drawn alike, in lines that the cursor is moved to."""

    texts: list[str] = field(default_factory=list)
    pens: list[int] = field(default_factory=list)  # per text
    lines: list[tuple[int, int, int]] = field(default_factory=list)  # line, column (from 0), first text


class Shown:
    """What a terminal shows after all that was sent to it.

    Of a frame only the cells that change are sent, and of a colour only what is another than before: over a
    slow line a frame takes as long as its bytes.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self._size = (0, 0)
        self._letters = np.zeros(0, np.uint32)  # per cell; 0: not known
        self._drawn = np.zeros(0, np.int32)  # per cell its pen
        self._pens: list[Pen] = []
        self._numbers: dict[Pen, int] = {}
        self._of_text: dict[str, int] = {}  # pens by what stands in `CSI … m`
        self._blanks: list[int] = []  # per pen the one of a blank
        self._changes: dict[tuple[int, int], tuple[str, int]] = {}
        self._plain = self._number(PLAIN)

    def forget(self) -> None:
        """Take nothing for granted: the terminal may show something else."""
        self._size = (0, 0)

    def way_to(self, frame: str, size: tuple[int, int]) -> str:
        """Return what a terminal of so many columns and lines has to be sent for a frame.

        A frame that draws on every line is sent whole, so that it mends whatever the terminal has lost. What
        is no frame, or not understood, is returned as it is.
        """
        if MOVE.match(frame) is None:
            return frame
        if size != self._size:
            self._size = size
            self._letters = np.zeros(size[0] * size[1], np.uint32)
            self._drawn = np.zeros(size[0] * size[1], np.int32)
        try:
            return self._sent(self._taken_apart(frame))
        except ValueError:
            self.forget()
            return frame

    # -- reading --------------------------------------------------------------------------------------------

    def _taken_apart(self, text: str) -> Frame:
        frame = Frame()
        *pieces, end = text.split(RESET)
        for piece in pieces:
            before, _, rest = piece.rpartition(BEGINS)
            if before:
                self._move(frame, before)
            pen, _, letters = rest.partition("m")
            number = self._of_text.get(pen)
            frame.pens.append(self._read_pen(pen) if number is None else number)
            frame.texts.append(letters)
        self._move(frame, end)
        return frame

    def _move(self, frame: Frame, text: str) -> None:
        """Take what stands between two coloured pieces: moves, and text without colours."""
        at = text.find(BEGINS)
        at = len(text) if at < 0 else at
        self._add_plain(frame, text[:at])
        while at < len(text):
            move = MOVE.match(text, at)
            if move is None:
                raise ValueError(text)
            frame.lines.append((int(move[1]) - 1, int(move[2]) - 1, len(frame.texts)))
            self._add_plain(frame, move[3])
            at = move.end()

    def _add_plain(self, frame: Frame, text: str) -> None:
        text = text.removesuffix("\n")  # textual ends lines with it, and moves to the next all the same
        if text:
            frame.texts.append(text)
            frame.pens.append(self._plain)

    def _read_pen(self, text: str) -> int:
        """Return the pen that `CSI … m` takes up after a reset."""
        attributes: list[str] = []
        _, letter, cell = PLAIN
        numbers = text.split(";")
        while numbers:
            first = numbers[0]
            taken = 1
            if first in ("38", "48"):
                taken = COLOUR_NUMBERS.get(numbers[1] if len(numbers) > 1 else "", 0)
                colour = ";".join(numbers[:taken])
                if not taken or len(numbers) < taken or not colour.replace(";", "").isdecimal():
                    raise ValueError(text)
                letter, cell = (colour, cell) if first == "38" else (letter, colour)
            elif LETTER_COLOUR.fullmatch(first):
                letter = first
            elif CELL_COLOUR.fullmatch(first):
                cell = first
            elif ATTRIBUTE.fullmatch(first):
                attributes.append(first)
            else:
                raise ValueError(text)
            del numbers[:taken]
        self._of_text[text] = self._number((";".join(attributes), letter, cell))
        return self._of_text[text]

    def _number(self, pen: Pen) -> int:
        found = self._numbers.get(pen)
        if found is None:
            found = self._numbers[pen] = len(self._pens)
            self._pens.append(pen)
            self._blanks.append(found)
            attributes, letter, cell = pen
            if letter and not attributes:
                self._blanks[found] = self._number(("", "", cell))
        return found

    # -- writing --------------------------------------------------------------------------------------------

    def _sent(self, frame: Frame) -> str:
        text = "".join(frame.texts)
        letters = _letters(text)
        sent = ""
        if not NARROW[letters].all():
            sent, frame = self._wide_lines(frame)
            text = "".join(frame.texts)
            letters = _letters(text)
        if text:
            sent += self._changed(frame, text, letters)
        line, column, first = frame.lines[-1]
        # The last move has no text: there the cursor rests.
        return sent + (f"{BEGINS}{line + 1};{column + 1}H" if first == len(frame.texts) else "")

    def _changed(self, frame: Frame, text: str, letters: np.ndarray) -> str:
        columns = self._size[0]
        lengths = list(map(len, frame.texts))
        pens = np.repeat(np.array(frame.pens), lengths)
        blank = letters == BLANK
        pens = np.where(blank, np.array(self._blanks)[pens], pens)
        firsts, cells = self._places(frame, lengths)
        changes = (self._letters[cells] != letters) | (self._drawn[cells] != pens)
        if len({line for line, _, first in frame.lines if first < len(lengths)}) == self._size[1]:
            changes[:] = True
        self._letters[cells], self._drawn[cells] = letters, pens
        where = changes.nonzero()[0]
        if not len(where):
            return ""
        pens = self._carried_on(pens, blank, firsts)
        apart = _differing(pens)
        apart[firsts] = True
        piece = apart.cumsum()[where]
        begins = _differing(piece)
        begins[1:] |= where[1:] - where[:-1] > WORTH_A_MOVE
        starts = where[begins]
        stops = where[np.append(begins[1:], True)] + 1
        order = _shortest_order(cells[starts], stops - starts, pens[starts], columns)
        starts, stops = starts[order], stops[order]
        return self._written(
            text, zip(starts.tolist(), stops.tolist(), cells[starts].tolist(), pens[starts].tolist())
        )

    def _carried_on(self, pens: np.ndarray, blank: np.ndarray, firsts: Sequence[int]) -> np.ndarray:
        """Return the pens with which to write: blanks with that of the letter before them, if it will do."""
        places = np.where(blank, -1, np.arange(len(pens)))
        places[firsts] = firsts
        before = pens[np.maximum.accumulate(places)]
        return np.where(blank & (np.array(self._blanks)[before] == pens), before, pens)

    def _places(self, frame: Frame, lengths: Sequence[int]) -> tuple[list[int], np.ndarray]:
        """Return which letters stand first on a line, and the cell of each letter."""
        columns, height = self._size
        begins = list(accumulate(lengths, initial=0))
        firsts, counts, shifts = [], [], []
        for (line, column, first), last in zip(frame.lines, _lasts(frame)):
            begin, count = begins[first], begins[last] - begins[first]
            if count and (line >= height or column + count > columns):
                raise ValueError("no frame for this terminal")
            if count:
                firsts.append(begin)
                counts.append(count)
                shifts.append(line * columns + column - begin)
        return firsts, np.repeat(shifts, counts) + np.arange(begins[-1])

    def _written(self, text: str, pieces: Iterable[tuple[int, int, int, int]]) -> str:
        """Return what writes pieces of a text: [start, stop) at a cell, with a pen."""
        columns = self._size[0]
        sent: list[str] = []
        pen, at, line = self._plain, -1, -columns
        for start, stop, cell, wanted in pieces:
            if cell != at or cell >= line + columns:
                if at < cell < line + columns:
                    sent.append(f"{BEGINS}{cell - at}C" if cell > at + 1 else f"{BEGINS}C")
                else:
                    y, x = divmod(cell, columns)
                    line = cell - x
                    sent.append(f"{BEGINS}{y + 1};{x + 1}H")
            if pen != wanted:
                change = self._changes.get((pen, wanted))
                if change is None:
                    change = self._changes[pen, wanted] = self._change(pen, wanted)
                sent.append(change[0])
                pen = change[1]
            sent.append(text[start:stop])
            at = cell + stop - start
        if pen != self._plain:
            sent.append(RESET)
        return "".join(sent)

    def _change(self, before: int, wanted: int) -> tuple[str, int]:
        """Return what changes one pen into another, and the pen that results."""
        attributes, letter, cell = self._pens[before]
        new_attributes, new_letter, new_cell = self._pens[wanted]
        numbers: list[str] = []
        if attributes != new_attributes:
            if attributes:
                numbers.append("0")
                _, letter, cell = PLAIN
            if new_attributes:
                numbers.append(new_attributes)
        if new_letter and new_letter != letter:
            numbers.append(new_letter)
            letter = new_letter
        if new_cell != cell:
            numbers.append(new_cell)
        after = self._number((new_attributes, letter, new_cell))
        return (f"{BEGINS}{';'.join(numbers)}m" if numbers else ""), after

    def _wide_lines(self, frame: Frame) -> tuple[str, Frame]:
        """Return what draws the lines with letters that may take more or less than a cell, and the other
        lines; what those show is not known, nor what lies right of it.
        """
        columns, height = self._size
        sent: list[str] = []
        rest = Frame()
        for (line, column, first), last in zip(frame.lines, _lasts(frame)):
            texts, pens = frame.texts[first:last], frame.pens[first:last]
            if NARROW[_letters("".join(texts))].all():
                rest.lines.append((line, column, len(rest.texts)))
                rest.texts += texts
                rest.pens += pens
                continue
            if line >= height or CONTROL.search("".join(texts)):
                raise ValueError("no frame for this terminal")
            sent.append(f"{BEGINS}{line + 1};{column + 1}H")
            for text, pen in zip(texts, pens):
                sent.append(f"{BEGINS}{';'.join(filter(None, self._pens[pen]))}m{text}{RESET}")
            self._letters[line * columns + column : (line + 1) * columns] = 0
        return "".join(sent), rest


def _lasts(frame: Frame) -> list[int]:
    """Return per line the number of the text after its last one."""
    return [*(first for *_, first in frame.lines[1:]), len(frame.texts)]


def _differing(values: np.ndarray) -> np.ndarray:
    """Return which values are others than those before them; the first one is."""
    found = np.ones(len(values), np.bool_)
    found[1:] = values[1:] != values[:-1]
    return found


def _shortest_order(cells: np.ndarray, lengths: np.ndarray, pens: np.ndarray, columns: int) -> np.ndarray:
    """Return the order in which to write pieces: line by line, from left to right, or on a line where colours
    come again and again all of a colour before the next one: a move takes fewer bytes than a colour.
    """
    lines = cells // columns
    changes, joined = _differing(pens), np.zeros(len(cells), np.bool_)
    same_line = lines[1:] == lines[:-1]
    changes[1:] |= ~same_line
    joined[1:] = same_line & (cells[1:] == cells[:-1] + lengths[:-1])
    many = int(pens.max()) + 1
    colours = np.bincount(np.unique(lines * many + pens) // many)
    saved = COLOUR_BYTES * (np.bincount(lines, changes) - colours)
    saved -= RETURN_BYTES * (colours - 1) + MOVE_BYTES * np.bincount(lines, joined)
    order: np.ndarray = (lines * many + np.where(saved[lines] > 0, pens, 0)).argsort(kind="stable")
    return order


def _letters(text: str) -> np.ndarray:
    """Return the numbers of letters, 0 for those that no table holds."""
    found = np.frombuffer(text.encode(UTF_32, "surrogatepass"), np.uint32)
    return np.where(found < len(NARROW), found, 0)
