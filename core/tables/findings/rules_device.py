"""Rules about devices: how busy they are, what they run, what they hold and copy."""

from __future__ import annotations

from typing import Final

from .rule import GUIDE, HTA, OWN, TENSORBOARD, Rule

DEVICE_RULES: Final = (
    Rule(
        "overhead-bound",
        "Overhead-bound",
        "the device is busy less than {busy_share} of the time from its first to its last work, the host at "
        "least {ratio} times as long, and during at least {host_share} of the idle time",
        f"{GUIDE}; utilisation below 50 %: {TENSORBOARD}",
        "Fewer and larger kernels: a larger batch, fusion (torch.compile), graphs (CUDA graphs, whole-graph "
        "launches); less Python between launches.",
        {"busy_share": 0.5, "ratio": 2, "host_share": 0.5},
    ),
    Rule(
        "device-idle",
        "Device idle",
        "the device is busy less than {busy_share} of the time from its first to its last work, and the host "
        "does not account for the idle time (else it is overhead-bound)",
        TENSORBOARD,
        "Look at what the longest gaps wait for: input, another rank, a synchronisation, work that is not "
        "traced.",
        {"busy_share": 0.5},
    ),
    Rule(
        "device-bound",
        "Device-bound",
        "the device is busy at least {busy_share} of the time from its first to its last work",
        f"{GUIDE}; the limit is {OWN}",
        "The host keeps up: faster kernels are what helps. Start with those that take most time; lower "
        "precision, better tiling, fusion of what only moves memory; where it is communication, less of it.",
        {"busy_share": 0.8},
    ),
    Rule(
        "launch-gaps",
        "Gaps while the host launches",
        "gaps that end with a launch made after the work before was done (host waits) are at least "
        "{class_share} of the streams' idle time and {share} of the time from first to last work",
        f"{HTA}'s idle breakdown; the limits are {OWN}",
        "Launch ahead of the device: no synchronisation in the loop, less work between launches, graphs, "
        "fusion.",
        {"class_share": 0.5, "share": 0.1},
    ),
    Rule(
        "communication",
        "Exposed communication",
        "communication that no compute hides takes more than {share} of the step time (without steps: of the "
        "time looked at)",
        f"{TENSORBOARD}, which counts hidden communication too",
        "Overlap it with compute (larger or earlier buckets), communicate less often (gradient "
        "accumulation) or less (compression, sharding).",
        {"share": 0.1},
    ),
    Rule(
        "copies",
        "Copies (DMA)",
        "copies that no compute hides take at least {share} of the device's busy time",
        f"analyses of AIU traces (DMA share); the limit is {OWN}",
        "Keep data on the device between steps, copy in larger pieces, from pinned memory, asynchronously "
        "beside compute.",
        {"share": 0.2},
    ),
    Rule(
        "pageable-copies",
        "Copies of pageable memory",
        "the device copies from or to pageable memory of the host, as the copies' names say",
        "PyTorch, performance tuning guide (pinned memory)",
        "Pinned memory (pin_memory=True in the data loader, tensor.pin_memory()) with non_blocking=True.",
        {},
    ),
    Rule(
        "first-kernel",
        "The first launch waits",
        "the work of the first launch starts at least {delay_ns} after its call and {times} times as late as "
        "the median",
        f"{GUIDE} (about 2.5 ms there: the profiler's first buffer, or a cold device); the limits are {OWN}",
        "Nothing, if it is the profiler: warm up before recording (schedule with wait and warmup) and do not "
        "count this step.",
        {"delay_ns": 1_000_000, "times": 10},
    ),
    Rule(
        "device-hotspot",
        "One kernel dominates",
        "one kernel name takes at least {share} of all kernel time (copies and allocations aside), and it is "
        "not the only one",
        f"{GUIDE} (hotspot); the limit is {OWN}",
        "This is the kernel to make faster: its shapes, precision and tiling, or what calls it so often.",
        {"share": 0.5},
    ),
    Rule(
        "uneven-kernel",
        "A kernel varies",
        "of a compute kernel with at least {count} runs (same name, grid and block) some take over {times} "
        "times the median; what they take beyond the median is claimed",
        f"{GUIDE}; the limits are {OWN}",
        "Compare the slow runs with the others: other shapes, contention for memory, clocks that change, a "
        "cold cache after a copy.",
        {"count": 8, "times": 2},
    ),
    Rule(
        "short-kernels",
        "Kernels shorter than their launch",
        "at least {share} of the launch calls, and {count}, take longer than all that they launch (blocking "
        "copies aside)",
        f"{HTA}'s launch statistics; the limits are {OWN}",
        "Fuse them (torch.compile), launch them as a graph, or batch more work into each.",
        {"share": 0.5, "count": 20},
    ),
    Rule(
        "memory-limit",
        "Close to the memory's limit",
        "an allocator's peak is at least {share} of the memory that the device has",
        TENSORBOARD,
        "Smaller batches, checkpointing, lower precision; `tracelane memory` says what was live at the peak. "
        "An engine that takes memory for its cache ahead does so on purpose.",
        {"share": 0.9},
        always=True,
    ),
    Rule(
        "memory-growth",
        "Memory grows from step to step",
        "an allocator holds more at the end of each of at least {steps} steps than at the end of the one "
        "before, altogether {share} of its peak or more",
        OWN,
        "Look for what outlives its step: lists of losses with their graphs, caches, hooks; `tracelane "
        "memory` says what was never released.",
        {"steps": 3, "share": 0.01},
        always=True,
    ),
    Rule(
        "occupancy-query",
        "Adaptive launches",
        "the runtime is asked for the occupancy of a kernel before it is launched",
        f"{GUIDE}",
        "A library chooses the launch by it: those are GEMMs or convolutions that adapt to the device. "
        "Nothing to do.",
        {},
        note=True,
    ),
    Rule(
        "hidden-copies",
        "Copies before matrix products",
        "right before a matrix product on the same stream stands a copy within the device that the same "
        "addmm launched: it puts the bias in place",
        GUIDE,
        "A fused epilogue avoids the copy: linear with a one-dimensional bias, torch.compile, max-autotune.",
        {},
    ),
)
