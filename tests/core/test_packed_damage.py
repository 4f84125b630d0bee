"""Where gzip, zip or zstd find packed data damaged, tracelane says so; what stands behind the damage is not
counted as read.
"""

from __future__ import annotations

import bz2
import json
import lzma
import random
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.packings import PACKINGS, damaged, outside_error, packing_of, zip_of
from tests.tui.cli_process import tracelane_here
from tracelane.core.base.errors import UnreadableError
from tracelane.core.read.batch_store import BatchStore
from tracelane.core.read.packed import open_packed
from tracelane.core.read.problem import DAMAGED, OTHER_DATA, OTHER_TEXT, UNVERIFIED
from tracelane.core.read.reader import ReadOptions, ReadResult, SourceReading
from tracelane.core.read.source import open_source

EVENTS = [
    {"ph": "X", "name": f"op{i * 7919 % 1000}", "pid": 1, "tid": 1, "ts": i * 10, "dur": i % 9}
    | {"args": {"note": f"{i * 2654435761 % (1 << 32):08x}"}}
    for i in range(900)
]
TEXT = json.dumps({"traceEvents": EVENTS}, separators=(",", ":")).encode()
SAYS = {DAMAGED, UNVERIFIED, OTHER_DATA}


def read(path: Path, chunk_size: int = 1 << 24) -> ReadResult:
    with BatchStore(path.parent) as store:
        options = ReadOptions(chunk_size=chunk_size, threads=2)
        with SourceReading(open_source(path), store, options) as reading:
            return reading.read()


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("name", [name for name in PACKINGS if "tar" not in name])
def test_a_file_whose_signature_is_damaged_is_no_text(name: str, at: int, tmp_path: Path) -> None:
    """A stored text is not read as if nothing were packed around it: the file is refused in one line, or what
    is said of it is that it is damaged.
    """
    kind, pack = PACKINGS[name]
    path = tmp_path / f"t.json.{kind}"
    data = bytearray(pack(TEXT))
    data[at] ^= 0xE2
    path.write_bytes(data)
    if not outside_error(kind, bytes(data)):
        assert at > 1  # some bits behind the magic number are not looked at
        return
    try:
        assert SAYS & {one.kind for one in read(path).problems}
    except UnreadableError as refusal:
        assert "\n" not in str(refusal)


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKINGS)
def test_what_a_tool_finds_damaged_is_said(name: str, tmp_path: Path) -> None:
    """Over random damage: where the packing's own test fails, reading says so or refuses the file in one
    line, and counts no more events than there were.
    """
    kind, pack = PACKINGS[name]
    path = tmp_path / f"t.json.{kind}"
    path.write_bytes(pack(TEXT))
    assert not outside_error(kind, path.read_bytes())
    assert not SAYS & {one.kind for one in read(path).problems} and read(path).events == len(EVENTS)
    chance = random.Random(name)
    refuted = 0
    for _ in range(120):
        data = damaged(pack(TEXT), chance)
        path.write_bytes(data)
        error = outside_error(kind, data)
        refuted += bool(error)
        try:
            result = read(path, chance.choice((1 << 24, 4096)))
        except UnreadableError as refusal:
            assert "\n" not in str(refusal)
            continue
        problems = [one for one in result.problems if one.kind in SAYS]
        assert problems or not error, (error, data)
        offsets = [one.offset for one in problems if one.kind != OTHER_DATA]
        assert all(offset is not None and 0 <= offset <= len(data) for offset in offsets)
        assert result.events <= len(EVENTS)
    assert refuted > (10 if kind == "tar" else 20)  # which has no checksum of its files


@pytest.mark.parametrize(
    ("kind", "pack"),
    [PACKINGS["gzip"], PACKINGS["zstd, checksum"], ("xz", lzma.compress), ("bz2", bz2.compress)],
    ids=["gzip", "zstd", "xz", "bzip2"],
)
def test_what_lies_within_and_behind_are_two(
    kind: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """Text that is no event in a packed file, and data behind what is packed, are told each for itself."""
    path = tmp_path / f"t.json.{kind}"
    packed = pack(TEXT + b" the end")
    path.write_bytes(packed + b"no packed data")
    where = {one.kind: one.offset for one in read(path).problems}
    assert where == {OTHER_TEXT: len(TEXT) + 1, OTHER_DATA: len(packed)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gzip", "zip", "zstd, checksum"])
def test_nothing_behind_the_damage_is_read(name: str, tmp_path: Path) -> None:
    """Four bytes overwritten anywhere: what is read is the begin of what was there, however it is cut."""
    kind, pack = PACKINGS[name]
    sound, path = pack(TEXT), tmp_path / f"t.json.{kind}"
    chance = random.Random(7)
    for _ in range(40):
        at = chance.randrange(100, len(sound) - 200)
        path.write_bytes(sound[:at] + chance.randbytes(4) + sound[at + 4 :])
        counted = set()
        for chunk_size in (1 << 24, 4096, 700):
            try:
                result = read(path, chunk_size)
            except UnreadableError:
                counted.add(0)
                continue
            assert not result.counts.get("unreadable") and not result.counts.get("repaired")
            counted.add(result.events)
        assert len(counted) == 1, counted


@pytest.mark.parametrize("method", [0, 8])
def test_a_zip_with_another_checksum_is_read_whole(method: int, tmp_path: Path) -> None:
    """All of the text is there, though the archive's checksum is another, and that is said."""
    path = tmp_path / "t.zip"
    data = zip_of(TEXT, method)
    checksum = zlib.crc32(TEXT).to_bytes(4, "little")
    path.write_bytes(data.replace(checksum, bytes(4)))
    result = read(path)
    assert result.events == len(EVENTS) and {one.kind for one in result.problems} == {UNVERIFIED}


def test_text_does_not_depend_on_how_it_is_read(tmp_path: Path) -> None:
    """Damaged data gives the same text and says the same in steps of any size."""
    chance = random.Random(3)
    for kind, pack in (PACKINGS[name] for name in ("gzip, members", "zip", "zip, stored", "zstd, frames")):
        path = tmp_path / f"t.{kind}"
        for _ in range(12):
            path.write_bytes(damaged(pack(TEXT), chance))
            results: list[Any] = []
            for step in (1 << 20, 4096, 999):
                try:
                    packing = packing_of(kind)
                    reader = open_packed(path, packing)
                except UnreadableError as error:
                    results.append(str(error))
                    continue
                parts = []
                while part := reader.read(step):
                    parts.append(part)
                results.append((b"".join(parts), reader.problems, reader.doubt))
                reader.close()
            assert results[0] == results[1] == results[2]


@pytest.mark.slow
def test_info_doctor_and_the_picture_say_it(tmp_path: Path) -> None:
    """Each names the byte of the file at which it is damaged, and that it is to be copied again."""
    path = tmp_path / "t.json.gz"
    data = PACKINGS["gzip"][1](TEXT)
    at = len(data) // 2
    path.write_bytes(data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :])
    (problem,) = read(path).problems
    assert problem.kind == DAMAGED and problem.offset is not None and at - 300 < problem.offset < at + 300
    where = ("--index-dir", str(tmp_path / "index"))
    for command in (("info",), ("doctor",), ("view",)):
        said = tracelane_here(*command, str(path), *where)
        words = said.stdout + said.stderr
        assert f"damaged at byte {problem.offset:,}" in words and "again" in words, command


@pytest.mark.parametrize("others", [{}, {"README.txt": b"words"}, {"a\nb\x1b[31m": b"1", "empty": b""}])
def test_other_files_of_an_archive_are_named(others: dict[str, bytes], tmp_path: Path) -> None:
    """What lies in a zip beside its trace is neither read nor checked, damaged or not, and that is said."""
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**others, "trace.json": TEXT, "__MACOSX/x": b"x", "folder/": b""}.items():
            archive.writestr(name, data)
    data = bytearray(path.read_bytes())
    if others:
        data[30 + len(next(iter(others)))] ^= 1  # the first byte of the first file
    path.write_bytes(data)
    assert not others or zipfile.ZipFile(path).testzip() in others
    done = tracelane_here("info", str(path), "--index-dir", str(tmp_path / "index"))
    lines = [line for line in done.stdout.splitlines() if "neither read nor checked" in line]
    assert done.returncode == 0 and "900 slices" in done.stdout
    assert len(lines) == bool(others)
    assert not lines or (next(iter(others))[0] in lines[0] and "empty" not in lines[0])


def test_a_file_of_a_zip_may_have_lost_its_name(tmp_path: Path) -> None:
    """Damage at the begin of a name in the directory of an archive leaves none: it is refused in one line."""
    packed = zip_of(TEXT)
    at = packed.rindex(b"trace.json")
    path = tmp_path / "t.json.zip"
    path.write_bytes(packed[:at] + b"\0" + packed[at + 1 :])
    with pytest.raises(UnreadableError, match="copy the file again"):
        open_source(path)
