"""Block stores of compressed sources, written by a quiet process of their own while a trace is looked at."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..base.children import Children, ChildrenError, lines
from ..base.errors import Cancelled, TracelaneError
from .blockstore import needs_block_store, write_block_store
from .store import Index

MODULE = "tracelane.core.index.packing"
PATIENCE_S = 2.0
"""So long the process may take to stop and to clear up."""
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
    request = {"pairs": [(str(index.folder), index.path) for index in indexes if worth_packing(index)]}
    try:
        child = Children(1, request, module=MODULE, behind=True) if request["pairs"] else None
    except ChildrenError:
        child = None
    try:
        yield
    finally:
        if child is not None:
            child.close(PATIENCE_S)


def main() -> int:
    """Write the block store of each (index folder, source path) until standard input is closed."""
    orphaned = threading.Event()
    for folder, path in next(lines(orphaned.set))["pairs"]:
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
    sys.exit(main())
