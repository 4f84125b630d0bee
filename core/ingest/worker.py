"""A worker process: reads byte ranges of a plain source into part files.

    python -m tracelane.core.ingest.worker

Every line of standard input is a JSON object: first the source (see `child.source_facts`), then jobs
`{"job", "first", "a", "b", "number"}`. Every line of standard output answers: `{"ready"}` once,
`{"progress": bytes, "events": n}` now and then, `{"picture": file}` per part where asked for,
`{"done": job, "files", "end"}` per job, `{"failed", "message"}` before giving up. The process ends when its
standard input does, so that nothing outlives whoever started it.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..base.errors import TracelaneError
from ..base.lines import lines, tell
from .coarse import write_picture
from .columns import Part
from .columns_of import PartBuilder
from .cut import BLOCK_SIZE
from .decode import DECODERS
from .part_file import write_part
from .ranges import RangeEnd, RangeScanner
from .reader import PART_SIZE, add_item, is_full, text_reader
from .separator import Separator
from .source import Source
from .text.reader import TextReader

PROGRESS_BYTES = 4 << 20


def end_facts(end: RangeEnd) -> dict[str, Any]:
    """Return a range's end for JSON; `RangeEnd(**facts)` undoes it."""
    return asdict(end)


def read_range(
    source: Source,
    folder: Path,
    job: dict[str, Any],
    *,
    decoder: str,
    separator: Separator,
    block_size: int = BLOCK_SIZE,
    reader: TextReader | None = None,
    tell: Callable[[int, int], None],
    finished: Callable[[Part], None] = lambda part: None,
) -> tuple[list[Path], RangeEnd]:
    """Read one range into part files numbered from `job["number"]` on; `tell` gets bytes and events read,
    `finished` each part.
    """
    scanner = RangeScanner(
        source,
        job["a"],
        job["b"],
        separator,
        DECODERS[decoder],
        block_size,
        first=job["first"],
        reader=reader,
    )
    files: list[Path] = []
    builder = PartBuilder(job["number"])
    bytes_told = events_told = 0
    for item in scanner:
        add_item(builder, item)
        if builder.bytes - bytes_told >= PROGRESS_BYTES:
            tell(builder.bytes - bytes_told, builder.events - events_told)
            bytes_told, events_told = builder.bytes, builder.events
        if is_full(builder, 2 * PART_SIZE):
            tell(builder.bytes - bytes_told, builder.events - events_told)
            bytes_told = events_told = 0
            files.append(_written(builder.finish(), folder, finished))
            builder = PartBuilder(builder.number + 1)
    tell(builder.bytes - bytes_told, builder.events - events_told)
    if builder.events:
        files.append(_written(builder.finish(), folder, finished))
    assert scanner.end is not None
    return files, scanner.end


def _written(part: Part, folder: Path, finished: Callable[[Part], None]) -> Path:
    file = write_part(part, folder)
    finished(part)
    return file


def main() -> int:
    """Serve jobs until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starter decides what Ctrl+C means
    gc.disable()  # decoded events have no cycles
    tell({"ready": True})
    orders = lines()
    start = next(orders)
    source = Source(**{**start["source"], "file": Path(start["source"]["file"]), "fingerprint": {}})
    separator = Separator(bytes.fromhex(start["separator"][0]), *start["separator"][1:])

    reader = text_reader(start["decoder"])

    def pictured(part: Part) -> None:
        if start["pictures"]:
            tell({"picture": str(write_picture(part, Path(start["folder"])))})

    try:
        for job in orders:
            files, end = read_range(
                source,
                Path(start["folder"]),
                job,
                decoder=start["decoder"],
                separator=separator,
                block_size=start["block_size"],
                reader=reader,
                tell=lambda size, events: tell({"progress": size, "events": events}),
                finished=pictured,
            )
            tell({"done": job["job"], "files": [str(file) for file in files], "end": end_facts(end)})
    except TracelaneError as error:
        tell({"failed": type(error).__name__, "message": str(error)})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
