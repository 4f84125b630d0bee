"""A trace of several files of which not all are indexed yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from ..analysis.alignment import Alignment, as_stamped
from ..index.captures import Member
from ..index.store import Index
from . import Trace


class PartialTrace(Trace):
    """What is there of a trace. Files that are not there yet are sources without lanes, so that nothing gets
    another number when they come; `missing` tells of each why it is not there.

    Clocks stand as the files' wall times have them, until all files are there.
    """

    def __init__(
        self, indexes: Sequence[Index], members: Sequence[Member], missing: Mapping[int, str], first: int
    ) -> None:
        """Hold the indexes; trace time is that of the source `first`."""
        super().__init__(indexes, members)
        self.missing = MappingProxyType(dict(missing))
        self.first = first

    @cached_property
    def alignment(self) -> Alignment:
        """The clocks as stamped."""
        return as_stamped(self.indexes, self.members, self.first)
