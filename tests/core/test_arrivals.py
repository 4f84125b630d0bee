"""Captures that become complete in a folder while somebody looks."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tui.small_file import events
from tracelane.core.index.arrivals import Arrivals
from tracelane.core.index.changes import STABLE_S, Following
from tracelane.core.index.inputs import LIVE_S

SETTLE_S = 10.0


class Folder:
    """A folder that is followed under a clock of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = 100.0
        self.arrivals = Arrivals(str(path), SETTLE_S, lambda: self.clock, self._following)

    def _following(self, paths: Sequence[str]) -> Following:
        return Following(paths, lambda: self.clock, lambda: 0.0)

    def write(self, name: str, rank: int | None = None, world: int = 2, part: float = 1.0) -> Path:
        """Write a trace, or the beginning of one."""
        info = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": world}}
        text = json.dumps({**info, "traceEvents": events()})
        path = self.path / name
        path.write_text(text[: int(part * len(text))], encoding="utf-8")
        return path

    def look(self, after: float = 0.0, is_over: bool = False) -> list[list[str]]:
        """Return the names of the files of each capture that has become complete."""
        self.clock += after
        captures = self.arrivals.look(is_over).captures
        return [[Path(member.path).name for member in capture.members] for capture in captures]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_all_ranks_are_one_capture(folder: Folder) -> None:
    """A capture that says how many ranks it has is complete with the last of them, and said once."""
    folder.write("20261129-081630_rank0.json", 0)
    assert folder.look() == folder.look(SETTLE_S * 2) == []
    folder.write("20261129-081630_rank1.json", 1)
    assert folder.look() == []
    assert [sorted(names) for names in folder.look(STABLE_S)] == [
        ["20261129-081630_rank0.json", "20261129-081630_rank1.json"]
    ]
    assert folder.look(SETTLE_S * 2) == []


def test_a_rank_that_does_not_come_is_given_up(folder: Folder) -> None:
    """A rank that is missing holds up the others for a minute."""
    folder.write("20261129-081630_rank0.json", 0)
    folder.look()
    folder.look(STABLE_S)
    assert folder.look(LIVE_S) == [["20261129-081630_rank0.json"]]


def test_what_does_not_say_its_ranks_settles(folder: Folder) -> None:
    """Where no file says how many there are a capture is complete when no other has come for a while."""
    folder.write("a.json")
    assert folder.look() == [] and folder.look(STABLE_S) == []
    assert folder.look(SETTLE_S) == [["a.json"]]


def test_a_file_that_is_being_written_holds_its_folder(folder: Folder) -> None:
    """While a profiler writes another file beside it a capture is not complete; one left over holds none."""
    folder.write("a.json")
    folder.write("b.json.tmp", part=0.5)
    folder.look()
    assert folder.look(SETTLE_S * 2) == []
    assert folder.look(100.0) == [["a.json"]]


def test_what_is_whole_waits_for_no_other(folder: Folder) -> None:
    """Where captures follow each other so fast that a file is always being written, each is said once all of
    its ranks are there.
    """
    said = []
    for number in range(9):
        folder.write(f"rank0.17000000{number}0000.pt.trace.json", rank=0, world=1)
        folder.write(f"rank0.17000000{number}5000.pt.trace.json", rank=0, world=1, part=0.5)
        said += folder.look(STABLE_S)
    assert [names for names in said if not names[0].endswith("5000.pt.trace.json")] == [
        [f"rank0.17000000{number}0000.pt.trace.json"] for number in range(8)
    ]


def test_an_unfinished_name_is_no_capture(folder: Folder) -> None:
    """A whole file that still has its unfinished name is said under the last one alone."""
    writing = folder.write("a.json.tmp")
    folder.look()
    assert folder.look(SETTLE_S * 2) == []
    writing.rename(folder.path / "a.json")
    folder.look()
    folder.look(STABLE_S)
    assert folder.look(SETTLE_S) == [["a.json"]]


def test_rotation_and_deletion(folder: Folder) -> None:
    """A name that is written again is another capture, one that is gone is forgotten, and nothing grows."""
    path = folder.write("a.json")
    folder.look()
    folder.look(STABLE_S)
    assert folder.look(SETTLE_S) == [["a.json"]]
    folder.write("a.json", rank=0, world=1)
    folder.look()
    assert folder.look(STABLE_S) == [["a.json"]]
    for number in range(20):
        path.unlink()
        path = folder.write(f"{number}.json", rank=0, world=1)
        folder.look()
        folder.look(STABLE_S)
    assert len(folder.arrivals._done) == len(folder.arrivals._following._seen) == 1


def test_what_is_there_is_passed_over(folder: Folder) -> None:
    """Neither whole files nor half ones that were there are said, but what becomes of them is."""
    folder.write("old.json")
    half = folder.write("half.json", part=0.5)
    folder.arrivals.skip_present()
    assert folder.look(is_over=True) == []
    folder.write(half.name)
    assert folder.look(is_over=True) == [["half.json"]]


def test_when_all_is_over_nothing_is_waited_for(folder: Folder) -> None:
    """Once nobody writes any more what is whole is complete, and half a file is still awaited."""
    folder.write("a.json", rank=0)
    folder.write("b.json", part=0.5)
    arrived = folder.arrivals.look(is_over=True)
    assert [len(capture.members) for capture in arrived.captures] == [1]
    assert [os.path.basename(one.path) for one in arrived.awaited] == ["b.json"]


def test_what_is_no_trace_is_nothing(folder: Folder) -> None:
    """Other JSON in the folder is no capture, nor is a folder that is not there yet an error."""
    (folder.path / "settings.json").write_text('{"a": 1}', encoding="utf-8")
    assert folder.look(is_over=True) == []
    assert Arrivals(str(folder.path / "later")).look().captures == ()
