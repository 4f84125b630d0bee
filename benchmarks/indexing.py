"""Indexing: how fast, with how much memory, and how large the index is; other readers beside it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.memory import measured_python
from benchmarks.peers import peers
from tracelane.core.trace import open_trace

TRACELANE = "import sys; from tracelane.tui.cli.main import main; sys.exit(main(sys.argv[1:]))"
APART = ("strings.", "derived")
"""Files of an index that are counted apart: names and texts, and what is written after it."""


def indexing(trace: Path, workers: Sequence[int], index_dir: Path, with_peers: bool) -> dict[str, Any]:
    """Return what indexing a trace costs with so many processes each; the index stays."""
    runs = {}
    facts: dict[str, Any] = {}
    text = 0
    for count in workers:
        arguments = ["index", str(trace), "--force", "--json", "--workers", str(count)]
        cost = measured_python(TRACELANE, *arguments, "--index-dir", str(index_dir))
        facts = json.loads(cost.output)
        with contextlib.closing(open_trace(trace, index_dir=index_dir)) as opened:
            blocks = opened.indexes[0]
            text = int(blocks.column("blocks.offset")[-1] + blocks.column("blocks.length")[-1])
            folder = Path(opened.indexes[0].folder)
        runs[str(count)] = {
            "seconds": round(cost.seconds, 2),
            "cpu_s": round(cost.cpu_s, 2),
            "mb_per_s": round(text / 1e6 / cost.seconds, 1),
            "peak_private_bytes": cost.peak.private,
            "peak_proportional_bytes": cost.peak.proportional,
        }
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files_of(folder)}
    apart = sum(size for name, size in sizes.items() if name.startswith(APART))
    slices = max(1, facts["slices"])
    return {
        "trace": trace.name,
        "bytes": trace.stat().st_size,
        "text_bytes": text,
        "events": facts["events"],
        "slices": facts["slices"],
        "workers": runs,
        "index_bytes": sum(sizes.values()),
        "index_bytes_per_slice": round((sum(sizes.values()) - apart) / slices, 1),
        "apart_bytes_per_slice": round(apart / slices, 1),
        "peers": peers(trace, text) if with_peers else {},
    }


def files_of(folder: Path) -> list[Path]:
    """Return all files of an index."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]
