"""Clocks: lane time + offset = trace time. Indexes hold lane time only; offsets live in the Session."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

ClockKey: TypeAlias = tuple[int, str]
"""(source, "") for a whole source, (source, process key) for one device of it."""
EPOCHS = (10**18, 4 * 10**18)
"""Times between these two (the years 2001 to 2096) are ns since 1970, as older profilers wrote them."""


def wall_base_of(start: int, origin: int = 0) -> int | None:
    """Return what to add to times of which the first is `start` to get ns since 1970: the origin that they
    count from, where that does so; None where they do not tell.
    """
    return origin if EPOCHS[0] <= start + origin < EPOCHS[1] else None


@dataclass(frozen=True)
class Clocks:
    """The offsets in force, in ns, by clock; absent means zero. Immutable, handed to every query."""

    offsets: MappingProxyType[ClockKey, int] = field(default_factory=lambda: MappingProxyType({}))

    def __hash__(self) -> int:
        """Hash the offsets, once: a mapping proxy itself has no hash, and each rank is looked up by these."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self.offsets.items()))

    def offset(self, source: int, process: str = "") -> int:
        """Return what to add to a lane time of this process to get trace time, in ns."""
        offsets = self.offsets
        if not offsets:
            return 0
        return offsets.get((source, ""), 0) + (offsets.get((source, process), 0) if process else 0)

    def offset_of(self, key: ClockKey) -> int:
        """Return the offset of one clock alone, in ns."""
        return self.offsets.get(key, 0)

    def shifted(self, key: ClockKey, offset_ns: int) -> Clocks:
        changed = dict(self.offsets)
        changed[key] = offset_ns
        return Clocks(MappingProxyType({k: v for k, v in changed.items() if v}))


NO_CLOCKS = Clocks()
"""Nothing is moved."""
