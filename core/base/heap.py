"""What the C library does with memory that is free again, in a process of our own: it is for programs that
import tracelane to say what it does in theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Final

LARGE, FREE = 32 << 20, 256 << 20
"""Arrays of up to this many bytes lie in the heap (glibc takes no more); so much of it may be free."""
KEEPING: Final[Mapping[str, str]] = {
    "MALLOC_MMAP_THRESHOLD_": str(LARGE),
    "MALLOC_TRIM_THRESHOLD_": str(FREE),
}
"""The environment in which a process keeps memory from its start."""
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
"""What glibc's malloc.h calls these parameters."""


def keep_memory() -> None:
    """Keep what a large array leaves for the next one. By itself glibc gives each back to the system and gets
    the next in pages that the system has to clear first: a quarter of the time of a table of operators.
    """
    set_parameters({MMAP_THRESHOLD: LARGE, TRIM_THRESHOLD: FREE})


@cache
def trim_heap() -> Callable[[], object]:
    """Return what gives free memory back to the system; it does nothing where the C library cannot."""
    import ctypes

    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):  # not glibc
        return lambda: None
    trim.argtypes = [ctypes.c_size_t]
    return lambda: trim(0)


def set_parameters(parameters: Mapping[int, int]) -> None:
    """Set parameters of the C library's heap, where it is glibc's."""
    import ctypes  # numpy loads it, too, but not every command loads numpy

    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in parameters.items():
            mallopt(parameter, value)
