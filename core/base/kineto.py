"""The words of PyTorch's profiler (Kineto) and its backends: categories, flow kinds, names with a meaning."""

from __future__ import annotations

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


_GROUP_OF = {category: group for group, categories in GROUPS.items() for category in categories}


def group_of(category: object) -> str:
    """Return the group of a category as decoded."""
    return _GROUP_OF.get(category, "other") if type(category) is str else "other"


LAUNCH_FLOWS = frozenset({"ac2g", "async_cpu_to_gpu", "async"})
DEVICE = GROUPS["device"] | {"privateuse1_driver"}
RUNTIME = GROUPS["runtime"] - {"overhead", "privateuse1_driver"}
OPS = frozenset({"cpu_op", "Operator", "operator"})
ANNOTATIONS = frozenset({"user_annotation"})
DEVICE_ANNOTATION = "gpu_user_annotation"
"""What the host annotated, drawn over the device work that it launched: it is no work itself."""
NOT_LAUNCHED = frozenset({DEVICE_ANNOTATION, "cuda_sync", "xpu_sync", "cuda_event"})
"""Device categories that tell of work but are none."""
STEP = "ProfilerStep"
