"""Who writes traces, a row each: by which processes a tool is known, and what its lanes and names are.

A row is data. To add a producer, write one: the names of its processes and lanes as they stand in its files,
and for each what it is. What nobody's row says is told by categories and labels (core/index/roles.py).

A *derived* lane repeats or sums up what other lanes show (CANN's Overlap Analysis, XLA's Steps and Modules):
it is drawn, and counted as work nowhere. Names of *waits* are tasks in which a device waits for a peer or an
event; *parts* are tasks that a collective is made of, which its own slice shows as a whole.

Sources of the names: CANN, "msprof export" and torch_npu's trace_view.json; XLA, xplane_schema.cc and
trace_container.cc; rocprof, its tblextr.py; TensorFlow, timeline.py and device_tracer.cc, which saves each
kernel under its stream and under "stream:all".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..base.arrays import U32, distinct
from .format import LaneRole
from .store import Index

NEVER = re.compile(r"$^")


@dataclass(frozen=True)
class LaneSign:
    """Lanes by how their process and they themselves are called, and what they are."""

    process: re.Pattern[str]
    lane: re.Pattern[str]
    role: LaneRole
    steps: bool = False  # whether its slices are the steps
    collectives: bool = False  # whether its slices are whole collectives


@dataclass(frozen=True)
class Producer:
    """A tool that writes traces. The first of its signs that fits a lane decides what the lane is."""

    name: str
    process: re.Pattern[str]  # one of its processes is called so
    lanes: tuple[LaneSign, ...]
    waits: re.Pattern[str] = NEVER
    parts: re.Pattern[str] = NEVER
    joined: re.Pattern[str] = NEVER
    """Processes whose lanes belong to the device of another one, where the file has just one device."""


def _sign(
    process: str, lane: str, role: LaneRole, *, steps: bool = False, collectives: bool = False
) -> LaneSign:
    return LaneSign(re.compile(process), re.compile(lane), role, steps, collectives)


XLA_DEVICE = r"/device:(?=GPU|TPU)"
"""What stands before a device and its number in XLA's names of processes."""
HCCL = r"^(HCCL|Communication)$"
SNAPSHOT_DEVICE = re.compile(r"^memory of device \d+$")
"""What `core/read/snapshot.py` calls a device: the stacks on its streams are of allocations, no work."""
HOST, DEVICE, DERIVED = LaneRole.HOST, LaneRole.DEVICE, LaneRole.DERIVED
PRODUCERS = (
    Producer(
        "CANN (msprof)",
        re.compile(r"^Ascend Hardware$"),
        (
            _sign(r"^Ascend Hardware$", r"^Step Trace", DERIVED, steps=True),
            _sign(r"^Ascend Hardware$", r"", DEVICE),
            _sign(
                r"^(HCCL|Communication)$", r"^Communication Kernel|\bCommunication$", DEVICE, collectives=True
            ),
            _sign(HCCL, r"", DERIVED),
            _sign(r"^Overlap Analysis$", r"", DERIVED),
        ),
        waits=re.compile(r"^(NOTIFY|EVENT)_?WAIT(_SQE)?$", re.IGNORECASE),
        parts=re.compile(
            r"^((NOTIFY|EVENT)_?(WAIT|RECORD)|SDMA|RDMA\w*|Reduce_?Inline)(_SQE)?$", re.IGNORECASE
        ),
        joined=re.compile(HCCL),
    ),
    Producer(
        "XLA (TPU)",
        re.compile(r"^/device:TPU:\d+"),
        (
            _sign(r"^/device:TPU:", r"^XLA Ops$", DEVICE),
            _sign(r"^/device:TPU:", r"^Steps$", DERIVED, steps=True),
            _sign(r"^/device:TPU:", r"", DERIVED),
        ),
    ),
    Producer(
        "XLA (GPU)",
        re.compile(r"^/device:GPU:\d+"),
        (
            _sign(r"^/device:GPU:", r"^Stream #", DEVICE),
            _sign(r"^/device:GPU:", r"^Steps$", DERIVED, steps=True),
            _sign(r"^/device:GPU:", r"", DERIVED),
        ),
    ),
    Producer(
        "TensorFlow (timeline)",
        re.compile(r"/(device:GPU|gpu):\d+/stream:all Compute$"),
        (
            _sign(r"/stream:all Compute$|/memcpy Compute$", r"", DEVICE),
            _sign(r"/stream:\d+ Compute$", r"", DERIVED),
        ),
        joined=re.compile(r"/memcpy Compute$"),
    ),
    Producer(
        "rocprof",
        re.compile(r"^CPU (HIP|HSA) API$"),
        (_sign(r"^COPY$", r"", DEVICE), _sign(r"^CPU (HIP|HSA) API$|^Markers and Ranges$", r"", HOST)),
        joined=re.compile(r"^COPY$"),
    ),
    Producer(
        "PyTorch (memory snapshot)",
        SNAPSHOT_DEVICE,
        (_sign(SNAPSHOT_DEVICE.pattern, r"^(stream \d+|allocated before)$", DERIVED),),
    ),
)
"""The known ones; a file is of the first of which it has a process."""


def producer_of(index: Index) -> Producer | None:
    """Return who wrote a file, None where no row of PRODUCERS says."""
    return _producer(tuple(index.string(int(number)) for number in index.processes["name"].tolist()))


@lru_cache(maxsize=64)
def _producer(processes: tuple[str, ...]) -> Producer | None:
    return next((one for one in PRODUCERS if any(map(one.process.search, processes))), None)


def lane_signs(index: Index, producer: Producer) -> dict[int, LaneSign]:
    """Return the sign of each lane of a file that its producer tells of, by the number of the lane."""
    names = [index.string(int(number)) for number in index.processes["name"].tolist()]
    signs = {}
    for number, (process, text) in enumerate(index.lanes[["process", "name"]].tolist()):
        lane = index.string(text)
        for sign in producer.lanes:
            if sign.process.search(names[process]) and sign.lane.search(lane):
                signs[number] = sign
                break
    return signs


def steps_lanes(index: Index) -> list[int]:
    """Return the lanes whose slices are the steps, by what their producer says."""
    producer = producer_of(index)
    signs = {} if producer is None else lane_signs(index, producer)
    return [number for number, sign in signs.items() if sign.steps and index.lanes["slices"][number]]


def waits(index: Index) -> U32:
    """Return the numbers of the names of tasks in which a device waits for a peer or an event, ascending."""
    producer = producer_of(index)
    return _names(index, NEVER if producer is None else producer.waits)


def parts_of_collectives(index: Index) -> U32:
    """Return the numbers of the names of tasks that are no work of their own, ascending: waits and, where a
    lane shows whole collectives, what those are made of.
    """
    producer = producer_of(index)
    if producer is None:
        return _names(index, NEVER)
    signs = lane_signs(index, producer).items()
    has_whole = any(sign.collectives and index.lanes["slices"][number] for number, sign in signs)
    return _names(index, producer.parts if has_whole else producer.waits)


def _names(index: Index, pattern: re.Pattern[str]) -> U32:
    if pattern is NEVER:
        return np.empty(0, np.uint32)
    numbers = distinct(index.column("slices.name"))
    texts = zip(numbers.tolist(), index.strings(numbers))
    return np.array([number for number, text in texts if pattern.search(text)], np.uint32)
