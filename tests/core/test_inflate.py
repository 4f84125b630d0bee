"""isal and zlib give the same text and say the same of damage, whatever was done to the packed bytes."""

from __future__ import annotations

import gzip
import random
import zlib
from pathlib import Path
from types import ModuleType

import pytest

from tests.corpus import thinned
from tracelane.core.read.inflate import ZlibReader, deflate_library, open_packed

LINES = b"".join(
    b'{"ph":"X","name":"op %d","ts":%d.%03d},\n' % (i % 7, i * 31, i % 1000) for i in range(4000)
)
NOISE = random.Random(5).randbytes(40_000)
FILES = {
    "lines": gzip.compress(LINES),
    "stored": gzip.compress(NOISE, 0),
    "noise": gzip.compress(NOISE),
    "fixed": gzip.compress(b"ab" * 50),
    "members": gzip.compress(LINES[:9000]) + gzip.compress(b"") + gzip.compress(LINES[9000:]) + bytes(30),
    "named": gzip.compress(LINES)[:3]
    + b"\x08"
    + gzip.compress(LINES)[4:10]
    + b"a.json\0"
    + gzip.compress(LINES)[10:],
}
MUTANTS = 60


def _mutant(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data)) if chance.random() < 0.7 else chance.randrange(min(20, len(data)))
    kind = chance.randrange(5)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
    if kind == 2:
        return data[:at] + data[at + chance.randrange(1, 9) :]
    if kind == 3:
        return data + chance.randbytes(chance.randrange(1, 40))
    return data[:-8] + chance.randbytes(8)


def _read(path: Path, library: ModuleType, step: int) -> tuple[bytes, object]:
    reader = ZlibReader(path, wbits=31, members=True, library=library)
    parts = []
    while part := reader.read(step):
        parts.append(part)
    reader.close()
    return b"".join(parts), reader.damage


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(FILES, 3))
def test_isal_and_zlib_agree(name: str, tmp_path: Path) -> None:
    """The whole file, and 60 mutants of it, cut, flipped, shortened, with a tail or another checksum."""
    library = deflate_library()
    if library is zlib:
        pytest.skip("isal is not installed here")
    chance = random.Random(name)
    path = tmp_path / "t.gz"
    for data in (FILES[name], *(_mutant(FILES[name], chance) for _ in range(MUTANTS))):
        path.write_bytes(data)
        for step in (1000, 1 << 20):
            assert _read(path, library, step) == _read(path, zlib, step)


def test_the_library_is_used_by_itself(tmp_path: Path) -> None:
    """Where nothing is said the fast library inflates, and the text is that of gzip."""
    path = tmp_path / "t.gz"
    path.write_bytes(FILES["members"])
    reader = open_packed(path, "gzip")
    assert reader.read(1 << 20) == LINES and reader.damage is None
    reader.close()
