"""What collectives are made of, and what they cost: algorithm, steps, peers, the host's calls, and the part
of their time that no compute hides.

Steps are slices of their own where a profiler records them (sends and receives of an AIU): one collective is
all of its steps, from the first start to the last end. What the host does for one, putting it into the queue
and waiting for it, is possible by the order of its calls, where there are as many as collectives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ...base.arrays import I64, AnyArray, Intervals, distinct
from ...base.kineto import COLLECTIVE_STEP
from ...base.numbers import whole_number
from ...base.vendors import any_of
from ...index.flex import IN_NAMES, SYNC_GROUP, is_flex
from ...index.store import Index
from ...query.args import arguments_read
from ...query.lookup import lanes_of
from ..frame.metrics import ratio
from ..frame.table_rows import Values
from .skew import Skew

ENQUEUES = re.compile(any_of("enqueues"), re.IGNORECASE)
AWAITS = re.compile(any_of("awaits"), re.IGNORECASE)
"""Calls of the host that put a collective into the queue, and that wait for it."""
CALLING = ("WorkSched", "worksched")
"""What their names hold, in any tool's spelling."""
ALGORITHM = re.compile(r"_((?:RING|TREE|PAT|COLLNET|NVLS)[A-Z_]*?(?:_(?:LL128|LL|SIMPLE))?)(?:_|\(|$)")
"""In names of kernels that are a whole collective: ncclDevKernel_AllReduce_Sum_f32_RING_LL."""
PEERS = ("Peer", "Peers")
"""Arguments that name the ranks with which a step exchanges data."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The n collectives of one rank in order of its entries: what each consists of."""

    algorithms: list[str]
    peers: list[tuple[int, ...]]
    steps: I64
    enqueue_ns: list[int | None]
    wait_ns: list[int | None]


PartsOf: TypeAlias = Callable[[int, I64, I64, I64], Parts]
"""(source as a Skew has it, positions, starts, ends in lane time) -> what the collectives consist of."""
Compute: TypeAlias = Callable[[int], Intervals]
"""Source as a Skew has it -> when its devices compute, trace time."""


def collective_parts(index: Index, positions: I64, process: int | None = None) -> Parts:
    """Return what collectives consist of, which a rank's slices at these positions stand for; of one rank of
    a file that of its `process`. Raises UnreadableError where the source has gone or changed.
    """
    names, starts = index.column("slices.name"), index.column("slices.start")
    numbers = distinct(names[positions])
    possible = {*index.string_numbers("[", prefix=True), *index.string_numbers("[sync=", inside=True)}
    tags = {number: tag for number in sorted(possible) if (tag := _tag(index.string(number)))}
    whole = {number: ALGORITHM.search(index.string(number)) for number in numbers.tolist()}
    steps = {number: COLLECTIVE_STEP.match(index.string(number)) for number in numbers.tolist()}
    algorithms = [_algorithm(steps[number], whole[number]) for number in names[positions].tolist()]
    count = np.ones(len(positions), np.int64)
    peers: list[tuple[int, ...]] = [()] * len(positions)
    members = np.flatnonzero(np.isin(names, np.array(list(tags), names.dtype))).astype(np.int64)
    if len(members) and len(positions):
        key = _keys(index, members, tags)
        members = members[np.lexsort((members, starts[members], key))]
        key = _keys(index, members, tags)
        heads = np.flatnonzero(np.isin(positions, members))
        row_of = {int(positions[row]): row for row in heads.tolist()}
        owner, at, before = np.full(len(members), -1, np.int64), -1, None
        for row, (position, of) in enumerate(zip(members.tolist(), key.tolist())):
            at = row_of.get(position, at if of == before else -1)
            owner[row], before = at, of
        owned = owner >= 0
        count = np.maximum(1, np.bincount(owner[owned], minlength=len(positions))).astype(np.int64)
        named = _peers(index, members[owned])
        ranks: dict[int, set[int]] = {}
        for row, several in zip(owner[owned].tolist(), named):
            ranks.setdefault(row, set()).update(several)
        peers = [tuple(sorted(ranks.get(row, ()))) for row in range(len(positions))]
    calls = [_call_times(index, pattern, positions, process) for pattern in (ENQUEUES, AWAITS)]
    return Parts(algorithms, peers, count, *calls)


def _tag(name: str) -> str:
    match = COLLECTIVE_STEP.match(name) or SYNC_GROUP.search(name)
    return match[1] if match else ""


def _algorithm(step: re.Match[str] | None, whole: re.Match[str] | None) -> str:
    return step["algorithm"] if step else whole[1] if whole else ""


def _keys(index: Index, positions: I64, tags: Mapping[int, str]) -> I64:
    """Return a number for process and tag of each step."""
    order = {tag: at for at, tag in enumerate(dict.fromkeys(tags.values()))}
    tag = np.array(
        [order[tags[number]] for number in index.column("slices.name")[positions].tolist()], np.int64
    )
    return index.lanes["process"][lanes_of(index, positions)].astype(np.int64) * len(order) + tag


def _peers(index: Index, positions: I64) -> list[tuple[int, ...]]:
    """Return the ranks with which each step exchanges data, by its arguments, else by its name."""
    result: list[tuple[int, ...]] = [()] * len(positions)
    if is_flex(index):
        for row, number in enumerate(index.column("slices.name")[positions].tolist()):
            match = IN_NAMES["peer"].search(index.string(number))
            result[row] = () if match is None else (whole_number(match[1]),)
    for row, arguments in arguments_read(index, positions, needle=PEERS[0].encode()):
        stated = next((arguments[key] for key in PEERS if key in arguments), None)
        ranks = re.findall(r"\d{1,9}", str(stated)) if stated is not None else []
        result[row] = tuple(map(whole_number, ranks)) or result[row]
    return result


def _call_times(
    index: Index, pattern: re.Pattern[str], positions: I64, process: int | None
) -> list[int | None]:
    """Return how long the host's k-th call lasts for the k-th collective; None where their numbers differ."""
    names, starts = index.column("slices.name"), index.column("slices.start")
    calling = [number for text in CALLING for number in index.string_numbers(text, inside=True)]
    numbers = [number for number in calling if pattern.search(index.string(number))]
    calls = np.flatnonzero(np.isin(names, np.array(numbers, names.dtype))).astype(np.int64)
    if process is not None and len(calls):
        calls = calls[index.lanes["process"][lanes_of(index, calls)] == process]
    if not len(calls) or len(calls) != len(positions):
        return [None] * len(positions)
    result: list[int | None] = [None] * len(positions)
    lasts = index.duration(calls[np.lexsort((calls, starts[calls]))]).tolist()
    for row, ns in zip(np.lexsort((positions, starts[positions])).tolist(), lasts):
        result[row] = ns
    return result


def part_columns(skew: Skew, parts: Callable[[int, I64], Parts], compute: Compute) -> dict[str, Values]:
    """Return columns of each collective: what it consists of on the rank that came last, how long the host's
    calls take at most on any rank, and how long it runs on its ranks, added up, while they compute nothing.
    """
    steps = np.ones(len(skew.who), np.int64)
    algorithms = [""] * len(skew.who)
    peers: list[tuple[int, ...]] = [()] * len(skew.who)
    enqueues, awaits = np.full(len(skew.who), -1, np.int64), np.full(len(skew.who), -1, np.int64)
    exposed = np.zeros(len(skew.who), np.int64)
    for column, source in enumerate(skew.sources):
        own = skew.who.of_rank(column)
        one = parts(source, skew.positions[own])
        steps[own] = one.steps
        enqueues[own] = [-1 if ns is None else ns for ns in one.enqueue_ns]
        awaits[own] = [-1 if ns is None else ns for ns in one.wait_ns]
        for entry, algorithm, ranks in zip(own.tolist(), one.algorithms, one.peers):
            algorithms[entry], peers[entry] = algorithm, ranks
        starts, ends = skew.starts[own], skew.ends[own]
        exposed[own] = ends - starts - compute(source).covered(starts, ends)
    last = skew.last_entry.tolist() if len(skew) else []
    lasts, hidden = skew.who.sums(skew.ends - skew.starts), skew.who.sums(exposed)
    return {
        "algorithm": [algorithms[entry] for entry in last],
        "peers": [", ".join(map(str, peers[entry])) for entry in last],
        "steps": steps[last] if last else np.empty(0, np.int64),
        "enqueue_ns": _known(skew.who.most(enqueues)),
        "host_wait_ns": _known(skew.who.most(awaits)),
        "exposed_ns": hidden,
        "exposed_share": [ratio(ns, of) for ns, of in zip(hidden.tolist(), lasts.tolist())],
    }


def _known(values: AnyArray) -> list[int | None]:
    return [None if value < 0 else value for value in values.tolist()]
