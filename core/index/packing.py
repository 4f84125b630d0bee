"""Block stores of compressed sources, written by a quiet process of their own while a trace is looked at."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..base.errors import Cancelled, TracelaneError
from ..base.threads import BackgroundThread
from .blockstore import needs_block_store, write_block_store
from .store import Index

MODULE = "tracelane.core.index.packing"
NICENESS = 10
WORTH = 8 << 20
"""Texts shorter than this are inflated again faster than anybody asks."""


def worth_packing(index: Index) -> bool:
    """Tell whether the arguments of this index are slow to read, and a block store would change that."""
    lengths = index.column("blocks.length")
    return int(lengths.sum()) >= WORTH and index.path != "-" and needs_block_store(index)


@contextlib.contextmanager
def packing(indexes: Sequence[Index]) -> Iterator[None]:
    """Have the missing block stores written while the body runs; what is unfinished at its end is dropped.

    The process ends by itself when its starter does, whatever way that goes. Where none can be started,
    arguments go on being inflated again.
    """
    unpacked = [index for index in indexes if worth_packing(index)]
    process: subprocess.Popen[bytes] | None = None
    if unpacked:
        pairs = [text for index in unpacked for text in (str(index.folder), index.path)]
        with contextlib.suppress(OSError):
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", MODULE, *pairs],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
    try:
        yield
    finally:
        if process is not None and process.stdin is not None:
            process.stdin.close()  # asks it to stop and to clear up
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def main(arguments: Sequence[str]) -> int:
    """Write the block store of each (index folder, source path) until standard input is closed."""
    orphaned = threading.Event()

    def listen() -> None:
        while sys.stdin.buffer.read(1):
            pass
        orphaned.set()

    BackgroundThread(listen)
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    for folder, path in zip(arguments[::2], arguments[1::2]):
        try:
            index = Index.open(Path(folder))
            index.path = path
            write_block_store(index, cancelled=orphaned.is_set)
        except Cancelled:
            break
        except TracelaneError:
            continue  # a full disk, a source that has gone: arguments stay slow and say so
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
