"""What has become of the files of a trace since they were read."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.tui.small_file import small_file
from tests.waiting import PATIENCE_S, running_threads, wait_until
from tracelane.core.index.changes import (
    Change,
    State,
    Watch,
    changes_since,
    changes_text,
    finished_name,
    states_read,
)
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
        path.write_text("[]")
        before |= state(path)
    for path in paths[:2]:
        path.write_text("[" + "x" * 1_662_000)
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
