"""Work that a copy of the process does meanwhile comes to the same, and leaves no process behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.waiting import PATIENCE_S, is_alive, wait_until
from tracelane.core.base.errors import CacheError
from tracelane.core.index.beside import Beside


@pytest.mark.parametrize("apart", [True, False])
def test_results_and_errors_come_back(apart: bool) -> None:
    """What the work returns or raises reaches whoever asks for it, however much it is."""

    def fail() -> None:
        raise CacheError("the disk is full")

    with Beside(lambda: (os.getpid(), np.arange(1_000_000)), apart) as work:
        pid, values = work.result()
    assert (pid != os.getpid()) == apart and not (apart and is_alive(pid))
    assert np.array_equal(values, np.arange(1_000_000))
    with pytest.raises(CacheError, match="the disk is full"), Beside(fail, apart) as work:
        work.result()


def test_where_no_copy_can_be_made_it_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that allows no more processes does not keep an index from being built."""

    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    with Beside(os.getpid, True) as work:
        assert work.result() == os.getpid()


def test_a_copy_that_is_not_wanted_ends() -> None:
    """Leaving ends the copy at once; what one that was killed should have done is done here."""
    began = time.monotonic()
    with Beside(lambda: time.sleep(PATIENCE_S), True) as work:
        pid = work._copy
        assert is_alive(pid)
    assert not is_alive(pid) and time.monotonic() - began < PATIENCE_S / 2
    here = os.getpid()
    with Beside(lambda: here == os.getpid() or os._exit(1), True) as again:
        assert again.result()


def test_a_copy_ends_with_its_process() -> None:
    """A copy whose process was killed ends by itself."""
    script = (
        "import os, time; from tracelane.core.index.beside import Beside\n"
        "print(Beside(lambda: time.sleep(60), True)._copy, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-P", "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    assert is_alive(pid)
    process.kill()
    process.wait()
    process.stdout.close()
    wait_until(lambda: not is_alive(pid), "the copy's end")
