"""Sets of the host's slices as masks: what lies in what, own time and extremes, against plain loops."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from tests.events import Event, complete, open_events
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.host_columns import HostSlices, host_of
from tracelane.core.tables.host.op_events import RUNTIME

THREADS = 3
DEPTH = 5
NAMES = "abc"


def nested(rng: random.Random, low: int, high: int, tid: int, depth: int) -> list[Event]:
    """Return slices that lie in [low, high) one after another, each with others in it."""
    events: list[Event] = []
    while high - low > 2 and len(events) < 4:
        low += rng.randrange(1, high - low)
        length = rng.randrange(1, max(2, high - low))
        name = rng.choice(NAMES)
        events.append(complete(low, length, name, rng.choice(("cpu_op", "cuda_runtime")), tid=tid))
        if depth:
            events += nested(rng, low, low + length, tid, depth - 1)
        low += length
    return events


def host_slices(folder: Path, seed: int) -> HostSlices:
    """Return the host's slices of a trace of nested ones on several threads."""
    rng = random.Random(seed)
    events = [event for tid in range(THREADS) for event in nested(rng, 0, 2000, tid, DEPTH)]
    rng.shuffle(events)
    return host_of(Scope(open_events(folder, events)))


def chain(host: HostSlices, row: int) -> list[int]:
    """Return the rows of all slices around one, by the index's parents."""
    parents, above = host.index.column("slices.parent"), []
    rows = {position: at for at, position in enumerate(host.positions.tolist())}
    position = int(parents[host.positions[row]])
    while position in rows:
        above.append(rows[position])
        position = int(parents[position])
    return above


@pytest.mark.parametrize("seed", range(12))
def test_masks_answer_as_plain_loops_do(tmp_path: Path, seed: int) -> None:
    """Whatever the masks: what lies within members, which of these lie around what, what is longest, earliest
    and first, and how many there are by name, are as loops over the slices say.
    """
    host, rng = host_slices(tmp_path, seed), np.random.default_rng(seed)
    assert len(host) > THREADS
    above = [chain(host, row) for row in range(len(host))]
    for share in (0, 0.1, 0.5, 1):
        some, members = (rng.random(len(host)) < share for _ in range(2))
        rows = np.flatnonzero(some).tolist()
        inside = [bool(some[row]) and any(members[at] for at in above[row]) for row in range(len(host))]
        around = {at for row in rows for at in above[row] if members[at]}
        assert host.inside(some, members).tolist() == inside
        assert set(np.flatnonzero(host.around_any(some, members)).tolist()) == around
        texts = [host.texts[name] for name in host.name.tolist()]
        counts = [sum(texts[row] == text for row in rows) for text in host.texts]
        assert host.counts(some).tolist() == counts
        if rows:
            lengths, starts = host.durations.tolist(), host.starts.tolist()
            assert host.most(some, host.durations) == max(rows, key=lambda row: (lengths[row], -row))
            assert host.earliest(some) == min(rows, key=lambda row: (starts[row], row))
            assert host.first(some) == rows[0]


class CountedPattern:
    """An expression that counts the names in which it is searched for."""

    def __init__(self, text: str) -> None:
        self._pattern, self.searches = re.compile(text), 0

    def search(self, text: str) -> re.Match[str] | None:
        self.searches += 1
        return self._pattern.search(text)


@pytest.mark.parametrize("kind", [None, RUNTIME])
def test_names_that_ranks_share_are_searched_once(tmp_path: Path, kind: int | None) -> None:
    """Of several ranks with the same names an expression is searched for in each name once, and what it
    matches is what it matches in each rank by itself.
    """
    pattern = CountedPattern("a")
    for seed in range(4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        host = host_slices(folder, seed)
        mask = host.matching(cast("re.Pattern[str]", pattern), kind)
        names = [host.texts[name] for name in host.name.tolist()]
        is_kind = host.kinds == kind if kind is not None else np.ones(len(host), np.bool_)
        assert mask.tolist() == [name == "a" and bool(one) for name, one in zip(names, is_kind)]
    assert pattern.searches == len(NAMES)
