"""When a rule speaks: its test in words, the limits in it, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ..base.units import format_ns

Limits: TypeAlias = Mapping[str, float]
"""Numbers by key: one ending in `share` is a share of 1, one ending in `_ns` a time."""

OWN = "our own choice"
"""The origin of a limit that no source gives."""


def threshold_text(test: str, limits: Limits) -> str:
    """Return the test of a rule, which has the keys of its limits in braces, with these filled in."""
    return test.format(**{key: _limit_text(key, limit) for key, limit in limits.items()})


def _limit_text(key: str, limit: float) -> str:
    if key.endswith("share"):
        return f"{limit * 100:g} %"
    return format_ns(int(limit)) if key.endswith("_ns") else f"{limit:g}"
