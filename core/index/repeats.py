"""Lanes of a device that repeat what its other lanes show: whoever wrote the file drew the work twice.

A lane repeats others where nearly all of its slices stand on them too: name, start and duration are the same.
Of two lanes that are alike the first counts; of a lane that gathers several, those that it gathers. Lanes of
two devices by label, "GPU 0" and "GPU 1", are never held against each other.

In a file of more than SAMPLE slices of devices those are looked at whose starts a hash chooses: a slice and
its repetition start together, so that both are chosen or neither. Time is linear, memory bounded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.arrays import I64, AnyArray, Bools, concatenated_ranges, pieces, run_starts
from .format import LaneRole, RowKind
from .store import Index

SAMPLE = 1 << 14
"""About so many slices are looked at."""
MIN_SLICES, SHARE = 8, 0.99
"""A lane is judged by at least so many slices; this share of them stands on other lanes too."""
MIX = np.uint64(0x9E3779B97F4A7C15)
"""2^64 by the golden ratio: it spreads starts evenly, however regular they are (Knuth, TAOCP 6.4)."""


def repeating_lanes(index: Index, roles: AnyArray, devices: Sequence[str]) -> Bools:
    """Return which lanes of devices repeat other lanes of devices; `devices` has for each lane the label of
    the device of its process, "" where none tells.
    """
    repeats = np.zeros(len(roles), np.bool_)
    own = np.flatnonzero((roles == LaneRole.DEVICE) & (index.lanes["slices"] >= MIN_SLICES))
    if len(own) < 2:
        return repeats
    lanes, keys = _sampled(index, own)
    tags = {label: number for number, label in enumerate(dict.fromkeys(filter(None, devices)), 1)}
    tag_of = np.array([tags.get(label, 0) for label in devices], np.int64)
    counts = np.bincount(lanes, minlength=len(roles))
    shared = np.bincount(lanes, _is_on_several(lanes, keys), len(roles))
    candidates = np.flatnonzero((counts >= MIN_SLICES) & (shared >= SHARE * counts))
    # The largest first: a lane that gathers others goes before they do; of equals the later one.
    for lane in sorted(candidates.tolist(), key=lambda lane: (-int(counts[lane]), -lane)):
        tag = tag_of[lane]
        others = (lanes != lane) & ~repeats[lanes]
        if tag:
            others &= (tag_of[lanes] == tag) | (tag_of[lanes] == 0)
        mine = keys[lanes == lane]
        repeats[lane] = np.count_nonzero(np.isin(mine, keys[others])) >= SHARE * len(mine)
    return repeats


def _is_on_several(lanes: I64, keys: AnyArray) -> Bools:
    """Return of each slice whether one of its key stands on another lane."""
    order = np.lexsort((lanes, keys))
    of_key, of_lane = run_starts(keys[order]), run_starts(keys[order], lanes[order])
    ends = np.append(of_key[1:], len(keys))
    lanes_of_key = np.searchsorted(of_lane, ends) - np.searchsorted(of_lane, of_key)
    several = np.zeros(len(keys), np.bool_)
    several[order] = np.repeat(lanes_of_key > 1, ends - of_key)
    return several


def _sampled(index: Index, lanes: AnyArray) -> tuple[I64, AnyArray]:
    """Return (lane, key) of slices of some lanes; slices of one name, start and duration have one key, a hash
    of the three.
    """
    first, count = (index.lanes[name][lanes].astype(np.int64) for name in ("first_row", "rows"))
    numbers = concatenated_ranges(first, count)
    rows, lane = index.rows[numbers], np.repeat(lanes.astype(np.int64), count)
    is_drawn = (rows["kind"] == RowKind.SLICES) & (rows["count"] > 0)
    rows, lane = rows[is_drawn], lane[is_drawn]
    begins, sizes = rows["first"].astype(np.int64), rows["count"].astype(np.int64)
    starts = index.column("slices.start")
    # Which slices are looked at is read off their own start, not off their place in the lane: of a lane and
    # of its copy, which may have some slices more, the same are looked at. Drawn by chance, one in a hundred
    # of each, hardly any would be in both.
    below = np.uint64(min((1 << 64) - 1, (SAMPLE << 64) // max(1, int(sizes.sum()))))
    chosen, owners = [], []
    for begin, size, owner in zip(begins.tolist(), sizes.tolist(), lane.tolist()):
        for own in pieces(size):
            mixed = starts[begin + own.start : begin + own.stop].astype(np.uint64) * MIX
            here = begin + own.start + np.flatnonzero(mixed <= below)
            chosen.append(here)
            owners.append(np.full(len(here), owner, np.int64))
    positions: I64 = np.concatenate(chosen)
    keys: AnyArray = starts[positions].astype(np.uint64)
    for values in (index.duration(positions), index.column("slices.name")[positions]):
        keys = (keys * MIX) ^ (keys >> np.uint64(29)) ^ values.astype(np.uint64)
    return np.concatenate(owners), keys
