"""Events that are written alike, to the raw columns of a part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .columns import EventFlag, IdKind
from .columns_block import FLOW, TIMED, BlockColumns
from .columns_ids import Ids
from .columns_lifted import LiftedPieces, Lifter
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
        """Return the columns of a stretch's events behind `first` elements: those with a time, then flows."""
        if self._spellings is not read.spellings:
            self._take(read.spellings)
        kinds = [[alike for alike in read.alike if alike.template.kind == kind] for kind in (TIMED, FLOW)]
        return [self._columns(kind, found, first) for kind, found in zip((TIMED, FLOW), kinds) if found]

    def _take(self, spellings: Spellings) -> None:
        texts, tracks = spellings.texts, spellings.tracks
        own_texts, own_tracks = self._strings, self._tracks  # not by way of self: there must be no cycles
        self._spellings = spellings
        self._text_numbers = Renumbering(lambda numbers: own_texts.add([texts[n] for n in numbers]))
        self._track_numbers = Renumbering(lambda numbers: [own_tracks.number(*tracks[n]) for n in numbers])

    def _columns(self, kind: int, found: Sequence[Alike], first: int) -> BlockColumns:
        """Return the columns of all groups of a kind, one group behind the other."""
        counts = [len(alike.places) for alike in found]
        templates = [alike.template for alike in found]
        phases = b"".join(template.phase.encode() * count for template, count in zip(templates, counts))
        flags = [template.flags & ~EventFlag.BIND_ENCLOSING for template in templates]
        categories = [self._strings[template.category or ""] for template in templates]
        ordinals = np.concatenate([alike.places for alike in found]) + np.uint32(first)
        block = BlockColumns(len(ordinals), phases, ordinals)
        block.phases = bytearray(phases)
        block.flags = bytearray(np.repeat(np.array(flags, np.uint8), counts))
        block.tracks = self._track_numbers.of(np.concatenate([alike.tracks for alike in found])).tobytes()
        block.categories = np.repeat(np.array(categories, np.uint32), counts).tobytes()
        block.names = self._text_numbers.of(np.concatenate([alike.names for alike in found])).tobytes()
        block.starts = b"".join(alike.starts.tobytes() for alike in found)
        block.durations = b"".join(
            alike.durations.tobytes() for alike in found if alike.durations is not None
        )
        if kind == FLOW:
            binds = [bool(template.flags & EventFlag.BIND_ENCLOSING) for template in templates]
            block.binding = np.repeat(np.array(binds), counts).tobytes()
            ids = b"".join(alike.ids.tobytes() for alike in found if alike.ids is not None)
            block.ids[FLOW] = Ids(bytes([IdKind.INTEGER]) * len(ordinals), ids)
        else:
            block.lifted = self._lifted(found)
        return block

    def _lifted(self, found: Sequence[Alike]) -> LiftedPieces:
        texts = [values for alike in found for values in alike.lifted.values() if values.dtype == np.uint32]
        renumbered = self._text_numbers.of(np.concatenate([np.zeros(0, np.uint32), *texts]))
        at = 0
        pieces = []
        for alike in found:
            columns = {}
            for key, values in alike.lifted.items():
                if values.dtype == np.uint32:
                    values, at = renumbered[at : at + len(values)], at + len(values)
                columns[key] = values.tobytes()
            template = alike.template
            pieces.append(
                self._lifter.alike(template.category, template.arguments, len(alike.places), columns)
            )
        return LiftedPieces.joined(pieces)
