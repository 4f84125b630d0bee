"""A process that indexes is started before anything heavy is loaded: it has as much to load itself."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import tracelane.core.index.indexing, tracelane.core.index.indexing, tracelane.core.index.opening
import tracelane.core.base.children, tracelane.core.read.source, tracelane.tui.cli.index
print([name for name in ("numpy", "orjson", "textual", "rich") if name in sys.modules])
"""


def test_what_is_needed_to_start_one_loads_nothing_heavy() -> None:
    """Finding a file's source and place, and starting the process, need no numpy."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
