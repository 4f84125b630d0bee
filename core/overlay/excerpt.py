"""The lines of a log that speak of a window of the trace, with its heading: a small log of its own."""

from __future__ import annotations

import numpy as np

from ..base.clock import Clocks
from ..base.errors import UnreadableError
from ..base.private import open_regular, reason_of
from .over import NO_CLOCKS
from .overlay import Overlay, PlacedLog

MOST_HEADING = 1 << 16
"""Bytes before the first row that are taken for its heading."""


def excerpt(overlay: Overlay, placed: PlacedLog, start: int, end: int, clocks: Clocks = NO_CLOCKS) -> bytes:
    """Return heading and rows of a log whose intervals overlap [start, end), trace time, as they stand in it.

    The rows are one piece of the file: what lies between two of them (messages, a repeated heading) comes
    along. Empty where no row does. Raises UnreadableError where the log has gone.
    """
    log = placed.log
    lines: set[int] = set()
    for source, _, metric in overlay.metrics():
        if overlay.log_of(source) is placed:
            series = metric.series.shifted(clocks.offset(source))
            lines.update(series.line[(series.end_ns > start) & (series.start_ns < end)].tolist())
    if not lines:
        return b""
    offsets = log.line_offsets
    first, last = np.searchsorted(log.row_lines, [min(lines), max(lines)]).tolist()
    try:
        with open(open_regular(log.path), "rb") as file:
            heading = file.read(min(int(offsets[0]), MOST_HEADING))
            file.seek(int(offsets[first]))
            body = file.read(int(offsets[last]) - int(offsets[first])) + file.readline()
    except OSError as error:
        raise UnreadableError(f"{log.path}: {reason_of(error)}") from error
    return heading + body
