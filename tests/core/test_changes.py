"""Files that change, are waited for, and a host's clock that jumps: indexes stay right."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.events import write_slices
from tests.tui.small_file import events, small_file
from tests.waiting import PATIENCE_S, running_threads, wait_until
from tracelane.core.base.errors import CacheError, UnreadableError
from tracelane.core.index.arrivals import FolderNews
from tracelane.core.index.cache import BUILDING, seconds_since, sweep
from tracelane.core.index.cached import clear_cache, list_cache
from tracelane.core.index.changes import (
    STABLE_S,
    Change,
    Following,
    State,
    Watch,
    changes_since,
    changes_text,
    finished_name,
    lacking,
    states_read,
)
from tracelane.core.index.inputs import unfinished_note
from tracelane.core.index.options import IndexOptions
from tracelane.core.trace import open_trace


def state(path: Path) -> dict[str, State]:
    status = path.stat()
    return {str(path): (status.st_size, status.st_mtime_ns)}


def test_a_file_that_stays_is_no_change(tmp_path: Path) -> None:
    """What opening notes of a file is what a look at it finds, also when it comes out of the cache."""
    path = small_file(tmp_path)
    for _ in range(2):
        states = states_read(open_trace(path, index_dir=tmp_path / "index").indexes)
        assert states == state(path)
        assert changes_since(states) == ()


@pytest.mark.parametrize(
    ("length", "what"),
    [(3 << 20, "file grew by 3.00 MiB"), (0, "file was rewritten"), (-1, "file was rewritten")],
)
def test_growing_and_writing_anew(tmp_path: Path, length: int, what: str) -> None:
    """A longer file grew by so much; one that is shorter or the same and newer was rewritten."""
    path = tmp_path / "t.json"
    path.write_bytes(b"[]")
    before = state(path)
    path.write_bytes(b"x" * (2 + length))
    os.utime(path, ns=(0, before[str(path)][1] + 1))
    assert changes_text(changes_since(before)) == what


def test_a_file_that_is_complete_has_another_name(tmp_path: Path) -> None:
    """A `.tmp` that its writer renamed is found under its name; one that is gone for good was deleted."""
    path = tmp_path / "t.pt.trace.json.tmp"
    path.write_bytes(b"[]")
    before = state(path)
    assert finished_name(str(path)) == str(path)
    whole = path.rename(tmp_path / "t.pt.trace.json")
    assert changes_since(before) == (Change(str(path), renamed=str(whole)),)
    assert changes_text(changes_since(before)) == "file is complete: t.pt.trace.json"
    assert finished_name(str(path)) == str(whole)
    whole.unlink()
    assert changes_since(before) == (Change(str(path), deleted=True),)
    assert changes_text(changes_since(before)) == "file was deleted"
    assert finished_name(str(path)) == str(path)


def test_several_files(tmp_path: Path) -> None:
    """Of several that changed their number is told and what all grew by."""
    paths = [tmp_path / f"{n}.json" for n in range(3)]
    before: dict[str, State] = {}
    for path in paths:
        path.write_text("[]", encoding="utf-8")
        before |= state(path)
    for path in paths[:2]:
        path.write_text("[" + "x" * 1_662_000, encoding="utf-8")
    assert changes_text(changes_since(before)) == "2 files changed, 3.17 MiB more"


def test_a_file_system_that_hangs_holds_up_nobody() -> None:
    """Looking goes on in a thread of its own, now and then and when asked, until it is closed."""
    free = threading.Event()

    def hanging(states: Mapping[str, State]) -> tuple[Change, ...]:
        free.wait(PATIENCE_S)
        return (Change("t", 1),)

    watch = Watch({"t": (1, 1)}, 3600.0, hanging)
    watch.look_now()
    assert watch.watches and watch.changes == () and watch.looks == 0
    free.set()
    wait_until(lambda: watch.looks > 0, "a look")
    assert watch.changes == (Change("t", 1),)
    watch.close()


def test_what_came_through_a_pipe_is_not_looked_after() -> None:
    """Without files there is nothing to look at, and no thread."""
    before = running_threads()
    assert not Watch({}).watches
    wait_until(lambda: running_threads() <= before)


DAY_S = 86_400.0
JUMPS = {"a year ahead": 365 * DAY_S, "a year back": -365 * DAY_S, "two hours back": -7200.0, "none": 0.0}


def jump(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the clock that programs see."""
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + seconds)


def names(path: Path, limit: int | None = None) -> set[str]:
    """Open a trace and return the names of its slices."""
    options = IndexOptions() if limit is None else IndexOptions(cache_limit=limit)
    trace = open_trace(path, options)
    rows = [row for lane in trace.lanes for row in trace.rows(lane)]
    read = {trace.name(row, at) for row in rows for at in range(row.count)}
    trace.close()
    return read


@pytest.mark.parametrize("seconds", JUMPS.values(), ids=JUMPS)
def test_an_index_is_used_again(seconds: float, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not rebuilt because the clock says something else, and a rewritten file is noticed."""
    path = write_slices(home / "a.json")
    assert names(path) == {"a.json"}
    (built,) = [entry.folder.stat().st_ino for entry in list_cache()]
    jump(monkeypatch, seconds)
    assert names(path) == {"a.json"}
    assert [entry.folder.stat().st_ino for entry in list_cache()] == [built]
    path.write_text(path.read_text(encoding="utf-8").replace("a.json", "b.json"), encoding="utf-8")
    os.utime(path, (time.time(),) * 2)
    assert names(path) == {"b.json"}


@pytest.mark.parametrize("seconds", JUMPS.values(), ids=JUMPS)
def test_room_is_made_after_a_jump(seconds: float, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was opened long before by the clock of today, or in a future that it was set back from, goes."""
    first = write_slices(home / "first.json")
    assert names(first) == {"first.json"}
    (entry,) = list_cache()
    limit = entry.bytes + entry.bytes // 2
    jump(monkeypatch, seconds)
    second = write_slices(home / "second.json")
    if seconds:
        assert names(second, limit) == {"second.json"}
        assert {Path(each.path).name for each in list_cache()} == {"second.json"}
    else:
        with pytest.raises(CacheError, match="opened within the last hour"):
            names(second, limit)


def test_what_is_old_is_cleared_and_swept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the clock went back a year neither an index nor a killed builder's folder stays for that year."""
    names(write_slices(home / "a.json"))
    (entry,) = list_cache()
    left = entry.folder.parent / f"{BUILDING}abandoned"
    left.mkdir()
    sweep(entry.folder.parent)
    assert left.exists()  # its maker may be about to lock it
    jump(monkeypatch, -365 * DAY_S)
    sweep(entry.folder.parent)
    assert not left.exists()
    assert clear_cache(older_than=30 * DAY_S)[0] == 1


def test_a_file_from_the_future_is_not_still_being_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of an unfinished name is taken for one that grows only while it was written to lately."""
    path = write_slices(home / "t.json.tmp")
    (said,) = unfinished_note(str(path))
    assert "still being written" in said
    jump(monkeypatch, -365 * DAY_S)
    (said,) = unfinished_note(str(path))
    assert "left unfinished" in said


def test_clocks_of_other_hosts_may_differ_by_less_than_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another host wrote a little ahead of this clock was written now."""
    jump(monkeypatch, 0.0)
    assert seconds_since(time.time() + 1800) == 0
    assert seconds_since(time.time() + 7200) == float("inf")


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
        self.following = Following([str(path) for path in paths], lambda: self.clock, lambda: 0.0)

    def look(self, after: float = STABLE_S) -> str:
        self.clock += after
        awaited = self.following.look().awaited
        return f"{Path(awaited[0].path).name} {awaited[0].why}" if awaited else ""


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
        assert watched.following.names == (str(path),)


def test_a_file_that_its_writer_never_renames(tmp_path: Path) -> None:
    """A `.tmp` that is complete and stays so is opened under the name that it has."""
    live = tmp_path / "t.json.tmp"
    live.write_bytes(WHOLE)
    watched = Watched(live)
    assert watched.look() == "t.json.tmp is being written"
    assert watched.look() == ""
    assert watched.following.names == (str(live),)


def test_a_folder_waits_for_all_in_it(tmp_path: Path) -> None:
    """Of a folder every trace has to be complete and none still called `.tmp`; other files do not count."""
    watched = Watched(tmp_path)
    assert watched.look().endswith("holds no trace yet")
    (tmp_path / "rank0.json").write_bytes(WHOLE)
    (tmp_path / "rank1.json.tmp").write_bytes(WHOLE[:300])
    (tmp_path / "notes.tmp").write_bytes(b"")
    assert watched.look() == "rank0.json is being written"
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
    assert not Following([str(path), "-"], now=lambda: later).look().awaited


def test_what_is_whole_in_a_folder_and_what_is_gone(tmp_path: Path) -> None:
    """Each look has the whole files and their states; what was deleted leaves nothing behind, and a file that
    is written anew is looked into again.
    """
    watched = Watched(tmp_path)
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_bytes(WHOLE)
    second.write_bytes(WHOLE[:-2])
    watched.look(after=0)
    watched.clock += STABLE_S
    look = watched.following.look()
    assert list(look.whole) == [str(first)] and [one.path for one in look.awaited] == [str(second)]
    first.unlink()
    second.write_bytes(WHOLE)
    watched.look(after=0)
    assert watched.look() == ""
    assert list(watched.following.look().whole) == [str(second)]
    assert set(watched.following._seen) == set(watched.following._lacking) == {str(second)}


def test_once_all_is_over_nothing_has_to_rest(tmp_path: Path) -> None:
    """When nobody writes any more a whole file is whole at once, and half a one stays awaited."""
    watched = Watched(tmp_path)
    (tmp_path / "a.json").write_bytes(WHOLE)
    (tmp_path / "b.json").write_bytes(WHOLE[:-2])
    look = watched.following.look(is_over=True)
    assert len(look.whole) == 1 and [one.why for one in look.awaited] == [CUT]


def test_news_of_a_folder_are_whole_files(tmp_path: Path) -> None:
    """A file that appears beside those that were read is news once it is whole; those read are not."""
    known = tmp_path / "a.json"
    known.write_bytes(WHOLE)
    news = FolderNews([str(tmp_path)], [str(known)])
    assert news.look({}) == ()
    new = tmp_path / "b.json"
    new.write_bytes(WHOLE[:-2])
    os.utime(new, (1, 1))
    assert news.look({}) == ()
    new.write_bytes(WHOLE)
    os.utime(new, (1, 1))
    wait_until(lambda: news.look({}) == (Change(str(new), is_new=True),))
    assert changes_text(news.look({})) == "file is new: b.json"
