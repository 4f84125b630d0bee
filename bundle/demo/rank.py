"""One rank of the demo as its profiler sees it: a main thread, an autograd thread, and an AIU with queues."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .kineto import Value, arguments_json, counter_text, flow_text, instant_text, slice_text
from .noise import Noise

US = 1000
MS = 1_000_000
MIB = 1 << 20

QUEUE_DEPTH = 3
"""Launches that may wait on the device before the host waits for room."""
LAUNCH_LATENCY = 9 * US
COPY_IN, COPY_OUT, MEMORY = 100, 200, 400
"""Lanes of the device that are no streams; numbered as AIU's profiler does."""
COMPUTE, COLLECTIVE = 0, 1
QUEUED_GARBAGE = 1_765_561_977_897_978_000
"""AIU's `queued` stamps are from another clock; real files look like this."""


class Rank:
    """Writes down what one process does; times are ns since the demo's start, until rendered."""

    def __init__(self, number: int, origin: int, wall_origin: int, seed: int) -> None:
        self.number = number
        self.origin = origin  # of the demo's time 0, relative to the file's base time
        self.wall_origin = wall_origin
        self.pid = 48_213 + 5 * number
        self.main = self.pid
        self.autograd = self.pid + 71
        self.noise = Noise(seed + number)
        self.tid = self.main
        self.now = 0
        self.ops: list[tuple[int, int, str]] = []  # start, order, text; sorted on writing
        self.frames: list[tuple[int, int, str]] = []
        self.instants: list[str] = []
        self.device: list[str] = []
        self.busy: list[tuple[int, int, int]] = []  # start, end, watts in tenths above idle
        self.moved: list[tuple[int, int, int, bool]] = []  # start, end, bytes, towards the device
        self._ends: list[int] = []  # of kernels on the compute queue
        self._free = {COMPUTE: 0, COLLECTIVE: 0, COPY_IN: 0, COPY_OUT: 0, MEMORY: 0}
        self._correlation = 28
        self._external = 0
        self._order = 0
        self._python = 0
        self._stack: list[int] = []
        self.sequence = 0
        self.allocated = 96 * MIB
        self.reserved = 384 * MIB
        self._address = 94_474_841_837_568 + number * (1 << 32)
        self._given: dict[int, list[int]] = {}  # addresses not yet given back, oldest first, by size
        self._paths: dict[str, str] = {}

    # -- host ---------------------------------------------------------------------------------------------

    def work(self, us: int) -> None:
        """Advance the host by about this many µs."""
        self.now += self.noise.around(us * US)

    @contextmanager
    def op(self, name: str, category: str = "cpu_op", *extra: tuple[str, Value]) -> Iterator[None]:
        """Record an operator or annotation around what happens inside."""
        start, order = self.now, self._next_order()
        self._external += 1
        external = self._external
        self.work(3)
        yield
        self.work(2)
        body = arguments_json(("External id", external), ("Record function id", 0), *extra, ("Ev Idx", order))
        self._slice(self.ops, category, name, start, order, body)

    @contextmanager
    def frame(self, name: str, module: int | None = None) -> Iterator[None]:
        """Record a Python call around what happens inside."""
        start, order = self.now, self._next_order()
        self._python += 1
        number = self._python
        parent = self._stack[-1] if self._stack else None
        self._stack.append(number)
        self.work(4)
        yield
        self.work(2)
        self._stack.pop()
        facts: list[tuple[str, Value]] = [("Python parent id", parent), ("Python id", number)]
        if module is not None:
            facts.append(("Python module id", module))
        self._slice(
            self.frames, "python_function", name, start, order, arguments_json(*facts, ("Ev Idx", order))
        )

    def leaf(self, name: str, us: int = 6, *extra: tuple[str, Value]) -> None:
        """Record an operator with nothing inside."""
        with self.op(name, "cpu_op", *extra):
            self.work(us)

    def flow(self, phase: str, category: str, number: int) -> None:
        """Record a flow's start or end at this moment of the host."""
        text = flow_text(phase, category, number, (self.pid, self.tid), self.origin + self.now)
        self.ops.append((self.now, self._next_order(), text))

    def allocate(self, mib: int) -> None:
        """Take device memory (or give it back, when negative): instant, memory slice, counter sample."""
        size = mib * MIB
        self.allocated += size
        self.reserved = max(self.reserved, self.allocated)
        time = self.origin + self.now
        self._address += 4096 + 64 * self.noise.below(64)
        addresses = self._given.setdefault(abs(size), [])
        if size > 0:
            addresses.append(self._address)
        address = addresses[-1] if size > 0 else addresses.pop(0)
        body = arguments_json(
            ("Total Reserved", self.reserved),
            ("Total Allocated", self.allocated),
            ("Bytes", size),
            ("Device Id", 0),
            ("Device Type", 20),
            ("Addr", address),
            ("finished", False),
            ("Ev Idx", self._next_order()),
        )
        self.instants.append(
            instant_text("cpu_instant_event", "t", "[memory]", (self.pid, self.tid), time, body)
        )
        usage = arguments_json(
            ("allocated MiB", self.allocated // MIB), ("reserved MiB", self.reserved // MIB)
        )
        self.instants.append(counter_text("memory", "AIU memory", (0, 0), time, usage))
        taking = mib > 0
        start = max(self.now + 2 * US, self._free[MEMORY])
        duration = self.noise.around(80 * US if taking else 30 * US)
        self._free[MEMORY] = start + duration
        facts: list[tuple[str, Value]] = [("memory bandwidth (GB/s)", "N/A"), ("bytes", abs(size))]
        facts += [("context", "0"), ("correlation", 0), ("device", 0)]
        facts.append(("call", "Memset" if taking else "Release"))
        category = "gpu_memset" if taking else "privateuse1_driver"
        name = "Memset (Device)" if taking else "Memory (Release)"
        self._device_slice(category, name, MEMORY, start, duration, arguments_json(*facts))
        self.work(6)

    # -- device -------------------------------------------------------------------------------------------

    def launch(self, kernel: str, us: int, watts: int) -> None:
        """Launch a kernel that runs for about `us` µs and draws `watts` tenths of a watt above idle."""
        with self.op(f"launch_kernel:{kernel}", "user_annotation"):
            if len(self._ends) >= QUEUE_DEPTH and self._ends[-QUEUE_DEPTH] > self.now:
                wait = self._ends[-QUEUE_DEPTH] - self.now
                self._runtime("aiuWaitForQueueCapacity", wait, ("correlation", 0))
                self.work(2)
            self._runtime("aiuLaunchDMIControlBlocks", self.noise.around(2 * US), ("num_cbs", 0), _NEXT)
            self.work(4)
            launched = self.now
            number = self._runtime("aiuLaunchControlBlocks", self.noise.around(6 * US), ("num_cbs", 0), _NEXT)
            self._flow_at("s", number, (self.pid, self.tid), launched)
        start, duration = self._enqueue(COMPUTE, launched, self.noise.around(us * US, 4))
        self._ends.append(start + duration)
        self._kernel(self._path(kernel), COMPUTE, start, duration, number, launched)
        self.busy.append((start, start + duration, watts))

    def copy(self, mib: int, inwards: bool) -> None:
        """Copy between host and device; a copy out waits for all kernels launched before."""
        name = "aiuLaunchDMIControlBlocks" if inwards else "aiuLaunchDMOControlBlocks"
        size = mib * MIB if mib else 4
        number = self._correlation + 1
        duration = self.noise.around(max(18 * US, size * 10 // 160))
        lane = COPY_IN if inwards else COPY_OUT
        ready = self.now if inwards else max(self.now, self._free[COMPUTE], self._free[COLLECTIVE])
        start = max(ready + LAUNCH_LATENCY, self._free[lane])
        self._free[lane] = start + duration
        wait = 12 * US if inwards else start + duration - self.now + 4 * US
        self._runtime(name, wait, ("num_cbs", 1), ("bytes", size), _NEXT)
        call = "HtoD" if inwards else "DtoH"
        rate = size * 1000 // duration  # MB/s
        body = arguments_json(
            ("memory bandwidth (GB/s)", f"{rate // 1000}.{rate % 1000:03d}"),
            ("bytes", size),
            ("memory operation id", number),
            ("context", str(5100 + number)),
            ("correlation", number),
            ("device", 0),
            ("call", call),
        ).replace(f'"{rate // 1000}.{rate % 1000:03d}"', f"{rate // 1000}.{rate % 1000:03d}")
        self._device_slice("gpu_memcpy", f"Memcpy ({call})", lane, start, duration, body)
        self.moved.append((start, start + duration, size, inwards))

    def collective_ready(self) -> int:
        """Return when this rank's part of a collective could start: its kernels are done."""
        return max(self.now, self._free[COMPUTE], self._free[COLLECTIVE]) + LAUNCH_LATENCY

    def all_reduce(self, bucket: int, elements: int, start: int, end: int) -> None:
        """Record a gradient bucket's all-reduce, which ends on all ranks together."""
        facts: list[tuple[str, Value]] = [
            ("Collective name", "allreduce"),
            ("In msg nelems", elements),
            ("Out msg nelems", elements),
            ("dtype", "BFloat16"),
            ("Process Group Name", "0"),
            ("Group size", 2),
            ("Seq", bucket),
        ]
        with self.op("c10d::allreduce_", "cpu_op"), self.op("record_param_comms", "cpu_op", *facts):
            self._runtime("aiuCommsCollAllreduceSetup", self.noise.around(14 * US), _NEXT)
            launched = self.now
            number = self._runtime("aiuLaunchControlBlocks", self.noise.around(7 * US), ("num_cbs", 1), _NEXT)
            self._flow_at("s", number, (self.pid, self.tid), launched)
        self._free[COLLECTIVE] = end
        self._kernel("HCOLL_AllReduce_ring_bf16", COLLECTIVE, start, end - start, number, launched, facts)
        self.busy.append((start, end, 60))

    def after_collectives(self) -> None:
        """Hold back the kernels that follow until the collectives launched before are done."""
        self._free[COMPUTE] = max(self._free[COMPUTE], self._free[COLLECTIVE])

    def wait_for_device(self) -> None:
        """Let the host wait until the device has done everything."""
        end = max(self._free[COMPUTE], self._free[COLLECTIVE], self.now)
        self._runtime("aiuRoundtrip", max(end - self.now, 0) + 3 * US, ("correlation", 0))

    # -- writing down -------------------------------------------------------------------------------------

    def _next_order(self) -> int:
        self._order += 1
        return self._order

    def _slice(
        self, into: list[tuple[int, int, str]], category: str, name: str, start: int, order: int, body: str
    ) -> None:
        track = (self.pid, self.tid)
        text = slice_text(category, name, track, self.origin + start, self.now - start, body)
        into.append((start, order, text))

    def _runtime(self, name: str, duration: int, *facts: tuple[str, Value]) -> int:
        """Record a runtime call that takes `duration` ns; return its correlation, if it has one."""
        if _NEXT in facts:
            self._correlation += 1
            facts = tuple(("correlation", self._correlation) if f is _NEXT else f for f in facts)
        start = self.now
        self.now += duration
        track = (self.pid, self.tid)
        text = slice_text(
            "privateuse1_runtime", name, track, self.origin + start, duration, arguments_json(*facts)
        )
        self.device.append(text)
        return self._correlation

    def _flow_at(self, phase: str, number: int, track: tuple[int, int], time: int) -> None:
        self.device.append(flow_text(phase, "ac2g", number, track, self.origin + time))

    def _enqueue(self, lane: int, launched: int, duration: int) -> tuple[int, int]:
        start = max(launched + self.noise.around(LAUNCH_LATENCY), self._free[lane] + 3 * US)
        self._free[lane] = start + duration
        return start, duration

    def _kernel(
        self,
        name: str,
        lane: int,
        start: int,
        duration: int,
        number: int,
        launched: int,
        extra: list[tuple[str, Value]] | None = None,
    ) -> None:
        body = arguments_json(
            ("context", str(5100 + number)),
            ("stream", lane),
            ("correlation", number),
            ("device", 0),
            *(extra or ()),
            ("submitted", self.wall_origin + launched + 2 * US),
            ("queued", QUEUED_GARBAGE + self.noise.below(100)),
        )
        self._device_slice("kernel", name, lane, start, duration, body)
        self._flow_at("f", number, (0, lane), start)

    def _device_slice(
        self, category: str, name: str, lane: int, start: int, duration: int, body: str
    ) -> None:
        self.device.append(slice_text(category, name, (0, lane), self.origin + start, duration, body))

    def _path(self, kernel: str) -> str:
        if kernel not in self._paths:
            folder = f"/tmp/torchinductor_demo/rank_{self.number}/inductor-spyre"
            self._paths[kernel] = f"{folder}/{kernel}_{self.noise.word(8)}/bundle.mlir"
        return self._paths[kernel]


_NEXT: tuple[str, Value] = ("correlation", None)
"""Stands for the next correlation number."""
