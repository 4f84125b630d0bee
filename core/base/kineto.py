"""The words of PyTorch's profiler (Kineto) and its backends: categories, flow kinds, names with a meaning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

GROUPS: dict[str, frozenset[str]] = {
    "op": frozenset({"cpu_op", "user_annotation", "Operator", "operator"}),
    "python": frozenset({"python_function"}),
    "runtime": frozenset(
        {
            "cuda_runtime",
            "cuda_driver",
            "Runtime",
            "runtime",
            "xpu_runtime",
            "xpu_driver",
            "mtia_runtime",
            "privateuse1_runtime",
            "privateuse1_driver",
            "glow_runtime",
            "overhead",
        }
    ),
    "device": frozenset(
        {
            "kernel",
            "Kernel",
            "gpu_memcpy",
            "gpu_memset",
            "Memcpy",
            "Memset",
            "gpu_user_annotation",
            "cuda_sync",
            "mtia_ccp_events",
            "mtia_insight",
            "hpu_op",
            "collective_comm",
            "xpu_sync",
            "cuda_event",
        }
    ),
    "memory": frozenset({"cpu_instant_event"}),
    "other": frozenset(),  # every category not named above, and none at all
}
"""Category -> which arguments are promoted to columns; a category in no group belongs to "other"."""

MEMORY_RECORD = "[memory]"
"""The name of an instant that an allocator recorded."""

_GROUP_OF = {category: group for group, categories in GROUPS.items() for category in categories}


def group_of(category: object) -> str:
    return _GROUP_OF.get(category, "other") if type(category) is str else "other"


@dataclass(frozen=True)
class Categories:
    """A set of categories: those named, and with `vendors` every other `<vendor>_runtime`, `<vendor>_driver`.

    Backends of their own name the calls of their runtime like that (`npu_runtime`, `musa_driver`).
    """

    names: frozenset[str]
    vendors: bool = False

    def __contains__(self, category: object) -> bool:
        if category in self.names or not isinstance(category, str):
            return category in self.names
        return self.vendors and category not in _GROUP_OF and vendor_of(category) != ""

    def __or__(self, others: frozenset[str]) -> Categories:
        return Categories(self.names | others, self.vendors)

    __ror__ = __or__


def vendor_of(category: str) -> str:
    """Return whose runtime or driver a category is of, by its name: "cuda", "npu"; "" for all others."""
    vendor, _, kind = category.rpartition("_")
    return vendor if kind.lower() in ("runtime", "driver") else ""


LAUNCH_FLOWS = frozenset({"ac2g", "async_cpu_to_gpu", "async", "api_op"})
"""Categories of arrows from calls to the work that they start; the last is rocprof's (RPD)."""
DEVICE = GROUPS["device"] | {"privateuse1_driver"}
RUNTIME = Categories(GROUPS["runtime"] - {"overhead", "privateuse1_driver"}, vendors=True)
"""Calls into the runtime or driver of a device."""
OPS = frozenset({"cpu_op", "Operator", "operator"})
ANNOTATIONS = frozenset({"user_annotation"})
DEVICE_ANNOTATION = "gpu_user_annotation"
"""What the host annotated, drawn over the device work that it launched: it is no work itself."""
NOT_LAUNCHED = frozenset({DEVICE_ANNOTATION, "cuda_sync", "xpu_sync", "cuda_event"})
"""Device categories that tell of work but are none."""
STEP = "ProfilerStep"
KERNEL_CATEGORIES = frozenset(
    {
        "hpu_op",  # a kernel of Gaudi
        "kernel",
        "Kernel",
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
)
"""Categories that are never a device's work. On a device whose categories are unknown all others are."""


def work_of_categories(present: Iterable[str]) -> frozenset[str]:
    """Return which of the categories on a device's lanes are work: those known as work, where there are none
    all that are not known as something else.
    """
    present = frozenset(present)
    return present & WORK or frozenset(category for category in present if category not in NOT_WORK)
