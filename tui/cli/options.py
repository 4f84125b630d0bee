"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

STDIN = "-"

TRACES = click.argument("traces", metavar="TRACE…", nargs=-1, required=True)
TRACE = click.argument("trace", metavar="TRACE")
WORKERS = click.option(
    "--workers", type=click.IntRange(1, 64), help="Processes that read; as many as there are cores, up to 4."
)
INDEX_DIR = click.option(
    "--index-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the index in this folder instead of the cache.",
)
FORCE = click.option("--force", is_flag=True, help="Read the trace again even if its index is there.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
DECODER = click.option(
    "--decoder",
    type=click.Choice(["orjson", "ijson"]),
    default="orjson",
    show_default=True,
    help="How events are decoded; both give the same index, ijson slowly.",
)
