"""A tar archive with one trace opens as the trace does, packed or not; tarfile is the oracle."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packings import tar_of
from tracelane.core.base.errors import UnreadableError
from tracelane.core.read.problem import DAMAGED, OTHER_DATA
from tracelane.core.read.source import open_source
from tracelane.core.read.tar import MAX_NAMED, TarReader
from tracelane.tui.cli.main import main

EVENTS = [{"ph": "X", "name": f"op{i % 9}", "pid": 1, "tid": 1, "ts": i, "dur": 1} for i in range(3000)]
TEXT = json.dumps({"traceEvents": EVENTS}).encode()
LONG = "c" * 180 + ".pt.trace.json"
"""A name for which ustar has no room."""
FORMS = {"ustar": tarfile.USTAR_FORMAT, "GNU": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
NAMES = {
    "short": "trace.json",
    "prefix": "a" * 90 + "/" + "b" * 60 + ".json",
    "as long as a header takes": "d" * 155 + "/" + "c" * 95 + ".json",
    "not ASCII": "Spur-für-Gerät-0.json",
    "no name of a trace": "profile.txt",
}
OUTSIDE: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "tar in gzip": gzip.compress,
    "tar in xz": lzma.compress,
    "tar in bzip2": bz2.compress,
}


def archive_of(*members: tuple[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    """Return an archive of files, folders (names that end with /) and links (names that end with @)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, encoding="utf-8") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name.rstrip("/@"))
            if name.endswith(("/", "@")):
                info.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.SYMTYPE
                info.linkname = "elsewhere.json"
                archive.addfile(info)
            else:
                info.size = len(data)
                info.mtime = 1.5 if form == tarfile.PAX_FORMAT else 1  # which takes an extended header
                archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def text_of(path: Path, step: int = 70_000) -> tuple[bytes, list[str]]:
    """Return the text of a source and the kinds of its problems."""
    reader = open_source(path).open()
    parts = []
    while part := reader.read(step):
        parts.append(part)
    reader.close()
    return b"".join(parts), [problem.kind for problem in reader.problems]


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_the_trace_in_an_archive_is_its_text(form: str, name: str, outside: str, tmp_path: Path) -> None:
    """Whatever wrote the archive, packed it, and named the file in it, reading gives the file's bytes."""
    path = tmp_path / "t.tar"
    path.write_bytes(OUTSIDE[outside](tar_of(TEXT, FORMS[form], NAMES[name])))
    source = open_source(path)
    assert (source.kind, source.encoding, source.seekable) == (outside, "utf-8", False)
    for step in (1 << 20, 1000):
        assert text_of(path, step) == (TEXT, [])


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names(form: int, tmp_path: Path) -> None:
    """A name that stands before the header, in GNU's form or POSIX's, is the file's name."""
    path = tmp_path / "t.tar"
    path.write_bytes(archive_of(("notes", b"x"), (LONG, TEXT), ("more", b"y"), form=form))
    assert text_of(path) == (TEXT, [OTHER_DATA])
    path.write_bytes(archive_of((LONG, TEXT), ("b.json", TEXT), form=form))
    with pytest.raises(UnreadableError, match=f"holds {LONG}, b.json"):
        open_source(path)


@pytest.mark.parametrize("size", [1, 511, 512, 513, 10_239, 10_240])
def test_sizes_at_the_edges_of_blocks(size: int, tmp_path: Path) -> None:
    """Data that fills its last block, or just does not, is given to the byte."""
    path = tmp_path / "t.tar"
    text = b"[" + b" " * (size - 1)
    path.write_bytes(archive_of(("a.txt", b"x" * 700), ("t.json", text), ("b.txt", b"y" * size)))
    assert text_of(path) == (text, [OTHER_DATA])


@pytest.mark.parametrize("form", FORMS)
def test_other_files_are_passed_over_and_named(form: str, tmp_path: Path) -> None:
    """Folders, links, what macOS adds and other files before and behind the trace are no part of it; files
    with data are named.
    """
    members = [
        *[("run/", b""), ("run/README.md", b"a run\n" * 200), ("run/empty.json", b""), ("latest.json@", b"")],
        *[("run/._trace.json", b"\0\5\x16\7"), ("run/trace.json", TEXT), ("run/smi.log", b"# v1\n")],
    ]
    path = tmp_path / "t.tar"
    for pack in OUTSIDE.values():
        path.write_bytes(pack(archive_of(*members, form=FORMS[form])))
        reader = open_source(path).open()
        assert reader.read(1 << 20) == TEXT and reader.read(1) == b""
        (problem,) = reader.problems
        assert (problem.kind, problem.count) == (OTHER_DATA, 3)
        assert problem.message.endswith(": run/README.md, run/._trace.json, run/smi.log")
        reader.close()


def test_a_file_with_holes_is_passed_over(tmp_path: Path) -> None:
    """The map of a sparse file of GNU tar, which stands before its data, is not taken for a header."""
    sparse = bytearray(tarfile.TarInfo("holes.bin").tobuf(tarfile.GNU_FORMAT))
    sparse[124:136] = b"%011o\0" % 1024
    sparse[156:157], sparse[482:483] = b"S", b"\1"
    sparse[148:156] = b"        "
    sparse[148:156] = b"%06o\0 " % sum(sparse)
    maps = [bytes(504) + b"\1" + bytes(7), bytes(512)]
    path = tmp_path / "t.tar"
    path.write_bytes(bytes(sparse) + b"".join(maps) + b"x" * 1024 + archive_of(("t.json", TEXT)))
    assert text_of(path) == (TEXT, [])


REFUSED = {
    "two traces": (archive_of(("r0.json", TEXT), ("r1.json", TEXT)), "holds r0.json, r1.json: unpack it"),
    "two other files": (archive_of(("a", b"[1]"), ("b", b"[2]")), "one trace; this one holds a, b"),
    "nothing": (archive_of(("run/", b"")), "holds nothing"),
    "many": (archive_of(*((f"{i}.txt", b"x") for i in range(30))), "7.txt, …$"),
    "gzip inside": (archive_of(("t.json.gz", gzip.compress(TEXT))), "packed twice, gzip in tar"),
    "a tar inside": (archive_of(("t.json", tar_of(TEXT))), "packed twice, tar in tar"),
    "a broken header first": (tar_of(TEXT)[:512] + b"x" * 512 + tar_of(TEXT)[1024:], "archive is damaged"),
}


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("name", REFUSED)
def test_an_archive_without_one_trace_is_refused(name: str, outside: str, tmp_path: Path) -> None:
    """It ends with one line that says what is there; a packed archive is read to its end for that."""
    data, message = REFUSED[name]
    path = tmp_path / "t.tar"
    path.write_bytes(OUTSIDE[outside](data))
    with pytest.raises(UnreadableError, match=message.replace("in tar", f"in {outside}")) as caught:
        text_of(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("command", ["info", "kernels", "doctor"])
def test_commands_answer_as_for_the_file_itself(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same numbers come of the file, of the archive, and of the archive in gzip."""
    answers = []
    for name, data in {
        "t.json": TEXT,
        "t.tar": tar_of(TEXT),
        "t.tar.gz": gzip.compress(tar_of(TEXT)),
    }.items():
        folder = tmp_path / name.replace(".", "")
        folder.mkdir()
        (folder / name).write_bytes(data)
        code = main([command, str(folder / name), "--json", "--index-dir", str(tmp_path / "index")])
        answer = json.loads(capsys.readouterr().out)
        answers.append((code, answer["events"] if command == "info" else answer.get("rows")))
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("outside", OUTSIDE)
def test_two_traces_are_refused_by_every_command(
    outside: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No answer is given of the first of two traces."""
    path = tmp_path / "t.tar"
    path.write_bytes(OUTSIDE[outside](archive_of(("r0.json", TEXT), ("r1.json", TEXT))))
    for command in ("info", "ops", "doctor"):
        assert main([command, str(path), "--index-dir", str(tmp_path / "index")]) == 2
        out, err = capsys.readouterr()
        assert not out and "r0.json, r1.json" in err and err.count("\n") == 1


@pytest.mark.parametrize("cut", [700, 1024, 5000, 100_000])
def test_what_a_cut_archive_still_holds_is_read(cut: int, tmp_path: Path) -> None:
    """The text up to the cut is there, and that it was cut is said, with the byte of the file."""
    path = tmp_path / "t.tar"
    path.write_bytes(archive_of(("t.json", TEXT))[:cut])
    if cut < 1600:  # within the headers, of which there are three blocks
        with pytest.raises(UnreadableError, match=r"damaged|holds nothing|cut off"):
            open_source(path)
        return
    text, problems = text_of(path)
    assert TEXT.startswith(text) and len(text) == cut - 1536 and problems == [DAMAGED]


def test_a_damaged_header_behind_the_trace_is_said(tmp_path: Path) -> None:
    """All of the trace is there, and what follows it is not taken for sound."""
    path = tmp_path / "t.tar"
    sound = archive_of(("t.json", TEXT), ("notes.txt", b"x" * 9000))
    at = sound.index(b"notes.txt")
    path.write_bytes(sound[:at] + b"N" + sound[at + 1 :])
    assert text_of(path) == (TEXT, [DAMAGED])


@pytest.mark.parametrize("name", ["t.json", "notes.txt"])
def test_a_cut_in_what_fills_a_file_up_is_said(name: str, tmp_path: Path) -> None:
    """An archive that ends within the zeros behind a file's data is cut off; one that ends behind them may be
    whole, as far as anybody can know.
    """
    path = tmp_path / "t.tar"
    text = TEXT + b" " * (200 - len(TEXT) % 512)  # 312 bytes are filled up
    members = (("t.json", text),) if name == "t.json" else (("t.json", text), (name, b"x" * 712))
    whole = archive_of(*members, form=tarfile.USTAR_FORMAT).rstrip(b"\0")
    for missing, expected in ((312, [DAMAGED]), (100, [DAMAGED]), (1, [DAMAGED]), (0, [])):
        path.write_bytes(whole + bytes(312 - missing))
        unpacked, problems = text_of(path)
        assert unpacked == text and [kind for kind in problems if kind == DAMAGED] == expected, missing


def field(kind: bytes, size: bytes) -> bytes:
    """Return a header with a size that nobody would believe, and a checksum that is right."""
    block = bytearray(tarfile.TarInfo("t.json").tobuf(tarfile.USTAR_FORMAT))
    block[156:157], block[124:136], block[148:156] = kind, size, b"        "
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize("kind", [b"0", b"x", b"L", b"g", b"S", b"9"])
@pytest.mark.parametrize("size", [b"7" * 12, b"\x80" + b"\xff" * 11, b"\xff" * 12, b"not a number"])
def test_sizes_that_nobody_has_are_not_believed(kind: bytes, size: bytes, tmp_path: Path) -> None:
    """No memory is asked for what a header says: the file is refused, or read as one that is cut off."""
    path = tmp_path / "t.tar"
    path.write_bytes(field(kind, size) + TEXT)
    try:
        text, problems = text_of(path)
    except UnreadableError as error:
        assert "\n" not in str(error)
    else:
        assert kind == b"0" and text == TEXT and problems == [DAMAGED]


def test_names_are_bounded(tmp_path: Path) -> None:
    """Of very many files the first are named, and all counted."""
    path = tmp_path / "t.tar"
    path.write_bytes(archive_of(("t.json", TEXT), *((f"{i}.txt", b"x") for i in range(500))))
    reader = open_source(path).open()
    assert isinstance(reader, TarReader)
    while reader.read(1 << 20):
        pass
    (problem,) = reader.problems
    assert problem.count == 500 and problem.message.endswith(", …")
    assert problem.message.count(".txt") == MAX_NAMED
