"""Names as they are the same from run to run: without what is counted or generated anew each time."""

from __future__ import annotations

import re

from .short_names import short_name

_STEP = re.compile(r"^(?:iteration_|granite\.iteration\.)|^ProfilerStep#")
_NUMBERS = re.compile(r"\d+")
_END = re.compile(r"#\d+$")
_HASH = re.compile(r"\b(?=[0-9a-z]*\d)(?=[0-9a-z]*[a-z])[0-9a-z]{16,}\b")
"""Such as the FxGraph cache's keys: sixteen or more lower-case letters and digits, both present."""


def comparable_name(raw: str) -> str:
    """Return the short name of an event with hashes and the numbers of steps as `*`."""
    name = _HASH.sub("*", short_name(raw))
    return _NUMBERS.sub("*", name) if _STEP.match(name) else _END.sub("#*", name)
