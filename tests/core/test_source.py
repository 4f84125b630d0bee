"""Sources are told by their first bytes and read as UTF-8, whatever they are packed in; isal as zlib."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import pickle
import random
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.forms import zipped
from tracelane.core.base.errors import UnreadableError
from tracelane.core.read import inflate, spool
from tracelane.core.read.deflated import GzipReader
from tracelane.core.read.inflate import RawReader, deflate_library
from tracelane.core.read.packed import open_packed
from tracelane.core.read.problem import CORRUPT, DAMAGED
from tracelane.core.read.source import open_source
from tracelane.core.read.spool import SPOOL_PREFIX
from tracelane.core.trace import open_trace

LINUX = sys.platform == "linux"
TEXT = b'[{"ph":"X","name":"\xc3\xa9\xf0\x9f\x98\x80","ts":1}]\n' * 3000


def read_all(path: Path, step: int = 1000) -> bytes:
    stream = open_source(path).open()
    parts = []
    while part := stream.read(step):
        assert len(part) <= step
        parts.append(part)
    stream.close()
    return b"".join(parts)


PACKED = {
    "plain": (TEXT, "plain", "utf-8"),
    "gzip": (gzip.compress(TEXT), "gzip", "utf-8"),
    "members": (gzip.compress(TEXT[:5000]) + gzip.compress(TEXT[5000:]), "gzip", "utf-8"),
    "padded": (gzip.compress(TEXT) + bytes(700), "gzip", "utf-8"),
    "zip": (zipped(a__trace=TEXT), "zip", "utf-8"),
    "bom": (b"\xef\xbb\xbf" + TEXT, "plain", "utf-8-sig"),
    "utf16le": (b"\xff\xfe" + TEXT.decode().encode("utf-16-le"), "plain", "utf-16-le"),
    "utf16be": (b"\xfe\xff" + TEXT.decode().encode("utf-16-be"), "plain", "utf-16-be"),
    "utf16bare": (TEXT.decode().encode("utf-16-le"), "plain", "utf-16-le"),
    "gzip16": (gzip.compress(b"\xff\xfe" + TEXT.decode().encode("utf-16-le")), "gzip", "utf-16-le"),
}


def test_zstd(tmp_path: Path) -> None:
    """A zstd file of two frames yields the text, by Python's own module or by what the extra installs."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        zstd = pytest.importorskip("zstandard")
    path = tmp_path / "t.json"
    path.write_bytes(zstd.compress(TEXT[:5000]) + zstd.compress(TEXT[5000:]))
    assert read_all(path) == TEXT and open_source(path).kind == "zstd"
    path.write_bytes(zstd.compress(TEXT * 20)[:-20])
    text = read_all(path)
    assert len(text) > len(TEXT) and (TEXT * 20).startswith(text)


@pytest.mark.parametrize("name", PACKED)
def test_every_packing_yields_the_same_text(name: str, tmp_path: Path) -> None:
    """However it is packed or encoded, and whatever its name, the text comes out as the same UTF-8."""
    data, kind, encoding = PACKED[name]
    path = tmp_path / "misnamed.json.zip.txt"
    path.write_bytes(data)
    source = open_source(path)
    assert (source.kind, source.encoding, source.size) == (kind, encoding, len(data))
    assert source.seekable == (kind == "plain" and encoding.startswith("utf-8"))
    assert read_all(path) == TEXT
    assert read_all(path, 1 << 20) == TEXT


def test_offsets_of_plain_files_count_the_byte_order_mark(tmp_path: Path) -> None:
    """A range read at a stream's offset gives what the stream gives there."""
    path = tmp_path / "bom.json"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT)
    source = open_source(path)
    stream = source.open()
    assert stream.offset == 3
    stream.read(100)
    assert source.read_range(stream.offset, 50) == stream.read(50) == TEXT[100:150]
    assert source.read_range(1003, 20) == TEXT[1000:1020]
    assert source.read_range(len(TEXT) - 7, 100) == TEXT[-10:]


@pytest.mark.parametrize("cut", [30, 100, 150])
def test_a_truncated_gzip_yields_what_inflates(cut: int, tmp_path: Path) -> None:
    """A gzip that ends too early gives its text up to there and then reports damage."""
    text = os.urandom(3000).hex().encode()
    whole = gzip.compress(text)
    path = tmp_path / "t.gz"
    path.write_bytes(whole[: len(whole) * cut // 151])
    stream = open_source(path).open()
    got = stream.read(1 << 20)
    assert got
    assert text.startswith(got)
    (problem,) = stream.problems
    assert (problem.kind, problem.offset) == ("damaged", path.stat().st_size)
    assert f"cut off at byte {path.stat().st_size:,} of the file: copy the file again" in problem.message


def test_a_corrupt_gzip_is_reported(tmp_path: Path) -> None:
    """A byte flipped inside a gzip is reported, and is no exception."""
    text = os.urandom(2000).hex().encode()
    data = bytearray(gzip.compress(text))
    data[1500] ^= 0xFF
    path = tmp_path / "t.gz"
    path.write_bytes(data)
    stream = open_source(path).open()
    got = b""
    while part := stream.read(100):
        got += part
    assert got[:2000] == text[:2000]
    assert stream.problems and stream.doubt == CORRUPT


def test_a_zip_without_its_directory_is_read(tmp_path: Path) -> None:
    """A zip cut off before its end still gives the text of its first member."""
    path = tmp_path / "t.zip"
    path.write_bytes(zipped(trace=TEXT)[:-40])
    assert read_all(path) == TEXT


def test_progress_never_goes_back(tmp_path: Path) -> None:
    """The position on disk grows to the file's size while a packed file is read."""
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(os.urandom(300_000).hex().encode()))
    source = open_source(path)
    stream = source.open()
    seen = [stream.position_on_disk()]
    while stream.read(50_000):
        seen.append(stream.position_on_disk())
    assert seen == sorted(seen) and seen[-1] == source.size and len(set(seen)) > 3


REFUSED = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "blanks"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
    "html": (b"\n<!DOCTYPE html><html>", "HTML"),
    "zeros": (bytes(1000), "binary"),
    "elf": (b"\x7fELF\x02", "no trace"),
    "two": (zipped(a=b"[]", b=b"[]"), "a.json, b.json"),
    "none": (zipped(), "nothing"),
    "badzip": (b"PK\x03\x04garbage", "zip"),
    "zstd": (b"\x28\xb5\x2f\xfd\x00", "zstd|damaged|holds nothing"),
    "gzhead": (b"\x1f\x8b\x08", "cut off"),
    "gzip in gzip": (gzip.compress(gzip.compress(b"[]")), "packed twice, gzip in gzip: unpack it once"),
    "gzip in zip": (zipped(a=gzip.compress(b"[]")), "packed twice, gzip in zip"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_trace_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    """Files that cannot be a trace end with one clear line that names the file."""
    data, message = REFUSED[name]
    path = tmp_path / f"{name}.json"
    path.write_bytes(data)
    with pytest.raises(UnreadableError, match=message) as caught:
        open_source(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


FOREIGN = {
    "a.nsys-rep": (b"\x00anything", "nsys export"),
    "nsys.sqlite": (b"SQLite format 3\0\x10" + bytes(90) + b"CREATE TABLE StringIds(", "nsys2json"),
    "rocm_results.db": (
        b"SQLite format 3\0\x10" + bytes(90) + b"CREATE TABLE rocpd_string(",
        "rocpd convert",
    ),
    "other.db": (b"SQLite format 3\0" + bytes(200), "rocpd convert"),
    "host.xplane.pb": (b"\x0a\x01\x02", "create_perfetto_trace"),
    "page.html": (
        b'<!DOCTYPE html>\n<html>\n  <head i18n-values="dir:textdirection;">\n<title>t</title>',
        "html2trace",
    ),
    "execution_trace.json": (b'{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": []}', "Chakra"),
    "older.json": (b'{"schema": "1.0.1", "pid": 1, "start_ts": 1, "nodes": []}', "Chakra"),
    "rocprofv3.json": (b'{"rocprofiler-sdk-tool": [{"metadata": {}}]}', "--output-format pftrace"),
    "profile.speedscope.json": (
        b'{"exporter":"x","$schema":"https://www.speedscope.app/file-format-schema.json"}',
        "speedscope",
    ),
    "other.pickle": (pickle.dumps([1, 2]), "pickle"),
    "trace.tar": (bytes(100) + b"0" * 157 + b"ustar\x0000", "tar archive that is damaged"),
    "trace.tar.gz": (gzip.compress(bytes(100) + b"0" * 157 + b"ustar\x0000"), "tar archive that is damaged"),
    "profile": (b"\x0a\x8d\x01\x12\x09/host:CPU\x1a", "create_perfetto_trace"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_profilers_say_what_converts_them(name: str, tmp_path: Path) -> None:
    """A known file that cannot be read says what it is and what turns it into one that can."""
    data, converter = FOREIGN[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UnreadableError, match=converter):
        open_source(tmp_path / name)


@pytest.mark.parametrize("blanks", ["", "\n", "\n\n", "\n \n", "\r\n\t"])
@pytest.mark.parametrize("name", ["a.json", "a.pftrace", "host.xplane.pb"])
def test_json_is_read_whatever_it_is_called(blanks: str, name: str, tmp_path: Path) -> None:
    """Blanks before it, and another tool's suffix, make no trace in JSON a foreign file."""
    for begin in ("[\n", '{"a":1,"traceEvents":['):
        (tmp_path / name).write_text(blanks + begin, encoding="utf-8")
        assert open_source(tmp_path / name).kind == "plain"


def test_missing_directories_and_forbidden_files(tmp_path: Path) -> None:
    """A path that cannot be opened says why."""
    with pytest.raises(UnreadableError, match="no such file"):
        open_source(tmp_path / "absent.json")
    with pytest.raises(UnreadableError, match="directory"):
        open_source(tmp_path)
    with pytest.raises(UnreadableError, match="null"):
        open_source("a\0b")
    path = tmp_path / "secret.json"
    path.write_bytes(b"[]")
    path.chmod(0)
    if os.geteuid():
        with pytest.raises(UnreadableError, match="permission"):
            open_source(path)


def test_a_fingerprint_changes_with_the_file(tmp_path: Path) -> None:
    """The fingerprint stays while the file stays and changes when a byte at either end does."""
    path = tmp_path / "t.json"
    path.write_bytes(TEXT)
    os.utime(path, ns=(0, 1_000))
    first = open_source(path).fingerprint
    assert open_source(path).fingerprint == first
    path.write_bytes(TEXT[:-2] + b" \n")
    os.utime(path, ns=(0, 1_000))
    assert open_source(path).fingerprint != first


@pytest.mark.parametrize("packed", [TEXT, gzip.compress(TEXT)], ids=["plain", "gzip"])
def test_standard_input_can_be_read_again(packed: bytes, tmp_path: Path) -> None:
    """Input from a pipe is spooled, read twice alike, and its temporary file has no name (on Linux)."""
    code = (
        "import sys; from pathlib import Path; from tracelane.core.read.source import open_source\n"
        "s = open_source('-', spool_folder=Path(sys.argv[1]))\n"
        "a, b = s.open().read(1 << 20), s.open().read(1 << 20)\n"
        "print(s.kind, s.packing, len(a), a == b,"
        " len(list(Path(sys.argv[1]).iterdir())), sorted(s.fingerprint))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], input=packed, capture_output=True, check=True
    )
    packing = "plain" if packed == TEXT else "gzip"
    assert done.stdout.decode() == f"stdin {packing} {len(TEXT)} True {0 if LINUX else 1} ['hash', 'size']\n"
    assert not list(tmp_path.iterdir())


def test_a_named_pipe_is_spooled(tmp_path: Path) -> None:
    """A path that is no regular file, as from `<(zcat …)`, is read like standard input."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(TEXT,))
    writer.start()
    source = open_source(pipe, spool_folder=tmp_path)
    writer.join()
    assert source.kind == "stdin" and source.path == str(pipe)
    assert source.open().read(1 << 20) == TEXT


@pytest.mark.skipif(not LINUX, reason="files without a name are opened through /proc")
def test_nothing_is_left_of_a_killed_run(tmp_path: Path) -> None:
    """What came through a pipe is gone after kill -9; until then other processes can read it."""
    code = (
        "import sys, time; from pathlib import Path; from tracelane.core.read.source import open_source\n"
        "s = open_source('-', spool_folder=Path(sys.argv[1]))\n"
        "print(s.file.path, flush=True); time.sleep(600)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(TEXT)
    process.stdin.close()
    spool = Path(process.stdout.readline().decode().strip())
    assert spool.read_bytes() == TEXT and not list(tmp_path.iterdir())
    process.kill()
    process.wait()
    assert not spool.exists() and not list(tmp_path.iterdir())


def test_devices_are_refused() -> None:
    """A device that never ends is not read."""
    with pytest.raises(UnreadableError, match="/dev/zero: is a device"):
        open_source("/dev/zero")


def test_an_input_leaves_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a pipe ends before the disk is full, with a line that names the folder."""
    monkeypatch.setattr(spool, "ROOM_EVERY", 1000)
    monkeypatch.setattr(spool, "_room", lambda _: 1000)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(TEXT[: 1 << 15],))
    writer.start()
    with pytest.raises(UnreadableError, match=f"cannot spool the input to {tmp_path}: the input is larger"):
        open_source(pipe, spool_folder=tmp_path)
    writer.join()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_spools_of_killed_runs_are_swept(tmp_path: Path) -> None:
    """A spool that nobody holds any more is removed by the next run; one in use stays."""
    stale = tmp_path / f"{SPOOL_PREFIX}stale"
    stale.write_bytes(b"left over")
    os.mkfifo(tmp_path / f"{SPOOL_PREFIX}planted")  # opening it must not wait
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    sources = []
    for _ in range(2):
        writer = threading.Thread(target=pipe.write_bytes, args=(TEXT,))
        writer.start()
        sources.append(open_source(pipe, spool_folder=tmp_path))
        writer.join()
    assert not stale.exists()
    assert all(source.open().read(10) == TEXT[:10] for source in sources)


class Spans:
    """A reader of another package that fails in its middle."""

    @staticmethod
    def fits(name: str, head: bytes) -> bool:
        """Tell by the first bytes; of one file it cannot say."""
        if "asked" in name:
            raise KeyError("size")
        return head.startswith(b"#spans")

    @staticmethod
    def convert(file: RawReader) -> Iterator[bytes]:
        """Yield an event, then fail."""
        yield b'[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2}'
        raise IndexError("short line")


def test_errors_of_added_readers_are_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of another package's reader costs what it had not read yet, and is told; one that it raises
    when asked whether a file is of its form counts as no.
    """
    monkeypatch.setattr(inflate, "added", lambda group: {"spans": Spans()})
    (tmp_path / "a.spans").write_bytes(b"#spans")
    trace = open_trace(tmp_path / "a.spans", index_dir=tmp_path / "index")
    (problem,) = [one for one in trace.indexes[0].manifest["problems"] if one["kind"] == "reader failed"]
    assert len(trace.indexes[0].column("slices.start")) == 1
    assert "'spans' failed: IndexError('short line')" in problem["message"]
    (tmp_path / "asked.json.txt").write_bytes(b"text [{}]")
    with pytest.warns(UserWarning, match="asked.json.txt"):
        assert open_source(tmp_path / "asked.json.txt").encoding == "utf-8"


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
    reader = GzipReader(path, library=library)
    parts = []
    while part := reader.read(step):
        parts.append(part)
    reader.close()
    return b"".join(parts), reader.problems


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
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
    assert reader.read(1 << 20) == LINES and not reader.problems
    reader.close()


STREAMS: dict[str, Callable[[bytes], bytes]] = {"xz": lzma.compress, "bz2": bz2.compress}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_of_the_standard_library_are_read(name: str, tmp_path: Path) -> None:
    """Streams of xz and bzip2 yield their text, several as one; where they are cut, what comes before."""
    text = b'{"traceEvents": [' + b",".join(b'{"ph":"X","ts":%d}' % n for n in range(200_000)) + b"]}"
    path = tmp_path / f"t.json.{name}"
    path.write_bytes(STREAMS[name](text[:70_000]) + STREAMS[name](text[70_000:]))
    assert read_all(path, 50_000) == text
    whole = path.read_bytes()
    for cut in (len(whole) - 9, len(whole) // 2):
        path.write_bytes(whole[:cut])
        source = open_source(path)
        stream = source.open()
        read = stream.read(len(text) + 1)
        assert text.startswith(read) and len(read) > len(text) // 4
        assert [problem.kind for problem in stream.problems] == [DAMAGED]
        stream.close()
    half = len(whole) // 2
    path.write_bytes(whole[:half] + bytes(50) + whole[half + 50 :])
    stream = open_source(path).open()
    assert text.startswith(stream.read(len(text) + 1)) and stream.problems
    stream.close()
