"""The checkpoints of an index: where the text of its deflated source can be inflated from."""

from __future__ import annotations

import numpy as np

from ..read.checkpoints import unpacked_window
from ..read.inflate import RawReader
from ..read.inflate_native import Checkpoint, InflateError
from ..read.source import Source
from .store import Index


class Checkpoints:
    """Checkpoints in the order of the text; none where the source has none, or nothing here can use them."""

    def __init__(self, index: Index, source: Source) -> None:
        self._index, self._source = index, source
        self.are_there = bool(source.has_checkpoints and index.length("checkpoints.text"))

    def before(self, offset: int) -> Checkpoint | None:
        """Return the last checkpoint before a place in the text, without its window."""
        if not self.are_there:
            return None
        at = int(np.searchsorted(self._index.column("checkpoints.text"), offset, "right")) - 1
        if at < 0:
            return None
        text, block, bit = (
            int(self._index.column(f"checkpoints.{key}")[at]) for key in ("text", "block", "bit")
        )
        return Checkpoint(text, block, bit, b"")

    def open_at(self, checkpoint: Checkpoint) -> RawReader | None:
        """Return the text from a checkpoint on, None where it cannot be inflated there."""
        index = self._index
        at = int(np.searchsorted(index.column("checkpoints.text"), checkpoint.text))
        ends = index.column("checkpoints.window")
        packed = index.column("windows")[0 if at == 0 else int(ends[at - 1]) : int(ends[at])]
        try:
            window = unpacked_window(packed.tobytes(), int(index.column("checkpoints.crc")[at]))
            return self._source.open_at(checkpoint._replace(window=window))
        except InflateError:
            return None
