"""What a performance issue needs in one file: report, summary, a cut of one iteration, the logs' lines."""

from __future__ import annotations

import gzip
import io
import re
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.clock import Clocks
from ..base.errors import CacheError, UsageError
from ..base.safe_text import safe_lines
from ..tables.scope import Scope
from .cut import cut_scope
from .report import Example

if TYPE_CHECKING:
    from ..trace import Trace

_ESCAPED_SLASH = re.compile(r"(?<!\\)((?:\\\\)*)\\/")
MOST_SLICES = 2_000_000
"""A trace without steps is cut to the scope; with more slices than this the file would not be small, and is
left out.
"""


def bundle(
    out: Path,
    trace: Trace,
    example: Example,
    clocks: Clocks,
    texts: Mapping[str, str],
    logs: Mapping[str, bytes],
    hide: Callable[[str], str] | None = None,
) -> list[str]:
    """Write texts, logs and a cut of each file's example, under these clocks, to a zip file; return the names
    in it. `hide` is applied to all but the texts, which the caller has redacted already. Raises UsageError
    where `out` exists, CacheError where it cannot be written.
    """
    if out.exists():
        raise UsageError(f"{out} is there already: choose another name, or remove it")
    names: list[str] = []
    try:
        with tempfile.TemporaryDirectory(dir=out.parent) as folder:
            whole = Path(folder) / "bundle.zip"
            with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as packed:
                for name, text in texts.items():
                    packed.writestr(name, safe_lines(text))
                    names.append(name)
                for name, data in logs.items():
                    manifest = data.decode("utf-8", "replace")
                    packed.writestr(name, hide(manifest) if hide else manifest)
                    names.append(name)
                names += _cuts(packed, Path(folder), trace, example, clocks, hide)
            whole.replace(out)
    except OSError as error:
        raise CacheError(f"{out} cannot be written: {error.strerror or error}") from error
    return names


def _cuts(
    packed: zipfile.ZipFile,
    folder: Path,
    trace: Trace,
    example: Example,
    clocks: Clocks,
    hide: Callable[[str], str] | None,
) -> list[str]:
    """Add a cut of the example of each file that has something in it."""
    names = []
    for number, index in enumerate(trace.indexes):
        if not example.label and len(index.column("slices.start")) > MOST_SLICES:
            continue
        piece = folder / f"{number}.json"
        name = f"trace-{number}.json.gz" if len(trace.indexes) > 1 else "trace.json.gz"
        try:
            cut_scope(Scope(trace, (example.start, example.end), clocks=clocks, source=number), piece)
        except UsageError:
            continue  # nothing of this file lies in the window
        with (
            piece.open(encoding="utf-8", errors="surrogateescape") as lines,
            packed.open(name, "w", force_zip64=True) as entry,
            gzip.GzipFile(fileobj=entry, mode="wb", mtime=0) as stream,
            io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape") as text,
        ):
            for line in lines:
                text.write(hide(_ESCAPED_SLASH.sub(r"\1/", line)) if hide else line)
        piece.unlink()
        names.append(name)
    return names
