"""The demo's files, which bundle/demo makes: two ranks' traces and one aiu-smi log."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from ..base.whole_file import unfinished

FILES = Path(__file__).with_name("files.zip")


class DemoFile(NamedTuple):
    name: str
    data: bytes


def demo_files() -> list[DemoFile]:
    """Return the demo: one trace per rank, then the log of both devices."""
    with ZipFile(FILES) as archive:
        return [DemoFile(name, archive.read(name)) for name in archive.namelist()]


def write_demo(folder: Path) -> list[Path]:
    """Write the demo's files into `folder` (made when absent) and return their paths, traces first. Links of
    their names are replaced, not followed. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for file in demo_files():
        path = folder / file.name
        with unfinished(path) as building:
            building.write_bytes(file.data)
            building.replace(path)
        paths.append(path)
    return paths
