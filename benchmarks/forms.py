"""The forms that the same trace comes in: how fast each is indexed, beside Kineto's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.indexing import committed, indexed
from benchmarks.made_trace import write_made_trace

FORMS: dict[str, tuple[str, dict[str, bool]]] = {
    "as Kineto writes it": ("plain.json", {}),
    "stamps since 1970": ("epoch.json", {"epoch": True}),
    "on one line": ("line.json", {"one_line": True}),
    "gzip": ("plain.json.gz", {}),
}


def forms(folder: Path, size: float, workers: int, index_dir: Path) -> list[dict[str, Any]]:
    """Return what indexing a made trace of so many bytes costs in each form, up to the committed index."""
    rows: list[dict[str, Any]] = []
    for form, (name, options) in FORMS.items():
        path = folder / f"made-{size:.0f}-{name}"
        if not path.exists():
            write_made_trace(path, size=size, **options)
            os.sync()  # or it would be written while others are measured
        whole = indexed(path, workers, index_dir, watched=False)
        run = committed(path, workers, index_dir, whole.text_bytes)
        rows.append({"form": form, "bytes": path.stat().st_size, **run})
    return rows
