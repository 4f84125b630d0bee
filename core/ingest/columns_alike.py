"""Events that are written alike, to the raw columns of a part."""

from __future__ import annotations

import numpy as np

from .columns import U32, EventFlag, IdKind
from .columns_block import FLOW, BlockColumns
from .columns_ids import Ids
from .columns_lifted import Lifter
from .interning import StringTable, TrackTable
from .text.reader import ReadText
from .text.spellings import Renumbering, Spellings
from .text.values import Alike


class AlikeReader:
    """Turns events that are written alike into raw columns with the tables of one part."""

    def __init__(self, strings: StringTable, tracks: TrackTable, lifter: Lifter) -> None:
        """Take the part's tables, to which everything adds."""
        self._strings = strings
        self._tracks = tracks
        self._lifter = lifter
        self._spellings: Spellings | None = None

    def read(self, read: ReadText, first: int) -> list[BlockColumns]:
        """Return the columns of a stretch's events behind `first` elements, those of a template together."""
        if self._spellings is not read.spellings:
            self._take(read.spellings)
        return [self._columns(alike, alike.places + np.uint32(first)) for alike in read.alike]

    def _take(self, spellings: Spellings) -> None:
        texts, tracks = spellings.texts, spellings.tracks
        own_texts, own_tracks = self._strings, self._tracks  # not by way of self: there must be no cycles
        self._spellings = spellings
        self._text_numbers = Renumbering(lambda numbers: own_texts.add([texts[n] for n in numbers]))
        self._track_numbers = Renumbering(lambda numbers: [own_tracks.number(*tracks[n]) for n in numbers])

    def _columns(self, alike: Alike, ordinals: U32) -> BlockColumns:
        template, count = alike.template, len(ordinals)
        phase = template.phase.encode()
        category = self._strings[template.category or ""]
        block = BlockColumns(count, phase * count, ordinals)
        block.phases = bytearray(phase * count)
        block.flags = bytearray([template.flags & ~EventFlag.BIND_ENCLOSING]) * count
        block.tracks = self._track_numbers.of(alike.tracks).tobytes()
        block.categories = np.full(count, category, np.uint32).tobytes()
        block.names = self._text_numbers.of(alike.names).tobytes()
        block.starts = alike.starts.tobytes()
        if alike.durations is not None:
            block.durations = alike.durations.tobytes()
        if template.kind == FLOW:
            binds = bool(template.flags & EventFlag.BIND_ENCLOSING)
            block.binding = bytes([binds]) * count
            assert alike.ids is not None
            block.ids[FLOW] = Ids(bytes([IdKind.INTEGER]) * count, alike.ids.tobytes())
        else:
            lifted = {
                key: (self._text_numbers.of(values) if values.dtype == np.uint32 else values).tobytes()
                for key, values in alike.lifted.items()
            }
            block.lifted = self._lifter.alike(template.category, template.arguments, count, lifted)
        return block
