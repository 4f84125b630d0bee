"""How often files are opened, by this process and by those that it starts."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HOOK = """
import os, sys
log = os.open({log!r}, os.O_WRONLY | os.O_APPEND)
def hook(event, values):
    if event == "open" and isinstance(values[0], str):
        os.write(log, os.path.realpath(values[0]).encode("utf-8", "replace") + b"\\n")
sys.addaudithook(hook)
"""
_counts: list[Counter[Path]] = []


def _count(event: str, values: tuple[Any, ...]) -> None:
    if _counts and event == "open" and isinstance(values[0], str | Path):
        for counts in _counts:
            counts[Path(os.path.realpath(values[0]))] += 1


sys.addaudithook(_count)


@contextmanager
def counted_opens(folder: Path) -> Iterator[Counter[Path]]:
    """Count what is opened meanwhile, by resolved path; a child's opens are added at the end. A hook for the
    children is written into a new `folder`.
    """
    folder.mkdir()
    log = folder / "log"
    log.touch()
    (folder / "sitecustomize.py").write_text(HOOK.format(log=str(log)), encoding="utf-8")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *([before] if before else [])])
    counts: Counter[Path] = Counter()
    _counts.append(counts)
    try:
        yield counts
    finally:
        _counts.remove(counts)
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
        counts.update(map(Path, log.read_text(encoding="utf-8").splitlines()))
