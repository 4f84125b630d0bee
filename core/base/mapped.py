"""Mapped files whose pages are let go of once they have been used: they count as memory of the process."""

from __future__ import annotations

import mmap


def let_go(mapping: mmap.mmap) -> None:
    """Give back the pages of a mapping of a file; what was written stays, and comes back when it is used."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)
