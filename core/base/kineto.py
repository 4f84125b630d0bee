"""The words of PyTorch's profiler (Kineto) and its backends: categories, flow kinds, names with a meaning;
and what a slice is by its category and name: an operator, a call, a kernel, a copy, a collective, a wait …

One answer for tables, SQL, colours and legend. What kernels compute (GEMM, attention) is told by their names
alone: `core/tables/frame/kinds.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from .held import held_by_name
from .late_pattern import late_pattern
from .vendors import any_of

Group: TypeAlias = Literal["op", "python", "runtime", "device", "memory"]
"""Categories that mean the same in all dialects."""
# fmt: off
GROUPS: dict[Group, frozenset[str]] = {
    "op": frozenset({"cpu_op", "user_annotation", "Operator", "operator", "Node"}),
    "python": frozenset({"python_function"}),
    "runtime": frozenset({
        "cuda_runtime", "cuda_driver", "Runtime", "runtime", "xpu_runtime", "xpu_driver", "mtia_runtime",
        "privateuse1_runtime", "privateuse1_driver", "glow_runtime", "overhead", "Api",
    }),
    "device": frozenset({
        "kernel", "Kernel", "gpu_memcpy", "gpu_memset", "Memcpy", "Memset", "gpu_user_annotation",
        "cuda_sync", "mtia_ccp_events", "mtia_insight", "hpu_op", "collective_comm", "xpu_sync", "cuda_event",
        "gpu_kernel",
    }),
    "memory": frozenset({"cpu_instant_event"}),
}
# fmt: on
_NAMED = frozenset[str]().union(*GROUPS.values())

MEMORY_RECORD = "[memory]"
"""The name of an instant that an allocator recorded."""
BEFORE_RECORD, SEGMENT_RECORD, BLOCK_RECORD = "[before]", "[segment]", "[block]"
"""The names of instants that stand for what a snapshot of PyTorch's memory has besides its history: memory in
use that was allocated before it; segments, followed by their kind; their blocks, followed by their state.
"""


@dataclass(frozen=True)
class Categories:
    """A set of categories: those named, and with `vendors` every other `<vendor>_runtime`, `<vendor>_driver`.
    Backends of their own name the calls of their runtime like that (`npu_runtime`, `musa_driver`).
    """

    names: frozenset[str]
    vendors: bool = False
    prefixes: tuple[str, ...] = ()  # how others begin, upper and lower case alike

    def __contains__(self, category: object) -> bool:
        if category in self.names or not isinstance(category, str):
            return category in self.names
        if self.prefixes and category.lower().startswith(self.prefixes):
            return True
        return self.vendors and category not in _NAMED and vendor_of(category) != ""

    def __or__(self, others: frozenset[str] | Categories) -> Categories:
        if not isinstance(others, Categories):
            return Categories(self.names | others, self.vendors, self.prefixes)
        vendors, prefixes = self.vendors or others.vendors, self.prefixes + others.prefixes
        return Categories(self.names | others.names, vendors, prefixes)

    __ror__ = __or__


def vendor_of(category: str) -> str:
    """Return whose runtime or driver a category is of, by its name: "cuda", "npu"; "" for all others."""
    vendor, _, kind = category.rpartition("_")
    return vendor if kind.lower() in ("runtime", "driver") else ""


LAUNCH_FLOWS = frozenset({"ac2g", "async_cpu_to_gpu", "async", "api_op"})
"""Categories of arrows from calls to the work that they start; the last is rocprof's (RPD)."""
GENERAL_FLOWS = frozenset({"bind_id", "DataFlow", "HostToDevice", "flow"})
"""Categories of arrows between any slices: launches where they lead from the host to a device. XLA writes the
first (flows of version 2), rocprof the second, CANN the third, Proton the last.
"""
OWNER_FLOWS = frozenset({"async_npu"})
"""Categories of arrows from an operator to the device work that is done for it, beside those from the calls
that start it: torch_npu launches from a thread of its own, in which no operator runs.
"""
DEVICE = GROUPS["device"] | {"privateuse1_driver"}
RUNTIME = Categories(GROUPS["runtime"] - {"overhead", "privateuse1_driver"}, vendors=True)
"""Calls into the runtime or driver of a device."""
NODE = "Node"
"""The category of the operators of ONNX Runtime; the name of each is that of a node of the model, and an
argument says which operator it is. "node" is Node.js's.
"""
OPS = frozenset({"cpu_op", "Operator", "operator", NODE})
RANGES = ("nvtx", "roctx")
"""How the categories begin of ranges that programs mark by NVIDIA's and AMD's libraries."""
ANNOTATIONS = Categories(frozenset({"user_annotation"}), prefixes=RANGES)
HOST_EVENTS = RUNTIME | GROUPS["runtime"] | GROUPS["python"] | OPS | ANNOTATIONS
"""Of what the host did."""
DEVICE_ANNOTATION = "gpu_user_annotation"
"""What the host annotated, drawn over the device work that it launched: it is no work itself."""
SYNC_RECORDS = frozenset({"cuda_sync", "xpu_sync"})
SYNC_CATEGORIES = SYNC_RECORDS | {"cuda_event"}
"""Categories of records of waits; the last of events that are waited for."""
NOT_LAUNCHED = SYNC_CATEGORIES | {DEVICE_ANNOTATION}
"""Device categories that tell of work but are none."""
STEP = "ProfilerStep"
MODULE = "nn.Module: "
"""How the names of PyTorch's modules begin among Python's frames."""
KERNEL_CATEGORIES = frozenset(
    {
        "hpu_op",  # a kernel of Gaudi
        "kernel",
        "Kernel",
        "gpu_kernel",  # of exports of Nsight Systems
        "mtia_ccp_events",
        "collective_comm",
    }
)
COPY_CATEGORIES = frozenset({"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"})
WORK = KERNEL_CATEGORIES | COPY_CATEGORIES
"""Categories of what a device does; annotations and waits on its lanes are no work."""
NOT_WORK = (
    NOT_LAUNCHED
    | {"user_annotation", "Trace", "overhead", "cuda_profiler_range"}
    | GROUPS["op"]
    | GROUPS["python"]
    | GROUPS["runtime"]
    | RUNTIME
    | ANNOTATIONS
)
"""Categories that are never a device's work. On a device whose categories are unknown all others are."""


def work_of_categories(present: Iterable[str]) -> frozenset[str]:
    """Return which of the categories on a device's lanes are work: those known as work, where there are none
    all that are not known as something else.
    """
    present = frozenset(present)
    return present & WORK or frozenset(category for category in present if category not in NOT_WORK)


class SliceKind(StrEnum):
    """The kind of a slice; its value is what SQL and JSON say."""

    OP = "op"
    PYTHON = "python"
    ANNOTATION = "annotation"
    CALL = "runtime call"
    DRIVER_CALL = "driver call"
    KERNEL = "kernel"
    COPY = "copy"
    FILL = "fill"
    COLLECTIVE = "collective"
    WAIT = "wait"
    MEMORY = "memory"
    OVERHEAD = "overhead"
    PROFILER = "profiler"
    OTHER = "other"


COMMUNICATION = late_pattern(
    any_of("communication")
    + r"|cross_device_reduce|all[-_]?reduce|all[-_]?gather|reduce[-_]?scatter|all[-_]?to[-_]?all"
    r"|collective-permute|(?<![a-z])deep_ep(?![a-z])|barrier_on_stream"
    r"|(^|\W)(lamport|oneshot|twoshot)_|(?<![a-z])Ep_?(Dispatch|Combine)|::(inter|intra)node\w*::\w",
    re.IGNORECASE,
)
"""Names of device work that communicates: the libraries' own prefixes, the collectives that engines write."""
COLLECTIVE_STEP = late_pattern(
    r"(?P<tag>\[(?P<type>\w+),(?P<algorithm>\w*),(?P<bytes>\d*)\]) ?(?P<step>.*)", re.DOTALL
)
"""Names of the steps of a collective that say what it is: `[AllReduce,AllReduce_AllGatherSum,2048] Send`."""
COPYING = late_pattern(r"^\[?(memcpy|dma)|" + any_of("copying"), re.IGNORECASE)
FILLING = late_pattern(r"^\[?memset|" + any_of("filling"), re.IGNORECASE)
"""Names of device work that copies and fills memory."""
HOST_COLLECTIVE = late_pattern(f"^(?:{any_of('collectives')}|c10d::|record_param_comms)", re.IGNORECASE)
"""How names of operators and annotations begin that start a collective or stand for one."""
COLLECTIVE_CALL = late_pattern(rf"^(?:{any_of('collective_calls')}):_?(\w+)")
"""What the host annotates: "nccl:all_reduce"."""
COLLECTIVE_KERNEL = late_pattern(
    rf"(?:{any_of('collective_kernels')})(?:Dev)?Kernel_?([A-Za-z]{{1,64}}?)(?:_|\(|<|$)", re.IGNORECASE
)
"""Kernels that are a whole collective: ncclDevKernel_AllReduce_Sum_f32_RING_LL."""
NOTED_COLLECTIVES = ("nccl:", "gloo:")
"""How operators and annotations begin that TensorBoard counts as communication."""
ON_THE_HOST = late_pattern(r"^(gloo|mpi):")
"""Annotations of collectives that the host itself does."""
_COLLECTIVES = frozenset({"collective", "nccl", "hccl", "communication", "collective_comm"})
_KINDS: dict[str, SliceKind] = {
    category if category == NODE else category.lower(): kind
    for kind, categories in (
        (SliceKind.OP, OPS),
        (SliceKind.PYTHON, GROUPS["python"]),
        (SliceKind.ANNOTATION, {"user_annotation", "gpu_user_annotation", "annotation"}),
        (SliceKind.KERNEL, KERNEL_CATEGORIES | {"concurrent_kernel"}),
        (SliceKind.COPY, {category for category in COPY_CATEGORIES if "cpy" in category}),
        (SliceKind.FILL, {category for category in COPY_CATEGORIES if "set" in category}),
        (SliceKind.COLLECTIVE, _COLLECTIVES),
        (SliceKind.WAIT, SYNC_CATEGORIES),
        (SliceKind.MEMORY, {"cpu_instant_event", "memory", "gpu_memory"}),
        (SliceKind.OVERHEAD, {"overhead"}),
        (SliceKind.PROFILER, {"trace", "cuda_profiler_range"}),
    )
    for category in categories
}
_MAY_COMMUNICATE = {
    SliceKind.KERNEL: COMMUNICATION,
    SliceKind.OP: HOST_COLLECTIVE,
    SliceKind.ANNOTATION: HOST_COLLECTIVE,
    SliceKind.OTHER: HOST_COLLECTIVE,
}
"""Kinds of categories that hold collectives too, and how their names tell."""


def may_communicate(category: str) -> bool:
    """Tell whether slices of a category may be collectives by their names."""
    return slice_kind(category) in _MAY_COMMUNICATE


@held_by_name
def slice_kind(category: str, name: str = "") -> SliceKind:
    """Return the kind of a slice; without a name that of what has this category and is no collective."""
    low = category if category == NODE else category.lower()
    kind = _KINDS.get(low)
    if kind is None and low.startswith(RANGES):
        kind = SliceKind.ANNOTATION
    if kind is None:
        calls = {"runtime": SliceKind.CALL, "driver": SliceKind.DRIVER_CALL}
        kind = calls.get(low.rpartition("_")[2], SliceKind.OTHER)
    collective = _MAY_COMMUNICATE.get(kind)
    return SliceKind.COLLECTIVE if name and collective is not None and collective.search(name) else kind


@held_by_name
def work_kind(category: str, name: str) -> SliceKind:
    """Return the kind of work of a device: where its category does not tell, its name does, and what no name
    tells is a kernel.
    """
    kind = slice_kind(category, name)
    if kind is not SliceKind.OTHER:
        return kind
    patterns = ((COMMUNICATION, SliceKind.COLLECTIVE), (COPYING, SliceKind.COPY), (FILLING, SliceKind.FILL))
    return next((kind for pattern, kind in patterns if pattern.search(name)), SliceKind.KERNEL)


class StartedWork(StrEnum):
    """What a call into a runtime or driver has a device do."""

    KERNEL = "kernel"
    GRAPH = "graph"  # many pieces of work
    COPY = "copy"
    FILL = "fill"


_STARTS = {
    StartedWork.GRAPH: r"\w*Graph(Exec)?Launch|Enqueue(Graph|CommandBuffer)Exp",
    StartedWork.KERNEL: (
        r"(Ext|Drv|Hcc)?(Module)?Launch((Cooperative|Multi)?Kernel[A-Za-z]*|ByPtr|Grid(Async)?)?"
        r"|Enqueue(Cooperative)?KernelLaunch[A-Za-z]*"
        r"|CommandListAppendLaunch(Cooperative|Multiple)?Kernels?[A-Za-z]*|LaunchControlBlocks"
    ),
    StartedWork.COPY: (
        r"Memcpy(?!\w*(Node|Attribute))[A-Z0-9a-z]*|(EnqueueUSM|USMEnqueue)Memcpy(2D)?"
        r"|EnqueueMem(Buffer|Image)(Read|Write|Copy)[A-Za-z]*|CommandListAppendMemoryCopy[A-Za-z]*"
        r"|LaunchDM[IO]ControlBlocks"
    ),
    StartedWork.FILL: (
        r"Memset(?!\w*Node)[A-Z0-9a-z]*|EnqueueUSMFill(2D)?|USMEnqueue(Memset|Fill)"
        r"|EnqueueMemBufferFill|CommandListAppendMemoryFill"
    ),
}
"""Names of calls, whoever's they are: cudaLaunchKernelExC, cuMemcpyHtoDAsync_v2, hipExtModuleLaunchKernel,
zeCommandListAppendLaunchKernel, urEnqueueUSMFill, musaGraphLaunch, aiuLaunchControlBlocks, with the endings
of versions and of streams by thread.
"""


_STARTS_OF_VENDORS = {StartedWork.KERNEL: "launches", StartedWork.COPY: "copies"}
"""Fields of vendors with names of calls that are formed in another way."""


@held_by_name
def started_work(call: str) -> StartedWork | None:
    """Return what a call starts by its name, None for all that starts no work: waits, events, allocations,
    host functions (`cudaLaunchHostFunc`), nodes that are added to a graph.
    """
    endings = r"(_(v\d+|ptsz|ptds|spt))*"
    starts = (kind for kind, name in _STARTS.items() if re.fullmatch(f"[a-z]{{2,12}}({name}){endings}", call))
    own = (kind for kind, field in _STARTS_OF_VENDORS.items() if re.fullmatch(any_of(field), call))
    return next(starts, None) or next(own, None)


BLOCKING_COPIES = late_pattern(r"^[a-z]{2,12}Memcpy(WithStream|HtoD|DtoH|DtoD|2D|3D|Peer)?(_ptsz|_v2)?$")
"""Calls that copy and return when the copy is done, in the words of any vendor: cudaMemcpy, musaMemcpy."""
WAITS = late_pattern(
    r"^[a-z]\w*Sync(hronize(Stream|Device|Event|Context|Queue)?)?(WithTimeout)?(_\w+)?$"
    r"|^synchronize(Stream|Device|Event)?$"
    rf"|{any_of('waits')}|{BLOCKING_COPIES.pattern}"
)
"""Calls in which the host waits for the device."""


CAPTURE_BEGINS = late_pattern(r"[a-z]{2,12}StreamBeginCapture\w*")
CAPTURE_ENDS = late_pattern(r"[a-z]{2,12}StreamEndCapture\w*")
"""Between these a stream only records into a graph: what is launched there does not run."""
