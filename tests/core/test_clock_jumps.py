"""The clock of a host that is set forward or back: indexes stay right, and room can still be made."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.events import write_slices
from tracelane.core.base.errors import CacheError
from tracelane.core.index.cache import BUILDING, seconds_since, sweep
from tracelane.core.index.cached import clear_cache, list_cache
from tracelane.core.index.changes import unfinished_note
from tracelane.core.index.options import IndexOptions
from tracelane.core.trace import open_trace

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
    path.write_text(path.read_text().replace("a.json", "b.json"))
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
