"""What other installed packages add to tracelane, by entry points (docs/recipes.md)."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

ANALYSES, READERS = "tracelane.analyses", "tracelane.readers"


@cache
def added(group: str) -> Mapping[str, Any]:
    """Return the objects of an entry point group by name; what cannot be loaded is warned of and left out."""
    if not _is_there(group):
        return {}
    from importlib.metadata import entry_points

    objects: dict[str, Any] = {}
    for point in sorted(entry_points(group=group), key=lambda one: one.name):
        try:
            objects[point.name] = point.load()
        except Exception as error:  # whatever somebody else's code raises
            warnings.warn(f"{group}: {point.value} cannot be loaded: {error!r}", stacklevel=2)
    return objects


def _is_there(group: str) -> bool:
    """Tell whether an installed package names a group: looked up here in 2 ms of the 40 that importing
    importlib.metadata and asking it takes, which every command would pay.
    """
    files = (file for folder in sys.path for file in Path(folder).glob("*.dist-info/entry_points.txt"))
    return any(group.encode() in file.read_bytes() for file in files)
