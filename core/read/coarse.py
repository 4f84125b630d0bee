"""A first picture of a trace: how busy each lane was, in coarse buckets, while most is still to be read.

Buckets are 2**shift ns wide and numbered by `time >> shift`, so that histograms of different parts, and of
different widths, add up by dropping bits. Only buckets in which something lies are held: far outliers cost
no resolution.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import I64, U32, AnyArray
from ..base.errors import CacheError
from .batch import Batch, StringTable

LANE_BUCKETS = 4096
"""Buckets that one lane holds at most, while all lanes together hold no more than MOST_BUCKETS."""
MOST_BUCKETS = 256 * LANE_BUCKETS
LEAST_BUCKETS = 16
"""So many a lane may always hold."""
MOST_LANES = 1 << 16
"""Lanes met later than so many others are left out of the picture."""
MOST_NAMES = 1 << 14
"""Of more names in one part only the first are used."""
PICTURE = "picture-"
WIDEST = 60
"""At this width no time needs more than LEAST_BUCKETS."""

THREAD, ASYNC, COUNTER = 0, 1, 2
"""Kinds of lanes, numbered as in the index."""
FURTHER = ((ASYNC, "asyncs", "category"), (COUNTER, "counters", "name"))
"""Lanes beside threads: kind, the table that they are of, the column that tells them apart in a process."""


class LaneName(NamedTuple):
    """Names a lane: `pid` and `tid` are JSON texts; `name` is an async category's or a counter's.

    Async spans and counters of one name that differ by their id share a lane here.
    """

    kind: int
    pid: str
    tid: str
    name: str = ""


_NONE = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class Coarse:
    """Busy time by lane and bucket, ordered by both.

    Slices that lie over each other within a part count once. Moments (instants, counter samples, ends of B/E
    slices and of async spans) hold a bucket without making it busy.
    """

    shift: int
    lanes: tuple[LaneName, ...]
    lane: U32
    bucket: I64
    busy: I64  # ns

    @property
    def width(self) -> int:
        """Width of a bucket, ns."""
        return 1 << self.shift


def nothing() -> Coarse:
    """Return the picture of no events."""
    return Coarse(0, (), np.empty(0, np.uint32), np.empty(0, np.int64), np.empty(0, np.int64))


def most_buckets(lanes: int) -> int:
    """Return how many buckets each of so many lanes may hold."""
    return max(LEAST_BUCKETS, min(LANE_BUCKETS, MOST_BUCKETS // max(1, lanes)))


def coarse_of(batch: Batch, texts: StringTable) -> Coarse:
    """Return the picture of one batch's slices and moments."""
    names: dict[LaneName, int] = {}
    pictures = [
        picture
        for picture in (_timed(batch, texts, names), *_further(batch, texts, names))
        if len(picture[0])
    ]
    if not pictures:
        return nothing()
    lane, start, end = (np.concatenate(columns) for columns in zip(*pictures))
    lanes = tuple(names)
    if len(lanes) > MOST_LANES:
        drawn = np.flatnonzero(lane < MOST_LANES)
        lane, start, end, lanes = lane[drawn], start[drawn], end[drawn], lanes[:MOST_LANES]
    lane, begin, end = _covered(lane, start, end)
    return _within(_in_buckets(lanes, lane, begin, end, _shift_for(lane, begin, end, len(lanes))))


def _timed(batch: Batch, texts: StringTable, names: dict[LaneName, int]) -> tuple[I64, I64, I64]:
    """Return (lane, start, end) of slices and instants; threads in which none lies get no lane."""
    table = batch.tables["timed"]
    if not len(table["start"]):
        return _NONE
    track, start = table["track"], table["start"]
    used = np.flatnonzero(np.bincount(track))
    to_lane = np.zeros(int(used[-1]) + 1, np.int64)
    to_lane[used] = [_number(names, LaneName(THREAD, *texts.track(number))) for number in used.tolist()]
    return to_lane[track], start, start + table["duration"]


def _further(batch: Batch, texts: StringTable, names: dict[LaneName, int]) -> Iterator[tuple[I64, I64, I64]]:
    """Yield (lane, start, end) of async spans' ends and of counter samples."""
    strings = len(texts.offset)
    for kind, name, column in FURTHER:
        table = batch.tables[name]
        if not len(table["start"]):
            continue
        keys, which = np.unique(
            table["track"].astype(np.int64) * strings + table[column], return_inverse=True
        )
        lanes = []
        for track, text in (divmod(key, strings) for key in keys.tolist()):
            lanes.append(_number(names, LaneName(kind, texts.track(track)[0], "", texts.text(text))))
        yield np.array(lanes, np.int64)[which], table["start"], table["start"]


def _number(names: dict[LaneName, int], name: LaneName) -> int:
    return names.setdefault(name, len(names))


def merged(pictures: Sequence[Coarse]) -> Coarse:
    """Return several pictures as one, in the width of the widest, or wider where a lane holds too much."""
    if not pictures:
        return nothing()
    numbers: dict[LaneName, int] = {}
    shift = max(picture.shift for picture in pictures)
    lanes, buckets, busy = [], [], []
    for picture in pictures:
        for name in picture.lanes:
            if len(numbers) < MOST_LANES:
                _number(numbers, name)
        to_common = np.array([numbers.get(name, MOST_LANES) for name in picture.lanes], np.uint32)
        lane = to_common[picture.lane]
        has_room = lane < MOST_LANES
        lanes.append(lane[has_room])
        buckets.append(picture.bucket[has_room] >> (shift - picture.shift))
        busy.append(picture.busy[has_room])
    lane, bucket, ns = np.concatenate(lanes), np.concatenate(buckets), np.concatenate(busy)
    order = np.lexsort((bucket, lane))
    return _within(_grouped(shift, tuple(numbers), lane[order], bucket[order], ns[order]))


def _covered(track: AnyArray, start: I64, end: I64) -> tuple[U32, I64, I64]:
    """Return the intervals [begin, end) of each lane that slices cover, in order; moments are empty ones."""
    order = np.lexsort((start, track))
    lane, begin, reach = track[order], start[order], end[order]
    # One running maximum serves all lanes at once: a lane's times are moved above those of the lane before.
    room = int(end.max()) - int(start.min()) + 1
    lanes = int(lane[-1]) + 1
    if room * lanes < 1 << 62:
        base = lane.astype(np.int64) * room - int(start.min())
        reach = np.maximum.accumulate(reach + base) - base
    else:
        edges = [0, *(np.flatnonzero(np.diff(lane)) + 1).tolist(), len(lane)]
        for a, b in pairwise(edges):
            np.maximum.accumulate(reach[a:b], out=reach[a:b])
    fresh = np.ones(len(lane), np.bool_)
    fresh[1:] = (lane[1:] != lane[:-1]) | (begin[1:] >= reach[:-1])
    firsts = np.flatnonzero(fresh)
    return lane[firsts].astype(np.uint32), begin[firsts], reach[np.append(firsts[1:], len(lane)) - 1]


def _ends_in(end: I64, begin: I64, shift: int) -> I64:
    """Return the bucket of the last ns of each stretch; of a moment its own."""
    return np.maximum(end - 1, begin) >> shift


def _shift_for(lane: U32, begin: I64, end: I64, lanes: int) -> int:
    """Return the narrowest width at which no lane holds too many buckets."""
    most = most_buckets(lanes)
    low, high = 0, WIDEST
    while low < high:
        shift = (low + high) // 2
        first, last = begin >> shift, _ends_in(end, begin, shift)
        held = (last - first + 1).astype(np.float64)  # their number only: sums beyond int64 at small shifts
        held[1:] -= (lane[1:] == lane[:-1]) & (first[1:] == last[:-1])
        if np.bincount(lane, held).max() <= most:
            high = shift
        else:
            low = shift + 1
    return low


def _in_buckets(lanes: tuple[LaneName, ...], lane: U32, begin: I64, end: I64, shift: int) -> Coarse:
    first, last = begin >> shift, _ends_in(end, begin, shift)
    held = last - first + 1
    behind = np.cumsum(held)
    which = np.repeat(np.arange(len(lane)), held)
    bucket = np.arange(len(which)) - (behind - held)[which] + first[which]
    left = bucket << shift
    inside = np.minimum(end[which], left + (1 << shift)) - np.maximum(begin[which], left)
    return _grouped(shift, lanes, lane[which], bucket, np.maximum(inside, 0))


def _grouped(shift: int, lanes: tuple[LaneName, ...], lane: U32, bucket: I64, busy: I64) -> Coarse:
    """Add up what lies in one bucket; the entries are in order."""
    if not len(lane):
        return Coarse(shift, lanes, lane, bucket, busy)
    firsts = np.flatnonzero(np.concatenate(([True], (lane[1:] != lane[:-1]) | (bucket[1:] != bucket[:-1]))))
    return Coarse(shift, lanes, lane[firsts], bucket[firsts], np.add.reduceat(busy, firsts))


def _within(coarse: Coarse) -> Coarse:
    """Double the width until no lane holds too many buckets."""
    most = most_buckets(len(coarse.lanes))
    while len(coarse.lane) and int(np.bincount(coarse.lane).max()) > most:
        coarse = _grouped(coarse.shift + 1, coarse.lanes, coarse.lane, coarse.bucket >> 1, coarse.busy)
    return coarse


def write_picture(batch: Batch, texts: StringTable, folder: Path) -> Path:
    """Write the picture of a batch, and what its metadata call processes and threads, to a file."""
    names = [m for m in batch.metadata if m.name.startswith(("process_", "thread_"))][:MOST_NAMES]
    about = {"number": batch.number, "metadata": [astuple(event) for event in names]}
    path = folder / f"{PICTURE}{batch.number:06d}"
    write_coarse(path, coarse_of(batch, texts), about)
    return path


def write_coarse(path: Path, coarse: Coarse, about: Any) -> None:
    """Write a picture and what belongs to it, of JSON, as one small file; a full disk is a CacheError."""
    facts = {"shift": coarse.shift, "lanes": coarse.lanes, "about": about}
    text = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    try:
        with path.open("wb") as file:
            for array in (text, coarse.lane, coarse.bucket, coarse.busy):
                np.save(file, array)
    except OSError as error:
        raise CacheError(f"cannot write {path}: {error.strerror or error}") from error


def read_coarse(path: Path) -> tuple[Coarse, Any]:
    """Read a picture and what belongs to it; CacheError where the file is gone or damaged."""
    try:
        with path.open("rb") as file:
            text, lane, bucket, busy = (np.load(file, allow_pickle=False) for _ in range(4))
        facts = json.loads(text.tobytes())
        lanes = tuple(LaneName(*name) for name in facts["lanes"])
        coarse = Coarse(facts["shift"], lanes, lane, bucket, busy)
    except (OSError, ValueError, EOFError) as error:
        raise CacheError(f"cannot read {path}: {error}") from error
    return coarse, facts["about"]
