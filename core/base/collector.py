"""When Python looks for garbage."""

from __future__ import annotations

import gc

_LOADING = 100_000
"""New objects between two collections: loading makes many, and none of them is garbage."""


def collect_rarely() -> None:
    """Let a process load what it needs without looking for garbage in it."""
    gc.set_threshold(_LOADING)
