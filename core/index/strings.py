"""One string table out of those of all parts, numbered by digest: the same however the file was cut.

Strings are told apart by their 16-byte digests, compared as numbers in numpy, so that five million distinct
names need some 24 bytes each while merging and no dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..ingest.columns import I64, U8, U32
from ..ingest.part_file import DIGEST_BYTES
from .columns_out import ColumnWriter
from .rows import concatenated_ranges

U64: TypeAlias = npt.NDArray[np.uint64]

_CHUNK = 1 << 20
"""Bytes of string text copied at once."""


@dataclass(frozen=True)
class StringSource:
    """The strings of one part: UTF-8 one after the other, n + 1 offsets, n digests as rows of 16 bytes."""

    blob: U8
    offsets: I64
    digests: U8

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> StringSource:
        """Encode strings (what has no UTF-8 is replaced)."""
        encoded = [text.encode("utf-8", "replace") for text in texts]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
        digests = b"".join([blake2b(text, digest_size=DIGEST_BYTES).digest() for text in encoded])
        return cls(
            np.frombuffer(b"".join(encoded), np.uint8),
            offsets,
            np.frombuffer(digests, np.uint8).reshape(-1, DIGEST_BYTES),
        )


def strings_of(part: object) -> StringSource:
    """Return a part's strings: mapped where it lies on disk, encoded here where it is in memory."""
    blob = getattr(part, "string_blob", None)
    if blob is not None:
        return StringSource(blob, part.string_offsets, part.string_digests)  # type: ignore[attr-defined]
    return StringSource.of_texts(part.strings)  # type: ignore[attr-defined]


class Strings:
    """Global string numbers: `maps[i][k]` is the number of string k of source i; 0 is the empty string."""

    def __init__(
        self, maps: list[U32], sources: list[StringSource], owner: U32, local: U32, high: U64
    ) -> None:
        """Take what `merge_strings` found; `high`: the first halves of the digests by number, from 1 on."""
        self.maps, self.sources = maps, sources
        self.owner, self.local = (
            owner,
            local,
        )  # per string the source that it is copied from, its number there
        self._high = high
        self._added: dict[str, int] = {}

    @property
    def count(self) -> int:
        """How many distinct strings there are."""
        return len(self.owner) + len(self._added)

    @property
    def added(self) -> list[str]:
        """Strings that no source has, by number after those of the sources."""
        return list(self._added)

    def text(self, number: int) -> str:
        """Return one string."""
        if number >= len(self.owner):
            return self.added[number - len(self.owner)]
        source = self.sources[int(self.owner[number])]
        k = int(self.local[number])
        return source.blob[source.offsets[k] : source.offsets[k + 1]].tobytes().decode("utf-8", "replace")

    def number(self, text: str) -> int:
        """Return a string's number, a new one at the end if no source has it."""
        if not text:
            return 0
        half = np.uint64(
            int.from_bytes(
                blake2b(text.encode("utf-8", "replace"), digest_size=DIGEST_BYTES).digest()[:8], "big"
            )
        )
        place = int(np.searchsorted(self._high, half))
        while place < len(self._high) and self._high[place] == half:
            if self.text(place + 1) == text:
                return place + 1
            place += 1
        return self._added.setdefault(text, self.count)


def merge_strings(sources: list[StringSource]) -> Strings:
    """Number the distinct strings of all sources by digest; the empty string is 0 and always there."""
    sources = [StringSource.of_texts([""]), *sources]
    counts = [len(source.digests) for source in sources]
    digests = np.concatenate([np.ascontiguousarray(source.digests) for source in sources])
    halves = digests.view(">u8").astype(np.uint64)
    high, low = halves[:, 0].copy(), halves[:, 1].copy()
    del digests, halves
    order = np.argsort(high, kind="stable")
    new = high[order][1:] != high[order][:-1]
    if bool((~new & (low[order][1:] != low[order][:-1])).any()):  # 64 bits collide: compare all 128
        order = np.lexsort((low, high))
        new = (high[order][1:] != high[order][:-1]) | (low[order][1:] != low[order][:-1])
    rank = np.concatenate(([0], np.cumsum(new)))
    first = order[np.concatenate(([True], new))]  # stable: the first source that has it
    empty = int(rank[np.flatnonzero(order == 0)[0]])  # takes number 0; those before it move up by one
    number = np.empty(len(order), np.uint32)
    number[order] = np.where(rank == empty, 0, rank + (rank < empty))
    first = np.concatenate((first[empty : empty + 1], first[:empty], first[empty + 1 :]))
    high_by_number = high[first[1:]]
    starts = np.cumsum([0, *counts])
    owner = np.searchsorted(starts, first, side="right") - 1
    maps = np.split(number, starts[1:-1])
    local = (first - starts[owner]).astype(np.uint32)
    return Strings(maps[1:], sources, owner.astype(np.uint32), local, high_by_number)


def write_strings(strings: Strings, blob: ColumnWriter, offsets: ColumnWriter) -> None:
    """Write all strings by number, in pieces of about a megabyte."""
    n = len(strings.owner)
    length = np.empty(n, np.int64)
    begin = np.empty(n, np.int64)
    by_owner = np.argsort(strings.owner, kind="stable")
    bounds = np.searchsorted(strings.owner[by_owner], np.arange(len(strings.sources) + 1))
    for i, source in enumerate(strings.sources):
        mine = by_owner[bounds[i] : bounds[i + 1]]
        local = strings.local[mine]
        begin[mine] = source.offsets[local]
        length[mine] = source.offsets[local.astype(np.int64) + 1] - source.offsets[local]
    ends = np.cumsum(length)
    offsets.append(np.concatenate(([0], ends)))
    at = 0
    while at < n:
        done = int(ends[at - 1]) if at else 0
        stop = max(at + 1, int(np.searchsorted(ends, done + _CHUNK, side="right")))
        piece = np.empty(int(ends[stop - 1]) - done, np.uint8)
        owner = strings.owner[at:stop]
        by_source = np.argsort(owner, kind="stable")
        cuts = np.flatnonzero(np.diff(owner[by_source])) + 1
        for group in np.split(by_source, cuts):
            which = group + at
            source = strings.sources[int(owner[group[0]])]
            into = concatenated_ranges(ends[which] - length[which] - done, length[which])
            piece[into] = source.blob[concatenated_ranges(begin[which], length[which])]
        blob.append(piece)
        at = stop
    done = int(ends[-1])
    for text in strings.added:
        encoded = text.encode("utf-8", "replace")
        done += len(encoded)
        blob.append(np.frombuffer(encoded, np.uint8))
        offsets.append(np.array([done]))


__all__ = ["StringSource", "Strings", "merge_strings", "strings_of", "write_strings"]
