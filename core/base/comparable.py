"""Names that stay the same from run to run: without numbers and hashes that each run generates anew.

Kernels keep their whole name, so that two functors of one template are two; of paths the component that tells
is left, as folders and suffixes are generated.
"""

from __future__ import annotations

import re

from .safe_text import safe
from .short_names import short_name

_STEP = re.compile(r"^(?:iteration_|granite\.iteration\.)|^ProfilerStep#")
_NUMBERS = re.compile(r"\d+")
_END = re.compile(r"#\d+$")
_PATH = re.compile(r"^\.{0,2}/|^spyre_kernel|^\S+\.pyx?\(\d+\): ")
_HASH = re.compile(r"\b(?=[0-9a-z]*\d)(?=[0-9a-z]*[a-z])[0-9a-z]{16,}\b")
"""Such as the FxGraph cache's keys: sixteen or more lower-case letters and digits, both present."""


def comparable_name(raw: str) -> str:
    """Return an event's name with `*` for hashes and numbers of steps, and with a path in its short form."""
    name = _HASH.sub("*", short_name(raw) if _PATH.match(raw) or not raw.strip() else safe(raw))
    return _NUMBERS.sub("*", name) if _STEP.match(name) else _END.sub("#*", name)
