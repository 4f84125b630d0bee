"""One string table out of those of all reading threads, numbered in the order of first use in the file.

A number depends neither on how many threads read, nor on where the file was cut, nor on a hash. 0 is the
empty string.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.arrays import U32
from ..base.ids import NONE
from ..read.batch import StringTable, string_table
from .columns_out import ColumnWriter
from .loops import Allocate, Interned, Loops

PIECE = 1 << 16
"""Strings that are written at once, and bytes of their texts unless one is longer."""


class SourceStrings:
    """The strings of a source; `maps[table][string]` is the number of a string of a thread's table, NONE if
    it has not been used.
    """

    def __init__(self, tables: Sequence[StringTable], loops: Loops, allocate: Allocate) -> None:
        """`loops`: of the thread that numbers; `allocate` gives room for the maps."""
        self._loops = loops
        self._interned = Interned([*tables, string_table([b""], [])])
        self.maps: list[U32] = []
        for table in self._interned.tables:
            numbers = allocate(len(table.offset) - 1, "u4")
            numbers.fill(NONE)
            self.maps.append(numbers)
        self.use(len(tables), np.zeros(1, np.uint32))
        for numbers in self.maps:
            numbers[0] = 0

    @property
    def count(self) -> int:
        """How many distinct strings there are."""
        return self._interned.count

    def use(self, table: int, strings: U32) -> None:
        """Number strings of a table, in this order, as far as they have no number yet."""
        new = strings[self.maps[table].take(strings) == NONE]
        if len(new):
            self.maps[table][new] = self._loops.intern(
                self._interned, np.full(len(new), table, np.uint16), new
            )

    def numbers(self, texts: Sequence[str]) -> U32:
        """Return the numbers of texts, new ones at the end where the source does not have them."""
        encoded = string_table([text.encode("utf-8", "replace") for text in texts], [])
        self._interned.tables.append(encoded)
        of = np.full(len(texts), len(self._interned.tables) - 1, np.uint16)
        return self._loops.intern(self._interned, of, np.arange(len(texts), dtype=np.uint32)).copy()

    def text(self, number: int) -> str:
        """Return one string."""
        interned = self._interned
        table = interned.tables[int(interned.owner_table[number])]
        return table.bytes_of(int(interned.owner_string[number])).decode("utf-8", "replace")

    def write(self, blob: ColumnWriter, offsets: ColumnWriter, loops: Loops) -> None:
        """Write all strings by number, in pieces."""
        interned, done, size = self._interned, 0, 0
        offsets.append(np.array([0]))
        while done < interned.count:
            piece = slice(done, min(done + PIECE, interned.count))
            text, ends = loops.texts(
                interned, interned.owner_table[piece], interned.owner_string[piece], PIECE
            )
            blob.append(text)
            offsets.append(ends + size)
            done, size = done + len(ends), size + len(text)
