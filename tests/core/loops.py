"""The loops of building, in C and in plain Python, for tests that hold of both."""

from __future__ import annotations

import numpy as np
import pytest

from tracelane.core.index.loops import CancelFlag, Rooms
from tracelane.core.index.native import NativeLoops
from tracelane.core.index.plain import PlainLoops
from tracelane.core.index.workers import Loops
from tracelane.core.native.library import native_library

BOTH = ("native", "plain")


def loops_of(kind: str, cancel: CancelFlag | None = None) -> Loops:
    """Return loops of a kind of BOTH; skip where the native library was not compiled."""
    cancel = cancel or CancelFlag()
    if kind == "plain":
        return PlainLoops(cancel)
    functions = native_library().functions
    if functions is None:
        pytest.skip(native_library().reason)
    return NativeLoops(functions, cancel, Rooms(np.empty))
