"""What lines show of the devices of a trace, stored beside the index of a whole trace once it is known.

    derived/device-facts-<hash>.bin: checksum, line of JSON, arrays of int64, arrays of bytes

The first picture and what is printed read it; the viewer, which counts it anyway, writes it. `device_shares`
counts: nothing of what that needs is loaded here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tracelane.core.base.arrays import AnyArray, Intervals
from tracelane.core.base.clock import Clocks
from tracelane.core.base.private import make_private_folder, read_private, sealed, unsealed, write_private
from tracelane.core.logs.more_sources import own_clocks, own_trace
from tracelane.core.tables.device.states import IDLE, DeviceState
from tracelane.core.tables.findings.leading import stored_leading
from tracelane.core.tables.frame.cached import usual_cache_file
from tracelane.core.tables.frame.work_device import WorkDevice
from tracelane.core.trace import Trace
from tracelane.core.trace.devices import devices

from .draw.header import DeviceShare, busy_texts
from .draw.ranks import RankNotes
from .draw.states import DrawnStates, LaneGaps, PeerWaits
from .draw.verdict import StateShares, VerdictFacts

NAME = "device-facts"
OWN_CODE = ("device_facts", "device_shares")
FORM = 5
"""Raised whenever the file is written in another way, or says something else."""
MAX_BYTES = 8 << 20
"""A longer file is not written: 250,000 pieces of device work. To read one takes 10 ms."""


class DeviceFacts(NamedTuple):
    """What is said and drawn of the devices."""

    shares: Sequence[DeviceShare]
    notes: RankNotes
    spent: StateShares | None
    states: DrawnStates
    troubles: Sequence[str] = ()  # of their clocks, as they are said


class KnownFacts(NamedTuple):
    """What a picture knows of the devices, and of what costs time."""

    states: DrawnStates | None = None  # None: not counted yet
    notes: RankNotes = RankNotes()
    busy: Sequence[str] = ()  # for the header
    verdict: VerdictFacts | None = None  # None: the picture has no verdict

    @classmethod
    def of(cls, facts: DeviceFacts | None, verdict: VerdictFacts) -> KnownFacts:
        if facts is None:
            return cls(verdict=verdict)
        verdict = verdict._replace(spent=facts.spent, is_counted=True)
        return cls(facts.states, facts.notes, busy_texts(facts.shares), verdict)


def stored_knowledge(trace: Trace, clocks: Clocks) -> KnownFacts:
    """Return what is stored beside the index of a trace, logs and lanes over it aside."""
    own = own_trace(trace)
    clocks = own_clocks(own, clocks)
    leading, verdict = stored_leading(own, clocks), VerdictFacts()
    if leading is not None:
        verdict = verdict._replace(leading=next(iter(leading), None), is_judged=True)
    return KnownFacts.of(stored_facts(own, clocks), verdict)


def stored_facts(trace: Trace, clocks: Clocks) -> DeviceFacts | None:
    """Return what is stored of the devices of a whole trace, None where nothing is, or under other clocks."""
    path = _file(trace, clocks)
    if path is None:
        return None
    try:
        return _read(trace, clocks, unsealed(read_private(path, MAX_BYTES)))
    except (OSError, KeyError, TypeError, ValueError, IndexError):
        return None


def keep_facts(trace: Trace, clocks: Clocks, facts: DeviceFacts) -> None:
    """Store it for the next time; a failure only costs time then."""
    path = _file(trace, clocks)
    if path is None:
        return
    with suppress(OSError):
        data = _written(trace, facts)
        if len(data) <= MAX_BYTES:
            make_private_folder(path.parent)
            write_private(path, data)


def _file(trace: Trace, clocks: Clocks) -> Path | None:
    """Return where it is stored: what this package's own code counts is stale with that, too."""
    stamps = []
    with suppress(OSError):  # a package in an archive
        folder = os.path.dirname(__file__)
        for name in sorted(os.listdir(folder)):
            if name.partition(".")[0] in OWN_CODE:  # the source, or what was compiled of it
                own = os.stat(os.path.join(folder, name))
                stamps.append((own.st_size, own.st_mtime_ns))
    path = usual_cache_file(trace, clocks, NAME, FORM, stamps)
    return None if path is None else path.with_suffix(".bin")


def _written(trace: Trace, facts: DeviceFacts) -> bytes:
    numbers = {one.lanes: number for number, one in enumerate(devices(trace))}
    longs: list[AnyArray] = []
    shorts: list[AnyArray] = []
    states, gaps = [], []
    for state in facts.states.of_devices:
        longs += [state.edges, *(side for one in state.layers for side in (one.starts, one.ends))]
        shorts += [state.states, state.causes]
        own = state.device
        sizes = [len(state.edges), *map(len, state.layers)]
        states.append([numbers[own.device.lanes], own.rank, own.number, state.longest, sizes])
    for lane, one in facts.states.gaps.items():
        longs += [one.starts, one.ends, one.after.astype(np.int64)]
        shorts.append(one.causes)
        gaps.append([lane, len(one.starts), list(one.details.items())])
    notes, spent = facts.notes, facts.spent
    ranks = []
    for source, intervals in _activity(notes, facts.states.of_devices).items():
        longs += [side for one in intervals for side in (one.starts, one.ends)]
        ranks.append([source, list(map(len, intervals))])
    awaited = facts.states.awaited
    longs += [side for one in awaited.values() for side in (one.starts, one.ends, one.ranks)]
    head = {
        "awaited": [[source, len(one.starts)] for source, one in awaited.items()],
        "shares": [list(one) for one in facts.shares],
        "notes": [notes.slowest, list(notes.texts.items()), list(notes.latest)],
        "ranks": ranks,
        "spent": None if spent is None else list(spent._replace(shares=dict(spent.shares))),
        "states": states,
        "gaps": gaps,
        "troubles": list(facts.troubles),
    }
    parts = [np.asarray(each, np.int64).tobytes() for each in longs]
    parts += [np.asarray(each, np.uint8).tobytes() for each in shorts]
    return sealed(json.dumps(head).encode() + b"\n" + b"".join(parts))


def _activity(notes: RankNotes, states: Sequence[DeviceState]) -> Mapping[int, Sequence[Intervals]]:
    """Return by source what is stored of its rank: when the others wait for it, and of one without devices,
    whose states are stored, when its host computes and waits.
    """
    if (activity := notes.activity) is None:
        return {}
    with_devices = {one.device.device.source for one in states}
    stored = {}
    for row, source in enumerate(activity.sources):
        parts = (activity.delays, activity.works, activity.waits)
        stored[source] = [one.of_ranks[row] for one in parts[: 1 if source in with_devices else 3]]
    return stored


def _read(trace: Trace, clocks: Clocks, data: bytes) -> DeviceFacts:
    head = json.loads(data[: data.index(b"\n")])
    arrays = _arrays(head, memoryview(data)[data.index(b"\n") + 1 :])
    states, gaps = [], {}
    all_devices = devices(trace)
    for number, rank, name, longest, _ in head["states"]:
        device = all_devices[number]
        edges, *sides = (next(arrays) for _ in range(1 + 2 * IDLE))
        layers = tuple(Intervals(*pair) for pair in zip(sides[::2], sides[1::2]))
        work_device = WorkDevice(device, rank, name)
        states.append((work_device, edges, longest, layers))
    longs = {lane: tuple(next(arrays) for _ in range(3)) for lane, *_ in head["gaps"]}
    of_ranks = {
        source: [Intervals(next(arrays), next(arrays)) for _ in sizes] for source, sizes in head["ranks"]
    }
    awaited = {source: PeerWaits(*(next(arrays) for _ in range(3))) for source, _ in head["awaited"]}
    known = [
        DeviceState(device, edges, next(arrays), next(arrays), longest, layers)
        for device, edges, longest, layers in states
    ]
    for lane, _, details in head["gaps"]:
        starts, ends, after = longs[lane]
        gaps[trace.lanes[lane].index] = LaneGaps(starts, ends, after, next(arrays), dict(details))
    slowest, texts, latest = head["notes"]
    activity = None
    if of_ranks:
        from tracelane.core.tables.device.rank_activity import HostActivity, RankActivity

        delays = {source: own for source, (own, *_) in of_ranks.items()}
        hosts = {source: HostActivity(*host) for source, (_, *host) in of_ranks.items() if host}
        activity = RankActivity.of(delays, hosts, known)
    return DeviceFacts(
        [DeviceShare(*one) for one in head["shares"]],
        RankNotes(slowest, dict(texts), tuple(latest), activity),
        None if head["spent"] is None else StateShares(*head["spent"]),
        DrawnStates.of(clocks, known, gaps, awaited),
        list(map(str, head["troubles"])),
    )


def _arrays(head: Mapping[str, Any], data: memoryview) -> Iterator[AnyArray]:
    """Yield the arrays in the order in which they are written; ValueError where they are not all there."""
    longs = [size for *_, (edges, *layers) in head["states"] for size in (edges, *_twice(layers))]
    longs += [size for _, size, _ in head["gaps"] for _ in range(3)]
    longs += [size for _, sizes in head["ranks"] for size in _twice(sizes)]
    longs += [size for _, size in head["awaited"] for _ in range(3)]
    shorts = [size - 1 for *_, (size, *_) in head["states"] for _ in range(2)]
    shorts += [size for _, size, _ in head["gaps"]]
    ends = np.cumsum([0, *(8 * size for size in longs), *shorts]).tolist()
    if ends[-1] != len(data) or min((*longs, *shorts), default=0) < 0:
        raise ValueError("not as long as it says")
    for number, (start, end) in enumerate(pairwise(ends)):
        yield np.frombuffer(data[start:end], np.int64 if number < len(longs) else np.uint8)


def _twice(sizes: Sequence[int]) -> Iterator[int]:
    return (size for size in sizes for _ in range(2))
