"""Identities that outlive a process: rows, marks, flows and hits name slices by them."""

from __future__ import annotations

from dataclasses import dataclass

NONE = 0xFFFF_FFFF
"""The position or ordinal that means "none" in uint32 columns."""


@dataclass(frozen=True, order=True)
class SliceId:
    """A slice of one source, named by the ordinal of its (begin) event in the source's event array."""

    source: int
    ordinal: int
