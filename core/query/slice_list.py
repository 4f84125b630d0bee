"""Slices at some positions, and what is known of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.ids import SliceId
from ..index.store import Index


class SliceList:
    """Slices of one source in a given order: lists and arrays with a value for each, read when asked for."""

    def __init__(self, index: Index, source: int, positions: Sequence[int] | AnyArray) -> None:
        """Hold the slices at these positions."""
        self.source, self.positions = source, np.asarray(positions, np.int64)
        self._index = index

    @property
    def ids(self) -> list[SliceId]:
        """Their identities."""
        ordinals = self._index.column("slices.ordinal")[self.positions].tolist()
        return [SliceId(self.source, ordinal) for ordinal in ordinals]

    @property
    def names(self) -> list[str]:
        """Their names as they stand in the file."""
        return self._index.strings(self._index.column("slices.name")[self.positions].tolist())

    @property
    def categories(self) -> list[str]:
        """Their categories."""
        numbers = self._index.column("slices.category")[self.positions].tolist()
        return [self._index.categories[number] for number in numbers]

    @property
    def starts(self) -> I64:
        """When they start, lane time in ns."""
        starts: I64 = self._index.column("slices.start")[self.positions].astype(np.int64)
        return starts

    @property
    def durations(self) -> I64:
        """How long they take, ns."""
        return self._index.duration(self.positions)

    @property
    def self_times(self) -> I64:
        """How long they take without the slices in them, ns."""
        return self._index.self_time(self.positions)
