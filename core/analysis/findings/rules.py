"""The rules: from which threshold on they speak, where that comes from, and what usually helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .rule import AIU, GUIDE, HTA, OWN, PYTORCH, TENSORBOARD, Rule

FLOOR_SHARE: Final = 0.01
"""A loss that claims less of the time that was looked at is not told."""


_RULES: Final = (
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
        "host-hotspot",
        "One operator dominates the host",
        "one operator or call (no wait) takes at least {share} of the host's self time",
        f"{GUIDE} (hotspot); the limit is {OWN}",
        "Look at where it is called from, and whether it must run that often or at all.",
        {"share": 0.5},
    ),
    Rule(
        "many-calls",
        "Many calls of a cheap operator",
        "an operator or call is made at least {count} times, takes less than {mean_ns} on average, and at "
        "least {share} of the host's busy time altogether",
        f"{GUIDE}; the limits are {OWN}",
        "Batch it (foreach and fused variants, larger tensors), move it out of the loop, or let the compiler "
        "fuse it.",
        {"count": 500, "mean_ns": 10_000, "share": 0.1},
    ),
    Rule(
        "cost-in-children",
        "The cost is in the children",
        "an operator takes at least {share} of the host's busy time, but at most {self_share} of that itself",
        f"{GUIDE} (self against total); the limits are {OWN}",
        "Go down: the child named is where the time is.",
        {"share": 0.2, "self_share": 0.05},
        note=True,
    ),
    Rule(
        "sync",
        "Waits with little device work",
        "over at least {share} of the time in which the host waits for the device, the device does nothing",
        f"{GUIDE} (a long synchronise over little work); the limit is {OWN}",
        "Drop the synchronisation or move it to where the result is needed: .item(), .cpu(), print of a "
        "tensor, blocking copies.",
        {"share": 0.5},
    ),
    Rule(
        "dataloader",
        "Waiting for input",
        "the data loader takes more than {share} of the step time",
        TENSORBOARD,
        "More workers (num_workers), prefetching, pinned memory, cheaper transforms.",
        {"share": 0.05},
    ),
    Rule(
        "profiler",
        "The profiler itself",
        "the profiler's own work is in the trace (buffer requests, clock calibration); idle time under it is "
        "not blamed on anything else",
        f"{GUIDE}; CUPTI's overhead records",
        "Nothing to do: leave out these steps, or warm up before recording.",
        {},
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
        "cold-start",
        "Cold start",
        "the first step takes at least {times} times the median of those after it",
        f"{GUIDE}; the limit is {OWN}",
        "Warm up before measuring (compilation, allocators, autotuning, the profiler's buffers), and skip "
        "the first step in averages.",
        {"times": 2},
    ),
    Rule(
        "late-first-op",
        "Nothing runs at the start",
        "between the start of an annotation and the first operator or call in it lie at least {gap_ns} and "
        "{share} of it",
        f"{GUIDE} (there: the first aten operator); the limits are {OWN}",
        "See what the Python code does there (with_stack=True shows it): input, setup, compilation.",
        {"gap_ns": 100_000, "share": 0.1},
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
    Rule(
        "forward-backward",
        "Backward is linked to forward",
        "the trace links backward operators with the forward ones they belong to",
        GUIDE,
        "b and o on a backward operator lead to the forward one and back.",
        {},
        note=True,
    ),
    Rule(
        "graph-breaks",
        "Nested compiled regions",
        "a compiled region lies in another: a graph break or a disabled region; the time of the outer one "
        "outside compiled graphs is claimed",
        PYTORCH,
        "TORCH_LOGS=graph_breaks names the lines; torch.compile(fullgraph=True) refuses them.",
        {},
        always=True,
    ),
    Rule(
        "recompiled",
        "Recompiled",
        "one frame runs with several compile ids (the number after the slash grows)",
        f"{PYTORCH}; TORCH_LOGS=recompiles",
        "TORCH_LOGS=recompiles names the guard that failed: mark sizes dynamic, keep constants constant.",
        {},
        always=True,
    ),
    Rule(
        "compile-time",
        "Compilation in the trace",
        "dynamo, AOT or inductor compile while the trace is recorded",
        PYTORCH,
        "Warm up before recording; keep the caches (FX graph cache, TORCHINDUCTOR_CACHE_DIR) between runs.",
        {},
    ),
    Rule(
        "compiled-overhead",
        "Overhead around compiled graphs",
        "cache lookups, bytecode and wrappers before compiled graphs take at least {share} of the time in "
        "compiled regions",
        f"{GUIDE}; the limit is {OWN}",
        "Compile larger regions (the outermost module), avoid graph breaks; it is a price per call, so "
        "larger batches pay it less often.",
        {"share": 0.1},
    ),
    Rule(
        "compiled-slower",
        "Compiled steps are slower",
        "the median step with compiled regions takes longer than the median step without",
        GUIDE,
        "For tiny work the price of each compiled call exceeds what it saves: compile more at once, or not "
        "this part.",
        {},
    ),
    Rule(
        "fused-ops",
        "Matrix products in compiled graphs",
        "compiled graphs call addmm (a product and a sum in one) or bmm",
        GUIDE,
        "Expected: inductor turns add and mm into addmm, and batched products into bmm.",
        {},
        note=True,
    ),
    Rule(
        "triton",
        "Triton kernels",
        "kernels named triton_… run on the device",
        f"{GUIDE}; {PYTORCH}",
        "The name holds the fused operators; the CPU slice of the same name launched it.",
        {},
        note=True,
    ),
    Rule(
        "device-clock",
        "The device's clock cannot be right",
        "device work begins before the call that launched it began, or all of it lies further from the "
        "host's time than both last",
        OWN,
        "What combines both sides (launch delays, gaps, steps) is wrong by as much. --device-offset auto, or "
        "“Estimate the device's clock” in the viewer, moves the device; times that are lost stay so.",
        {},
        always=True,
    ),
    Rule(
        "aiu-convert",
        "Data conversion on the host",
        "aiuDataConvert takes at least {share} of the time looked at",
        f"{AIU}; the limit is {OWN}",
        "Keep tensors in the device's format between calls; transfer less, convert once.",
        {"share": 0.05},
    ),
    Rule(
        "aiu-launch",
        "Launching control blocks",
        "launches of control blocks (aiuLaunch…ControlBlocks) take at least {share} of the time looked at",
        f"{AIU}; the limit is {OWN}",
        "Fewer, larger kernels; look whether the launch waits for room on the device.",
        {"share": 0.05},
    ),
    Rule(
        "aiu-barriers",
        "RDMA barriers",
        "RDMA barriers and preparation take at least {share} of the time looked at",
        f"{AIU}; the limit is {OWN}",
        "Ranks wait for each other: compare them, the last to arrive does the most.",
        {"share": 0.05},
    ),
    Rule(
        "aiu-waits",
        "Waiting for the AIU's scheduler",
        "waits for the scheduler or for room in the queue while the device is not busy take at least {share} "
        "of the time looked at",
        f"{AIU}; the limit is {OWN}",
        "Look at what the device did before: the wait is for what is not traced (preparation, other ranks).",
        {"share": 0.05},
    ),
    Rule(
        "aiu-graph",
        "Graph set-up and compilation",
        "aiuInitGraph, aiuCompileGraph and what they prepare take at least {share} of the time looked at",
        f"{AIU}; the limit is {OWN}",
        "Warm up before recording; keep compiled graphs between runs.",
        {"share": 0.05},
    ),
)
RULES: Final[Mapping[str, Rule]] = {rule.id: rule for rule in _RULES}


def rules_table() -> str:
    """Return all rules as Markdown, for the docs."""
    lines = ["| rule | speaks when | from | what usually helps |", "|---|---|---|---|"]
    for rule in RULES.values():
        kind = " (a note)" if rule.note else ""
        lines.append(f"| `{rule.id}`{kind}: {rule.title} | {rule.threshold} | {rule.origin} | {rule.helps} |")
    return "\n".join(lines) + "\n"
