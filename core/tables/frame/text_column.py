"""A column of text without an object for each row: numbers, and the texts that they mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from ...base.arrays import I64, AnyArray, pieces
from ...query.groups import Groups, Labels


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A text for each of n rows: its index in `texts`, of which several may be equal and some of no row."""

    codes: AnyArray
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[str]:
        for piece in pieces(len(self)):
            yield from self[piece].tolist()

    @overload
    def __getitem__(self, rows: int | np.integer[Any]) -> str: ...
    @overload
    def __getitem__(self, rows: AnyArray | slice) -> TextColumn: ...
    def __getitem__(self, rows: int | np.integer[Any] | AnyArray | slice) -> str | TextColumn:
        """Return the text of a row, or a column of some rows."""
        if isinstance(rows, int | np.integer):
            return self.texts[int(self.codes[rows])]
        return TextColumn(self.codes[rows], self.texts)

    def tolist(self) -> list[str]:
        return list(map(self.texts.__getitem__, self.codes.tolist()))

    @property
    def objects(self) -> AnyArray:
        """The texts as an array of objects, as other libraries take them."""
        return np.array(self.texts, object)[self.codes]

    @property
    def distinct(self) -> list[str]:
        """The distinct texts of the rows, in order."""
        present = np.zeros(len(self.texts), np.bool_)
        present[self.codes] = True
        return sorted({self.texts[number] for number in np.flatnonzero(present).tolist()})

    @property
    def sort_keys(self) -> I64:
        """Numbers that order the rows as their texts do, equal ones of equal texts."""
        number = {text: at for at, text in enumerate(sorted(set(self.texts)))}
        return np.array([number[text] for text in self.texts], np.int64)[self.codes]


def joined_texts(columns: Sequence[TextColumn]) -> TextColumn:
    """Return the rows of columns below each other."""
    texts: list[str] = []
    codes = [np.empty(0, np.int64)]
    for column in columns:
        codes.append(column.codes + np.int64(len(texts)))
        texts.extend(column.texts)
    return TextColumn(np.concatenate(codes), texts)


def groups_of_texts(column: TextColumn) -> tuple[Groups, list[str]]:
    """Return the rows of equal text as groups, in the order in which texts are met, and these."""
    # "b a b" as the codes 2 0 3 of the texts "a", "-", "b", "b": first met in the rows 1, none, 0, 2, so in
    # the order 2, 0, 3. Their labels are b = 0, a = 1, b = 0 again, and the groups 0 1 0.
    first = Groups(column.codes, len(column.texts)).first()
    met = np.argsort(first)[: np.count_nonzero(first < len(column.codes))]
    labels, codes = Labels(), np.zeros(len(first), np.int64)
    codes[met] = labels.codes([column.texts[number] for number in met.tolist()])
    return Groups(codes[column.codes], len(labels)), list(labels)
