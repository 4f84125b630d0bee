"""A copy of a process talks by its pipes, and is waited for and ended like any child."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S
from tracelane.core.base.copies import Copy, stands_copying
from tracelane.core.ingest import child
from tracelane.core.ingest.child import Children, ChildrenError

pytestmark = pytest.mark.skipif(not stands_copying(), reason="no copies here")


def echo() -> int:
    """Say back in capitals what is said."""
    for line in sys.stdin:
        sys.stdout.write(line.upper())
        sys.stdout.flush()
    return 7


@contextmanager
def ended(*running: Copy) -> Iterator[None]:
    try:
        yield
    finally:
        for copy in running:
            copy.kill()
            copy.wait(PATIENCE_S)
            copy.stdin.close()
            copy.stdout.close()


def test_it_talks_and_ends_with_its_input() -> None:
    """What is written to a copy it reads, what it writes comes back, and its status is what it returns."""
    copy = Copy(echo)
    with ended(copy):
        copy.stdin.write(b"what\n")
        copy.stdin.flush()
        assert copy.stdout.readline() == b"WHAT\n"
        with pytest.raises(subprocess.TimeoutExpired):
            copy.wait(0.01)
        copy.stdin.close()
        assert copy.wait(PATIENCE_S) == 7


def test_copies_do_not_keep_each_other_alive() -> None:
    """The first of several copies sees its input end while the others still run."""
    running: list[Copy] = []
    for _ in range(3):
        running.append(Copy(echo, running))
    with ended(*running):
        running[0].stdin.close()
        assert running[0].wait(PATIENCE_S) == 7
        assert running[2].returncode is None


def test_failing_is_told_by_the_status() -> None:
    """An error in a copy, or a signal, ends it with a status other than 0, and its output ends."""

    def fail() -> int:
        raise ValueError("no")

    failed, killed = Copy(fail), Copy(echo)
    with ended(failed, killed):
        assert failed.stdout.read() == b"" and failed.wait(PATIENCE_S) != 0
        killed.kill()
        assert killed.wait(PATIENCE_S) == -signal.SIGKILL


def test_no_file_stays_open_where_none_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that allows no more processes is told of as where one cannot be started."""

    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    def files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    monkeypatch.setattr(os, "fork", refuse)
    before = files()
    with pytest.raises(ChildrenError, match="Resource temporarily unavailable"):
        Children(2, copied=echo)
    assert files() == before


def test_where_copies_do_not_work_the_module_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system whose libraries do not stand being copied gets processes of the module."""
    monkeypatch.setattr(child, "stands_copying", lambda: False)
    with Children(1, copied=lambda: os._exit(1)) as children:
        assert children.receive(PATIENCE_S) == (0, {"ready": True})
