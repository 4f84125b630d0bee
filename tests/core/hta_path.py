"""The critical path of Holistic Trace Analysis (git f4d0062) on exact times, written from its rules: a graph
over starts and ends of events, whose longest sum of weights is the path.
"""

from __future__ import annotations

import gzip
import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

LOCKED = {"cudaHostAlloc", "cudaLaunchKernel", "cudaMemcpyAsync"}
BLOCKING = {
    *("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventQuery", "cudaEventSynchronize"),
    *("cudaMemcpy", "cudaMemcpyAsync"),
}
LAUNCHES = {
    *("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaMemcpyAsync"),
    *("cudaMemsetAsync", "hipLaunchKernel", "hipExtModuleLaunchKernel", "hipMemsetAsync", "hipMemcpyAsync"),
    "hipMemcpyWithStream",
}
MAX_DELAY = 1_500_000
RECORD = "wait_on_cuda_event_record_corr_id"
OPERATOR, DEPENDENCY, LAUNCH, KERNEL, SYNC = (
    *("operator", "dependency", "kernel_launch_delay", "kernel_kernel_delay"),
    "sync_dependency",
)
Node = tuple[int, bool]
"""The number of an event, and whether its end is meant."""


@dataclass(frozen=True)
class Event:
    """A slice of the file as HTA keeps it; times in ns."""

    name: str
    category: str
    thread: tuple[Any, Any]
    start: int
    end: int
    stream: int
    args: dict[str, Any]

    @property
    def on_device(self) -> bool:
        return self.stream >= 0 or self.name in ("Context Sync", "Event Sync")


def events_of(path: Path) -> dict[int, Event]:
    """Return the slices of a file by their places in it."""
    text = gzip.decompress(path.read_bytes())
    events = {}
    for at, one in enumerate(json.loads(text, parse_float=Decimal)["traceEvents"]):
        if "dur" in one and "cat" in one and one["cat"] != "Trace":
            args = one.get("args") or {}
            stream = args.get("stream", -1)
            start, end = (int(time * 1000) for time in (one["ts"], one["ts"] + one["dur"]))
            events[at] = Event(
                *(one["name"], one["cat"], (one["pid"], one["tid"]), start, end),
                *(stream if isinstance(stream, int) else -1, args),
            )
    return events


@dataclass
class HtaPath:
    """The graph of a window, and its longest path."""

    events: dict[int, Event]
    low: int
    high: int
    edges: dict[tuple[Node, Node], tuple[str, int]] = field(default_factory=dict)
    linked: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Build the graph in HTA's order: a later edge between two points replaces the one before."""
        hosts = defaultdict(list)
        for at, one in self.events.items():
            if "correlation" in one.args and not one.on_device:
                hosts[one.args["correlation"]].append(at)
        for at, one in self.events.items():
            if one.on_device:
                for host in hosts.get(one.args.get("correlation"), ()):
                    self.linked |= {host: at, at: host}
        inside = {
            at
            for at, one in self.events.items()
            if one.stream < 0 and self.low <= one.start <= self.high and one.end > one.start
        }
        inside |= {at for at, one in self.events.items() if one.stream >= 0 and (
            self.linked.get(at) in inside or one.name == "Stream Wait Event"
        )}  # fmt: skip
        self.inside = inside
        self.nodes = {
            at
            for at in inside
            if self.events[at].category in ("cpu_op", "cuda_runtime", "cuda_driver")
            or (self.events[at].stream >= 0 and self.linked.get(at, 0) > 0)
        }
        self._lock()
        self._threads()
        self._device()

    def time(self, node: Node) -> int:
        event = self.events[node[0]]
        return event.end if node[1] else event.start

    def _link(self, before: Node, after: Node, kind: str, free: bool = False) -> None:
        weight = 0 if free or kind in (DEPENDENCY, SYNC) else self.time(after) - self.time(before)
        self.edges[before, after] = kind, max(weight, 0)

    def _lock(self) -> None:
        """Chain the calls that share the runtime's lock by their ends."""
        nodes = [(at, is_end) for at in self.nodes for is_end in (False, True)]
        begun: list[Node] = []
        last: Node | None = None
        for node in sorted(nodes, key=lambda node: (self.time(node), node[0])):
            if self.events[node[0]].name not in LOCKED:
                continue
            if not node[1]:
                begun.append(node)
            else:
                for other in reversed(begun):
                    self._link(other, node, OPERATOR if other[0] == node[0] else DEPENDENCY)
                begun.clear()
                if last is not None and last[1]:
                    self._link(last, node, DEPENDENCY)
            last = node

    def _thread_of(self, word: str) -> Any:
        of_word = {
            self.events[at].thread[1]
            for at in self.inside
            if word in self.events[at].name and self.events[at].category in ("cpu_op", "user_annotation")
        }
        return of_word.pop() if len(of_word) == 1 else None

    def _threads(self) -> None:
        """Join the points of each thread in call order; autograd's go to the thread of the forward pass."""
        forward, backward = self._thread_of("forward"), self._thread_of("autograd")
        threads: dict[Any, list[int]] = defaultdict(list)
        for at in self.inside:
            one = self.events[at]
            if one.stream < 0:
                moved = forward is not None and one.thread[1] == backward
                threads[one.thread[0], forward if moved else one.thread[1]].append(at)
        for members in threads.values():
            last: Node | None = None
            depth = 0
            for node in self._in_call_order(members):
                if node[0] not in self.nodes:
                    continue
                if last is not None and not self._share_lock(last, node):
                    kind = OPERATOR if node[1] or depth else DEPENDENCY
                    self._link(last, node, kind, node[1] and self.events[node[0]].name in BLOCKING)
                last, depth = node, depth + (-1 if node[1] else 1)

    def _in_call_order(self, members: list[int]) -> list[Node]:
        """Return starts and ends as they come; what does not nest ends when HTA's stack says so."""
        order: list[Node] = []
        stack: list[int] = []
        moments = [(self.time((at, is_end)), is_end, at) for at in members for is_end in (False, True)]

        def at_moment(moment: tuple[int, bool, int]) -> tuple[int, ...]:
            time, is_end, at = moment
            length = self.events[at].end - self.events[at].start
            return (time, not is_end, length if is_end else -length, -at if is_end else at)

        for _, is_end, at in sorted(moments, key=at_moment):
            order.append((stack.pop() if is_end else at, is_end))
            if not is_end:
                stack.append(at)
        return order

    def _share_lock(self, one: Node, other: Node) -> bool:
        names = self.events[one[0]].name, self.events[other[0]].name
        return LOCKED.issuperset(names) and (not one[1] or other[1])

    # -- devices --------------------------------------------------------------------------------------------

    def _launches(self) -> list[tuple[int, int]]:
        """Return (launch, work) of the whole file, by start of the launch."""
        pairs = [
            (at, self.linked[at])
            for at, one in self.events.items()
            if one.name in LAUNCHES and one.stream < 0 and self.linked.get(at, 0) > 0
        ]
        return sorted(pairs, key=lambda pair: self.events[pair[0]].start)

    def _queues(self, launches: list[tuple[int, int]]) -> dict[int, int]:
        """Return how much each stream has to do after each launch and start of work."""
        changes = [(self.events[at].start, 1, at, work) for at, work in launches]
        changes += [(self.events[work].start, -1, work, work) for _, work in launches]
        lengths: dict[int, int] = {}
        now: dict[int, int] = defaultdict(int)
        for _, change, at, work in sorted(changes, key=lambda one: (one[0], -one[1], one[2])):
            now[self.events[work].stream] += change
            lengths[at] = now[self.events[work].stream]
        return lengths

    def _recorded(self, launches: list[tuple[int, int]]) -> dict[Any, int]:
        """Return the last work on its stream before each recorded event, by the call's correlation."""
        calls = {
            one.args.get("correlation"): one for one in self.events.values() if one.name == "cudaEventRecord"
        }
        rows = {}
        for one in self.events.values():
            key, stream = one.args.get(RECORD), one.args.get("wait_on_stream", -1)
            if key in calls and stream > -1:
                on_stream = [
                    (self.events[at].start, work)
                    for at, work in launches
                    if self.events[work].stream == stream
                ]
                number = bisect_left(on_stream, (calls[key].start, -1))
                if number:
                    rows[key] = on_stream[number - 1][1]
        return rows

    def _device(self) -> None:
        launches = self._launches()
        queues, recorded = self._queues(launches), self._recorded(launches)
        last: dict[int, Node] = {}
        awaited: dict[int, int] = {}
        rows = [at for at in self.inside if at in self.linked and self.events[at].on_device]
        by_time = {at: self.time((at, self.events[at].category == "cuda_sync")) for at in rows}
        for at in sorted(rows, key=lambda at: (by_time[at], at)):
            event = self.events[at]
            if event.category != "cuda_sync":
                self._work(at, queues, last, awaited)
                continue
            work = recorded.get(event.args.get(RECORD))
            if event.name == "Stream Wait Event" and work is not None:
                call = self.events[self.linked[at]]
                own = [
                    (self.events[launch].start, target)
                    for launch, target in launches
                    if self.events[launch].thread == call.thread
                    and self.events[target].stream == event.stream
                ]
                number = bisect_right(own, (call.start, len(self.events) * 9))
                if number < len(own):
                    awaited[own[number][1]] = work
            elif event.name == "Event Sync" and work in self.nodes:
                self._returns((work, True), at)
            elif event.name in ("Stream Sync", "Context Sync"):
                every = event.name == "Context Sync"
                for stream in last if every else [event.stream]:
                    if stream in last:
                        self._returns(last[stream], at)

    def _returns(self, work: Node, record: int) -> None:
        if self.linked[record] in self.nodes:
            self._link(work, (self.linked[record], True), SYNC)

    def _work(self, at: int, queues: dict[int, int], last: dict[int, Node], awaited: dict[int, int]) -> None:
        """Join a piece of work to what it comes after: an event, its launch, or the work before it."""
        if at not in self.nodes:
            return
        event, launch = self.events[at], self.linked[at]
        start, end = (at, False), (at, True)
        self._link(start, end, OPERATOR)
        other = awaited.get(at)
        source = (other, True) if other in self.nodes else None
        if source is not None:
            self._link(source, start, SYNC)
        before = last.get(event.stream)
        called = self.events[launch].start
        is_free = all(node is None or self.time(node) < called for node in (before, source))
        if queues.get(launch) == 1 and queues.get(at) == 0 and is_free:
            self._link((launch, False), start, LAUNCH)
        elif (
            before is not None
            and event.start - self.time(before) < MAX_DELAY
            and (source is None or self.time(source) < self.time(before))
        ):
            self._link(before, start, KERNEL)
        last[event.stream] = end

    # -- the path -------------------------------------------------------------------------------------------

    def path(self) -> list[tuple[Node, Node]]:
        """Return the edges of the path with the greatest sum of weights."""
        above: dict[Node, list[Node]] = defaultdict(list)
        for before, after in self.edges:
            above[after].append(before)
        best: dict[Node, tuple[int, Node | None]] = {}
        for node in TopologicalSorter(above).static_order():
            sums = ((best[one][0] + self.edges[one, node][1], one) for one in above[node])
            best[node] = max(sums, default=(0, None), key=lambda pair: pair[0])
        after = max(best, key=lambda one: best[one][0])
        edges = []
        while (above_it := best[after][1]) is not None:
            edges.append((above_it, after))
            after = above_it
        return edges[::-1]
