"""The structures that Python and C share, as ctypes describes them."""

from __future__ import annotations

import ctypes

VERSION = 1
"""TL_VERSION of native.h."""
STRUCTS: tuple[type[ctypes.Structure], ...] = ()
"""Every shared structure, in the order of STRUCT_SIZES in version.c."""
