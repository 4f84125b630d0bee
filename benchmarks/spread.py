"""Several measurements of the same as two figures."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any


def spread(seconds: Sequence[float]) -> dict[str, Any]:
    """Return median and 95th percentile in ms."""
    ordered = sorted(seconds)
    return {
        "median_ms": round(statistics.median(ordered) * 1000, 2),
        "p95_ms": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))] * 1000, 2),
    }
