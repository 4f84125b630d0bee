"""Packed traces for tests, damage done to them, and what the standard tools say of it, without core/read."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable

import pytest


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def bgzf(data: bytes, size: int = 3000) -> bytes:
    """Return blocks of gzip that say how long each is, as samtools writes them, with its empty last one."""
    blocks = []
    for at in (*range(0, len(data), size), len(data)):
        deflater = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = deflater.compress(data[at : at + size]) + deflater.flush()
        head = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0" + struct.pack("<H", len(packed) + 25)
        part = data[at : at + size]
        blocks.append(head + packed + struct.pack("<LL", zlib.crc32(part), len(part)))
    return b"".join(blocks)


def with_header(data: bytes) -> bytes:
    """Return gzip whose header has all of its parts, and a checksum of them."""
    head = b"\x1f\x8b\x08\x1e\0\0\0\0\0\xff" + b"\x04\0ab\0\0" + b"a.json\0" + b"a note\0"
    return head + struct.pack("<H", zlib.crc32(head) & 0xFFFF) + gzip.compress(data)[10:]


def zip_of(data: bytes, method: int = zipfile.ZIP_DEFLATED, *, streamed: bool = False) -> bytes:
    """Return an archive with one trace; `streamed`: its sizes and checksum stand behind the data."""
    file = io.BytesIO()
    target = Unseekable(file) if streamed else file
    with zipfile.ZipFile(target, "w", method) as archive:
        archive.writestr("trace.json", data)
    return file.getvalue()


def tar_of(data: bytes, form: int = tarfile.PAX_FORMAT, name: str = "run/trace.json") -> bytes:
    """Return a tar archive with a folder and one trace."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, encoding="utf-8") as archive:
        folder = tarfile.TarInfo("run")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        file = tarfile.TarInfo(name)
        file.size = len(data)
        archive.addfile(file, io.BytesIO(data))
    return out.getvalue()


class Unseekable(io.RawIOBase):
    """A file that is written to as a pipe is."""

    def __init__(self, file: io.BytesIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        return self._file.write(data)  # type: ignore[arg-type]

    def seekable(self) -> bool:
        return False


def _zstd(data: bytes, *, frames: int = 1, checksum: bool = False, skippable: bool = False) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    parts = []
    step = len(data) // frames + 1
    for at in range(0, len(data), step):
        packer = zstandard.ZstdCompressor(write_checksum=checksum)
        parts.append(b"\x53\x2a\x4d\x18" + struct.pack("<L", 5) + b"other" if skippable else b"")
        parts.append(packer.compress(data[at : at + step]))
    return b"".join(parts)


PACKINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gz", gzip.compress),
    "gzip, stored": ("gz", lambda data: gzip.compress(data, 0)),
    "gzip, members": ("gz", lambda data: b"".join(map(gzip.compress, pieces(data, 9000)))),
    "gzip, blocks": ("gz", bgzf),
    "gzip, a whole header": ("gz", with_header),
    "zip": ("zip", zip_of),
    "zip, stored": ("zip", lambda data: zip_of(data, zipfile.ZIP_STORED)),
    "zip, streamed": ("zip", lambda data: zip_of(data, streamed=True)),
    "zip, stored, streamed": ("zip", lambda data: zip_of(data, zipfile.ZIP_STORED, streamed=True)),
    "zip, bzip2": ("zip", lambda data: zip_of(data, zipfile.ZIP_BZIP2)),
    "zip, lzma": ("zip", lambda data: zip_of(data, zipfile.ZIP_LZMA)),
    "tar": ("tar", tar_of),
    "tar in gzip": ("tar.gz", lambda data: gzip.compress(tar_of(data))),
    "zstd": ("zst", _zstd),
    "zstd, checksum": ("zst", lambda data: _zstd(data, checksum=True)),
    "zstd, frames": ("zst", lambda data: _zstd(data, frames=3, checksum=True, skippable=True)),
}  # fmt: skip
"""Ways of packing a text, by name: the ending, and what packs."""


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return data with a bit flipped, bytes overwritten or taken out, the end cut off, or a tail."""
    at = (
        chance.randrange(len(data)) if chance.random() < 0.7 else max(0, len(data) - 1 - chance.randrange(60))
    )
    match chance.randrange(6):
        case 0 | 1:
            return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        case 2:
            tail = data[at + 4 :]
            return data[:at] + chance.randbytes(min(4, len(data) - at)) + tail
        case 3:
            return data[:at] + data[at + chance.randrange(1, 9) :]
        case 4:
            return data[: max(20, at)]
        case _:
            return data + chance.randbytes(chance.randrange(1, 40))


def outside_error(kind: str, data: bytes) -> str:
    """Return what is wrong with packed data by gzip, zipfile or zstandard themselves, "" where nothing is."""
    try:
        match kind:
            case "gz":
                gzip.decompress(data)
            case "zip":
                with zipfile.ZipFile(io.BytesIO(data)) as archive:
                    return f"{bad} is damaged" if (bad := archive.testzip()) else ""
            case "tar":
                _unpack(data)
            case "tar.gz":
                _unpack(gzip.decompress(data))
            case _:
                return _zstd_error(data)
    except Exception as error:  # whatever they say, and zipfile says it in many ways
        return repr(error)
    return ""


def _unpack(data: bytes) -> None:
    """Read all files of an archive."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", errorlevel=2, encoding="utf-8") as archive:
        for member in archive:
            if member.isreg():
                file = archive.extractfile(member)
                assert file is not None and len(file.read()) == member.size


def packing_of(kind: str) -> str:
    """Return what Source calls a packing whose files end so."""
    return {"gz": "gzip", "zst": "zstd", "tar.gz": "tar in gzip"}.get(kind, kind)


def _zstd_error(data: bytes) -> str:
    """Return what is wrong with frames of zstd; skippable ones hold no text."""
    zstandard = pytest.importorskip("zstandard")
    while data:
        if data[1:4] == b"\x2a\x4d\x18" and data[0] & 0xF0 == 0x50:
            size = int.from_bytes(data[4:8], "little")
            if len(data) < 8 + size:
                return "a skippable frame is cut off"
            data = data[8 + size :]
            continue
        frame = zstandard.ZstdDecompressor().decompressobj()
        frame.decompress(data)
        if not frame.eof:
            return "a frame is cut off"
        data = frame.unused_data
    return ""
