"""When a rule speaks: its test in words, the limits in it, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ..base.units import format_ns

Limits: TypeAlias = Mapping[str, float]
"""Numbers by key: one ending in `share` is a share of 1, one ending in `_ns` a time."""

NO_LIMITS: Limits = {}
OWN = "our own choice"
"""The origin of a limit that no source gives."""


@dataclass(frozen=True)
class RuleThreshold:
    """The test of a rule, with the keys of its limits in braces, and its origin."""

    test: str
    origin: str
    limits: Limits

    def __str__(self) -> str:
        """Return the test with its limits filled in."""
        return self.test.format(**{key: _limit_text(key, limit) for key, limit in self.limits.items()})


def _limit_text(key: str, limit: float) -> str:
    if key.endswith("share"):
        return f"{limit * 100:g} %"
    return format_ns(int(limit)) if key.endswith("_ns") else f"{limit:g}"
