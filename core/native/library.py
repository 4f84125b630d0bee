"""Loads the shared library of the native core, or says why there is none.

It is compiled when tracelane is installed (bundle/native_build.py) and lies beside this file. Nothing needs
it: where it is absent, or was made of other sources, the plain Python twins do the same, only slower.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .structs import STRUCTS, VERSION

FOLDER = Path(__file__).parent
FILE_NAME = "_tracelane.native" + (".dylib" if sys.platform == "darwin" else ".so")
"""With a dot in it, as what ends in .so alone counts as a module of Python."""


class NativeLibrary(NamedTuple):
    """The library's functions, or None and in one phrase the reason why there are none."""

    functions: ctypes.CDLL | None
    reason: str = ""


@cache
def native_library() -> NativeLibrary:
    """Return the library that belongs to these files, or the one that TRACELANE_NATIVE names (its tests run
    with one that was compiled with sanitizers); loaded once per process.
    """
    named = os.environ.get("TRACELANE_NATIVE")
    return load_library(Path(named) if named else FOLDER / FILE_NAME)


def load_library(path: Path) -> NativeLibrary:
    """Load a library and compare its version and its structures with those of structs.py. In a checkout, one
    that is older than a source beside it is not loaded: it would do what the sources no longer say.
    """
    try:
        compiled_at = path.stat().st_mtime_ns
    except OSError:
        return NativeLibrary(None, "not compiled")
    newer = [
        source.name
        for source in sorted(path.parent.glob("*.[ch]"))
        if source.stat().st_mtime_ns > compiled_at
    ]
    if newer:
        return NativeLibrary(None, f"older than {newer[0]}; `make native` compiles it again")
    try:
        functions = ctypes.CDLL(str(path))
        functions.tl_version.restype = functions.tl_struct_sizes.restype = ctypes.c_uint32
        version = functions.tl_version()
        sizes = (ctypes.c_uint32 * (len(STRUCTS) + 1))()
        count = functions.tl_struct_sizes(sizes, ctypes.c_uint32(len(sizes)))
    except (OSError, AttributeError) as error:
        return NativeLibrary(None, f"cannot be loaded: {' '.join(str(error).split())}")
    if version != VERSION:
        return NativeLibrary(None, f"version {version}, where {VERSION} is needed")
    if list(sizes[: min(count, len(sizes))]) != [ctypes.sizeof(struct) for struct in STRUCTS]:
        return NativeLibrary(None, "its structures have other sizes")
    return NativeLibrary(functions)
