"""`tracelane` alone: what there is to open, and the view of what is chosen of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import safe

from .commands import command_named
from .streams import can_draw

if TYPE_CHECKING:
    from ..screens.lists import ListedTrace

RECENT = 10
NOTHING = (
    "no traces here and none opened lately: try `tracelane TRACE`, `tracelane demo` or `tracelane --help`"
)


def pick() -> int:
    """List what can be opened; on a terminal open what is chosen of it. Return the exit code."""
    from tracelane.core.index.inputs import traces_in

    here = traces_in(Path(os.curdir))
    folders = [path for path in sorted(Path(os.curdir).glob("*/")) if len(traces_in(path)) > 1]
    known = {path.absolute() for path in here}
    choices = [*here, *folders, *(path for path in _recent() if path not in known)]
    if not choices:
        print_text(NOTHING, error=True)
        return 0
    if not (sys.stdin.isatty() and can_draw()):
        for choice in choices:
            print_text(safe(str(choice)))
        return 0
    from tracelane.core.base.private import config_path

    from ..config import read_config
    from ..screens.lists import TraceList

    chosen = TraceList(_listed(choices), read_config(config_path())).run()
    if chosen is None:
        return 0
    command_named("view").main(["--", str(choices[chosen])], "tracelane", standalone_mode=False)
    return 0


def _listed(paths: Sequence[Path]) -> list[ListedTrace]:
    from tracelane.core.index.inputs import traces_in

    from ..screens.lists import ListedTrace

    listed = []
    for path in paths:
        files = traces_in(path)  # none in a file
        states = [each.stat() for each in files or [path]]
        age = time() - max(state.st_mtime for state in states)
        listed.append(ListedTrace(str(path), sum(state.st_size for state in states), age, len(files)))
    return listed


def _recent() -> list[Path]:
    """Return the paths of recently opened traces that still exist, the latest first."""
    from tracelane.core.index.cached import list_cache

    paths = dict.fromkeys(Path(entry.path) for entry in list_cache())
    return [path for path in paths if path.is_absolute() and path.is_file()][:RECENT]
