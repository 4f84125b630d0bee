"""A trace of several files that are not all indexed yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..index.file_facts import Member
from ..index.store import Index
from ..query.window import Occupied, occupied, window_of
from . import Trace
from .alignment import Alignment, as_stamped

if TYPE_CHECKING:
    from ..index.opening import Gathering


class PartialTrace(Trace):
    """The part of a trace that is there.

    A file that is not there yet is a source without lanes, so that no source gets another number when it
    comes; `missing` says for each why it is not there. Until all files are there, their wall times alone set
    the clocks.
    """

    def __init__(
        self,
        indexes: Sequence[Index],
        members: Sequence[Member],
        missing: Mapping[int, str],
        first: int,
        before: PartialTrace | None = None,
    ) -> None:
        """Hold the indexes; trace time is that of the source `first`. What is known of those that were there
        `before` is not found out again.
        """
        super().__init__(indexes, members)
        known = {} if before is None else before._occupied
        self._occupied: dict[Index, Occupied] = {
            index: known[index] if index in known else occupied(index) for index in self.indexes
        }
        self.missing = MappingProxyType(dict(missing))
        self.first = first

    @classmethod
    def of(
        cls, gathering: Gathering, missing: Mapping[int, str], first: int, before: PartialTrace | None
    ) -> PartialTrace:
        """Return what is there of the files that are being gathered."""
        return cls(gathering.indexes, gathering.members, missing, first, before)

    @cached_property
    def alignment(self) -> Alignment:
        """The clocks as stamped."""
        return as_stamped(self.indexes, self.members, self.first)

    def _window(self) -> tuple[int, int] | None:
        offsets = map(self.clocks.offset, range(len(self.indexes)))
        return window_of([(self._occupied[index], offset) for index, offset in zip(self.indexes, offsets)])
