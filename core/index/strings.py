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
from .order import concatenated_ranges

U64: TypeAlias = npt.NDArray[np.uint64]

_CHUNK = 1 << 20
"""Bytes of string text copied at once."""
_PIECE = 1 << 16
"""Strings looked up at once."""


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
    starts = np.cumsum([0, *(len(source.digests) for source in sources)])
    high = _halves(sources, 0)
    order = np.argsort(high, kind="stable").astype(np.uint32)
    ordered = high[order]
    new = ordered[1:] != ordered[:-1]
    same = np.flatnonzero(~new)
    low = _halves(sources, 1)
    if bool((low[order[same]] != low[order[same + 1]]).any()):  # 64 bits collide: compare all 128
        order = np.lexsort((low, high)).astype(np.uint32)
        new = (high[order][1:] != high[order][:-1]) | (low[order][1:] != low[order][:-1])
    del low, ordered, same
    first = order[np.concatenate(([True], new))]  # stable: the first source that has it
    rank = np.concatenate((np.zeros(1, np.uint32), np.cumsum(new, dtype=np.uint32)))
    empty = int(rank[np.flatnonzero(order == 0)[0]])  # takes number 0; those before it move up by one
    rank = np.where(rank == empty, np.uint32(0), rank + (rank < empty).astype(np.uint32))
    number = np.empty(len(order), np.uint32)
    number[order] = rank
    del order, rank
    first = np.concatenate((first[empty : empty + 1], first[:empty], first[empty + 1 :]))
    owner = (np.searchsorted(starts, first, side="right") - 1).astype(np.uint32)
    local = first - starts.astype(np.uint32)[owner]
    return Strings(np.split(number, starts[1:-1])[1:], sources, owner, local, high[first[1:]])


def _halves(sources: list[StringSource], half: int) -> U64:
    """Return the first or second halves of all digests, as numbers."""
    return np.concatenate([source.digests.view(">u8")[:, half].astype(np.uint64) for source in sources])


def write_strings(strings: Strings, blob: ColumnWriter, offsets: ColumnWriter) -> None:
    """Write all strings by number, in pieces of about a megabyte."""
    done = 0
    offsets.append(np.array([0]))
    for at in range(0, len(strings.owner), _PIECE):
        owner, local = strings.owner[at : at + _PIECE], strings.local[at : at + _PIECE].astype(np.int64)
        begin, length = np.empty(len(owner), np.int64), np.empty(len(owner), np.int64)
        by_source = np.argsort(owner, kind="stable")
        groups = np.split(by_source, np.flatnonzero(np.diff(owner[by_source])) + 1)
        for group in groups:
            bounds = strings.sources[int(owner[group[0]])].offsets
            begin[group] = bounds[local[group]]
            length[group] = bounds[local[group] + 1] - begin[group]
        ends = np.cumsum(length)
        for few in np.split(np.arange(len(owner)), _megabytes(ends)):
            piece = np.empty(int(length[few].sum()), np.uint8)
            into = np.cumsum(length[few]) - length[few]
            few_owners = owner[few]
            order = np.argsort(few_owners, kind="stable")
            for group in np.split(order, np.flatnonzero(np.diff(few_owners[order])) + 1):
                which = few[group]
                places = concatenated_ranges(into[group], length[which])
                source = strings.sources[int(owner[which[0]])]
                piece[places] = source.blob[concatenated_ranges(begin[which], length[which])]
            blob.append(piece)
        offsets.append(ends + done)
        done += int(ends[-1])
    for text in strings.added:
        encoded = text.encode("utf-8", "replace")
        done += len(encoded)
        blob.append(np.frombuffer(encoded, np.uint8))
        offsets.append(np.array([done]))


def _megabytes(ends: I64) -> I64:
    """Return where to split strings that end at `ends` into shares of about a megabyte, or one string."""
    share = (ends - 1) // _CHUNK
    return np.flatnonzero(np.diff(share)) + 1


__all__ = ["StringSource", "Strings", "merge_strings", "strings_of", "write_strings"]
