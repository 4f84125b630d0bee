"""Rules about the host: ops, calls, waiting, the first step."""

from __future__ import annotations

from typing import Final

from .rule import GUIDE, OWN, TENSORBOARD, Rule

HOST_RULES: Final = (
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
        "forward-backward",
        "Backward is linked to forward",
        "the trace links backward operators with the forward ones they belong to",
        GUIDE,
        "b and o on a backward operator lead to the forward one and back.",
        {},
        note=True,
    ),
)
