"""Write a small AIU trace of two ranks, and the aiu-smi log of their cards, and open it.

Three training steps of a transformer; the files are the same, byte for byte, everywhere.
"""

from __future__ import annotations

from pathlib import Path

import click

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import safe
from tracelane.core.demo.trace import write_demo

from .view import view

FOLDER = "tracelane-demo"


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=FOLDER,
    show_default=True,
    help="The folder to write to.",
)
@click.option("--no-open", is_flag=True, help="Write the files and stop.")
@click.pass_context
def demo(ctx: click.Context, out: Path, no_open: bool) -> None:
    paths = write_demo(out)
    for path in paths:
        print_text(safe(str(path)), error=not no_open)
    if not no_open:
        ctx.invoke(view, traces=tuple(str(path) for path in paths if path.suffix == ".json"))
