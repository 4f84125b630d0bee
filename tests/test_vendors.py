"""Vendors and producers stand in two tables; elsewhere core decides nothing by their names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.corpus import ROOT
from tracelane.core.base.vendors import VENDORS, Vendor, any_of

ROOMS = ("index", "query", "trace", "tables")
TABLE = "core/index/producers.py"
NAMES = re.compile(
    r"[nrh]ccl|oneccl|hcoll|gloo|cuda|cupti|nvtx|roctx|nvidia|\bhip(?=[A-Z_]|\b)|xla\b|\btpu|aiu|\bflex\b|FLEX"
    r"|spyre|privateuse|mtia|\bxpu|sycl|gaudi|\bhpu|\bnpu\b|Ascend (Hardware|NPU)|\bcann\b|msprof|rocprof"
    r"|rocm|rocprim|musa|tensorflow|proton|nsys|nsight|viztracer|kineto|triton|inductor|vllm|sglang"
    r"|cutlass|cublas|cudnn|nvjet|rocblas|SenRdma|Cmpt (Exec|Prep)|\bDma[IO]\b",
    re.IGNORECASE,
)
"""Words of vendors of devices, their libraries and tools, and of compilers and engines."""


class Allowed(NamedTuple):
    """Where such words may stand, and why."""

    file: str  # below core
    literal: str  # a regular expression that the literal matches
    why: str


ONE_FORM = "the file is about one producer's form, and is asked only of files of it"
COMPILERS = "what compilers call their code, by which compiled code is known: none of them writes traces"
MESSAGE = "advice, or where a rule comes from: it is said, and nothing is decided by it"
TORCH = "an operator, a device or a setting of PyTorch, by its own name"
EXCEPTIONS = (
    Allowed("index/flex.py", "", ONE_FORM),
    Allowed("index/analyzer.py", "", ONE_FORM),
    Allowed("trace/cycle_stamps.py", "", ONE_FORM),
    Allowed(
        "trace/collectives.py",
        r"\^aiuCommsColl|hcoll|^nccl:$",
        "which kind a collective is, by its library's words",
    ),
    Allowed("trace/devices.py", r"^AIU ?$|^CUDA$", "what devices are called that no file labels"),
    Allowed("trace/step_names.py", "", "what engines call their steps: they write no traces"),
    Allowed("tables/explain/explain.py", "", "explanations of single calls by their names"),
    Allowed("tables/explain/questions.py", r"\b(nccl|triton)\b", "words that people ask in"),
    Allowed("tables/findings/aiu.py", "", "rules about the calls of one vendor's runtime"),
    Allowed("tables/findings/rule.py", "", MESSAGE),
    Allowed("tables/findings/judge.py", "^aiu$", "the name of a file with rules"),
    Allowed(
        "tables/findings/*.py",
        r"NVIDIA|CUDA|cudnn|nvidia-smi|cuda\.set_sync|TORCHINDUCTOR|CUPTI|Triton kernel|AIU traces|inductor",
        MESSAGE,
    ),
    Allowed("tables/findings/*.py", r"^aiu-", "the ids of rules"),
    Allowed("tables/findings/*.py", r"triton", COMPILERS),
    Allowed("tables/findings/efficiency.py", r"scudnn", "kernels in fp32, by the names of libraries"),
    Allowed("tables/findings/compiled.py", r"cublas", "calls that load libraries, whoever's"),
    Allowed("tables/findings/kernels.py", r"hipMemcpyDtoD", "copies within a device, in all spellings"),
    Allowed(
        "tables/doctor/*.py", r"AIU|Kineto|FLEX|CUDA\)|aiu-trace-analyzer|torch-spyre|kineto-spyre", MESSAGE
    ),
    Allowed("tables/doctor/rule.py", r"^cuda_runtime_version$", "a key of the file's own"),
    Allowed(
        "tables/frame/kinds.py", "", "the table of what kernels compute: libraries are known there by name"
    ),
    Allowed("tables/compile/*.py", "", COMPILERS),
    Allowed("tables/absent.py", "", COMPILERS),
    Allowed("tables/device/aiu_cycles.py", "", ONE_FORM),
    Allowed("tables/device/op_costs.py", r"^aten::", TORCH),
    Allowed("tables/host/allocators.py", "", TORCH),
    Allowed("tables/host/host_columns.py", r"aten::", TORCH),
    Allowed("tables/path/path_graph.py", r"^wait_on_cuda_event", "an argument of the format"),
    Allowed(
        "tables/ranks/rank_groups.py", r"^(gloo|nccl)$", "words in names of process groups that say no axis"
    ),
    Allowed("tables/registry.py", "", "texts of help"),
)


def _literals() -> Iterator[tuple[str, int, str]]:
    """Yield (file, line, text) of each literal of the rooms that names somebody; docstrings are none."""
    for room in ROOMS:
        for path in sorted((ROOT / "core" / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            tree = ast.parse(path.read_text(encoding="utf-8"))
            said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                value = node.value if isinstance(node, ast.Constant) and id(node) not in said else None
                if isinstance(value, str) and NAMES.search(value) and name != TABLE:
                    yield name, node.lineno, value


def test_names_of_vendors_stand_in_the_tables() -> None:
    """No literal and no pattern of index, query, trace and tables names a vendor or producer, but for listed
    ones; every exception is needed.
    """
    used: set[Allowed] = set()
    rest = []
    for file, line, text in _literals():
        fits = [
            one for one in EXCEPTIONS if Path(file).match(f"core/{one.file}") and re.search(one.literal, text)
        ]
        used.update(fits)
        if not fits:
            rest.append(f"{file}:{line}: {text[:80]!r}")
    assert not rest, "\n".join(rest)
    assert not set(EXCEPTIONS) - used, set(EXCEPTIONS) - used


@pytest.mark.parametrize(
    "field", [name for name in Vendor._fields if isinstance(getattr(VENDORS[0], name), str)]
)
def test_fields_are_expressions(field: str) -> None:
    """Each field of each vendor is an expression by itself, which matches nothing empty."""
    for vendor in VENDORS:
        text = getattr(vendor, field)
        assert not text or re.compile(text).search("") is None, vendor.name
    if field not in ("name", "prefix", "word"):
        assert any_of(field)
