"""The demo's files, which bundle/demo makes: two ranks' traces and one aiu-smi log."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

FILES = Path(__file__).with_name("files.zip")


class DemoFile(NamedTuple):
    name: str
    data: bytes


def demo_files() -> list[DemoFile]:
    """Return the demo: one trace per rank, then the log of both devices."""
    with ZipFile(FILES) as archive:
        return [DemoFile(name, archive.read(name)) for name in archive.namelist()]


def write_demo(folder: Path) -> list[Path]:
    """Write the demo's files into `folder` (made when absent) and return their paths, traces first."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for file in demo_files():
        path = folder / file.name
        path.write_bytes(file.data)
        paths.append(path)
    return paths
