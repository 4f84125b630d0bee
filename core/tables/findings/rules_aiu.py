"""Rules about AIUs, and about the clocks that their traces get wrong."""

from __future__ import annotations

from typing import Final

from .rule import AIU, OWN, Rule

AIU_RULES: Final = (
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
