"""A first picture of a trace: how busy each lane was, in coarse buckets, while most is still to be read.

Buckets are 2**shift ns wide and numbered by `time >> shift`, so that histograms of different parts, and of
different widths, add up by dropping bits. Only buckets in which something lies are held: far outliers cost
no resolution.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import CacheError
from .columns import I64, TIME_LIMIT, U32, AnyArray, Part

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

Track = tuple[str, str]


@dataclass(frozen=True)
class Coarse:
    """Busy time by lane and bucket, ordered by both; `tracks` are JSON texts of (pid, tid).

    Slices that lie over each other within a part count once. Moments (instants, ends of B/E slices) hold a
    bucket without making it busy.
    """

    shift: int
    tracks: tuple[Track, ...]
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


def coarse_of(part: Part) -> Coarse:
    """Return the picture of one part's slices and instants."""
    timed = part.tables.get("timed")
    if timed is None or not len(timed["start"]):
        return nothing()
    tracks = tuple(part.tracks[:MOST_LANES])
    track, start, duration = timed["track"], timed["start"], timed["duration"]
    if len(part.tracks) > MOST_LANES:
        drawn = np.flatnonzero(track < MOST_LANES)
        track, start, duration = track[drawn], start[drawn], duration[drawn]
    lane, begin, end = _covered(track, start, start + np.minimum(duration, TIME_LIMIT - 1))
    return _within(_in_buckets(tracks, lane, begin, end, _shift_for(lane, begin, end, len(tracks))))


def merged(pieces: Sequence[Coarse]) -> Coarse:
    """Return several pictures as one, in the width of the widest, or wider where a lane holds too much."""
    if not pieces:
        return nothing()
    numbers: dict[Track, int] = {}
    shift = max(piece.shift for piece in pieces)
    lanes, buckets, busy = [], [], []
    for piece in pieces:
        for track in piece.tracks:
            if len(numbers) < MOST_LANES:
                numbers.setdefault(track, len(numbers))
        to_common = np.array([numbers.get(track, MOST_LANES) for track in piece.tracks], np.uint32)
        lane = to_common[piece.lane]
        kept = lane < MOST_LANES
        lanes.append(lane[kept])
        buckets.append(piece.bucket[kept] >> (shift - piece.shift))
        busy.append(piece.busy[kept])
    lane, bucket, ns = np.concatenate(lanes), np.concatenate(buckets), np.concatenate(busy)
    order = np.lexsort((bucket, lane))
    return _within(_grouped(shift, tuple(numbers), lane[order], bucket[order], ns[order]))


def _covered(track: AnyArray, start: I64, end: I64) -> tuple[U32, I64, I64]:
    """Return the stretches [begin, end) of each lane with slices in them, in order; of moments empty ones."""
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


def _in_buckets(tracks: tuple[Track, ...], lane: U32, begin: I64, end: I64, shift: int) -> Coarse:
    first, last = begin >> shift, _ends_in(end, begin, shift)
    held = last - first + 1
    behind = np.cumsum(held)
    which = np.repeat(np.arange(len(lane)), held)
    bucket = np.arange(len(which)) - (behind - held)[which] + first[which]
    left = bucket << shift
    inside = np.minimum(end[which], left + (1 << shift)) - np.maximum(begin[which], left)
    return _grouped(shift, tracks, lane[which], bucket, np.maximum(inside, 0))


def _grouped(shift: int, tracks: tuple[Track, ...], lane: U32, bucket: I64, busy: I64) -> Coarse:
    """Add up what lies in one bucket; the entries are in order."""
    if not len(lane):
        return Coarse(shift, tracks, lane, bucket, busy)
    firsts = np.flatnonzero(np.concatenate(([True], (lane[1:] != lane[:-1]) | (bucket[1:] != bucket[:-1]))))
    return Coarse(shift, tracks, lane[firsts], bucket[firsts], np.add.reduceat(busy, firsts))


def _within(coarse: Coarse) -> Coarse:
    """Double the width until no lane holds too many buckets."""
    most = most_buckets(len(coarse.tracks))
    while len(coarse.lane) and int(np.bincount(coarse.lane).max()) > most:
        coarse = _grouped(coarse.shift + 1, coarse.tracks, coarse.lane, coarse.bucket >> 1, coarse.busy)
    return coarse


def write_picture(part: Part, folder: Path) -> Path:
    """Write the picture of a part, and what its metadata call processes and threads, beside its part file."""
    names = [m for m in part.metadata if m.name.startswith(("process_", "thread_"))][:MOST_NAMES]
    about = {"number": part.number, "metadata": [astuple(event) for event in names]}
    path = folder / f"{PICTURE}{part.number:06d}"
    write_coarse(path, coarse_of(part), about)
    return path


def write_coarse(path: Path, coarse: Coarse, about: Any) -> None:
    """Write a picture and what belongs to it, of JSON, as one small file; a full disk is a CacheError."""
    facts = {"shift": coarse.shift, "tracks": coarse.tracks, "about": about}
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
        tracks = tuple((pid, tid) for pid, tid in facts["tracks"])
        coarse = Coarse(facts["shift"], tracks, lane, bucket, busy)
    except (OSError, ValueError, EOFError) as error:
        raise CacheError(f"cannot read {path}: {error}") from error
    return coarse, facts["about"]
