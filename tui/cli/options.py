"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from tracelane.core.base.errors import UnreadableError

STDIN = "-"
ENDINGS = (".json", ".json.gz", ".json.zip", ".json.zst", ".trace", ".trace.gz")
"""How traces are called; only for listing a directory: a path that is named is opened whatever its name."""

TRACES = click.argument("traces", metavar="TRACE…", nargs=-1, required=True)
TRACE = click.argument("trace", metavar="TRACE")
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


def traces_in(folder: Path) -> list[Path]:
    """Return what looks like a trace in a folder, by name; nothing where it cannot be listed."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    return [entry for entry in entries if entry.name.lower().endswith(ENDINGS) and entry.is_file()]


def expanded(paths: Iterable[str]) -> list[str]:
    """Return the paths, every directory replaced by the traces in it; UnreadableError where it has none."""
    found: list[str] = []
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            inside = traces_in(Path(path))
            if not inside:
                raise UnreadableError(f"{path} is a directory without traces")
            found += [str(entry) for entry in inside]
        else:
            found.append(path)
    return found
