"""Waiting for traces that are still being written."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from tests.tui.small_file import events
from tracelane.core.base.errors import UnreadableError
from tracelane.core.index.waiting import STABLE_S, Waiting, lacking
from tracelane.core.trace import open_trace

WHOLE = json.dumps({"traceEvents": events(), "traceName": "t"}).encode()
CUT = "ends in the middle"


def zipped(path: Path, text: bytes) -> bytes:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.json", text)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        (WHOLE, ""),
        (WHOLE + b" \r\n", ""),
        (b"\xef\xbb\xbf" + WHOLE, ""),
        (WHOLE.decode().encode("utf-16-le"), ""),
        (json.dumps(events()).encode(), ""),
        (b"\n".join(json.dumps(event).encode() for event in events()), ""),
        (WHOLE[:-1], CUT),
        (WHOLE[: len(WHOLE) // 2], CUT),
        (WHOLE[:-10].decode().encode("utf-16-le"), CUT),
        (json.dumps(events()).encode()[:-1], CUT),  # ends in a brace, began with a bracket
        (gzip.compress(WHOLE, mtime=0), ""),
        (gzip.compress(WHOLE, mtime=0)[:-3], CUT),
        (gzip.compress(WHOLE, mtime=0)[:200], CUT),
        (gzip.compress(WHOLE[:-1], mtime=0), CUT),
        (gzip.compress(WHOLE[:90], mtime=0) + gzip.compress(WHOLE[90:], mtime=0), ""),
        (b"", "is empty"),
        (b"<html>", "is an HTML page, not a trace"),
    ],
)
def test_what_a_file_lacks(tmp_path: Path, text: bytes, lacks: str) -> None:
    """Whole is what ends in the bracket that closes its first one, packed data inflated to the end."""
    path = tmp_path / "t.json"
    path.write_bytes(text)
    assert lacking(path) == lacks


def test_a_zip_is_whole_or_not(tmp_path: Path) -> None:
    """A zip that is cut off lacks something, wherever that is."""
    path = tmp_path / "t.zip"
    whole = zipped(path, WHOLE)
    assert lacking(path) == ""
    for cut in range(1, len(whole) - 150, 40):
        path.write_bytes(whole[:cut])
        assert lacking(path) != "", cut


class Watched:
    """Looks at a folder under a clock of its own."""

    def __init__(self, *paths: Path) -> None:
        self.clock = 100.0
        # The files of a test were all written just now, as far as their own times go.
        self.waiting = Waiting([str(path) for path in paths], lambda: self.clock, lambda: 0.0)

    def look(self, after: float = STABLE_S) -> str:
        self.clock += after
        file = self.waiting.look()
        return "" if file is None else f"{Path(file.path).name} {file.why}"


def test_from_nothing_to_the_whole_file(tmp_path: Path) -> None:
    """What torch does, step by step: a `.tmp` that grows, pauses, is complete, and gets its name."""
    path, live = tmp_path / "t.pt.trace.json", tmp_path / "t.pt.trace.json.tmp"
    by_name, by_live = Watched(path), Watched(live)
    assert by_name.look() == "t.pt.trace.json is not there yet"
    live.write_bytes(WHOLE[:500])
    assert by_name.look() == "t.pt.trace.json is still called t.pt.trace.json.tmp"
    assert by_live.look() == "t.pt.trace.json.tmp is being written"
    live.write_bytes(WHOLE[:700])
    assert by_live.look() == "t.pt.trace.json.tmp is being written"
    assert by_live.look() == f"t.pt.trace.json.tmp {CUT}"
    live.write_bytes(WHOLE)
    assert by_live.look(0.1) == "t.pt.trace.json.tmp is being written"
    live.rename(path)
    for watched in (by_name, by_live):
        assert watched.look(0.1) == "t.pt.trace.json is being written"
        assert watched.look() == ""
        assert watched.waiting.names == (str(path),)


def test_a_file_that_its_writer_never_renames(tmp_path: Path) -> None:
    """A `.tmp` that is complete and stays so is opened under the name that it has."""
    live = tmp_path / "t.json.tmp"
    live.write_bytes(WHOLE)
    watched = Watched(live)
    assert watched.look() == "t.json.tmp is being written"
    assert watched.look() == ""
    assert watched.waiting.names == (str(live),)


def test_a_folder_waits_for_all_in_it(tmp_path: Path) -> None:
    """Of a folder every trace has to be complete and none still called `.tmp`; other files do not count."""
    watched = Watched(tmp_path)
    assert watched.look().endswith("holds no trace yet")
    (tmp_path / "rank0.json").write_bytes(WHOLE)
    (tmp_path / "rank1.json.tmp").write_bytes(WHOLE[:300])
    (tmp_path / "notes.tmp").write_bytes(b"")
    assert watched.look() == "rank0.json is being written"
    assert watched.look() == "rank1.json.tmp is being written"
    assert watched.look() == f"rank1.json.tmp {CUT}"
    (tmp_path / "rank1.json.tmp").write_bytes(WHOLE)
    (tmp_path / "rank1.json.tmp").rename(tmp_path / "rank1.json")
    assert watched.look() == "rank1.json is being written"
    assert watched.look() == ""


def test_a_folder_names_what_is_still_being_written(tmp_path: Path) -> None:
    """Opening a folder says which of its traces are not complete yet, also where there is no other."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "rank1.json.tmp").write_bytes(WHOLE[:300])
    with pytest.raises(
        UnreadableError, match=r"without traces; rank1\.json\.tmp still being written: --wait"
    ):
        open_trace(folder, index_dir=tmp_path / "index")
    (folder / "rank0.json").write_bytes(WHOLE)
    notes = open_trace(folder, index_dir=tmp_path / "index").sources[0].notes
    assert [note for note in notes if note.startswith("rank1.json.tmp still being written")]


def test_what_was_complete_long_ago_opens_at_once(tmp_path: Path) -> None:
    """The first look is enough for a file that has not changed for a while; standard input never waits."""
    path = tmp_path / "t.json"
    path.write_bytes(WHOLE)
    later = path.stat().st_mtime + STABLE_S + 1
    assert Waiting([str(path), "-"], now=lambda: later).look() is None
