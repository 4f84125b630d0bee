"""Text of gzip and zip is inflated from the nearest checkpoint on, however it is packed."""

from __future__ import annotations

import gzip
import json
import random
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.packings import bgzf, pieces, with_header, zip_of
from tracelane.core.base.errors import DamagedIndexError
from tracelane.core.index.blocks import SLOW, block_bytes, read_blocks, reads_anywhere
from tracelane.core.index.store import Index
from tracelane.core.native.library import NativeLibrary, native_library
from tracelane.core.query.views import SliceId
from tracelane.core.read import deflated, source
from tracelane.core.read.batch_store import StoreFile
from tracelane.core.read.checkpoints import CheckpointLog, unpacked_window
from tracelane.core.read.inflate_native import Checkpoint, InflateError
from tracelane.core.read.source import open_source
from tracelane.core.trace import Trace, open_trace

needs_native = pytest.mark.skipif(native_library().functions is None, reason="there is no native core")
CHANCE = random.Random(7)
EVENTS = [
    {
        "ph": "X",
        "name": f"op{i % 50}",
        "pid": 1,
        "tid": i % 7,
        "ts": i * 10,
        "dur": 5,
        "args": {"n": i, "text": CHANCE.randbytes(60).hex()},
    }
    for i in range(12_000)
]
TEXT = json.dumps({"traceEvents": EVENTS}).encode()


def _with_empty_members(text: bytes) -> bytes:
    return b"".join(gzip.compress(part) + gzip.compress(b"") for part in pieces(text, 100_000)) + bytes(5000)


def _mixed(text: bytes) -> bytes:
    """Return members of which each is packed otherwise: stored, quickly, well, as codes alone."""
    forms = [(0, 0), (1, 0), (9, 0), (6, zlib.Z_HUFFMAN_ONLY), (6, zlib.Z_FIXED)]
    members = []
    for number, part in enumerate(pieces(text, 150_001)):
        level, strategy = forms[number % len(forms)]
        deflater = zlib.compressobj(level, zlib.DEFLATED, zlib.MAX_WBITS | 16, 8, strategy)
        members.append(deflater.compress(part) + deflater.flush())
    return b"".join(members)


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "stored": lambda text: gzip.compress(text, 0),
    "blocks of gzip": lambda text: bgzf(text, 60_000),
    "empty members": _with_empty_members,
    "mixed members": _mixed,
    "a whole header": with_header,
    "after a mark": lambda text: gzip.compress(b"\xef\xbb\xbf" + text),
    "zip": zip_of,
    "zip, streamed": lambda text: zip_of(text, streamed=True),
}


def opened(folder: Path, raw: bytes, name: str = "trace.json.gz") -> Trace:
    path = folder / name
    path.write_bytes(raw)
    return open_trace([path], index_dir=folder / "indexes")


def texts(index: Index) -> list[bytes]:
    return [text for _, text in read_blocks(index, range(index.length("blocks.offset")))]


@needs_native
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_blocks_are_those_of_the_plain_text(tmp_path: Path, form: str) -> None:
    """In any order, none of them slowly; what the index says besides is that of the text."""
    plain = opened(tmp_path, TEXT, "plain.json").indexes[0]
    trace = opened(tmp_path, FORMS[form](TEXT))
    index = trace.indexes[0]
    assert index.length("checkpoints.text") > len(TEXT) >> 20 and reads_anywhere(index)
    assert index.length("text.end") == 0
    expected = texts(plain)
    assert texts(index) == expected
    order = list(range(len(expected)))
    random.Random(1).shuffle(order)
    for block in order:
        assert block_bytes(index, block) == (expected[block], None)
    assert [text for _, text in read_blocks(index, order)] == [expected[block] for block in order]
    ours = {name: entry["crc"] for name, entry in index.manifest["columns"].items()}
    theirs = {name: entry["crc"] for name, entry in plain.manifest["columns"].items()}
    own = {name for name in ours if name.startswith("checkpoints.")} | {"windows"}
    different = {name for name in {*ours, *theirs} - own if ours.get(name) != theirs.get(name)}
    assert different <= ({"blocks.offset"} if form == "after a mark" else set())
    assert trace.arguments(SliceId(0, 11_000)).slow_reason is None


@needs_native
@pytest.mark.parametrize("form", FORMS)
def test_all_text_follows_each_checkpoint(tmp_path: Path, form: str) -> None:
    """Also across the borders of members, to the end."""
    text = TEXT[:900_000]
    path = tmp_path / "trace.json.gz"
    path.write_bytes(FORMS[form](text))
    own = open_source(path)
    log = CheckpointLog(StoreFile(tmp_path), spacing=1)
    reader = own.open(log=log)
    while reader.read(100_000):
        pass
    reader.close()
    columns, windows = log.columns(), list(log.windows())
    assert len(windows) == len(columns["text"]) > 2
    whole = own.mark * b"?" + text
    for number, window in enumerate(windows):
        begin, block, bit, crc = (int(columns[key][number]) for key in ("text", "block", "bit", "crc"))
        before = unpacked_window(window.tobytes(), crc)
        assert whole.startswith(before[own.mark :], begin - len(before) + own.mark)
        stream = own.open_at(Checkpoint(begin, block, bit, before))
        rest = whole[begin:]
        assert stream.read(len(rest) + 1)[max(0, own.mark - begin) :] == rest[max(0, own.mark - begin) :]
        assert stream.offset == len(whole)
        stream.close()


@needs_native
def test_a_wrong_window_is_noticed(tmp_path: Path) -> None:
    """Arguments then come by inflating from the beginning, and say so; none come out wrong."""
    trace = opened(tmp_path, gzip.compress(TEXT))
    index = trace.indexes[0]
    last = int(index.length("blocks.offset")) - 1
    sound, _ = block_bytes(index, last)
    index._columns["windows"] = np.roll(index.column("windows"), 1)
    assert block_bytes(index, last) == (sound, SLOW)
    assert texts(index)[last] == sound


@needs_native
def test_a_damaged_file_of_windows_is_a_damaged_index(tmp_path: Path) -> None:
    """Its checksum is that of every column."""
    index = opened(tmp_path, gzip.compress(TEXT)).indexes[0]
    path = index.folder / "windows.u1"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(DamagedIndexError, match="windows"):
        block_bytes(Index.open(index.folder), 0)


@needs_native
@pytest.mark.parametrize("name", ["text", "block", "bit", "window"])
@pytest.mark.parametrize("value", [-1, 1 << 62])
def test_impossible_checkpoints_are_refused(tmp_path: Path, name: str, value: int) -> None:
    """Whatever an index says, no checkpoint lies outside of a file."""
    index = opened(tmp_path, gzip.compress(TEXT[:600_000] + b"]}")).indexes[0]
    path = index.folder / f"checkpoints.{name}.i8"
    values = np.fromfile(path, np.int64)
    values[-1] = value
    path.write_bytes(values.tobytes())
    again = Index.open(index.folder)
    again.manifest["columns"][f"checkpoints.{name}"]["crc"] = [zlib.crc32(values.tobytes())]
    with pytest.raises(DamagedIndexError):
        again.column(f"checkpoints.{name}")


@needs_native
def test_what_is_cut_off_has_its_arguments_up_to_there(tmp_path: Path) -> None:
    """Of a damaged file the text before the damage is as near as that of a sound one."""
    raw = gzip.compress(TEXT)
    trace = opened(tmp_path, raw[: 2 * len(raw) // 3])
    arguments = trace.arguments(SliceId(0, 10))
    assert arguments.begin["n"] == EVENTS[10]["args"]["n"]  # type: ignore[index]
    assert arguments.slow_reason is None
    index = trace.indexes[0]
    count = int(index.length("blocks.offset"))
    assert all(text in TEXT for _, text in read_blocks(index, range(count)))


def test_without_the_native_core_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index made so has no checkpoints, and one that has some is used without them."""
    with_core = opened(tmp_path, gzip.compress(TEXT), "with.json.gz")
    for room in (deflated, source):
        monkeypatch.setattr(room, "native_library", lambda: NativeLibrary(None, "not compiled"))
    without = opened(tmp_path, gzip.compress(TEXT), "without.json.gz")
    assert without.indexes[0].length("checkpoints.text") == 0
    for trace in (with_core, without):
        assert not reads_anywhere(trace.indexes[0])
        arguments = trace.arguments(SliceId(0, 70))
        assert arguments.begin["n"] == EVENTS[70]["args"]["n"]  # type: ignore[index]
        assert arguments.slow_reason == SLOW


def test_no_other_form_has_checkpoints(tmp_path: Path) -> None:
    """Plain text needs none; what is converted or stored in an archive is read from its beginning."""
    text = TEXT[:200_000] + b"]}"
    for name, raw in {
        "plain": text,
        "utf-16": gzip.compress(text.decode().encode("utf-16")),
        "stored": zip_of(text, zipfile.ZIP_STORED),
    }.items():
        index = opened(tmp_path, raw, f"{name}.json").indexes[0]
        assert index.length("checkpoints.text") == 0
        assert reads_anywhere(index) == (name == "plain")


def test_windows_are_bounded() -> None:
    """What inflates to more than a window, or is none, is refused."""
    for raw in (zlib.compress(bytes(1 << 20)), b"no window", b""):
        with pytest.raises(InflateError):
            unpacked_window(raw, 5)
