"""A trace, or a part of it, as a file that other programs read: how the name ends says what writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import TracelaneError, UsageError
from ..base.output import write_new_file
from ..base.progress import ProgressCallback

if TYPE_CHECKING:
    from ..tables.frame.scope import Scope


def writer_of(out: Path) -> Callable[[Scope, Path, str, ProgressCallback], str]:
    """Return what writes a scope to this file, given a title and who is told how far it is: it returns what
    it wrote, in words.

    Raises UsageError for a name with another ending and a file that is there, TracelaneError without folder.
    """
    kind = next((one for one in WRITERS if out.name.lower().endswith(one)), None)
    if kind is None:
        raise UsageError(f"{out}: its name must end with one of {', '.join(WRITERS)}")
    if out.exists():
        raise UsageError(f"{out} is there already: choose another name, or remove it")
    if not out.parent.is_dir():
        raise TracelaneError(f"{out} cannot be written: there is no folder {out.parent}")
    return WRITERS[kind]


def _perfetto(scope: Scope, out: Path, title: str, progress: ProgressCallback) -> str:
    from ..export.perfetto import write_perfetto

    done = write_perfetto(scope, out, progress)
    return (
        f"{done.slices:,} slices on {done.tracks:,} tracks, {done.instants:,} instants, "
        f"{done.samples:,} counter samples, {done.flows:,} flows"
    )


def _speedscope(scope: Scope, out: Path, title: str, progress: ProgressCallback) -> str:
    from ..export.tracks import speedscope_pieces

    _write(out, speedscope_pieces(scope, title))
    return "written for speedscope"


def _folded(scope: Scope, out: Path, title: str, progress: ProgressCallback) -> str:
    from ..tables.host.tree import analyse_tree, folded_lines

    tables = analyse_tree(scope, "thread")
    _write(out, folded_lines(tables))
    return f"{len(tables.main):,} nodes of the call tree"


def _sqlite(scope: Scope, out: Path, title: str, progress: ProgressCallback) -> str:
    from ..sql.files import write_sqlite

    return f"{write_sqlite(scope, out, progress):,} slices"


def _parquet(scope: Scope, out: Path, title: str, progress: ProgressCallback) -> str:
    from ..sql.files import write_parquet

    return f"{write_parquet(scope, out):,} slices"


def _html(scope: Scope, out: Path, title: str, progress: ProgressCallback) -> str:
    from ..export.report import html_report

    _write(out, html_report(scope, title))
    return "written"


def _json(scope: Scope, out: Path, title: str, progress: ProgressCallback) -> str:
    """Write the events as they stand in the file, of a whole trace all of the file."""
    from ..export.cut import copy_source, cut_scope

    files = scope.trace.source_count
    if files != 1:
        raise UsageError(f"there are {files} files: write them one by one, of ranks with --rank N")
    if scope.where is not None:
        raise UsageError("--where chooses slices, and events are written with all that belongs to them")
    if scope.range is None and scope.lanes is None:
        return f"{copy_source(scope.trace, 0, out, progress):,} bytes of text"
    return f"{cut_scope(scope, out, progress).events:,} events"


def _write(out: Path, pieces: Iterable[str]) -> None:
    try:
        write_new_file(out, pieces)
    except OSError as error:
        raise TracelaneError(f"{out} cannot be written: {error.strerror or error}") from None


WRITERS: Mapping[str, Callable[[Scope, Path, str, ProgressCallback], str]] = {
    ".speedscope.json": _speedscope,
    ".json.gz": _json,
    ".json": _json,
    ".parquet": _parquet,
    ".sqlite": _sqlite,
    ".pftrace": _perfetto,
    ".folded": _folded,
    ".html": _html,
}
"""What a file's name may end with, and what writes it; the first that fits counts."""
