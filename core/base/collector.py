"""How often Python collects garbage."""

from __future__ import annotations

import gc

_LOADING = 100_000
"""New objects between two collections: loading makes many, and none of them is garbage."""
_ONE_AFTER_ANOTHER = (700, 10, 10)


def collect_rarely() -> None:
    """Let a process load what it needs without collecting garbage meanwhile."""
    gc.set_threshold(_LOADING)


def collect_often() -> None:
    """Let a process that takes up one thing after another look for garbage as Python does by itself."""
    gc.set_threshold(*_ONE_AFTER_ANOTHER)
