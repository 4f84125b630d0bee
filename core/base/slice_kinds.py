"""What a slice is by its category and name: an operator, a call, a kernel, a copy, a collective, a wait …

One answer for tables, SQL, colours and legend. What kernels compute (GEMM, attention) is told by their names
alone: `core/tables/kinds.py`.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from .kineto import COPY_CATEGORIES, GROUPS, KERNEL_CATEGORIES, OPS


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


COMMUNICATION = re.compile(
    r"[nr]ccl|hccl|\bhcom_|oneccl|sycl::ccl|msccl|gloo|hcoll|nvshmem|rocshmem|aiuComms|SenRdma"
    r"|cross_device_reduce|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|multimem_|userbuffers"
    r"|(?<![a-z])(deep_ep|mori)(?![a-z])|(?<![a-z])mori_|barrier_on_stream"
    r"|(^|\W)(lamport|oneshot|twoshot)_|(?<![a-z])Ep_?(Dispatch|Combine)",
    re.IGNORECASE,
)
"""Names of device work that communicates: the libraries' own prefixes, the collectives that engines write."""
COPYING = re.compile(
    r"^(memcpy|dma|hipMemcpy)|^copy(host|device|buffer)"
    r"|\bdma[io]\b|rocclr_copy|^memory \(|AppendMemoryCopy|AppendImageCopy",
    re.IGNORECASE,
)
FILLING = re.compile(r"^(memset|hipMemset)|^fillBuffer|rocclr_fill|AppendMemoryFill", re.IGNORECASE)
"""Names of device work that copies and fills memory."""
HOST_COLLECTIVE = re.compile(r"(nccl|rccl|hccl|hcoll|gloo:|oneccl|spyreccl|c10d::|record_param_comms)", re.I)
"""How names of operators and annotations begin that start a collective or stand for one."""
_COLLECTIVES = frozenset({"collective", "nccl", "hccl", "communication", "collective_comm"})
_KINDS: dict[str, SliceKind] = {
    category.lower(): kind
    for kind, categories in (
        (SliceKind.OP, OPS),
        (SliceKind.PYTHON, GROUPS["python"]),
        (SliceKind.ANNOTATION, {"user_annotation", "gpu_user_annotation", "annotation"}),
        (SliceKind.KERNEL, KERNEL_CATEGORIES | {"concurrent_kernel"}),
        (SliceKind.COPY, {category for category in COPY_CATEGORIES if "cpy" in category}),
        (SliceKind.FILL, {category for category in COPY_CATEGORIES if "set" in category}),
        (SliceKind.COLLECTIVE, _COLLECTIVES),
        (SliceKind.WAIT, {"cuda_sync", "xpu_sync", "cuda_event"}),
        (SliceKind.MEMORY, {"cpu_instant_event", "memory", "gpu_memory"}),
        (SliceKind.OVERHEAD, {"overhead"}),
        (SliceKind.PROFILER, {"trace", "cuda_profiler_range"}),
    )
    for category in categories
}
_MAY_COMMUNICATE = {
    SliceKind.KERNEL: COMMUNICATION.search,
    SliceKind.OP: HOST_COLLECTIVE.match,
    SliceKind.ANNOTATION: HOST_COLLECTIVE.match,
    SliceKind.OTHER: HOST_COLLECTIVE.match,
}
"""Kinds of categories that hold collectives too, and how their names tell."""


def may_communicate(category: str) -> bool:
    """Tell whether slices of a category may be collectives by their names."""
    return slice_kind(category) in _MAY_COMMUNICATE


@lru_cache(maxsize=1 << 14)
def slice_kind(category: str, name: str = "") -> SliceKind:
    """Return the kind of a slice; without a name that of what has this category and is no collective."""
    low = category.lower()
    kind = _KINDS.get(low)
    if kind is None:
        calls = {"runtime": SliceKind.CALL, "driver": SliceKind.DRIVER_CALL}
        kind = calls.get(low.rpartition("_")[2], SliceKind.OTHER)
    is_collective = _MAY_COMMUNICATE.get(kind)
    return SliceKind.COLLECTIVE if name and is_collective is not None and is_collective(name) else kind


@lru_cache(maxsize=1 << 14)
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


_STARTS = tuple(
    (kind, re.compile(rf"[a-z]{{2,12}}({core})(_(v\d+|ptsz|ptds|spt))*"))
    for kind, core in (
        (StartedWork.GRAPH, r"\w*Graph(Exec)?Launch|Enqueue(Graph|CommandBuffer)Exp"),
        (
            StartedWork.KERNEL,
            r"(Ext|Drv|Hcc)?(Module)?Launch((Cooperative|Multi)?Kernel[A-Za-z]*|ByPtr|Grid(Async)?)?"
            r"|Enqueue(Cooperative)?KernelLaunch[A-Za-z]*"
            r"|CommandListAppendLaunch(Cooperative|Multiple)?Kernels?[A-Za-z]*|LaunchControlBlocks",
        ),
        (
            StartedWork.COPY,
            r"Memcpy(?!\w*(Node|Attribute))[A-Z0-9a-z]*|(EnqueueUSM|USMEnqueue)Memcpy(2D)?"
            r"|EnqueueMem(Buffer|Image)(Read|Write|Copy)[A-Za-z]*|CommandListAppendMemoryCopy[A-Za-z]*"
            r"|LaunchDM[IO]ControlBlocks",
        ),
        (
            StartedWork.FILL,
            r"Memset(?!\w*Node)[A-Z0-9a-z]*|EnqueueUSMFill(2D)?|USMEnqueue(Memset|Fill)"
            r"|EnqueueMemBufferFill|CommandListAppendMemoryFill",
        ),
    )
)
"""Names of calls, whoever's they are: cudaLaunchKernelExC, cuMemcpyHtoDAsync_v2, hipExtModuleLaunchKernel,
zeCommandListAppendLaunchKernel, urEnqueueUSMFill, musaGraphLaunch, aiuLaunchControlBlocks, with the endings
of versions and of streams by thread.
"""


@lru_cache(maxsize=1 << 12)
def started_work(call: str) -> StartedWork | None:
    """Return what a call starts by its name, None for all that starts no work: waits, events, allocations,
    host functions (`cudaLaunchHostFunc`), nodes that are added to a graph.
    """
    return next((kind for kind, pattern in _STARTS if pattern.fullmatch(call)), None)


CAPTURE_BEGINS = re.compile(r"[a-z]{2,12}StreamBeginCapture\w*")
CAPTURE_ENDS = re.compile(r"[a-z]{2,12}StreamEndCapture\w*")
"""Between these a stream only records into a graph: what is launched there does not run."""
