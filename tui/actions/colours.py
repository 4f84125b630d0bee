"""What the colours of slices tell."""

from __future__ import annotations

from tracelane.core.base.errors import UsageError
from tracelane.core.query.promoted_terms import promoted_argument
from tracelane.core.trace import Trace

from ..draw.argument_colours import BY_ARGUMENT

USUAL = "category"
MOST_SLICES = 500_000
"""Beyond so many slices reading an argument of all that is in sight takes too long for a picture."""


def colouring(trace: Trace, text: str) -> str:
    """Return what a text asks colours to tell: category, name or arg:KEY; UsageError for anything else."""
    meaning = text.removeprefix("by ").strip() or USUAL
    if meaning in (USUAL, "name"):
        return meaning
    key = meaning.removeprefix(BY_ARGUMENT)
    if not meaning.startswith(BY_ARGUMENT) or not key:
        raise UsageError(f"colours can be by category, name or arg:KEY, not {meaning!r}")
    if promoted_argument(key) is None and sum(lane.slices for lane in trace.lanes) > MOST_SLICES:
        raise UsageError(f"{key} is only in the file, and the trace is too large to read it for colours")
    return meaning
