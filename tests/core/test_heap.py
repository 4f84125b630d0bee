"""Commands keep what a large array leaves for the next one; what imports tracelane does not."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.events import write_slices
from tracelane.core.base.heap import LARGE

LOOK = """
import ctypes, sys
from tracelane.core import open_trace
from tracelane.tui.cli.main import main
if sys.argv[1] == "command":
    assert main(["tree", sys.argv[2], "--json"]) == 0
else:
    open_trace(sys.argv[2]).close()
library = ctypes.CDLL(None)
library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
at = library.malloc(int(sys.argv[3]))
heap = next(line.split()[0] for line in open("/proc/self/maps") if line.rstrip().endswith("[heap]"))
low, high = (int(edge, 16) for edge in heap.split("-"))
print("in the heap" if low <= at < high else "beside it", file=sys.stderr)
"""
"""Says where the C library puts a large piece of memory after a trace was opened."""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="another C library than glibc")
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks at the maps of a process")
@pytest.mark.parametrize(("how", "where"), [("command", "in the heap"), ("library", "beside it")])
def test_where_large_arrays_lie(tmp_path: Path, how: str, where: str) -> None:
    """After a command's trace is open they come from the heap, where pages stay; of a program that opens a
    trace itself nothing is changed.
    """
    arguments = [how, str(write_slices(tmp_path / "trace.json")), str(LARGE - (1 << 20))]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", LOOK, *arguments],
        check=True,
        capture_output=True,
        encoding="utf-8",
        env=environment,
    )
    assert done.stderr.splitlines()[-1] == where
