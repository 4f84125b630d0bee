"""Where the corpus of real traces lies, and the reference numbers beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("TRACELANE_CORPUS", ROOT.parent / "shared" / "traces")).absolute()
GOLDENS = Path(os.environ.get("TRACELANE_GOLDENS", CORPUS.parent / "goldens"))

CASES = Path(os.environ.get("TRACELANE_CASES", CORPUS.parent / "cases"))
HOSTILE_MAKER = CASES / "trust" / "hostile.py"
"""A program that makes real traces hostile: `hostile.py FOLDER CORPUS`."""

needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason=f"no corpus of real traces at {CORPUS} (set TRACELANE_CORPUS)"
)
needs_goldens = pytest.mark.skipif(
    not GOLDENS.is_dir(), reason=f"no reference numbers at {GOLDENS} (set TRACELANE_GOLDENS)"
)
needs_cases = pytest.mark.skipif(
    not CASES.is_dir(), reason=f"no small cases at {CASES} (set TRACELANE_CASES)"
)
needs_hostile_maker = pytest.mark.skipif(
    not HOSTILE_MAKER.is_file(), reason=f"no maker of hostile traces at {HOSTILE_MAKER}"
)

REPRESENTATIVE = {
    *("aiu/acelyzer_spyre_mlp_tb.pt.trace.json", "aiu/sample_flex_3062_job_4.json"),
    *("chrome/catapult_nestable_async.json", "chrome/viztracer_vdb_basic.json"),
    *("cpu/torch213_mlp_shapes_mem_stack_steps.json.gz", "gpu/hta_gpu_user_annotation.json.gz"),
    *("gpu/hta_mi250_minitoy_rocm62.json.gz", "gpu/kineto_tb_gpu_metrics_counters.json"),
    *("gpu/tl_vllm_decode_cudagraph_exec.json.gz", "odd/flows_odd.json", "odd/truncated_mid_event.json"),
    "multirank/dlrm_8gpu_ranks0-3/worker0_step_12.1694128201545.pt.trace.json.gz",
}
"""A file of each kind: what `make test` reads of the corpus where a test would read all of it."""
LATER = (pytest.mark.corpus, pytest.mark.slow)
"""Marks of what only `make test-corpus` tries."""


def later(value: Any) -> Any:
    """Return a parameter, or a tuple of several, that only `make test-corpus` tries."""
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=LATER)


def representative(files: Iterable[Any]) -> list[Any]:
    """Return paths below the corpus as parameters: those of one file of each kind, the others for later."""
    return [file if str(file).removeprefix(f"{CORPUS}/") in REPRESENTATIVE else later(file) for file in files]


def thinned(values: Iterable[Any], every: int) -> list[Any]:
    """Return parameters of which `make test` tries every n-th, and `make test-corpus` the others."""
    return [later(value) if at % every else value for at, value in enumerate(values)]


@cache
def accounting() -> dict[str, Any]:
    """Return accounting.json's entries by corpus path; empty when it is absent."""
    path = GOLDENS / "accounting.json"
    return dict(json.loads(path.read_bytes())["files"]) if path.is_file() else {}


@cache
def recoverable() -> dict[str, int]:
    """Return how many events must at least be read from files that are no valid JSON."""
    path = GOLDENS / "recoverable.json"
    return dict(json.loads(path.read_bytes())["files"]) if path.is_file() else {}
