"""The chain of a kernel: annotation, op and launch, and how each was found; the replays of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.arrays import I64, U32
from ..base.kineto import ANNOTATIONS, DEVICE, OPS, RUNTIME, STEP
from ..index.format import RowKind
from ..index.store import Index
from .launches import Launches, launch_flows_into, launch_of
from .lookup import ancestors, category_of_slice, previous_before, started_by


class ChainLink(NamedTuple):
    """One slice of a chain.

    `via` says how it was found from the link before it: by "flow", "correlation", "external id" or
    "enclosing"; "" for the first link.
    """

    role: str  # "kernel", "launch", "op", "annotation", "step", "slice"
    position: int
    via: str


def chain_of(index: Index, position: int) -> list[ChainLink]:
    """Return the chain of a slice, the slice itself first; the only element where no link is known."""
    category = category_of_slice(index, position)
    role = "slice"
    if category in RUNTIME:
        role = "launch"
    elif category in DEVICE or (category not in OPS | ANNOTATIONS and launch_flows_into(index, position)):
        role = "kernel"
    elif category in OPS:
        role = "op"
    elif category in ANNOTATIONS:
        role = "annotation"
    links = [ChainLink(role, position, "")]
    inner: int | None = position
    if role == "kernel":
        launch, via = launch_of(index, position)
        if launch is not None and via == "external id":
            links.append(ChainLink("op", launch, via))
        elif launch is not None:
            links.append(ChainLink("launch", launch, via))
        inner = launch
    if inner is None:
        return links
    known = {link.position for link in links}
    for role, around in _hosts(index, inner, any(link.role == "op" for link in links)):
        if around not in known:
            known.add(around)
            links.append(ChainLink(role, around, "enclosing"))
    return links


def _hosts(index: Index, inner: int, has_op: bool) -> list[tuple[str, int]]:
    """Return the slices around one that a chain names, innermost first: the innermost op or annotation, the
    innermost op (unless it is that), the step, the outermost annotation.
    """
    around = enclosing(index, inner)
    categories = [category_of_slice(index, position) for position in around]
    hosts = [at for at, category in enumerate(categories) if category in OPS | ANNOTATIONS]
    ops = [at for at in hosts if categories[at] in OPS]
    annotations = [at for at in hosts if at not in ops]
    names = index.column("slices.name")
    steps = [at for at in annotations if index.string(int(names[around[at]])).startswith(STEP)]
    roles: dict[int, str] = {}
    if annotations:
        roles[annotations[-1]] = "annotation"
    if steps:
        roles[steps[0]] = "step"
    if not has_op:
        for at in hosts[:1] + ops[:1]:
            roles[at] = "op" if at in ops else roles.get(at, "annotation")
    return [(roles[at], around[at]) for at in sorted(roles)]


class Chain(NamedTuple):
    """The origin of a kernel as positions in the index; times are ns.

    `ancestors` are all slices around the launch, the outermost first, Python and module frames included; `op`
    is the innermost op or annotation among them. A kernel that is linked by External id only has an op but no
    launch.

    `launch_delay` runs from the end of the launch to the start of the kernel. It is negative where the kernel
    begins during the launch, or before it because the clocks disagree. `queue_wait` is the part of the delay
    in which earlier work kept the kernel's lane busy.
    """

    kernel: int
    via: str  # "flow", "correlation", "external id"; "" where the trace does not say
    launch: int | None
    op: int | None
    ancestors: tuple[int, ...]
    launch_delay: int | None
    queue_wait: int | None


def full_chain(index: Index, kernel: int, launch: int | None, via: str) -> Chain:
    """Return the whole chain of a kernel whose launch is known: `launch` and `via` are those of `launch_of`
    or `Launches`.
    """
    if launch is None:
        return Chain(kernel, "", None, None, (), None, None)
    around = enclosing(index, launch)
    if via == "external id":
        return Chain(kernel, via, None, launch, (*around[::-1], launch), None, None)
    op = next((p for p in around if category_of_slice(index, p) in OPS | ANNOTATIONS), None)
    launched = index.end(launch)
    delay = index.start(kernel) - launched
    wait = None if delay < 0 else max(0, min(_busy_until(index, kernel), index.start(kernel)) - launched)
    return Chain(kernel, via, launch, op, tuple(around[::-1]), delay, wait)


def _busy_until(index: Index, position: int) -> int:
    """Return the latest end of what begins before a slice on its lane; its own start where nothing does."""
    row = index.rows[index.row_of(position)]
    lane = index.lanes[int(row["lane"])]
    start, latest = index.start(position), -(1 << 63)
    for number in range(int(lane["first_row"]), int(lane["first_row"]) + int(lane["rows"])):
        if int(index.rows[number]["kind"]) != RowKind.SLICES:
            continue
        before = previous_before(index, number, start)
        if before is not None:
            latest = max(latest, index.end(int(index.rows[number]["first"]) + before))
    return latest


def enclosing(index: Index, position: int) -> list[int]:
    """Return the slices of a lane in which a slice begins, innermost first, by (start, -end, file order).

    Beside those that contain it whole these are slices that end while it still runs: where a lane's slices
    overlap, they too are what the launch was made in.
    """
    row = index.rows[index.row_of(position)]
    lane = index.lanes[int(row["lane"])]
    if int(lane["overlapping"]) == 0:
        return ancestors(index, position)
    time, end = index.start(position), index.end(position)
    positions = set(ancestors(index, position))
    for number in range(int(lane["first_row"]), int(lane["first_row"]) + int(lane["rows"])):
        if int(index.rows[number]["kind"]) != RowKind.SLICES:
            continue
        before = started_by(index, number, time) - 1
        other = int(index.rows[number]["first"]) + before
        if before < 0 or other == position or index.end(other) <= time:
            continue
        if index.start(other) < time or index.end(other) > end:
            positions.add(other)
    ordinals = index.column("slices.ordinal")
    return sorted(positions, key=lambda p: (index.start(p), -index.end(p), int(ordinals[p])), reverse=True)


MAX = 1000
"""The most replays that are compared: those nearest to the given one in the order of launches."""


@dataclass(frozen=True, eq=False)
class Replays:
    """`kernels` and `durations` (ns) have a line per replay and a column per position in the graph.

    Positions count lane by lane, by start within a lane.
    """

    launches: U32  # positions of the launches, by start
    kernels: U32  # positions, replays x kernels
    durations: I64  # likewise
    this: int  # which line was asked for

    @property
    def spread(self) -> I64:
        """Greatest minus least duration of each position."""
        return np.asarray(self.durations.max(axis=0) - self.durations.min(axis=0), np.int64)


def replays_of(index: Index, launches: Launches, launch: int) -> Replays | None:
    """Return the replays of the graph that a launch replayed, itself among them; None if it started fewer
    than two kernels.
    """
    names = index.column("slices.name")
    positions, counts = launches.starters
    at = int(np.searchsorted(positions, np.uint32(launch)))
    if at == len(positions) or int(positions[at]) != launch or int(counts[at]) < 2:
        return None
    alike = np.flatnonzero((names[positions] == names[launch]) & (counts == counts[at]))
    here = int(np.searchsorted(alike, at))
    low = max(0, min(here - MAX // 2, len(alike) - MAX))
    own = _in_order(index, launches, launch)
    siblings = []
    for other in positions[alike[low : low + MAX]].tolist():
        kernels = own if other == launch else _in_order(index, launches, other)
        if np.array_equal(names[kernels], names[own]):
            siblings.append((index.start(other), other, kernels))
    siblings.sort(key=lambda entry: entry[:2])
    matrix = np.stack([kernels for _, _, kernels in siblings])
    durations = index.duration(matrix.ravel()).reshape(matrix.shape)
    order = [other for _, other, _ in siblings]
    return Replays(np.array(order, np.uint32), matrix, durations, order.index(launch))


def _in_order(index: Index, launches: Launches, launch: int) -> U32:
    """Return a launch's kernels lane by lane, by start within a lane."""
    kernels: U32 = launches.kernels[launches.between(launch, launch + 1)]
    lanes = np.array([index.rows[index.row_of(position)]["lane"] for position in kernels.tolist()])
    order = np.lexsort((kernels, index.column("slices.start")[kernels], lanes))
    ordered: U32 = kernels[order]
    return ordered
