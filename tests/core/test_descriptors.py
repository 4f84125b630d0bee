"""Waiting for descriptors: whatever their numbers are, and also at the end of what is read."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator

import pytest

from tracelane.core.base.descriptors import readable


@pytest.fixture
def many_files() -> Iterator[None]:
    """Descriptors beyond the 1,024 that `select` takes, where the system allows so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1200:
        pytest.skip("this machine allows no process so many open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    yield
    for descriptor in held:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_those_that_have_something(many_files: None) -> None:
    """What was written to is told, what waits is not, and an end is something, too."""
    pipes = [os.pipe() for _ in range(3)]
    readers, writers = zip(*pipes)
    assert min(readers) > 1024
    assert readable(readers, 0) == []
    os.write(writers[1], b"x")
    assert readable(readers) == [readers[1]]
    os.close(writers[2])
    assert readable(readers, 5) == [readers[1], readers[2]]
    for descriptor in (*readers, *writers[:2]):
        os.close(descriptor)
