"""What a terminal shows, and the shortest text that turns it into the next frame."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Final, TypeAlias

import numpy as np

from tracelane.core.base.arrays import distinct
from tracelane.core.base.numbers import whole_number

CellStyle: TypeAlias = tuple[str, str, str]
"""How characters are drawn: attributes, the colour of the character and of the cell, each as in `CSI … m`. A
blank without attributes has no colour of a character: any will do.
"""

PLAIN: Final[CellStyle] = ("", "39", "49")
RESET: Final = "\x1b[0m"
BEGINS: Final = "\x1b["
MOVE: Final = re.compile(r"\x1b\[(\d+);(\d+)H([^\x1b]*)")
CONTROL: Final = re.compile(r"[\0-\x1f\x7f-\x9f]")
CHARACTER_COLOUR: Final = re.compile(r"3[0-79]|9[0-7]")
CELL_COLOUR: Final = re.compile(r"4[0-79]|10[0-7]")
ATTRIBUTE: Final = re.compile(r"[1-9]|21|53")
COLOUR_NUMBERS: Final = {"5": 3, "2": 5}
"""How many numbers a colour takes that begins with 38 or 48: one of 256; red, green and blue."""
WORTH_A_MOVE: Final = 4
"""So many cells that stay as they are cost no less when written again than a move over them."""
COLOUR_BYTES, MOVE_BYTES, RETURN_BYTES = 18, 4, 8
"""What a change of colour takes, a move on a line to the right, and one to anywhere."""
MAX_CHANGES: Final = 1024
"""Pairs of styles whose change is remembered: a colour per share of time and per look makes many."""
UTF_32: Final = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
BLANK: Final = ord(" ")


def _narrow() -> np.ndarray:
    narrow = np.zeros(1 << 16, np.bool_)
    for first, last in (
        (0x20, 0x7E),
        (0xA0, 0xAC),
        (0xAE, 0x2FF),
        (0x2010, 0x2027),
        (0x2190, 0x2319),
        (0x2500, 0x25FC),
    ):
        narrow[first : last + 1] = True
    return narrow


NARROW: Final = _narrow()
"""Characters that take one cell wherever they stand, by their number; of others nothing is assumed."""


@dataclass
class ScreenFrame:
    """A frame as textual writes it: pieces of text drawn alike, in lines that the cursor is moved to."""

    texts: list[str] = field(default_factory=list)
    styles: list[int] = field(default_factory=list)  # per text
    lines: list[tuple[int, int, int]] = field(default_factory=list)  # line, column (from 0), first text


class ScreenDiff:
    """What a terminal shows after all that was sent to it.

    Of a frame only the cells that change are sent, and of a style only what differs from the one before: over
    a slow line a frame takes as long as its bytes.
    """

    def __init__(self) -> None:
        self._size = (0, 0)
        self._characters = np.zeros(0, np.uint32)  # per cell; 0: not known
        self._drawn = np.zeros(0, np.int32)  # per cell its style
        self._styles: list[CellStyle] = []
        self._numbers: dict[CellStyle, int] = {}
        self._of_text: dict[str, int] = {}  # styles by what stands in `CSI … m`
        self._blanks: list[int] = []  # per style the one of a blank
        self._change = lru_cache(maxsize=MAX_CHANGES)(self._new_change)
        self._plain = self._number(PLAIN)

    def forget(self) -> None:
        """Assume nothing: the terminal may show something else."""
        self._size = (0, 0)

    def update_for(self, frame: str, size: tuple[int, int]) -> str:
        """Return what a terminal of so many columns and lines has to be sent for a frame.

        What is no frame, or not understood, is returned as it is.
        """
        if MOVE.match(frame) is None:
            return frame
        if size != self._size:
            self._size = size
            self._characters = np.zeros(size[0] * size[1], np.uint32)
            self._drawn = np.zeros(size[0] * size[1], np.int32)
        try:
            return self._sent(self._parsed(frame))
        except ValueError:
            self.forget()
            return frame

    # -- reading --------------------------------------------------------------------------------------------

    def _parsed(self, text: str) -> ScreenFrame:
        frame = ScreenFrame()
        *pieces, end = text.split(RESET)
        for piece in pieces:
            before, _, rest = piece.rpartition(BEGINS)
            if before:
                self._move(frame, before)
            style, _, characters = rest.partition("m")
            number = self._of_text.get(style)
            frame.styles.append(self._read_style(style) if number is None else number)
            frame.texts.append(characters)
        self._move(frame, end)
        return frame

    def _move(self, frame: ScreenFrame, text: str) -> None:
        """Take what stands between two coloured pieces: moves, and text without colours."""
        at = text.find(BEGINS)
        at = len(text) if at < 0 else at
        self._add_plain(frame, text[:at])
        while at < len(text):
            move = MOVE.match(text, at)
            if move is None:
                raise ValueError(text)
            frame.lines.append((whole_number(move[1]) - 1, whole_number(move[2]) - 1, len(frame.texts)))
            self._add_plain(frame, move[3])
            at = move.end()

    def _add_plain(self, frame: ScreenFrame, text: str) -> None:
        text = text.removesuffix("\n")  # textual ends lines with it, and moves to the next all the same
        if text:
            frame.texts.append(text)
            frame.styles.append(self._plain)

    def _read_style(self, text: str) -> int:
        """Return the style that `CSI … m` takes up after a reset."""
        attributes: list[str] = []
        _, character, cell = PLAIN
        numbers = text.split(";")
        while numbers:
            first = numbers[0]
            length = 1
            if first in ("38", "48"):
                length = COLOUR_NUMBERS.get(numbers[1] if len(numbers) > 1 else "", 0)
                colour = ";".join(numbers[:length])
                if not length or len(numbers) < length or not colour.replace(";", "").isdecimal():
                    raise ValueError(text)
                character, cell = (colour, cell) if first == "38" else (character, colour)
            elif CHARACTER_COLOUR.fullmatch(first):
                character = first
            elif CELL_COLOUR.fullmatch(first):
                cell = first
            elif ATTRIBUTE.fullmatch(first):
                attributes.append(first)
            else:
                raise ValueError(text)
            del numbers[:length]
        self._of_text[text] = self._number((";".join(attributes), character, cell))
        return self._of_text[text]

    def _number(self, style: CellStyle) -> int:
        number = self._numbers.get(style)
        if number is None:
            number = self._numbers[style] = len(self._styles)
            self._styles.append(style)
            self._blanks.append(number)
            attributes, character, cell = style
            if character and not attributes:
                self._blanks[number] = self._number(("", "", cell))
        return number

    # -- writing --------------------------------------------------------------------------------------------

    def _sent(self, frame: ScreenFrame) -> str:
        text = "".join(frame.texts)
        characters = _characters(text)
        sent = ""
        if not NARROW[characters].all():
            sent, frame = self._wide_lines(frame)
            text = "".join(frame.texts)
            characters = _characters(text)
        if text:
            sent += self._changed(frame, text, characters)
        line, column, first = frame.lines[-1]
        # The last move has no text: there the cursor rests.
        return sent + (f"{BEGINS}{line + 1};{column + 1}H" if first == len(frame.texts) else "")

    def _changed(self, frame: ScreenFrame, text: str, characters: np.ndarray) -> str:
        columns = self._size[0]
        lengths = list(map(len, frame.texts))
        styles = np.repeat(np.array(frame.styles), lengths)
        blank = characters == BLANK
        styles = np.where(blank, np.array(self._blanks)[styles], styles)
        firsts, cells = self._cells_of(frame, lengths)
        changes = (self._characters[cells] != characters) | (self._drawn[cells] != styles)
        where = changes.nonzero()[0]
        if not len(where):
            return ""
        pending = np.zeros(len(self._characters), np.uint8)
        pending[cells[where]] = self._characters[cells[where]] != 0
        self._characters[cells], self._drawn[cells] = characters, styles
        styles = self._with_cheap_blanks(styles, blank, firsts)
        changes_style = _differing(styles)
        changes_style[firsts] = True
        piece = changes_style.cumsum()[where]
        begins = _differing(piece)
        begins[1:] |= where[1:] - where[:-1] > WORTH_A_MOVE
        starts = where[begins]
        stops = where[np.append(begins[1:], True)] + 1
        ranks = self._ranks(styles[starts])
        order = _shortest_order(cells[starts], stops - starts, ranks, columns)
        starts, stops = starts[order], stops[order]
        pieces = zip(starts.tolist(), stops.tolist(), cells[starts].tolist(), styles[starts].tolist())
        return self._written(text, pieces, bytearray(pending.tobytes()))

    def _ranks(self, styles: np.ndarray) -> np.ndarray:
        """Return where styles stand in an order in which those next to each other have colours in common:
        blanks beside characters on the same ground, grounds beside those with characters of one colour.
        """
        numbers, of_piece = np.unique(styles, return_inverse=True)
        used = [self._styles[number] for number in numbers.tolist()]
        on_ground = {cell: character for _, character, cell in used if character}
        order = sorted(
            range(len(used)),
            key=lambda at: (used[at][0], on_ground.get(used[at][2], ""), used[at][2], used[at][1]),
        )
        ranks = np.empty(len(used), np.int64)
        ranks[order] = np.arange(len(used))
        return ranks[of_piece]

    def _with_cheap_blanks(self, styles: np.ndarray, blank: np.ndarray, firsts: Sequence[int]) -> np.ndarray:
        """Return the styles to write with: a blank takes that of the character before it, if it will do."""
        sources = np.where(blank, -1, np.arange(len(styles)))
        sources[firsts] = firsts
        before = styles[np.maximum.accumulate(sources)]
        return np.where(blank & (np.array(self._blanks)[before] == styles), before, styles)

    def _cells_of(self, frame: ScreenFrame, lengths: Sequence[int]) -> tuple[list[int], np.ndarray]:
        """Return which characters stand first on a line, and the cell of each character."""
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

    def _written(self, text: str, pieces: Iterable[tuple[int, int, int, int]], pending: bytearray) -> str:
        """Return what writes pieces of a text: [start, stop) at a cell, with a style.

        Between two pieces of a style cells that are `pending`, as they change later, are passed over with
        blanks, where these take fewer bytes than a move: for "a b a" in two colours "a", blank, "a", back,
        "b".
        """
        columns = self._size[0]
        sent: list[str] = []
        style, at, line = self._plain, -1, -columns
        for start, stop, cell, target in pieces:
            if cell != at or cell >= line + columns:
                if line <= cell < line + columns:
                    gap = cell - at
                    if 0 < gap < MOVE_BYTES and style == target and pending.find(0, at, cell) < 0:
                        sent.append(" " * gap)
                    elif gap > 0:
                        sent.append(f"{BEGINS}{gap}C" if gap > 1 else f"{BEGINS}C")
                    else:
                        sent.append(f"{BEGINS}{cell - line + 1}G")
                else:
                    y, x = divmod(cell, columns)
                    line = cell - x
                    sent.append(f"{BEGINS}{y + 1};{x + 1}H")
            if style != target:
                change, style = self._change(style, target)
                sent.append(change)
            sent.append(text[start:stop])
            at = cell + stop - start
            pending[cell:at] = bytes(stop - start)
        if style != self._plain:
            sent.append(RESET)
        return "".join(sent)

    def _new_change(self, before: int, target: int) -> tuple[str, int]:
        """Return what changes one style into another, and the style that results."""
        attributes, character, cell = self._styles[before]
        new_attributes, new_character, new_cell = self._styles[target]
        numbers: list[str] = []
        if attributes != new_attributes:
            if attributes:
                numbers.append("0")
                _, character, cell = PLAIN
            if new_attributes:
                numbers.append(new_attributes)
        if new_character and new_character != character:
            numbers.append(new_character)
            character = new_character
        if new_cell != cell:
            numbers.append(new_cell)
        after = self._number((new_attributes, character, new_cell))
        return (f"{BEGINS}{';'.join(numbers)}m" if numbers else ""), after

    def _wide_lines(self, frame: ScreenFrame) -> tuple[str, ScreenFrame]:
        """Return what draws the lines with characters that may take more or less than a cell, and the other
        lines; what those show is not known, nor what lies right of it.
        """
        columns, height = self._size
        sent: list[str] = []
        rest = ScreenFrame()
        for (line, column, first), last in zip(frame.lines, _lasts(frame)):
            texts, styles = frame.texts[first:last], frame.styles[first:last]
            if NARROW[_characters("".join(texts))].all():
                rest.lines.append((line, column, len(rest.texts)))
                rest.texts += texts
                rest.styles += styles
                continue
            if line >= height or CONTROL.search("".join(texts)):
                raise ValueError("no frame for this terminal")
            sent.append(f"{BEGINS}{line + 1};{column + 1}H")
            for text, style in zip(texts, styles):
                sent.append(f"{BEGINS}{';'.join(filter(None, self._styles[style]))}m{text}{RESET}")
            self._characters[line * columns + column : (line + 1) * columns] = 0
        return "".join(sent), rest


def _lasts(frame: ScreenFrame) -> list[int]:
    """Return per line the number of the text after its last one."""
    return [*(first for *_, first in frame.lines[1:]), len(frame.texts)]


def _differing(values: np.ndarray) -> np.ndarray:
    """Return which values are others than those before them; the first one is."""
    differs = np.ones(len(values), np.bool_)
    differs[1:] = values[1:] != values[:-1]
    return differs


def _shortest_order(cells: np.ndarray, lengths: np.ndarray, ranks: np.ndarray, columns: int) -> np.ndarray:
    """Return the order in which to write pieces: line by line, from left to right; then, of the lines where
    that takes fewer bytes, all pieces of a colour before those of the next one.
    """
    # Six letters in two colours by turns, a blank between any two, cost six changes of colour from left to
    # right. One colour after the other costs two, and a way back to the begin of the line for each: 108 bytes
    # against 52, so the order is 0 2 4, then 1 3 5. Where they touch, each way over another letter is a move
    # that was not there before: 4 bytes for each of the five. Of two letters in two colours nothing would be
    # saved. A colour that stands on several such lines is changed to once for all of them: `shares`.
    lines = cells // columns
    changes, joined = _differing(ranks), np.zeros(len(cells), np.bool_)
    same_line = lines[1:] == lines[:-1]
    changes[1:] |= ~same_line
    joined[1:] = same_line & (cells[1:] == cells[:-1] + lengths[:-1])
    many = int(ranks.max()) + 1
    of_lines, colours = np.divmod(distinct(lines * many + ranks), many)
    shares = COLOUR_BYTES / np.bincount(colours)[colours]
    saved = COLOUR_BYTES * np.bincount(lines, changes) - np.bincount(of_lines, RETURN_BYTES + shares)
    saved -= MOVE_BYTES * np.bincount(lines, joined)
    by_colour = saved[lines] > 0
    order: np.ndarray = np.lexsort((cells, np.where(by_colour, ranks, 0), by_colour))
    return order


def _characters(text: str) -> np.ndarray:
    """Return the numbers of characters, 0 for those that no table holds."""
    numbers = np.frombuffer(text.encode(UTF_32, "surrogatepass"), np.uint32)
    return np.where(numbers < len(NARROW), numbers, 0)
