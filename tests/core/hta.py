"""The rules and the rounding of Holistic Trace Analysis, to hold our numbers against its own."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.corpus import CORPUS, GOLDENS
from tracelane.core.base.arrays import AnyArray
from tracelane.core.index.store import Index
from tracelane.core.trace import Trace, open_trace

NAMES = (
    "dlrm_8gpu_ranks0-3",
    "hta_a100_resnet_ddp_nccl",
    "hta_mi250_minitoy_rocm62",
    "spyre_decode_bmm_upstream-main",
    "tl_h100_qwen_infer",
    "tl_mi300_resnet_train_rank0of8",
)
EXACT = "exact_device_cats_types_0.5.0_latest_end_rule"
PREVIOUS_ROW = "exact_stream_set_types_0.5.0_prev_row_rule"
HEAD = "exact_stream_set_types_f4d0062"

COMMUNICATION = re.compile(r"^nccl.*Kernel")
MEMORY = re.compile(r"(^Memcpy)|(^Memset)|(^dma)")
NO_COMPUTE = re.compile(r"(^nccl.*Kernel)|(.*(Memcpy)|(Memset))|(.*Sync)")
"""HTA 0.5.0's own patterns, matched at the name's start."""


@cache
def golden(name: str) -> dict[str, Any]:
    """Return a reference of exact numbers."""
    return dict(json.loads((GOLDENS / "hta" / f"{name}.exact.json").read_bytes()))


def opened(name: str, rank: str, cache_folder: Path) -> Trace:
    """Open the trace of one rank of a reference."""
    file = golden(name)["inputs"][rank]["file"].removeprefix("share/")
    return open_trace(CORPUS / file, index_dir=cache_folder)


RANKS = [
    (name, rank) for name in NAMES for rank in (("0", "1", "2", "3") if name.startswith("dlrm") else "0")
]


def rule_050(index: Index, names: AnyArray, categories: AnyArray) -> AnyArray:
    """Tell the types of kernels as HTA 0.5.0 does: compute 0, communication 1, memory 2, none 255."""
    return np.array([_type(name) for name in index.strings(names)], np.uint8)


def _type(name: str) -> int:
    if COMMUNICATION.match(name):
        return 1
    if MEMORY.match(name):
        return 2
    return 255 if NO_COMPUTE.match(name) else 0
