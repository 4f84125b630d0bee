"""Write a small AIU trace of two ranks, and the aiu-smi log of their cards, and open it.

Three training steps of a transformer; the files are the same, byte for byte, everywhere.
"""

from __future__ import annotations

from pathlib import Path

import click

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import safe
from tracelane.core.demo.trace import write_demo

from .commands import command_named


def run_demo(out: Path, no_open: bool) -> None:
    paths = write_demo(out)
    for path in paths:
        print_text(safe(str(path)), error=not no_open)
    if not no_open:
        traces = tuple(str(path) for path in paths if path.suffix == ".json")
        click.get_current_context().invoke(command_named("view"), traces=traces)
