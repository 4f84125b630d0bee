"""The forms that the same trace comes in: how fast each is indexed, beside Kineto's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.indexing import committed, indexed, median_run
from benchmarks.made_trace import write_made_trace

FORMS: dict[str, tuple[str, dict[str, bool]]] = {
    "as Kineto writes it": ("plain.json", {}),
    "stamps since 1970": ("epoch.json", {"epoch": True}),
    "on one line": ("line.json", {"one_line": True}),
    "gzip": ("plain.json.gz", {}),
}


def forms(folder: Path, size: float, workers: int, index_dir: Path, rounds: int) -> list[dict[str, Any]]:
    """Return what indexing a made trace of so many bytes costs in each form, up to the committed index: the
    medians of so many turns.
    """
    paths = {form: folder / f"made-{size:.0f}-{name}" for form, (name, _) in FORMS.items()}
    for form, (_, options) in FORMS.items():
        if not paths[form].exists():
            write_made_trace(paths[form], size=size, **options)
    os.sync()  # or they would be written while others are measured
    texts = {
        form: indexed(path, workers, index_dir, watched=False).text_bytes for form, path in paths.items()
    }
    runs: dict[str, list[dict[str, Any]]] = {form: [] for form in FORMS}
    for _ in range(rounds):
        for form, path in paths.items():
            runs[form].append(committed(path, workers, index_dir, texts[form]))
    sizes = {form: path.stat().st_size for form, path in paths.items()}
    return [{"form": form, "bytes": sizes[form], **median_run(of)} for form, of in runs.items()]
