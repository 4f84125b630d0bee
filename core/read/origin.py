"""What the times of a source count from, where they are too large for 64 bits of ns: as where `ts` holds ns
since 1970, which read as µs are the year 58,000. Every difference of two times is exact then, as elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ..base.units import TIME_LIMIT
from .batch import Batch, Beyond

GREATEST = 1 << 120
"""Times (ns) beyond it have no origin: scan.c reckons in 128 bits."""
GRAIN = 1000
"""An origin is a whole number of µs, and even, so that half a ns is rounded the same from any."""
_TIMED = ("timed", "flows", "asyncs", "counters")


def other_origin(batches: Sequence[Batch]) -> int | None:
    """Return from what the times of some batches (ns from 0) should count: from the least, where all lie
    within TIME_LIMIT of it, else from one beyond the limit that more are close to than to 0. None: from 0.
    """
    parts = [batch.beyond for batch in batches if batch.beyond is not None]
    if not parts:
        return None
    beyond = reduce(Beyond.joined, parts)
    columns = [batch.tables[name]["start"] for batch in batches for name in _TIMED if name in batch.tables]
    starts = np.concatenate([np.asarray(one, np.int64) for one in columns])
    within = starts[np.abs(starts) < TIME_LIMIT]
    least, most = beyond.least, beyond.most
    if len(within):
        least, most = min(least, int(within.min())), max(most, int(within.max()))
    if most - least > TIME_LIMIT:
        if beyond.lead <= len(within):
            return None
        least = beyond.usual
    return least // GRAIN * GRAIN if abs(least) < GREATEST else None
